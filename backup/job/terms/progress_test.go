// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"io"
	"testing"
	"time"
)

// Only phases in which bytes go on all the time can stall: a large table may be counted for hours.
func TestWhatCanStall(t *testing.T) {
	for phase, want := range map[Phase]bool{Dumping: true, Loading: true, Unpacking: true, Preparing: false, Cloning: false, Storing: false, Checking: false, Done: false} {
		r := NewReporter(io.Discard, "")
		r.Begin(phase, 100)
		if r.Stalled(time.Minute) {
			t.Errorf("%s has just begun", phase)
		}
		r.moved = time.Now().Add(-time.Hour)
		if got := r.Stalled(time.Minute); got != want {
			t.Errorf("%s that stands still is stalled: %t", phase, got)
		}
		if r.Add(1); r.Stalled(time.Minute) {
			t.Errorf("%s goes on", phase)
		}
	}
}
