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
