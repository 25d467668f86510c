// SPDX-License-Identifier: Apache-2.0

// Package canvas makes text for a terminal: styled spans in lines and blocks, tables, and plots of measures. It is pure.
package canvas

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Style is a part of a terminal's own palette, so that it follows a light or dark theme. Words or signs always say what a
// style says.
type Style string

// The styles, by meaning.
const (
	Plain  Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Good   Style = "32"
	Warn   Style = "33"
	Bad    Style = "31"
	Chosen Style = "7"
)

// Span is a piece of a line.
type Span struct {
	Text  string
	Style Style
	// Follows is set in the first piece of a line that makes no sense without the line above it.
	Follows bool
}

// Line is the contents of one row.
type Line []Span

// Block is several lines, one under the other.
type Block []Line

// Glyphs are the signs that a terminal can draw.
type Glyphs struct {
	IsASCII                                          bool
	full, empty, Ellipsis, Arrow, Back               string
	Flat, Side, TopLeft, TopRight, LowLeft, LowRight string
}

// Unicode has the signs for a terminal that draws all of them.
var Unicode = Glyphs{
	full: "█", empty: "░", Ellipsis: "…", Arrow: "→", Back: "←",
	Flat: "─", Side: "│", TopLeft: "┌", TopRight: "┐", LowLeft: "└", LowRight: "┘",
}

// ASCII has the signs for one that does not.
var ASCII = Glyphs{
	IsASCII: true, full: "#", empty: ".", Ellipsis: "~", Arrow: "->", Back: "<-",
	Flat: "-", Side: "|", TopLeft: "+", TopRight: "+", LowLeft: "+", LowRight: "+",
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// Clean removes what could steer a terminal: messages come from servers, events from anyone in the cluster.
func Clean(s string) string {
	if plainASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
			return ' '
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
			return -1 // invisible, or changes the direction of writing
		}
		return r
	}, s)
}

// Cells is how many columns a text takes.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		if !single(r) {
			return lipgloss.Width(Clean(s))
		}
		n++
	}
	return n
}

// single is true for the most frequent signs, which take one column each: ASCII, arrows, lines and blocks.
func single(r rune) bool {
	return r >= 0x20 && r < 0x7f || r == '…' || r >= '←' && r <= '↓' || r >= 0x2500 && r <= 0x25a0
}

// Clip cuts a text to at most so many columns, and shows that it did.
func (g Glyphs) Clip(s string, width int) string {
	s = Clean(s)
	if Cells(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	used, end := 0, len(s)
	for i, r := range s {
		n := Cells(string(r))
		if used+n > width-1 {
			end = i
			break
		}
		used += n
	}
	// Signs that are drawn as one, such as the two of an emoji, may take more columns than each alone.
	for end > 0 && Cells(s[:end]) > width-1 {
		_, n := utf8.DecodeLastRuneInString(s[:end])
		end -= n
	}
	return s[:end] + g.Ellipsis
}

// Width is how many columns a line takes.
func (l Line) Width() int {
	n := 0
	for _, p := range l {
		n += Cells(p.Text)
	}
	return n
}

// Fit clips a line, or fills it up to the width.
func (g Glyphs) Fit(l Line, width int) Line {
	out, used := make(Line, 0, len(l)+1), 0
	for _, p := range l {
		n := Cells(p.Text)
		if used+n > width {
			p.Text = g.Clip(p.Text, width-used)
			n = Cells(p.Text)
		}
		out, used = append(out, p), used+n
		if used >= width {
			return out
		}
	}
	return append(out, Span{Text: strings.Repeat(" ", width-used)})
}

// Pad is a text in a column of a table.
func (g Glyphs) Pad(s string, width int) string {
	s = g.Clip(s, width)
	return s + strings.Repeat(" ", width-Cells(s))
}

// Beside puts blocks next to each other, each as wide as widths says.
func (g Glyphs) Beside(widths []int, blocks ...Block) Block {
	height := 0
	for _, b := range blocks {
		height = max(height, len(b))
	}
	out := make(Block, height)
	for i, b := range blocks {
		for row := range height {
			var l Line
			if row < len(b) {
				l = b[row]
			}
			if i > 0 {
				out[row] = append(out[row], Span{Text: "  "})
			}
			out[row] = append(out[row], g.Fit(l, widths[i])...)
		}
	}
	return out
}

// Wrap breaks words into lines after a label; lines after the first are indented as far as the words.
func (g Glyphs) Wrap(label Span, indent int, words string, width int) Block {
	var out Block
	row := Line{label, {Text: strings.Repeat(" ", max(1, indent-Cells(label.Text)))}}
	used, filled := row.Width(), false
	for _, w := range strings.Fields(words) {
		n := Cells(w)
		if filled && used+1+n > width {
			out = append(out, row)
			row, used, filled = Line{{Text: strings.Repeat(" ", indent)}}, indent, false
		}
		if filled {
			w, n = " "+w, n+1
		}
		row, used, filled = append(row, Span{Text: w}), used+n, true
	}
	return append(out, row)
}

// LabelWidth is the width of the column of labels.
const LabelWidth = 10

// Paragraph puts words after a label in the column of labels.
func (g Glyphs) Paragraph(label Span, words string, width int) Block {
	return g.Wrap(label, LabelWidth, words, width)
}

// Whole makes a block one that Top does not cut in two.
func (b Block) Whole() Block {
	for i := 1; i < len(b); i++ {
		if len(b[i]) > 0 {
			b[i][0].Follows = true
		}
	}
	return b
}

// Top is how many lines of a block to show where there are rows for at most so many: what is Whole is shown whole, or not at all.
func (b Block) Top(rows int) int {
	if len(b) <= rows {
		return len(b)
	}
	top := rows
	for top > 0 && len(b[top]) > 0 && b[top][0].Follows {
		top--
	}
	if top == 0 {
		return rows // it is higher than the screen
	}
	return top
}

// Draw makes the text of a block; without colour it leaves out all styles.
func (b Block) Draw(colour bool) string {
	var out strings.Builder
	for i, l := range b {
		if i > 0 {
			out.WriteByte('\n')
		}
		for _, p := range l {
			s := Clean(p.Text)
			if p.Style == Plain || s == "" || !colour && p.Style != Strong && p.Style != Chosen {
				out.WriteString(s)
				continue
			}
			out.WriteString("\x1b[" + string(p.Style) + "m" + s + "\x1b[m")
		}
	}
	return out.String()
}

// Bare returns the text of a block without any style, and without blanks at the ends of lines.
func (b Block) Bare() string {
	var out strings.Builder
	for _, l := range b {
		var row strings.Builder
		for _, p := range l {
			row.WriteString(Clean(p.Text))
		}
		out.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return out.String()
}
