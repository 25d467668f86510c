// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestAPlannedFailoverThatDragsOnIsTold: nothing is reported while writes are kept out for a moment. A move that is blocked, or
// over its time, must end that silence, or the group is down with nobody told.
func TestAPlannedFailoverThatDragsOnIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   bool
	}{
		"under way": {func(*Snapshot) {}, true},
		"over, by a look that hardly waited for c": {func(s *Snapshot) {
			s.Status.Transition.Step, s.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, s.Now
			s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = false, false
			s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
		}, true},
		"both sites are gone": {func(s *Snapshot) {
			s.Status.ActiveSite, s.Status.Transition.To = "a", "a" // it was to be opened again
			for i := range s.Sites {
				s.Sites[i].Sidecar, s.Sites[i].MySQL = Sidecar{}, MySQL{}
			}
			s.Policy.Threshold = 1
		}, false},
		"the target does not open": {func(s *Snapshot) {
			s.Status.Transition.Step, s.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, s.Now.Add(-10*time.Second)
			s.Status.Transition.StartedAt = s.Now.Add(-10 * time.Second)
		}, false},
	} {
		s := factstest.ThreeSites()
		s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = true, true
		s.Status = Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverPlanned,
			Step: v1alpha1.TransitionFencing, From: "a", To: "b", StartedAt: s.Now.Add(-time.Second)}}
		tc.change(&s)
		if d := Decide(s, Memory{}); d.Urgent() != tc.want {
			t.Errorf("%s: urgent %t, want %t: %s %s", name, d.Urgent(), tc.want, d.Verdict, d.Message)
		}
	}
}

// TestACordonedNodeCostsNoHaste: a node may stay cordoned for days. Looking more often pays only while a candidate catches up,
// and for as long as a pod that is ended may take.
func TestACordonedNodeCostsNoHaste(t *testing.T) {
	lag := 20.0
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		want   time.Duration
	}{
		"a candidate catches up": {func(s *Snapshot, _ *Memory) { s.Sites[1].MySQL.LagSeconds, s.Sites[2].MySQL.LagSeconds = &lag, &lag }, 100 * time.Millisecond},
		"it takes too long": {func(s *Snapshot, m *Memory) {
			s.Sites[1].MySQL.LagSeconds, s.Sites[2].MySQL.LagSeconds = &lag, &lag
			m.LeavingSince = s.Now.Add(-time.Hour)
		}, 0},
		"all nodes are cordoned": {func(s *Snapshot, _ *Memory) { s.Sites[1].Leaving, s.Sites[2].Leaving = "cordoned", "cordoned" }, 0},
		"paused":                 {func(s *Snapshot, _ *Memory) { s.Policy.PausedUntil = s.Now.Add(time.Hour) }, 0},
	} {
		s, m := factstest.ThreeSites(), Memory{}
		s.Sites[0].Leaving = "node a is cordoned"
		tc.change(&s, &m)
		if d := Decide(s, m); d.Next != tc.want || d.Status.Transition != nil {
			t.Errorf("%s: looks again in %s, want %s: %s", name, d.Next, tc.want, d.Message)
		}
	}
}

// TestTheEndOfTheThresholdIsLookedFor: an extra poll can be refused when very many groups are not well; the moment from which a
// silent active site may be replaced does not wait for the group's next turn.
func TestTheEndOfTheThresholdIsLookedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		down, want time.Duration
	}{
		"half of it is over": {2 * time.Second, 2 * time.Second},
		"just before":        {3900 * time.Millisecond, 100 * time.Millisecond},
		"polls are missing":  {5 * time.Second, 0},
	} {
		s := factstest.ThreeSites()
		s.Policy.Threshold, s.Policy.PollInterval = 3, 2*time.Second
		s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
		m := Memory{Sites: map[string]*SiteMemory{"a": {DownSince: s.Now.Add(-tc.down), SilentPolls: 1}}}
		if d := Decide(s, m); d.Reason != v1alpha1.ReasonBelowThreshold || d.Next != tc.want {
			t.Errorf("%s: %s, looks again in %s, want %s: %s", name, d.Reason, d.Next, tc.want, d.Message)
		}
	}
}

// TestWhenNobodyIsHeard: labels outlive a moment in which all sites are silent, and no more than that.
func TestWhenNobodyIsHeard(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		want   bool
	}{
		"all are silent":           {func(*Snapshot, *Memory) {}, true},
		"one answers":              {func(s *Snapshot, _ *Memory) { s.Sites[2].Sidecar.Answered = true }, false},
		"one answers SQL":          {func(s *Snapshot, _ *Memory) { s.Sites[1].MySQL.Direct = true }, false},
		"for too many polls":       {func(_ *Snapshot, m *Memory) { m.At("c").SilentPolls = 3 }, false},
		"for long, with few polls": {func(s *Snapshot, m *Memory) { m.At("a").DownSince = s.Now.Add(-11 * time.Second) }, false},
	} {
		s := factstest.ThreeSites()
		s.Policy.Threshold = 3
		m := Memory{}
		for i := range s.Sites {
			s.Sites[i].Sidecar.Answered, s.Sites[i].MySQL = false, MySQL{}
			m.At(s.Sites[i].Name).SilentPolls, m.At(s.Sites[i].Name).DownSince = 2, s.Now.Add(-3*time.Second)
		}
		tc.change(&s, &m)
		if got := (Decision{Memory: m}).Unheard(s); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAMoveThatFailsIsTriedLessAndLess: each attempt keeps writes out for a while, and the node may stay cordoned for days.
func TestAMoveThatFailsIsTriedLessAndLess(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
	s.Sites[0].Leaving = "node a is cordoned"
	begun := s.Now
	tries := 0
	for s.Now.Sub(begun) < time.Hour {
		d := Decide(s, m)
		m = d.Memory
		if d.Status.Transition != nil {
			tries++
			s.Now = s.Now.Add(5 * time.Second)
			s.Status.Transition = d.Status.Transition // its memory must outlive the attempt
			s.Status.ActiveSite = d.Status.ActiveSite
			s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = true, true
			m = Decide(s, m).Memory
			s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
			reverted := append([]v1alpha1.FailoverRecord{{Kind: v1alpha1.FailoverPlanned, From: "a", To: "a", LossExact: true}}, s.Status.Records...)
			s.Status = Durable{Epoch: 3, ActiveSite: "a", Records: reverted[:min(len(reverted), recordsKept)],
				Planned: &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonOrderedUpdate, Phase: v1alpha1.PlannedReverted, FinishedAt: s.Now, Answered: true}}
			m.LeavingSince = time.Time{} // the wish of an update lapses while the role moves
		}
		s.Now = s.Now.Add(2 * time.Second)
	}
	if tries < 5 || tries > 14 {
		t.Errorf("the role was moved %d times in an hour", tries)
	}
}

