// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"strings"
	"testing"
	"time"
)

func window(t *testing.T, text string) Window {
	t.Helper()
	w, err := ParseWindow(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWindows(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, time.UTC) } // the 23rd is a Monday
	for _, tc := range []struct {
		text string
		at   time.Time
		open bool
	}{
		{"", at(23, 3), true},
		{"02:00-04:00", at(23, 3), true}, {"02:00-04:00", at(23, 4), false}, {"02:00-04:00", at(23, 1), false},
		{"Mon-Fri 22:00-04:00", at(23, 23), true}, {"Mon-Fri 22:00-04:00", at(23, 3), false}, {"Mon-Fri 22:00-04:00", at(28, 3), true},
		{"Mon-Fri 22:00-04:00", at(28, 23), false}, {"Fri-Mon 00:00-24:00", at(22, 12), true}, {"Fri-Mon 00:00-24:00", at(24, 12), false},
		{"Tue,Thu 09:00-17:00; Sun 00:00-24:00", at(26, 10), true}, {"Tue,Thu 09:00-17:00; Sun 00:00-24:00", at(25, 10), false},
		{"22:00-00:00", at(23, 23), true}, {"22:00-00:00", at(23, 0), false},
		{"never", at(23, 0), false}, {" never ", at(28, 23), false},
		{"02:00-04:00", at(23, 4).In(time.FixedZone("x", 3600)), false}, {"02:00-04:00", at(23, 3).In(time.FixedZone("x", 3*3600)), true},
	} {
		if got := window(t, tc.text).Open(tc.at); got != tc.open {
			t.Errorf("%q at %s: open %v", tc.text, tc.at, got)
		}
	}
	for _, bad := range []string{"always", "Mon", "Mon-Foo 01:00-02:00", "01:00", "25:00-26:00", "01:00-01:00", "24:00-00:00", "25:00-03:00", "01:00-26:00", "Mon Tue 01:00-02:00", "Foo 01:00-02:00",
		"Foo-Mon 01:00-02:00", strings.Repeat("01:00-02:00;", 33)} {
		if _, err := ParseWindow(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A window is shown as it was written, without the blanks that do not matter, and is read again as the same.
func TestHowAWindowIsTold(t *testing.T) {
	for text, want := range map[string]string{"": "always", " ; ": "always", "never": "never", "Mon   02:00-04:00;;Sat 00:00-24:00": "Mon 02:00-04:00; Sat 00:00-24:00 UTC"} {
		w := window(t, text)
		if w.String() != want || window(t, w.Text()).String() != want {
			t.Errorf("%q: %s", text, w)
		}
	}
}

func TestNeverDoesNotOpen(t *testing.T) {
	if at := Never.Next(time.Now()); !at.IsZero() {
		t.Errorf("it opens at %s", at)
	}
}

func TestTheNextOpening(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 30, 0, 0, time.UTC) // a Wednesday
	for _, tc := range []struct{ text, want string }{
		{"", "Wed 12:30"},
		{"12:00-13:00", "Wed 12:30"},
		{"22:00-04:00", "Wed 22:00"},
		{"02:00-04:00", "Thu 02:00"},
		{"Wed 02:00-04:00", "Wed 02:00"},
		{"Sun 00:00-24:00; Sat 10:00-11:00", "Sat 10:00"},
	} {
		got := window(t, tc.text).Next(now)
		if got.Format("Mon 15:04") != tc.want || got.Before(now) || got.Sub(now) > 7*24*time.Hour {
			t.Errorf("%q opens %s, want %s", tc.text, got, tc.want)
		}
		if w := window(t, tc.text); !w.Open(got) || got.After(now) && w.Open(got.Add(-time.Minute)) {
			t.Errorf("%q does not open at %s", tc.text, got)
		}
	}
}

// The next opening is told in UTC, wherever the clock of the caller is, and is that of the span that opens first.
func TestTheFirstOfTheNextOpenings(t *testing.T) {
	tuesday := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		text     string
		at, want time.Time
	}{
		"the first span is later":        {"10:00-11:00; 08:00-09:00", tuesday.Add(6 * time.Hour), tuesday.Add(8 * time.Hour)},
		"the first span is sooner":       {"08:00-09:00; 10:00-11:00", tuesday.Add(6 * time.Hour), tuesday.Add(8 * time.Hour)},
		"a week on, elsewhere a day ago": {"Tue 00:10-00:20", tuesday.Add(30 * time.Minute).In(time.FixedZone("x", -2*3600)), tuesday.AddDate(0, 0, 7).Add(10 * time.Minute)},
	} {
		if got := window(t, tc.text).Next(tc.at); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
