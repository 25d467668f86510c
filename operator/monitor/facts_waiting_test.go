// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestWhoMustGetOutOfTheWay covers I24: a backup on the target of a planned failover may be the very reason why that does not catch up, so
// it is told of the target before the role begins to move.
func TestWhoMustGetOutOfTheWay(t *testing.T) {
	planned := func(phase v1alpha1.PlannedPhase) *failover.Planned {
		return &failover.Planned{From: "east", To: "west", Phase: phase}
	}
	for name, c := range map[string]struct {
		before, decided failover.Durable
		stays           *failover.Stays
		target          string
		inDoubt         bool
	}{
		"nothing is under way":                     {},
		"a planned failover begins to wait":        {decided: failover.Durable{Planned: planned(v1alpha1.PlannedWaiting)}, target: "west"},
		"a planned failover waits":                 {before: failover.Durable{Planned: planned(v1alpha1.PlannedWaiting)}, target: "west"},
		"a planned failover was refused":           {before: failover.Durable{Planned: planned(v1alpha1.PlannedRefused)}},
		"a planned failover is over":               {before: failover.Durable{Planned: planned(v1alpha1.PlannedSucceeded)}},
		"the role moves":                           {before: failover.Durable{Transition: &failover.Transition{To: "south"}}, target: "south"},
		"the role moves elsewhere than one waits":  {before: failover.Durable{Planned: planned(v1alpha1.PlannedWaiting)}, decided: failover.Durable{Transition: &failover.Transition{To: "south"}}, target: "south"},
		"it is about to go, all others are behind": {stays: &failover.Stays{Site: "east", Reason: v1alpha1.ReasonTargetLags}, inDoubt: true},
		"it is about to go, nobody may follow":     {stays: &failover.Stays{Site: "east", Reason: v1alpha1.ReasonNoFitCandidate}},
	} {
		l := testLoop(t, nil, nil)
		l.publishFacts(nil, failover.Snapshot{Status: c.before}, failover.Decision{Status: c.decided, Stays: c.stays})
		if f := l.facts.Load(); f.Target != c.target || f.InDoubt != c.inDoubt {
			t.Errorf("I24: %s: target %q, in doubt %t; want %q, %t", name, f.Target, f.InDoubt, c.target, c.inDoubt)
		}
	}
}
