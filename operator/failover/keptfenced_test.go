// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestNobodyOpensWhatAPersonKeepsFenced covers I29: whatever is seen and whatever else is ordered, a site that a person keeps fenced is neither
// opened nor let open by a statement; one that is open is not closed.
func TestNobodyOpensWhatAPersonKeepsFenced(t *testing.T) {
	stopped, spared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			s := drawSnapshot(t)
			drawPolicy(t, &s)
			s.Policy.ForceTo = rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "order")
			if rapid.Bool().Draw(t, "opening") && s.Status.Transition != nil {
				s.Status.Transition.Step = v1alpha1.TransitionOpening
			}
			m := drawMemory(t, s)
			free := Decide(s, m)
			for i := range s.Sites {
				s.Sites[i].KeptFenced = rapid.Bool().Draw(t, "kept")
			}
			d := Decide(s, m)
			named, _ := s.Site(d.Status.ActiveSite)
			if d.Reason == "InvariantViolated" {
				t.Fatal(d.Message)
			}
			if !named.KeptFenced {
				continue
			}
			if !d.Hold || opensSite(d, named.Name) {
				t.Fatalf("I29: %s may open: %s", named.Name, d.Message)
			}
			if !free.Hold && !named.Writable() {
				stopped++
			}
			if named.Writable() && s.Status.Transition == nil && named.Name == s.Status.ActiveSite {
				spared++
				if d.Status.Transition != nil || slices.ContainsFunc(d.Effects, func(e Effect) bool { x, is := e.(Announce); return is && slices.Contains(x.Fence, named.Name) }) {
					t.Fatalf("I29: %s is open and is closed: %s", named.Name, d.Message)
				}
			}
		}
	})
	if stopped == 0 || spared == 0 {
		t.Fatalf("the draws never reached it: %d stopped, %d spared", stopped, spared)
	}
}

// TestWhatBecomesOfARoleThatIsKeptFencedI29: the site that has the role, or is about to get it, by each way to an opening.
func TestWhatBecomesOfARoleThatIsKeptFencedI29(t *testing.T) {
	const end = "kubectl mfg fence off orders a -n shop"
	returned := func() Snapshot {
		return factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	}
	first := func() Snapshot {
		return factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 0), factstest.Seen("b", "A:1-9", 0))
	}
	between := func(step v1alpha1.TransitionStep) Snapshot {
		return factstest.World(Durable{Epoch: 4, ActiveSite: "a", Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: step, From: "b", To: "a",
			StartedAt: factstest.Start, DetectedAt: factstest.Start, GatePassedAt: factstest.Start}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	}
	alone := func(s Snapshot) Snapshot { s.Sites[1].Role = v1alpha1.DROnly; return s }
	more := func(s Snapshot) Snapshot { s.Sites[0].MySQL.Executed = factstest.Set("A:1-10"); return s }
	ordered := func(s Snapshot) Snapshot { s.Policy.ForceTo = "a"; return s }
	manual := func(s Snapshot) Snapshot { s.Policy.Mode = v1alpha1.FailoverManual; return s }
	for name, tc := range map[string]struct {
		s       Snapshot
		verdict Verdict
		reason  Reason
		active  string
	}{
		"the active site is back":                  {returned(), VerdictFailover, v1alpha1.ReasonKeptFenced, "b"},
		"it is back and was ordered":               {ordered(returned()), VerdictFailover, v1alpha1.ReasonKeptFenced, "b"},
		"it is back and there is nobody else":      {alone(returned()), VerdictBlocked, v1alpha1.ReasonKeptFenced, "a"},
		"it is back, was ordered, nobody else":     {ordered(alone(returned())), VerdictBlocked, v1alpha1.ReasonKeptFenced, "a"},
		"it is back and nothing happens by itself": {manual(returned()), VerdictBlocked, v1alpha1.ReasonModeManual, "a"},
		"the first one, another has all":           {first(), VerdictBootstrap, v1alpha1.ReasonFirstSite, "b"},
		"the first one, there is nobody else":      {alone(first()), VerdictBlocked, v1alpha1.ReasonKeptFenced, ""},
		"the first one, it has more":               {more(first()), VerdictBlocked, v1alpha1.ReasonKeptFenced, ""},
		"the target of a failover":                 {between(v1alpha1.TransitionFencing), VerdictFailover, v1alpha1.ReasonTargetLost, "b"},
		"the target, and there is nobody else":     {alone(between(v1alpha1.TransitionFencing)), VerdictBlocked, v1alpha1.ReasonKeptFenced, "a"},
		"a target that was ordered":                {ordered(alone(between(v1alpha1.TransitionFencing))), VerdictBlocked, v1alpha1.ReasonKeptFenced, "a"},
		"its gate was passed":                      {between(v1alpha1.TransitionOpening), VerdictFailover, v1alpha1.ReasonKeptFenced, "b"},
		"its gate was passed, nobody else":         {alone(between(v1alpha1.TransitionOpening)), VerdictBlocked, v1alpha1.ReasonKeptFenced, "a"},
	} {
		tc.s.Group = Group{Namespace: "shop", Name: "orders"}
		free := Decide(tc.s, Memory{})
		tc.s.Sites[0].KeptFenced = true
		d := Decide(tc.s, Memory{})
		if d.Verdict != tc.verdict || d.Reason != tc.reason || d.Status.ActiveSite != tc.active || !d.Hold || opensSite(d, "a") {
			t.Errorf("I29: %s: %s %s, active site %q, hold %t: %s", name, d.Verdict, d.Reason, d.Status.ActiveSite, d.Hold, d.Message)
		}
		if d.Verdict == VerdictBlocked && !strings.Contains(d.Message, end) {
			t.Errorf("I29: %s: nobody is told how to end it: %s", name, d.Message)
		}
		if d.Verdict == VerdictFailover && d.Reason == v1alpha1.ReasonKeptFenced && strings.Contains(d.Message, end) {
			t.Errorf("I29: %s: the role moves, and a person is told to end what does not hinder it: %s", name, d.Message)
		}
		if free.Reason == v1alpha1.ReasonKeptFenced {
			t.Errorf("%s: a site that nobody keeps fenced: %s", name, free.Message)
		}
	}
}

