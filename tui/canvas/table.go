// SPDX-License-Identifier: Apache-2.0

package canvas

import (
	"slices"
	"strings"
)

// Column is one column of a table. If a table is too wide, columns are dropped, the greatest number first; those with 0
// always stay. Cells are clipped to most, if that is set.
type Column struct {
	Title string
	Drop  int
	Most  int
	Cells []Span
}

func (c Column) width() int {
	w := Cells(c.Title)
	for _, cell := range c.Cells {
		w = max(w, Cells(cell.Text))
	}
	if c.Most > 0 {
		w = min(w, c.Most)
	}
	return w
}

// Table draws columns under their titles, as many of them as fit.
func (g Glyphs) Table(columns []Column, width int) Block {
	columns = narrow(slices.Clone(columns), width)
	rows := 0
	widths := make([]int, len(columns))
	for i, c := range columns {
		rows = max(rows, len(c.Cells))
		widths[i] = c.width()
	}
	out := make(Block, 0, rows+1)
	for row := -1; row < rows; row++ {
		l := make(Line, 0, len(columns))
		for i, c := range columns {
			cell := Span{Text: c.Title, Style: Faint}
			if row >= 0 {
				cell = c.Cells[row]
			}
			gap := " "
			if i > 1 {
				gap = "  "
			}
			if i > 0 {
				l = append(l, Span{Text: gap})
			}
			text := g.Clip(cell.Text, widths[i])
			l = append(l, Span{Text: text, Style: cell.Style}, Span{Text: strings.Repeat(" ", widths[i]-Cells(text))})
		}
		out = append(out, l)
	}
	return out
}

func narrow(columns []Column, width int) []Column {
	for {
		total, last := 0, -1
		for i, c := range columns {
			total += c.width() + 2
			if c.Drop > 0 && (last < 0 || c.Drop > columns[last].Drop) {
				last = i
			}
		}
		if total-3 <= width || last < 0 {
			return columns
		}
		columns = slices.Delete(columns, last, last+1)
	}
}

// Rule is a line with a title.
func (g Glyphs) Rule(title string, width int) Line {
	title = g.Flat + g.Flat + " " + title + " "
	return Line{{Text: title + strings.Repeat(g.Flat, max(0, width-Cells(title))), Style: Faint}}
}
