// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestFailoverMeanwhile: a plan is confirmed for the group that it was made of. While a person reads it the operator may move the role, and
// then the request would take it elsewhere.
func TestFailoverMeanwhile(t *testing.T) {
	planned, force := "failover orders -n shop --to frankfurt", "failover orders -n shop --to frankfurt --accept-data-loss"
	begins := func(f *fakeAPI) {
		s := &f.groups[0].Status
		s.Transition, s.Epoch = &v1alpha1.Transition{From: "paris", To: "frankfurt"}, s.Epoch+1
	}
	thereAndBack := func(f *fakeAPI) { f.groups[0].Status.Epoch += 2 }
	for name, tc := range map[string]struct {
		args, stdin string
		before      func(*fakeAPI)
		meanwhile   func(*fakeAPI)
		want        string
	}{
		"the order, and a move begins":     {force, "orders\n", lost, begins, "began to move to frankfurt meanwhile"},
		"the order, and it went and came":  {force, "orders\n", lost, thereAndBack, "moved meanwhile"},
		"the order, and a move has ended":  {force, "orders\n", func(f *fakeAPI) { lost(f); begins(f) }, func(f *fakeAPI) { f.groups[0].Status.Transition = nil }, "moved meanwhile"},
		"the order, and the move's target": {force, "orders\n", func(f *fakeAPI) { lost(f); begins(f) }, func(f *fakeAPI) { f.groups[0].Status.Transition.To = "madrid" }, "began to move to madrid meanwhile"},
		"the order, and the site is back": {force, "orders\n", lost, func(f *fakeAPI) {
			s := &f.live.Groups[0].Sites[0]
			s.Reachable, s.Writable, s.State, s.Fence = true, true, "Primary", "open"
		}, "paris accepts writes"},
		"a planned move, and it went and came": {planned, "y\n", nil, thereAndBack, "moved meanwhile"},
		"a planned move, and another is active": {planned, "y\n", nil, func(f *fakeAPI) {
			s := &f.groups[0].Status
			s.ActiveSite, s.Epoch = "madrid", s.Epoch+1
		}, "madrid is active under epoch"},
	} {
		f := loadHealthy(t)
		if tc.before != nil {
			tc.before(f)
		}
		got := run(t, f, runOptions{stdin: tc.stdin, typed: func() { tc.meanwhile(f) }}, strings.Fields(tc.args)...)
		if got.code != cli.ExitRefused || len(f.patched) != 0 || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%s: %+v, asked %v", name, got, f.patched)
		}
	}
}

// TestFailoverMeanwhileWithYes: with --yes there is no question; what changed shows in a conflict.
func TestFailoverMeanwhileWithYes(t *testing.T) {
	for _, args := range []string{"failover orders -n shop --to frankfurt --yes", "failover orders -n shop --to frankfurt --accept-data-loss --yes"} {
		f := loadHealthy(t)
		f.conflicts = 1
		if strings.Contains(args, "loss") {
			lost(f)
		}
		moved := false
		got := run(t, f, runOptions{tick: func(int) {
			if !moved {
				moved = true
				f.groups[0].Status.Epoch += 2
			}
		}}, strings.Fields(args)...)
		if got.code != cli.ExitRefused || len(f.patched) != 0 || !strings.Contains(got.errOut, "moved meanwhile") {
			t.Errorf("%s: %+v, asked %v", args, got, f.patched)
		}
	}
}

// TestAbortMeanwhile: the annotation names no move. While a person reads the plan, the move may end and another begin, which nobody wants to abort.
func TestAbortMeanwhile(t *testing.T) {
	under := func(to string, began time.Duration, phase v1alpha1.PlannedPhase) func(*fakeAPI) {
		return func(f *fakeAPI) {
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: to, Phase: phase, StartedAt: microTime(began * time.Second)}
		}
	}
	for name, tc := range map[string]struct {
		meanwhile func(*fakeAPI)
		code      int
		asked     int
		want      string
	}{
		"another site":     {under("madrid", 1, v1alpha1.PlannedWaiting), cli.ExitRefused, 0, "has changed meanwhile"},
		"the same, later":  {under("frankfurt", 2, v1alpha1.PlannedWaiting), cli.ExitRefused, 0, "has changed meanwhile"},
		"a later one":      {under("madrid", 2, v1alpha1.PlannedMoving), cli.ExitRefused, 0, "has changed meanwhile"},
		"the one, further": {under("frankfurt", 1, v1alpha1.PlannedMoving), cli.ExitHealthy, 1, "asked for"},
	} {
		f := loadHealthy(t)
		under("frankfurt", 1, v1alpha1.PlannedWaiting)(f)
		got := run(t, f, runOptions{stdin: "y\n", typed: func() { tc.meanwhile(f) }}, strings.Fields("failover orders -n shop --abort --wait=false")...)
		if got.code != tc.code || len(f.patched) != tc.asked || !strings.Contains(got.out+got.errOut, tc.want) {
			t.Errorf("%s: %+v, asked %v", name, got, f.patched)
		}
	}
}
