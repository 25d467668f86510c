// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLag(t *testing.T) {
	seconds := func(f float64) *float64 { return &f }
	tests := map[string]struct {
		reason string
		in     lagFacts
		want   *float64
	}{
		"idle": {
			"a heartbeat comes only at the end of the source's log, so everything is here",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 99.5, queued: 50, queuedAt: 50.1},
			seconds(0),
		},
		"idle, applier stopped": {
			"nothing is left to apply",
			lagFacts{now: 100, interval: 1, connected: true, caughtUp: true, heartbeat: 99.5},
			seconds(0),
		},
		"not connected": {
			"the source may have anything by now",
			lagFacts{now: 100, interval: 1, applying: true, caughtUp: true, heartbeat: 99.9},
			nil,
		},
		"silent": {
			"a cut connection looks like an idle one",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 96, queued: 50, queuedAt: 50},
			nil,
		},
		"never heard": {
			"connected a moment ago, and nothing came yet",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true},
			nil,
		},
		"busy": {
			"a busy source sends no heartbeat; the receiver was 0.2 s behind when it last received",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 40, queued: 99.5, queuedAt: 99.7},
			seconds(0.2),
		},
		"catching up": {
			"the receiver reads an hour-old log; what it has is applied, but it is far behind",
			lagFacts{now: 4000, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 40, queued: 400, queuedAt: 4000},
			seconds(3600),
		},
		"applying": {
			"the oldest that is being worked on counts",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, queued: 98, queuedAt: 98, pending: []float64{0, 97, 90}},
			seconds(10),
		},
		"receiving a large one": {
			"its parts come without heartbeats, and its age is known",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 80, queued: 70, queuedAt: 70, pending: []float64{81}},
			seconds(19),
		},
		"between two": {
			"received, and not yet in a worker's hands",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, queued: 99.5, queuedAt: 99.6},
			seconds(0.5),
		},
		"between two, age unknown": {
			"after a restart the received ones have no times",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99},
			nil,
		},
		"backlog, applier stopped": {
			"nobody works on it, so its age is not visible",
			lagFacts{now: 100, interval: 1, connected: true, heartbeat: 99, queued: 99.5, queuedAt: 99.6},
			nil,
		},
		"clock behind": {
			"the source's clock is ahead: not negative",
			lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, pending: []float64{101}},
			seconds(0),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.in.of().with(0)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLagOfAClockThatIsAhead: what is told by two clocks is corrected, in both directions; what the replica's own clock tells is not.
func TestLagOfAClockThatIsAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		in          lagFacts
		ahead, want float64
	}{
		"busy, half a second ahead":   {lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 40, queued: 99.1, queuedAt: 99.7}, 0.55, 0.05},
		"applying, half a second":     {lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, pending: []float64{99.4}}, 0.5, 0.1},
		"between two":                 {lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, queued: 99.4, queuedAt: 99.9}, 0.5, 0.1},
		"behind: it is older":         {lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, pending: []float64{100.5}}, -3, 2.5},
		"idle: by its own clock":      {lagFacts{now: 100, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 99.5}, -3, 0},
		"more ahead than it can be":   {lagFacts{now: 100, interval: 1, connected: true, applying: true, heartbeat: 99, pending: []float64{99.9}}, 7, 0},
		"an hour behind, clocks even": {lagFacts{now: 4000, interval: 1, connected: true, applying: true, caughtUp: true, heartbeat: 40, queued: 400, queuedAt: 4000}, 0, 3600},
	} {
		got := ReplicaStatus{lag: tc.in.of()}.LagBeside(tc.ahead)
		if got == nil || *got-tc.want > 1e-6 || tc.want-*got > 1e-6 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if (ReplicaStatus{}).LagBeside(1) != nil {
		t.Error("a lag that is not known became known")
	}
}

func TestClockAhead(t *testing.T) {
	asked := time.UnixMilli(1_000_000)
	if got := clockAhead(1000.55, asked, 100*time.Millisecond); got == nil || *got < 0.499 || *got > 0.501 {
		t.Errorf("got %v", got)
	}
	if got := clockAhead(1000.55, asked, time.Second); got != nil {
		t.Errorf("an answer that took a second tells the clock: %v", *got)
	}
}
