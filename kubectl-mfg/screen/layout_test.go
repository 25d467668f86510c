// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableNarrows(t *testing.T) {
	columns := func() []column {
		return []column{
			{title: "SITE", cells: []text{{s: "zürich"}, {s: "b"}}},
			{title: "GTID BEHIND", short: "BEHIND", cells: []text{{s: "1"}, {s: ""}}},
			{title: "NODE", drop: 2, cells: []text{{s: "worker-1"}, {s: "-"}}},
			{title: "ROLE", drop: 1, cells: []text{{s: "dr-only"}, {s: "dr-only"}}},
		}
	}
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"Unbounded":       {Options{}, "SITE    GTID BEHIND  NODE      ROLE"},
		"ShortTitles":     {Options{Width: 34}, "SITE    BEHIND  NODE      ROLE"},
		"OneColumnLess":   {Options{Width: 30}, "SITE    BEHIND  ROLE"},
		"TheLeast":        {Options{Width: 1}, "SITE    BEHIND"},
		"WideDropsNone":   {Options{Width: 1, Wide: true}, "SITE    BEHIND  NODE      ROLE"},
		"ColourTakesNone": {Options{Color: true}, "SITE    GTID BEHIND  NODE      ROLE"},
	} {
		lines := strings.Split(tc.options.table(columns()), "\n")
		got := strings.NewReplacer(string(dim), "", reset, "").Replace(lines[0])
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !strings.HasPrefix(lines[1], "zürich  ") {
			t.Errorf("%s: row %q does not stand under its title", name, lines[1])
		}
	}
}

func TestParagraph(t *testing.T) {
	for name, tc := range map[string]struct {
		width int
		want  string
	}{
		"Unbounded": {0, "Note      one two three four\n"},
		"Wraps":     {18, "Note      one two\n          three\n          four\n"},
		// A word longer than the line stands alone: breaking it would make it useless to copy.
		"LongWord": {12, "Note      one\n          two\n          three\n          four\n"},
	} {
		o := Options{Width: tc.width}
		if diff := cmp.Diff(tc.want, o.paragraph(text{s: "Note"}, "one two three four")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMillis(t *testing.T) {
	for ms, want := range map[int64]string{0: "0ms", 999: "999ms", 1849: "1.8s", 23400: "23.4s"} {
		if got := millis(ms); got != want {
			t.Errorf("millis(%d) = %s, want %s", ms, got, want)
		}
	}
}
