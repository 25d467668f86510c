// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLag(t *testing.T) {
	seconds := func(f float64) *float64 { return &f }
	tests := map[string]struct {
		reason string
		in     Facts
		want   *float64
	}{
		"idle": {
			"a heartbeat comes only at the end of the source's log, so everything is here",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 99.5, Queued: 50, QueuedAt: 50.1},
			seconds(0),
		},
		"idle, applier stopped": {
			"nothing is left to apply",
			Facts{Now: 100, Interval: 1, Connected: true, CaughtUp: true, Heartbeat: 99.5},
			seconds(0),
		},
		"not connected": {
			"the source may have anything by now",
			Facts{Now: 100, Interval: 1, Applying: true, CaughtUp: true, Heartbeat: 99.9},
			nil,
		},
		"silent": {
			"a cut connection looks like an idle one",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 96, Queued: 50, QueuedAt: 50},
			nil,
		},
		"never heard": {
			"connected a moment ago, and nothing came yet",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true},
			nil,
		},
		"busy": {
			"a busy source sends no heartbeat; the receiver was 0.2 s behind when it last received",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 40, Queued: 99.5, QueuedAt: 99.7},
			seconds(0.2),
		},
		"catching up": {
			"the receiver reads an hour-old log; what it has is applied, but it is far behind",
			Facts{Now: 4000, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 40, Queued: 400, QueuedAt: 4000},
			seconds(3600),
		},
		"applying": {
			"the oldest that is being worked on counts",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Queued: 98, QueuedAt: 98, Pending: []float64{0, 97, 90}},
			seconds(10),
		},
		"receiving a large one": {
			"its parts come without heartbeats, and its age is known",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 80, Queued: 70, QueuedAt: 70, Pending: []float64{81}},
			seconds(19),
		},
		"between two": {
			"received, and not yet in a worker's hands",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Queued: 99.5, QueuedAt: 99.6},
			seconds(0.5),
		},
		"between two, age unknown": {
			"after a restart the received ones have no times",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99},
			nil,
		},
		"backlog, applier stopped": {
			"nobody works on it, so its age is not visible",
			Facts{Now: 100, Interval: 1, Connected: true, Heartbeat: 99, Queued: 99.5, QueuedAt: 99.6},
			nil,
		},
		"clock behind": {
			"the source's clock is ahead: not negative",
			Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Pending: []float64{101}},
			seconds(0),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.in.Of().With(0)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLagOfAClockThatIsAhead: what is told by two clocks is corrected, in both directions; what the replica's own clock tells is not.
func TestLagOfAClockThatIsAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		in          Facts
		ahead, want float64
	}{
		"busy, half a second ahead":   {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 40, Queued: 99.1, QueuedAt: 99.7}, 0.55, 0.05},
		"applying, half a second":     {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Pending: []float64{99.4}}, 0.5, 0.1},
		"between two":                 {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Queued: 99.4, QueuedAt: 99.9}, 0.5, 0.1},
		"behind: it is older":         {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Pending: []float64{100.5}}, -3, 2.5},
		"idle: by its own clock":      {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 99.5}, -3, 0},
		"more ahead than it can be":   {Facts{Now: 100, Interval: 1, Connected: true, Applying: true, Heartbeat: 99, Pending: []float64{99.9}}, 7, 0},
		"an hour behind, clocks even": {Facts{Now: 4000, Interval: 1, Connected: true, Applying: true, CaughtUp: true, Heartbeat: 40, Queued: 400, QueuedAt: 4000}, 0, 3600},
	} {
		got := tc.in.Of().With(tc.ahead)
		if got == nil || *got-tc.want > 1e-6 || tc.want-*got > 1e-6 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if (*Lag)(nil).With(1) != nil {
		t.Error("a lag that is not known became known")
	}
}