// TestAKeptSiteThatMayNeverBeFirstHindersNothingI29: to end its fence would bring no first site.
func TestAKeptSiteThatMayNeverBeFirstHindersNothingI29(t *testing.T) {
	s := factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 0), factstest.Seen("b", "A:1-9", 0))
	s.Sites[0].Role, s.Sites[0].KeptFenced, s.Sites[1].OtherVolume = v1alpha1.DROnly, true, true
	if d := Decide(s, Memory{}); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonNoFitCandidate {
		t.Errorf("I29: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}

// TestAnActiveSiteThatRestartsIsAffectedOnlyIfKeptI29: that another site is kept fenced is no matter.
func TestAnActiveSiteThatRestartsIsAffectedOnlyIfKeptI29(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Sites[1].KeptFenced = true
	if d := Decide(s, Memory{}); d.Hold || !opensSite(d, "a") {
		t.Errorf("%s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}

// TestAPlannedFailoverToAKeptSiteI29: one that is asked for is refused at once, one under way goes back.
func TestAPlannedFailoverToAKeptSiteI29(t *testing.T) {
	s := factstest.AtRest()
	s.Sites[1].KeptFenced, s.Policy.PlannedTo = true, "b"
	d := Decide(s, Memory{})
	if p := d.Status.Planned; p == nil || p.Phase != v1alpha1.PlannedRefused || p.Reason != v1alpha1.ReasonKeptFenced || len(p.Remedies) != 1 || d.Status.Epoch != s.Status.Epoch {
		t.Errorf("I29: %+v", d.Status.Planned)
	}
	s.Policy.PlannedTo = ""
	s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
	s.Policy.PlannedTo = "b"
	if p := Decide(s, Memory{}).Status.Planned; p.Phase != v1alpha1.PlannedRefused {
		t.Errorf("I29: it goes on to wait for what no time brings: %+v", p)
	}
	s.Status.Planned.Phase, s.Status.ActiveSite, s.Status.Epoch = v1alpha1.PlannedMoving, "b", 5
	s.Status.Transition = &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b", StartedAt: s.Now}
	d = Decide(s, Memory{})
	if d.Status.ActiveSite != "a" || d.Status.Planned.Phase != v1alpha1.PlannedReverted || !d.Hold {
		t.Errorf("I29: %s: %+v", d.Message, d.Status.Planned)
	}
}

// TestCheckStopsAnOpeningOfAKeptSiteI29: the last guard stands by itself.
func TestCheckStopsAnOpeningOfAKeptSiteI29(t *testing.T) {
	for _, kept := range []bool{false, true} {
		s := Snapshot{Status: Durable{Epoch: 3, ActiveSite: "b"}, Sites: []Site{{Name: "b", KeptFenced: kept}}}
		if err := (Decision{Status: s.Status, Effects: []Effect{Open{Site: "b"}}}).check(s); (err != nil) != kept {
			t.Errorf("I29: kept %t: %v", kept, err)
		}
		if err := (Decision{Status: s.Status}).check(s); (err != nil) != kept {
			t.Errorf("I29: kept %t, by the statement alone: %v", kept, err)
		}
		if err := (Decision{Status: s.Status, Hold: true}).check(s); err != nil {
			t.Errorf("a hold is stopped: %v", err)
		}
	}
}

// TestAnOpenSiteStaysOpenUnderAHoldI29: the active one, and one that was seen open just now. Should it close between two looks, it stays closed.
func TestAnOpenSiteStaysOpenUnderAHoldI29(t *testing.T) {
	for _, kept := range []bool{false, true} {
		s := factstest.AtRest()
		s.Sites[0].KeptFenced = kept
		if d := Decide(s, Memory{}); d.Hold != kept || d.Verdict != VerdictNothing || d.Topology != TopologyHealthy {
			t.Errorf("I29: kept %t: %s, hold %t: %s", kept, d.Verdict, d.Hold, d.Message)
		}
		s.Status.Transition = &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening, From: "b", To: "a",
			StartedAt: factstest.Start, DetectedAt: factstest.Start, GatePassedAt: factstest.Start}
		if d := Decide(s, Memory{}); d.Hold != kept || d.Verdict != VerdictComplete {
			t.Errorf("I29: kept %t, just opened: %s, hold %t: %s", kept, d.Verdict, d.Hold, d.Message)
		}
	}
}
