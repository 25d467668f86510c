// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestWhatARecordSaysOfEachProofI1: each proof of the gate has its own words; only an order is called one.
func TestWhatARecordSaysOfEachProofI1(t *testing.T) {
	q := gate.Question{Epoch: 4, Old: gate.Site{Name: "a"}}
	for want, a := range map[string]gate.Answer{
		"sidecar of a reported it fenced under epoch 3":                 {Proof: gate.ProofReport, Epoch: 3},
		"read-only flags of a read back by the operator":                {Proof: gate.ProofReadBack},
		"pod of a has ended, told by a live kubelet":                    {Proof: gate.ProofPodEnded},
		"node of a is tainted out-of-service":                           {Proof: gate.ProofOutOfService},
		"lease of a has run out; epoch 4 acknowledged by b, c":          {Proof: gate.ProofLease, Vouchers: []string{"b", "c"}},
		"no other site can be open":                                     {Proof: gate.ProofNobodyOpen},
		"ordered by a person although c may still vouch for a":          {Proof: gate.ProofOrder, Blockers: []string{"c"}},
		"ordered by a person although it was seen open after its lease": {Proof: gate.ProofOrder},
	} {
		if got := evidence(q, a, "it was seen open after its lease"); got != want {
			t.Errorf("I1: %s: %q, want %q", a.Proof, got, want)
		}
	}
	q.Old.Name = ""
	if got, want := evidence(q, gate.Answer{Proof: gate.ProofOrder, Blockers: []string{"b", "c"}}, ""), "ordered by a person although b, c may not be fenced"; got != want {
		t.Errorf("I1: %q, want %q", got, want)
	}
}

// TestTheEndOfAPlannedFailoverHasItsOwnRemedies: what was advised while it waited is advised no more.
func TestTheEndOfAPlannedFailoverHasItsOwnRemedies(t *testing.T) {
	for cause, answered := range map[Reason]bool{v1alpha1.ReasonRequested: false, v1alpha1.ReasonSiteLeaving: true} {
		p := Planned{From: "a", To: "b", Cause: cause, Phase: v1alpha1.PlannedWaiting, Remedies: []Remedy{{Command: "watch it"}}}
		d := Decision{}.end(p, factstest.Start, v1alpha1.PlannedSucceeded, v1alpha1.ReasonOpened, "%s is active", "b")
		got := d.Status.Planned
		if len(got.Remedies) != 0 || got.Message != "b is active" || got.Phase != v1alpha1.PlannedSucceeded || got.Reason != v1alpha1.ReasonOpened ||
			!got.FinishedAt.Equal(factstest.Start) || got.Answered != answered || !d.Persist {
			t.Errorf("%s: %+v", cause, got)
		}
		if len(p.Remedies) != 1 {
			t.Errorf("%s: what status said before was changed", cause)
		}
	}
}

// TestTheEndOfAChangeNotesItsEpochI28: also of a change whose site was let open by an operator that noted nothing, and with the kind that it
// has in the end.
func TestTheEndOfAChangeNotesItsEpochI28(t *testing.T) {
	for name, tc := range map[string]struct {
		noted []v1alpha1.EpochRecord
		order string
		kind  v1alpha1.FailoverKind
	}{
		"nothing was noted":        {nil, "", v1alpha1.FailoverEmergency},
		"it was noted":             {[]v1alpha1.EpochRecord{{Epoch: 4, Site: "b", Kind: v1alpha1.FailoverEmergency}}, "", v1alpha1.FailoverEmergency},
		"it was ordered meanwhile": {[]v1alpha1.EpochRecord{{Epoch: 4, Site: "b", Kind: v1alpha1.FailoverEmergency}}, "b", v1alpha1.FailoverForced},
	} {
		s := factstest.Under(v1alpha1.FailoverEmergency)
		s.Policy.ForceTo = tc.order
		t1 := s.Status.Transition
		t1.Step, t1.GatePassedAt, t1.ToExecuted = v1alpha1.TransitionOpening, factstest.Start.Add(time.Second), factstest.Set("A:1-9")
		s.Status.Epochs = slices.Concat(tc.noted, []v1alpha1.EpochRecord{{Epoch: 3, Site: "a"}})
		s.Sites[1].MySQL.ServerUUID = "v"
		d := complete(promotion.WithOrder(s), Decision{Status: s.Status})
		if len(d.Status.Epochs) != 2 || d.Status.Epochs[1].Epoch != 3 {
			t.Errorf("I28: %s: %+v", name, d.Status.Epochs)
			continue
		}
		want := v1alpha1.EpochRecord{Epoch: 4, Site: "b", ServerUUID: "v", PromotedAt: metav1.NewMicroTime(factstest.Start.Add(time.Second)), Kind: tc.kind,
			GTIDExecuted: factstest.Set("A:1-9").String()}
		if got := d.Status.Epochs[0]; got != want {
			t.Errorf("I28: %s: %+v, want %+v", name, got, want)
		}
	}
}

// TestWhoIsToGetOutOfTheWayI24: of a site that is promoted, or that a move waits for, and of all while the active site is in doubt.
func TestWhoIsToGetOutOfTheWayI24(t *testing.T) {
	change := func(to string) *Transition { return &Transition{From: "a", To: to} }
	planned := func(phase v1alpha1.PlannedPhase) *Planned { return &Planned{From: "a", To: "c", Phase: phase} }
	for name, tc := range map[string]struct {
		before, now Durable
		want        string
	}{
		"nobody":                        {},
		"who is promoted":               {before: Durable{Transition: change("b")}, want: "b"},
		"who takes its place just now":  {before: Durable{Transition: change("b")}, now: Durable{Transition: change("c")}, want: "c"},
		"whom a move waits for":         {before: Durable{Planned: planned(v1alpha1.PlannedWaiting)}, want: "c"},
		"whom one begins to wait for":   {now: Durable{Planned: planned(v1alpha1.PlannedWaiting)}, want: "c"},
		"a change comes before a wish":  {before: Durable{Transition: change("b"), Planned: planned(v1alpha1.PlannedWaiting)}, want: "b"},
		"a move that was refused is no": {before: Durable{Planned: planned(v1alpha1.PlannedRefused)}},
	} {
		if got := Target(Snapshot{Status: tc.before}, Decision{Status: tc.now}); got != tc.want {
			t.Errorf("I24: %s: %q, want %q", name, got, tc.want)
		}
	}
	stays := func(why Reason) *Stays { return &Stays{Site: "a", Reason: why} }
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		stays  *Stays
		want   bool
	}{
		"all is well":                        {func(*Snapshot) {}, nil, false},
		"its MySQL does not answer":          {func(s *Snapshot) { s.Sites[0].MySQL.Direct = false }, nil, true},
		"its sidecar does not answer":        {func(s *Snapshot) { s.Sites[0].Sidecar.Answered = false }, nil, true},
		"it is shut":                         {func(s *Snapshot) { s.Sites[0].Sidecar.Report.Writable, s.Sites[0].MySQL.SuperReadOnly = false, true }, nil, true},
		"there is none yet":                  {func(s *Snapshot) { s.Status.ActiveSite = "" }, nil, false},
		"it goes, and all others are behind": {func(*Snapshot) {}, stays(v1alpha1.ReasonTargetLags), true},
		"it goes, and nobody may follow":     {func(*Snapshot) {}, stays(v1alpha1.ReasonNoFitCandidate), false},
	} {
		s := factstest.AtRest()
		tc.change(&s)
		if got := InDoubt(s, Decision{Stays: tc.stays}); got != tc.want {
			t.Errorf("I24: %s: in doubt %t", name, got)
		}
	}
}
