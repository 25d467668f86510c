// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// style is a part of a terminal's own palette, so that it follows a light or dark theme. What a style says is always said
// in words or signs too.
type style string

const (
	plain  style = ""
	strong style = "1"
	faint  style = "2"
	good   style = "32"
	warn   style = "33"
	bad    style = "31"
	chosen style = "7"
)

// span is a piece of a line; line is what stands in one row, block several of them.
type span struct {
	s  string
	st style
}

type (
	line  []span
	block []line
)

// glyphs are the signs that a terminal can draw.
type glyphs struct {
	ascii                                            bool
	full, empty, ellipsis, arrow, back               string
	flat, side, topLeft, topRight, lowLeft, lowRight string
}

var unicodeGlyphs = glyphs{
	full: "█", empty: "░", ellipsis: "…", arrow: "→", back: "←",
	flat: "─", side: "│", topLeft: "┌", topRight: "┐", lowLeft: "└", lowRight: "┘",
}

var asciiGlyphs = glyphs{
	ascii: true, full: "#", empty: ".", ellipsis: "~", arrow: "->", back: "<-",
	flat: "-", side: "|", topLeft: "+", topRight: "+", lowLeft: "+", lowRight: "+",
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// clean takes out what could steer a terminal: messages come from servers, events from anybody in the cluster.
func clean(s string) string {
	if plainASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
			return ' '
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
			return -1 // invisible, or turns the direction of writing
		}
		return r
	}, s)
}

// cells is how many columns a text takes.
func cells(s string) int {
	n := 0
	for _, r := range s {
		if !single(r) {
			return lipgloss.Width(clean(s))
		}
		n++
	}
	return n
}

// single is true for the signs that are drawn most, each of which takes one column: ASCII, arrows, lines and blocks.
func single(r rune) bool {
	return r >= 0x20 && r < 0x7f || r == '…' || r >= '←' && r <= '↓' || r >= 0x2500 && r <= 0x25a0
}

// clip cuts a text to at most so many columns, and shows that it did.
func (g glyphs) clip(s string, width int) string {
	s = clean(s)
	if cells(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	used := 0
	for i, r := range s {
		n := cells(string(r))
		if used+n > width-1 {
			return s[:i] + g.ellipsis
		}
		used += n
	}
	return s
}

func (l line) width() int {
	n := 0
	for _, p := range l {
		n += cells(p.s)
	}
	return n
}

// fit clips a line, and fills it up to the width.
func (g glyphs) fit(l line, width int) line {
	out, used := make(line, 0, len(l)+1), 0
	for _, p := range l {
		n := cells(p.s)
		if used+n > width {
			p.s = g.clip(p.s, width-used)
			n = cells(p.s)
		}
		out, used = append(out, p), used+n
		if used >= width {
			return out
		}
	}
	return append(out, span{s: strings.Repeat(" ", width-used)})
}

// pad is a text in a column of a table.
func (g glyphs) pad(s string, width int) string {
	s = g.clip(s, width)
	return s + strings.Repeat(" ", width-cells(s))
}

// beside puts blocks next to each other, each as wide as is said.
func (g glyphs) beside(widths []int, blocks ...block) block {
	height := 0
	for _, b := range blocks {
		height = max(height, len(b))
	}
	out := make(block, height)
	for i, b := range blocks {
		for row := range height {
			var l line
			if row < len(b) {
				l = b[row]
			}
			if i > 0 {
				out[row] = append(out[row], span{s: "  "})
			}
			out[row] = append(out[row], g.fit(l, widths[i])...)
		}
	}
	return out
}

// wrap breaks words into lines behind a label; lines after the first are indented as far as the words.
func (g glyphs) wrap(label span, indent int, words string, width int) block {
	var out block
	row := line{label, {s: strings.Repeat(" ", max(1, indent-cells(label.s)))}}
	used, filled := row.width(), false
	for _, w := range strings.Fields(words) {
		n := cells(w)
		if filled && used+1+n > width {
			out = append(out, row)
			row, used, filled = line{{s: strings.Repeat(" ", indent)}}, indent, false
		}
		if filled {
			w, n = " "+w, n+1
		}
		row, used, filled = append(row, span{s: w}), used+n, true
	}
	return append(out, row)
}

// draw makes the text of a block; without colour every style but the bare text is left out.
func (b block) draw(colour bool) string {
	var out strings.Builder
	for i, l := range b {
		if i > 0 {
			out.WriteByte('\n')
		}
		for _, p := range l {
			s := clean(p.s)
			if p.st == plain || s == "" || !colour && p.st != strong && p.st != chosen {
				out.WriteString(s)
				continue
			}
			out.WriteString("\x1b[" + string(p.st) + "m" + s + "\x1b[m")
		}
	}
	return out.String()
}

// bare is the text of a block without any style, without blanks at the ends of lines.
func (b block) bare() string {
	var out strings.Builder
	for _, l := range b {
		var row strings.Builder
		for _, p := range l {
			row.WriteString(clean(p.s))
		}
		out.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return out.String()
}
