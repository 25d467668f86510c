// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"
)

// TestFit: what is drawn again and again never scrolls, also if lines wrap, and says where the rest is.
func TestFit(t *testing.T) {
	list := "HEAD\n\x1b[31ma\x1b[0m\nb\nc\nd\n"
	for what, tc := range map[string]struct {
		size           size
		drawn, warning string
		want           string
	}{
		"it fits":              {size{80, 6}, list, "", list},
		"the cursor's line":    {size{80, 5}, list, "", "HEAD\n\x1b[31ma\x1b[0m\nb\n... 2 more lines: see x -A\n"},
		"height not known":     {size{80, 0}, list, "old", list + "\nold\n"},
		"a warning fits":       {size{80, 8}, list, "old", list + "\nold\n"},
		"a warning stays":      {size{80, 6}, list, "old\n  see why", "HEAD\n\x1b[31ma\x1b[0m\nb\n... 2 more lines: see x -A\nold\n"},
		"colours take no room": {size{4, 6}, list, "", list},
		"lines that wrap":      {size{4, 6}, "HEAD\n12345678\nb\nc\n", "", "HEAD\n12345678\nb\nc\n"},
		"too many that wrap":   {size{4, 5}, "HEAD\n12345678\nb\nc\n", "", "HEAD\n12345678\n... \n"},
		"wide signs":           {size{4, 4}, "漢字漢字\nb\n", "", "漢字漢字\nb\n"},
		"wide signs that wrap": {size{4, 3}, "漢字漢字\nb\n", "", "... \n"},
		"no room at all":       {size{80, 1}, list, "old", "... 5 more lines: see x -A\nold\n"},
		"what steers":          {size{80, 9}, "a\x1b[2Jb\n", "c\x1b[H", "a\\x1b[2Jb\n\nc\\x1b[H\n"},
	} {
		if got := tc.size.fit(tc.drawn, tc.warning, "x -A"); got != tc.want {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
		if rows := tc.size.rows(strings.Split(tc.size.fit(tc.drawn, tc.warning, "x -A"), "\n")); tc.size.height > 1 && rows > tc.size.height {
			t.Errorf("%s: %d rows", what, rows)
		}
	}
}