// TestALeavingSiteDoesNotWaitForTheSiteThatWasAskedFor: its pod has seconds, a request may wait a minute.
func TestALeavingSiteDoesNotWaitForTheSiteThatWasAskedFor(t *testing.T) {
	lag := 20.0
	s := factstest.ThreeSites()
	s.Policy.PlannedTo = "b"
	s.Sites[1].MySQL.LagSeconds = &lag
	d := Decide(s, Memory{})
	if d.Status.Planned == nil || d.Status.Planned.Phase != v1alpha1.PlannedWaiting {
		t.Fatalf("the request does not wait: %+v", d.Status.Planned)
	}
	s.Status, s.Sites[0].Leaving = d.Status, "pod a is being deleted"
	d = Decide(s, d.Memory)
	if d.Status.Transition == nil || d.Status.ActiveSite != "c" || d.Status.Planned.Cause != v1alpha1.ReasonSiteLeaving {
		t.Fatalf("the role stays on a pod that is ended: %s", d.Message)
	}
	// Afterwards the request is looked at again, from where the role is then.
	s.Status = Durable{Epoch: 4, ActiveSite: "c", Planned: &Planned{From: "a", To: "c", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedSucceeded, Answered: true}}
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = true, true
	s.Sites[2].MySQL.SuperReadOnly, s.Sites[2].MySQL.ReadOnly = false, false
	s.Sites[1].MySQL.ReplicaOf, s.Sites[1].MySQL.LagSeconds = "c", &lag
	if d = Decide(s, d.Memory); d.Status.Planned.To != "b" || d.Status.Planned.Cause != v1alpha1.ReasonRequested {
		t.Errorf("the request is forgotten: %+v", d.Status.Planned)
	}
}

// TestAnotherRequestIsNotAnsweredWithTheFirst: who changes the annotation while the first request is looked at asks for the other.
func TestAnotherRequestIsNotAnsweredWithTheFirst(t *testing.T) {
	s := factstest.ThreeSites()
	s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedAborted}
	s.Policy.PlannedTo = "c"
	d := Decide(s, Memory{})
	if !d.Status.Planned.Answered {
		t.Fatal("the first request waits for an annotation that is gone")
	}
	s.Status = d.Status
	if d = Decide(s, d.Memory); d.Status.ActiveSite != "c" {
		t.Errorf("the second request is lost: %s", d.Message)
	}
}

// TestAChangeThatIsNotOverIsNotRecorded: what is blocked in the middle of a change may be persisted for another reason.
func TestAChangeThatIsNotOverIsNotRecorded(t *testing.T) {
	s := factstest.ThreeSites()
	for i := range s.Sites {
		s.Sites[i].Sidecar, s.Sites[i].MySQL = Sidecar{}, MySQL{}
	}
	s.Policy.Threshold = 1
	s.Status = Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverEmergency,
		Step: v1alpha1.TransitionOpening, From: "a", To: "b", StartedAt: s.Now.Add(-time.Hour), GatePassedAt: s.Now.Add(-time.Hour)},
		Planned: &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedReverted}}
	d := Decide(s, Memory{})
	if d.Verdict != VerdictBlocked || !d.Persist || d.Status.Transition == nil {
		t.Fatalf("this test tests nothing: %s persist=%t", d.Verdict, d.Persist)
	}
	if len(d.Status.Records) != 0 {
		t.Errorf("recorded as over: %+v", d.Status.Records[0])
	}
}

// TestNothingMissingBlocksNothing: a target that only still receives lacks nothing, and nobody has what it lacks; that must not
// pass for a site whose data was written off, or the failover waits for ever.
func TestNothingMissingBlocksNothing(t *testing.T) {
	s := factstest.ThreeSites()
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	for i := range s.Sites[1:] {
		s.Sites[i+1].Sidecar.Report.Epoch = 4
	}
	s.Status = Durable{Epoch: 4, ActiveSite: "b", Records: []v1alpha1.FailoverRecord{{Epoch: 2, To: "a"}},
		Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "a", To: "b", StartedAt: s.Now}}
	if d := Decide(s, Memory{}); d.Verdict != VerdictWait || d.Reason != v1alpha1.ReasonDrainingRelayLog {
		t.Errorf("%s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}
