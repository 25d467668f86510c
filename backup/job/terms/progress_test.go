// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// The phases that are not bounded in themselves can stall; a check only if its server is watched: a large table may be counted for hours.
func TestWhatCanStall(t *testing.T) {
	for phase, want := range map[Phase]bool{Dumping: true, Loading: true, Unpacking: true, Replaying: true, Preparing: true, Cloning: false, Storing: false, Checking: false, Done: false} {
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

// A server that is silent while it builds an index, or writes what it has in memory, is at work. One that hangs is not, although it says so
// in its log from time to time and computes a little.
func TestAServerAtWorkIsNotStalled(t *testing.T) {
	const limit = 30 * time.Minute
	for name, tc := range map[string]struct {
		phase Phase
		does  Work
		still time.Duration
		want  bool
	}{
		"writes":                   {Loading, Work{Bytes: 16 << 20}, time.Hour, false},
		"computes":                 {Loading, Work{CPU: 3 * time.Minute}, time.Hour, false},
		"hangs":                    {Loading, Work{Bytes: 1 << 20, CPU: 18 * time.Second}, time.Hour, true},
		"is another process":       {Loading, Work{Bytes: -1 << 30, CPU: -time.Minute}, time.Hour, true},
		"replays, and is silent":   {Replaying, Work{}, time.Hour, false},
		"replays nothing any more": {Replaying, Work{Bytes: 1 << 20, CPU: 70 * time.Second}, 121 * time.Minute, true},
		"lists a large archive":    {Preparing, Work{}, 119 * time.Minute, false},
		"the storage is silent":    {Preparing, Work{}, 121 * time.Minute, true},
		"counts rows":              {Checking, Work{CPU: 12 * time.Minute}, 121 * time.Minute, false},
		"waits for a page":         {Checking, Work{Bytes: 1 << 20}, 121 * time.Minute, true},
		"replays a large change":   {Replaying, Work{CPU: 12 * time.Minute}, 121 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			work := Work{Bytes: 5 << 30, CPU: time.Hour}
			r := NewReporter(io.Discard, "")
			r.Watches(func() Work { return work })
			r.Begin(tc.phase, 100)
			r.moved = time.Now().Add(-tc.still)
			work.Bytes, work.CPU = work.Bytes+tc.does.Bytes, work.CPU+tc.does.CPU
			if got := r.Stalled(limit); got != tc.want {
				t.Errorf("stalled: %t", got)
			}
			r.moved = time.Now().Add(-5 * limit)
			if !r.Stalled(limit) {
				t.Error("it has done nothing since, and is not stalled")
			}
		})
	}
}

// Progress of a replay is told as a sum: it counts as such while it changes.
func TestASumThatChangesGoesOn(t *testing.T) {
	r := NewReporter(io.Discard, "")
	r.Begin(Replaying, 100)
	for _, stalled := range []bool{false, true} { // the second time it is the same sum
		r.moved = time.Now().Add(-time.Hour)
		r.Set(1, 100)
		if got := r.Stalled(time.Minute); got != stalled {
			t.Errorf("stalled: %t, want %t", got, stalled)
		}
	}
}

// The outcome is the last that is said: what was left behind may wake up later.
func TestNothingIsSaidBehindTheOutcome(t *testing.T) {
	out := &bytes.Buffer{}
	r := NewReporter(out, "")
	r.End(Result{Reason: Stalled}, "")
	before := out.String()
	r.Begin(Checking, 1)
	r.Add(1)
	if out.String() != before || !strings.Contains(before, `"result"`) {
		t.Errorf("said: %s", out)
	}
}
