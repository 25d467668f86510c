// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
)

// column is one column of a table. Where a table is too wide, columns are dropped, the greatest number first; those with
// 0 always stay. Cells are clipped at most, where that is set.
type column struct {
	title string
	drop  int
	most  int
	cells []span
}

func (c column) width() int {
	w := cells(c.title)
	for _, cell := range c.cells {
		w = max(w, cells(cell.s))
	}
	if c.most > 0 {
		w = min(w, c.most)
	}
	return w
}

func (m Model) table(columns []column, width int) block {
	columns = narrow(slices.Clone(columns), width)
	rows := 0
	widths := make([]int, len(columns))
	for i, c := range columns {
		rows = max(rows, len(c.cells))
		widths[i] = c.width()
	}
	out := make(block, 0, rows+1)
	for row := -1; row < rows; row++ {
		l := make(line, 0, len(columns))
		for i, c := range columns {
			cell := span{s: c.title, st: faint}
			if row >= 0 {
				cell = c.cells[row]
			}
			gap := " "
			if i > 1 {
				gap = "  "
			}
			if i > 0 {
				l = append(l, span{s: gap})
			}
			text := m.signs.clip(cell.s, widths[i])
			l = append(l, span{s: text, st: cell.st}, span{s: strings.Repeat(" ", widths[i]-cells(text))})
		}
		out = append(out, l)
	}
	return out
}

func narrow(columns []column, width int) []column {
	for {
		total, last := 0, -1
		for i, c := range columns {
			total += c.width() + 2
			if c.drop > 0 && (last < 0 || c.drop > columns[last].drop) {
				last = i
			}
		}
		if total-3 <= width || last < 0 {
			return columns
		}
		columns = slices.Delete(columns, last, last+1)
	}
}

// rule is a line with a title.
func (m Model) rule(title string, width int) line {
	title = m.signs.flat + m.signs.flat + " " + title + " "
	return line{{s: title + strings.Repeat(m.signs.flat, max(0, width-cells(title))), st: faint}}
}
