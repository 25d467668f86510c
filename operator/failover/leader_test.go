// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// A new leader reads in status what an earlier one began, by the clock of that one.

// apart are clocks of an earlier leader, as seen from the new one: what was noted just before the change lies that long ago.
var apart = map[string]time.Duration{
	"as it is":                  20 * time.Second,
	"the new clock is ahead":    2*time.Minute + 20*time.Second,
	"the new clock is behind":   -2*time.Minute + 20*time.Second,
	"noted at that very moment": 0,
}

// TestAPauseEndsByTheClockOfItsLeaderI9I13: a new leader gives a move its whole time once, and no more: writes are kept out meanwhile.
func TestAPauseEndsByTheClockOfItsLeaderI9I13(t *testing.T) {
	for name, ago := range apart {
		s := factstest.Under(v1alpha1.FailoverPlanned)
		s.Sites[1].Sidecar.Report.Epoch = 3 // b does not acknowledge
		s.Status.Transition.StartedAt, s.Status.Transition.DetectedAt = factstest.Start.Add(-ago), factstest.Start.Add(-ago)
		s.LeaderSince, s.Policy.PlannedPauseTimeout = factstest.Start, 5*time.Second
		m := Memory{}
		for waited := time.Duration(0); ; waited += time.Second {
			s.Now = factstest.Start.Add(waited)
			d := Decide(s, m)
			if m = d.Memory; d.Status.ActiveSite == "a" {
				if waited != 6*time.Second {
					t.Errorf("I9, I13: %s: a is opened again after %s: %s", name, waited, d.Message)
				}
				break
			}
			if waited > 10*time.Second {
				t.Errorf("I13: %s: writes are still kept out after %s: %s", name, waited, d.Message)
				break
			}
		}
	}
	// Its own start counts too: the process led for long before, and remembers an earlier change.
	s := factstest.Under(v1alpha1.FailoverPlanned)
	s.Sites[1].Sidecar.Report.Epoch, s.Policy.PlannedPauseTimeout = 3, 5*time.Second
	s.Now = factstest.Start.Add(4 * time.Second)
	if d := Decide(s, Memory{DrainSince: factstest.Start}); d.Status.ActiveSite != "b" {
		t.Errorf("reverted early: %s", d.Message)
	}
	s.Now = factstest.Start.Add(6 * time.Second)
	if d := Decide(s, Memory{DrainSince: factstest.Start}); d.Status.ActiveSite != "a" {
		t.Errorf("I13: writes are kept out: %s", d.Message)
	}
	s.LeaderSince = factstest.Start.Add(5 * time.Second) // it stood still, and another led meanwhile
	if d := Decide(s, Memory{DrainSince: factstest.Start}); d.Status.ActiveSite != "b" {
		t.Errorf("I9: given up for a time in which it did not lead: %s", d.Message)
	}
}

// TestAWaitForALagEndsByTheClockOfItsLeaderI9: the request is refused after plannedLagTimeout, however far apart the clocks are.
func TestAWaitForALagEndsByTheClockOfItsLeaderI9(t *testing.T) {
	lag := 30.0
	for name, ago := range apart {
		s := factstest.ThreeSites()
		s.Policy.PlannedLagTimeout, s.Policy.PlannedTo = time.Minute, "b"
		s.LeaderSince = factstest.Start
		s.Sites[1].MySQL.LagSeconds = &lag
		s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: factstest.Start.Add(-ago)}
		for _, tc := range []struct {
			after time.Duration
			want  v1alpha1.PlannedPhase
		}{{time.Second, v1alpha1.PlannedWaiting}, {59 * time.Second, v1alpha1.PlannedWaiting}, {61 * time.Second, v1alpha1.PlannedRefused}} {
			s.Now = factstest.Start.Add(tc.after)
			if d := Decide(s, Memory{}); d.Status.Planned.Phase != tc.want {
				t.Errorf("I9: %s: after %s: %s: %s", name, tc.after, d.Status.Planned.Phase, d.Status.Planned.Message)
			}
		}
	}
}

