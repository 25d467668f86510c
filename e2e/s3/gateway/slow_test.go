// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLimitIsShared(t *testing.T) {
	l := &limit{rate: 1000}
	now := time.Unix(1_000_000, 0)
	var last time.Time
	for i := range 11 {
		last = l.due(now, 100)
		if want := now.Add(time.Duration(i) * 100 * time.Millisecond); !last.Equal(want) {
			t.Errorf("piece %d is due %s after the first, want %s", i, last.Sub(now), want.Sub(now))
		}
	}
	// What was not used is not saved up: a pause allows no burst.
	later := last.Add(time.Hour)
	if at := l.due(later, 100); !at.Equal(later) {
		t.Errorf("due %s after an idle hour", at.Sub(later))
	}
	if at := l.due(later, 100); at.Sub(later) != 100*time.Millisecond {
		t.Errorf("the second piece after an idle hour is due after %s", at.Sub(later))
	}
}

func TestLimitFollowsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rate")
	l := &limit{}
	now := time.Unix(1_000_000, 0)
	for _, step := range []struct {
		text string
		want time.Duration
	}{{"1000\n", time.Second}, {"0\n", 0}, {"500", 2 * time.Second}, {"junk", 0}, {"-3", 0}} {
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.read(file)
		_ = l.due(now, 1000)
		if at := l.due(now, 1000); at.Sub(now) != step.want {
			t.Errorf("%q: the second piece is due after %s, want %s", step.text, at.Sub(now), step.want)
		}
		now = now.Add(time.Hour)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	l.rate = 1
	if l.read(file); l.rate != 0 {
		t.Errorf("a file that is gone bounds to %d bytes a second", l.rate)
	}
}
