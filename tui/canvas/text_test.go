// SPDX-License-Identifier: Apache-2.0

package canvas

import (
	"strings"
	"testing"
)

// TestATextIsNeverWiderThanItsColumn: rows of applications stand in the errors of a replica, whatever they are made of.
func TestATextIsNeverWiderThanItsColumn(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "plain": strings.Repeat("x", 30), "wide": strings.Repeat("\u65e5", 30), "an emoji of two signs": strings.Repeat("\u2600\ufe0f", 30),
		"flags": strings.Repeat("\U0001f1e9\U0001f1ea", 30), "marks": "e" + strings.Repeat("\u0301", 90), "control": "\x1b[31m" + strings.Repeat("x", 30),
	} {
		for width := range 25 {
			if got := Unicode.Clip(text, width); Cells(got) > width {
				t.Errorf("%s: %q takes %d columns of %d", name, got, Cells(got), width)
			}
			if got := Unicode.Pad(text, width); Cells(got) != width {
				t.Errorf("%s: %q takes %d columns, not %d", name, got, Cells(got), width)
			}
			_ = Unicode.Table([]Column{{Title: "T", Most: width, Cells: []Span{{Text: text}}}, {Title: "U", Cells: []Span{{Text: "u"}}}}, 80)
		}
	}
}

// TestTop: what is whole is shown whole or not at all, and what is higher than the screen is cut all the same.
func TestTop(t *testing.T) {
	line := func(text string) Line { return Line{{Text: text}} }
	b := append(Block{line("a"), nil}, Block{line("hint"), line("kubectl \\"), line("get pods")}.Whole()...)
	for rows, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 2, 5: 5, 9: 5} {
		if got := b.Top(rows); got != want {
			t.Errorf("%d rows: %d lines, want %d", rows, got, want)
		}
	}
	if got := b[2:].Top(2); got != 2 {
		t.Errorf("one that is too high: %d lines", got)
	}
}