// TestAnOpeningIsStuckByTheClockOfItsLeaderI9: another site takes over drainTimeout after the new leader came, not sooner or minutes later.
func TestAnOpeningIsStuckByTheClockOfItsLeaderI9(t *testing.T) {
	for name, ago := range apart {
		s := factstest.Under(v1alpha1.FailoverEmergency)
		s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
		s.Status.Transition.Step, s.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, factstest.Start.Add(-ago)
		s.Status.Transition.ToExecuted = s.Sites[1].MySQL.Executed
		s.LeaderSince, s.Policy.DrainTimeout = factstest.Start, 30*time.Second
		for _, tc := range []struct {
			after time.Duration
			want  string
		}{{29 * time.Second, "b"}, {31 * time.Second, "c"}} {
			s.Now = factstest.Start.Add(tc.after)
			if d := Decide(s, Memory{DrainSince: factstest.Start}); d.Status.ActiveSite != tc.want {
				t.Errorf("I9: %s: after %s %s is active: %s", name, tc.after, d.Status.ActiveSite, d.Message)
			}
		}
	}
}

// TestAClockThatIsSetBackMovesNoRole: the leader is the same, and the gate was passed a moment ago.
func TestAClockThatIsSetBackMovesNoRole(t *testing.T) {
	s := factstest.Under(v1alpha1.FailoverEmergency)
	s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
	s.Status.Transition.Step, s.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, s.Now.Add(time.Second)
	s.Status.Transition.ToExecuted, s.Policy.DrainTimeout = s.Sites[1].MySQL.Executed, 30*time.Second
	if d := Decide(s, Memory{DrainSince: s.Now.Add(-time.Second)}); d.Status.ActiveSite != "b" {
		t.Errorf("%s is active: %s", d.Status.ActiveSite, d.Message)
	}
}

// TestNoPauseIsNegative: what a person reads of a move that another leader began.
func TestNoPauseIsNegative(t *testing.T) {
	s := factstest.Under(v1alpha1.FailoverPlanned)
	s.LeaderSince, s.Now = factstest.Start, factstest.Start.Add(2*time.Second)
	tr := *s.Status.Transition
	tr.StartedAt, tr.GatePassedAt, tr.DetectedAt = s.Now.Add(2*time.Minute), s.Now.Add(-time.Second), s.Now.Add(2*time.Minute)
	r := record(s, tr)
	if *r.WritePauseMillis != 0 {
		t.Errorf("writes paused for %d ms", *r.WritePauseMillis)
	}
	for _, step := range r.Timeline {
		if step.Millis < 0 {
			t.Errorf("%s at %d ms", step.Step, step.Millis)
		}
	}
	if tr.Urgent(s.Now, s.Policy) {
		t.Error("a move of an earlier leader is called fresh for as long as its clock is ahead")
	}
}

// TestALeavingSiteIsTriedAgainByTheClockOfItsLeaderI9: no longer after the change of the leader than the wait itself.
func TestALeavingSiteIsTriedAgainByTheClockOfItsLeaderI9(t *testing.T) {
	lag := 0.0
	for after, moves := range map[time.Duration]bool{14 * time.Second: false, 16 * time.Second: true} {
		s := factstest.ThreeSites()
		s.Sites[0].Leaving, s.Sites[1].MySQL.LagSeconds = "node n1 is cordoned", &lag
		s.LeaderSince, s.Now = factstest.Start, factstest.Start.Add(after)
		s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedReverted, Answered: true,
			FinishedAt: factstest.Start.Add(2 * time.Minute)}
		if d := Decide(s, Memory{LeavingSince: factstest.Start}); (d.Status.Transition != nil) != moves {
			t.Errorf("I9: after %s: %s", after, d.Message)
		}
	}
}
