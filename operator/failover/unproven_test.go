// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestATransitionThatWasTakenOffPassesNoGateI1: a is active, is cut off and may be open yet, and b was to take over. A person who wants to help
// takes status.transition off, or writes b into status: no gate was passed for b, so it is not opened beside a.
func TestATransitionThatWasTakenOffPassesNoGateI1(t *testing.T) {
	noted := func(epoch int64, site string) []v1alpha1.EpochRecord {
		return []v1alpha1.EpochRecord{{Epoch: epoch, Site: site}, {Epoch: 1, Site: "c"}}
	}
	for name, tc := range map[string]struct {
		epochs  []v1alpha1.EpochRecord
		answers bool
		reopens bool
		begins  bool
	}{
		"b was opened":                  {noted(4, "b"), false, true, false},
		"by an older release":           {nil, false, true, false},
		"the transition was taken off":  {noted(3, "a"), false, false, false},
		"another site was written":      {noted(4, "a"), false, false, false},
		"another epoch was written":     {noted(3, "b"), false, false, false},
		"it was taken off, and a is up": {noted(3, "a"), true, false, true},
	} {
		a := factstest.Seen("a", "A:1-9", 3)
		if !tc.answers {
			factstest.Silence(&a)
		}
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Epochs: tc.epochs}, a, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		s.Status.Runs = map[string][]Run{"a": {{UID: "of a", Closed: true}}}
		d := Decide(s, Memory{})
		if opens := slices.Contains(d.Effects, Effect(Open{Site: "b"})); opens != tc.reopens || d.Hold == tc.reopens {
			t.Errorf("I1: %s: opens b: %t, hold %t: %s", name, opens, d.Hold, d.Message)
		}
		begun := d.Status.Transition
		if (begun != nil) != tc.begins || begun != nil && (begun.From != "" || d.Status.Epoch <= 4) {
			t.Errorf("I1: %s: begins %+v under epoch %d: %s", name, begun, d.Status.Epoch, d.Message)
		}
		runs := d.Memory.Runs.Of["a"]
		if i := slices.IndexFunc(runs, func(r Run) bool { return r.UID == "of a" }); i < 0 || runs[i].Closed != tc.reopens {
			t.Errorf("I1: %s: of the pods of a is believed %+v", name, runs)
		}
	}
	under := Durable{Epoch: 4, ActiveSite: "b", Epochs: noted(3, "a"), Transition: &Transition{From: "a", To: "b", Step: v1alpha1.TransitionFencing}}
	if NeverPassed(under) {
		t.Error("a failover that is under way is taken for one that somebody took off")
	}
}
