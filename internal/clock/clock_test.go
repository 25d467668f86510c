// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
)

// TestElapsed: the clock that counted more is believed, whichever it is.
func TestElapsed(t *testing.T) {
	begin := time.Now()
	for name, c := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"both clocks ran":                      {begin.Add(5 * time.Second), 5 * time.Second},
		"the machine was suspended":            {clocktest.Suspended(begin.Add(time.Second), time.Hour), time.Hour + time.Second},
		"the wall clock was set back":          {clocktest.Suspended(begin.Add(5*time.Second), -time.Hour), 5 * time.Second},
		"a time without the monotonic clock":   {begin.Add(5 * time.Second).Round(0), 5 * time.Second},
		"earlier than it, as from a race":      {begin.Add(-time.Second), -time.Second},
		"the wall clock was set forward a bit": {clocktest.Suspended(begin.Add(time.Second), time.Second), 2 * time.Second},
	} {
		if got := clock.Elapsed(begin, c.now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
