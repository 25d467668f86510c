// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
)

// Colour is the part of a terminal's palette that means something here.
type Colour string

// The colours, by meaning.
const (
	plain Colour = ""
	bold  Colour = "\x1b[1m"
	good  Colour = "\x1b[32m"
	warn  Colour = "\x1b[33m"
	bad   Colour = "\x1b[31m"
	dim   Colour = "\x1b[2m"
	reset        = "\x1b[0m"
)

// text is a piece of a line. Its width is counted before it is coloured.
type text struct {
	s      string
	colour Colour
}

// width is how many columns a text takes as paint writes it.
func width(s string) int { return utf8.RuneCountInString(escape.Line(s)) }

// paint never breaks a line and leaves nothing in the text that steers a terminal: most texts come from the cluster.
func (o Options) paint(t text) string {
	s := escape.Line(t.s)
	if !o.Color || t.colour == plain || s == "" {
		return s
	}
	return string(t.colour) + s + reset
}

// flow puts pieces on a line, two blanks apart, and continues indented on the next line if they do not fit.
func (o Options) flow(indent int, pieces ...text) string {
	var b strings.Builder
	used := 0
	for i, p := range pieces {
		switch {
		case p.s == "":
			continue
		case i == 0:
		case o.Width > 0 && used+2+width(p.s) > o.Width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteString("  ")
			used += 2
		}
		b.WriteString(o.paint(p))
		used += width(p.s)
	}
	return b.String() + "\n"
}

// labelWidth is the width of the column of labels.
const labelWidth = 10

// paragraph puts a label and words on as many lines as they need.
func (o Options) paragraph(label text, words string) string {
	var b strings.Builder
	b.WriteString(o.paint(label))
	gap := max(1, labelWidth-width(label.s))
	used := width(label.s)
	for _, w := range strings.Fields(words) {
		if o.Width > 0 && used+gap+width(w) > o.Width && used > labelWidth {
			b.WriteString("\n")
			used, gap = 0, labelWidth
		}
		b.WriteString(strings.Repeat(" ", gap) + escape.Line(w))
		used += gap + width(w)
		gap = 1
	}
	return b.String() + "\n"
}

// column is one column of a table. If a table is too wide, columns are dropped, the greatest number first; those with 0
// always stay.
type column struct {
	title string
	// short replaces the title if the table would be too wide with it.
	short string
	drop  int
	cells []text
}

func (c column) width() int {
	w := width(c.title)
	for _, cell := range c.cells {
		w = max(w, width(cell.s))
	}
	return w
}

func (o Options) table(columns []column) string {
	columns = o.narrow(columns)
	var b strings.Builder
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c.cells))
	}
	for row := -1; row < rows; row++ {
		line, pending := strings.Builder{}, 0
		for _, c := range columns {
			cell := text{s: c.title, colour: dim}
			if row >= 0 {
				cell = c.cells[row]
			}
			line.WriteString(strings.Repeat(" ", pending) + o.paint(cell))
			pending = c.width() - width(cell.s) + 2
		}
		b.WriteString(line.String() + "\n")
	}
	return b.String()
}

// narrow shortens titles, then drops columns, until the table fits.
func (o Options) narrow(columns []column) []column {
	tooWide := func() bool {
		total := -2
		for _, c := range columns {
			total += c.width() + 2
		}
		return o.Width > 0 && total > o.Width
	}
	if tooWide() {
		for i, c := range columns {
			if c.short != "" {
				columns[i].title = c.short
			}
		}
	}
	for !o.Wide && tooWide() { // a user who asks for all columns gets them
		last := -1
		for i, c := range columns {
			if c.drop > 0 && (last < 0 || c.drop > columns[last].drop) {
				last = i
			}
		}
		if last < 0 {
			break // the rest is what a person needs; it may wrap
		}
		columns = append(columns[:last:last], columns[last+1:]...)
	}
	return columns
}
