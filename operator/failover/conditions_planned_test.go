// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestWhatAPreflightRefuses: each refusal, alone.
func TestWhatAPreflightRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot)
		want   Reason
	}{
		"nothing":                    {func(*Snapshot) {}, ""},
		"the mode is Observe":        {func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverObserve }, v1alpha1.ReasonModeObserve},
		"it is paused":               {func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(1) }, v1alpha1.ReasonPaused},
		"b is not fit":               {func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, v1alpha1.ReasonNotFit},
		"b is about to go":           {func(s *Snapshot) { s.Sites[1].Leaving = "drained" }, v1alpha1.ReasonNotFit},
		"b's volume goes":            {func(s *Snapshot) { s.Sites[1].Pod.VolumeGoes = true }, v1alpha1.ReasonVolumeTerminating},
		"b's goes, a's node drained": {func(s *Snapshot) { s.Sites[1].Pod.VolumeGoes, s.Sites[0].Leaving = true, "drained" }, v1alpha1.ReasonVolumeTerminating},
		"b's goes, a ends, c's not":  {func(s *Snapshot) { s.Sites[1].Pod.VolumeGoes, s.Sites[0].Pod.Deleted = true, true }, v1alpha1.ReasonVolumeTerminating},
		"b's and c's go, and a ends": {func(s *Snapshot) {
			s.Sites[1].Pod.VolumeGoes, s.Sites[2].Pod.VolumeGoes, s.Sites[0].Pod.Deleted = true, true, true
		}, ""},
		"b's goes, a ends, c is not": {func(s *Snapshot) {
			s.Sites[1].Pod.VolumeGoes, s.Sites[2].Role, s.Sites[0].Pod.Deleted = true, v1alpha1.DROnly, true
		}, ""},
		"a's volume goes":            {func(s *Snapshot) { s.Sites[0].Pod.VolumeGoes = true }, ""},
		"c's volume goes":            {func(s *Snapshot) { s.Sites[2].Pod.VolumeGoes = true }, ""},
		"a's sidecar is silent":      {func(s *Snapshot) { s.Sites[0].Sidecar.Answered = false }, v1alpha1.ReasonNotHealthy},
		"a's MySQL is silent":        {func(s *Snapshot) { s.Sites[0].MySQL.Direct = false }, v1alpha1.ReasonNotHealthy},
		"b follows another":          {func(s *Snapshot) { s.Sites[1].MySQL.ReplicaOf = "c" }, v1alpha1.ReasonNotReplicating},
		"b does not receive":         {func(s *Snapshot) { s.Sites[1].MySQL.IORunning = false }, v1alpha1.ReasonNotReplicating},
		"b does not apply":           {func(s *Snapshot) { s.Sites[1].MySQL.SQLRunning = false }, v1alpha1.ReasonNotReplicating},
		"c accepts writes":           {func(s *Snapshot) { s.Sites[2].MySQL.SuperReadOnly, s.Sites[2].MySQL.ReadOnly = false, false }, v1alpha1.ReasonForeignWriter},
		"c is being cloned":          {func(s *Snapshot) { s.Sites[2].Busy = WorkClone }, v1alpha1.ReasonCloneInProgress},
		"b is being cloned":          {func(s *Snapshot) { s.Sites[1].Busy = WorkClone }, v1alpha1.ReasonCloneInProgress},
		"c is, and a is about to go": {func(s *Snapshot) { s.Sites[2].Busy, s.Sites[0].Leaving = WorkClone, "drained" }, ""},
		"a is about to go":           {func(s *Snapshot) { s.Sites[0].Leaving = "drained" }, ""},
	} {
		s := factstest.AtRest()
		tc.change(&s)
		if got := promotion.Preflight(s, Memory{}, s.Sites[0], "b"); got.Reason != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := promotion.Preflight(factstest.AtRest(), Memory{}, factstest.AtRest().Sites[0], "x"); got.Reason != v1alpha1.ReasonUnknownSite || !strings.Contains(got.Message, "a, b, c") {
		t.Errorf("%+v", got)
	}
}

// TestAPlannedFailoverThatWaits: until it is given up, begins, or has waited for too long.
func TestAPlannedFailoverThatWaits(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	var down time.Duration
	for name, tc := range map[string]struct {
		change func(s *Snapshot, p *Planned)
		phase  v1alpha1.PlannedPhase
		reason Reason
	}{
		"it begins":                           {func(*Snapshot, *Planned) {}, v1alpha1.PlannedMoving, v1alpha1.ReasonRequested},
		"it is given up":                      {func(s *Snapshot, _ *Planned) { s.Policy.AbortPlanned = true }, v1alpha1.PlannedAborted, v1alpha1.ReasonAborted},
		"another is asked for":                {func(s *Snapshot, _ *Planned) { s.Policy.PlannedTo = "c" }, v1alpha1.PlannedAborted, v1alpha1.ReasonAborted},
		"another is, but nobody asked for it": {func(s *Snapshot, p *Planned) { s.Policy.PlannedTo, p.Cause = "c", v1alpha1.ReasonSiteLeaving }, v1alpha1.PlannedMoving, Reason(v1alpha1.ReasonSiteLeaving)},
		"its target is active":                {func(s *Snapshot, p *Planned) { s.Policy.PlannedTo, p.To = "a", "a" }, v1alpha1.PlannedRefused, v1alpha1.ReasonAlreadyActive},
		"its target is silent, for a while":   {func(s *Snapshot, _ *Planned) { factstest.Silence(&s.Sites[1]) }, v1alpha1.PlannedWaiting, ""},
		"its target is, for long": {func(s *Snapshot, p *Planned) {
			factstest.Silence(&s.Sites[1])
			p.StartedAt, down = s.Now.Add(-time.Minute-1), time.Minute
		}, v1alpha1.PlannedRefused, v1alpha1.ReasonNotFit},
		"its target is, and it is new": {func(s *Snapshot, p *Planned) { factstest.Silence(&s.Sites[1]); p.Phase = "" }, v1alpha1.PlannedWaiting, v1alpha1.ReasonTargetSilent},
		"its target has been silent, and it is new": {func(s *Snapshot, p *Planned) {
			factstest.Silence(&s.Sites[1])
			p.Phase, down = "", 2*s.Policy.PollInterval
		}, v1alpha1.PlannedRefused, v1alpha1.ReasonNotFit},
		"its target has been silent since it was new": {func(s *Snapshot, p *Planned) {
			factstest.Silence(&s.Sites[1])
			p.Reason, down = v1alpha1.ReasonTargetSilent, 2*s.Policy.PollInterval
		}, v1alpha1.PlannedRefused, v1alpha1.ReasonNotFit},
		"its target is silent while it waits for a large change": {func(s *Snapshot, p *Planned) {
			factstest.Silence(&s.Sites[1])
			p.Reason = v1alpha1.ReasonLargeChange
		}, v1alpha1.PlannedWaiting, v1alpha1.ReasonLargeChange},
		"its target was silent": {func(_ *Snapshot, p *Planned) { p.Reason = v1alpha1.ReasonTargetSilent }, v1alpha1.PlannedMoving, v1alpha1.ReasonRequested},
		"its target was silent, and lags": {func(s *Snapshot, p *Planned) {
			s.Sites[1].MySQL.LagSeconds = lag(3)
			p.Reason = v1alpha1.ReasonTargetSilent
		}, v1alpha1.PlannedWaiting, v1alpha1.ReasonTargetLags},
		"it is paused now":   {func(s *Snapshot, _ *Planned) { s.Policy.PausedUntil = s.Now.Add(1) }, v1alpha1.PlannedRefused, v1alpha1.ReasonPaused},
		"its target is near": {func(s *Snapshot, _ *Planned) { s.Sites[1].MySQL.LagSeconds = lag(0.3) }, v1alpha1.PlannedWaiting, ""},
		"its target is near, for long": {func(s *Snapshot, p *Planned) {
			s.Sites[1].MySQL.LagSeconds = lag(0.3)
			p.StartedAt = s.Now.Add(-handTime)
		}, v1alpha1.PlannedMoving, v1alpha1.ReasonRequested},
		"its target is far": {func(s *Snapshot, _ *Planned) { s.Sites[1].MySQL.LagSeconds = lag(3) }, v1alpha1.PlannedWaiting, ""},
		"its target is far, for long": {func(s *Snapshot, p *Planned) {
			s.Sites[1].MySQL.LagSeconds = lag(3)
			p.StartedAt = s.Now.Add(-time.Minute)
		}, v1alpha1.PlannedWaiting, ""},
		"its target is far, for too long": {func(s *Snapshot, p *Planned) {
			s.Sites[1].MySQL.LagSeconds = lag(3)
			p.StartedAt = s.Now.Add(-time.Minute - 1)
		}, v1alpha1.PlannedRefused, v1alpha1.ReasonTargetLags},
		"its target is far, and it is new": {func(s *Snapshot, p *Planned) { s.Sites[1].MySQL.LagSeconds = lag(3); p.Phase = "" }, v1alpha1.PlannedWaiting, v1alpha1.ReasonTargetLags},
	} {
		s := factstest.AtRest()
		s.Policy.PlannedTo = "b"
		p := Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		down = 0
		tc.change(&s, &p)
		s.Status.Planned = &p
		var m Memory
		m.At("b").DownSince = s.Now.Add(-down)
		d := waiting(s, Decision{Status: s.Status, Memory: m, Effects: []Effect{Select{Site: "a"}}}, s.Sites[0], p)
		got := d.Status.Planned
		if got.Phase != tc.phase || got.Reason != tc.reason {
			t.Errorf("%s: %s %s: %s", name, got.Phase, got.Reason, d.Message)
		}
		if lags := got.Phase == v1alpha1.PlannedRefused && got.Reason == v1alpha1.ReasonTargetLags; lags &&
			(!strings.Contains(got.Message, "; what it applies is probably one") || len(got.Remedies) != 4 || !strings.Contains(got.Remedies[0].Command, "mysql GROUP b")) {
			t.Errorf("%s: %s %+v", name, got.Message, got.Remedies)
		}
		if _, moves := d.Effects[0].(Handover); moves != (tc.phase == v1alpha1.PlannedMoving) || moves && len(d.Effects) != 1 {
			t.Errorf("%s: %v", name, d.Effects)
		}
		if nearer := strings.Contains(d.Message, "may be nearer in a moment"); nearer != (name == "its target is near") {
			t.Errorf("%s: %s", name, d.Message)
		}
	}
}

// TestWhatIsPlanned: what was asked for, and who is about to go.
func TestWhatIsPlanned(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	far := func(s *Snapshot) { s.Sites[1].MySQL.LagSeconds = lag(3) }
	for name, tc := range map[string]struct {
		change func(s *Snapshot)
		to     string
		phase  v1alpha1.PlannedPhase
		stays  bool
	}{
		"nothing":        {func(*Snapshot) {}, "a", "", false},
		"b is asked for": {func(s *Snapshot) { s.Policy.PlannedTo = "b" }, "b", v1alpha1.PlannedMoving, false},
		"b is asked for, and one is over": {func(s *Snapshot) {
			s.Policy.PlannedTo, s.Status.Planned = "b", &Planned{To: "b", Phase: v1alpha1.PlannedSucceeded, Answered: true}
		}, "b", v1alpha1.PlannedMoving, false},
		"b is still asked for, and it is over": {func(s *Snapshot) {
			s.Policy.PlannedTo, s.Status.Planned = "b", &Planned{To: "b", Phase: v1alpha1.PlannedSucceeded}
		}, "a", v1alpha1.PlannedSucceeded, false},
		"b is asked for, and one moves": {func(s *Snapshot) {
			s.Policy.PlannedTo, s.Status.Planned = "b", &Planned{To: "b", Phase: v1alpha1.PlannedMoving, Answered: true}
		}, "a", v1alpha1.PlannedMoving, false},
		"a is about to go": {func(s *Snapshot) { s.Sites[0].Leaving = "drained" }, "b", v1alpha1.PlannedMoving, false},
		"a is about to go, and one is over": {func(s *Snapshot) {
			s.Sites[0].Leaving, s.Status.Planned = "drained", &Planned{To: "b", Phase: v1alpha1.PlannedSucceeded}
		}, "b", v1alpha1.PlannedMoving, false},
		"a is about to go, and one moves": {func(s *Snapshot) {
			s.Sites[0].Leaving, s.Status.Planned = "drained", &Planned{To: "c", Phase: v1alpha1.PlannedMoving}
		}, "a", v1alpha1.PlannedMoving, false},
		"b is waited for": {func(s *Snapshot) {
			far(s)
			s.Policy.PlannedTo, s.Status.Planned = "b", &Planned{To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		}, "a", v1alpha1.PlannedWaiting, false},
		"b is waited for, and a is about to go": {func(s *Snapshot) {
			far(s)
			s.Sites[0].Leaving, s.Policy.PlannedTo, s.Status.Planned = "drained", "b", &Planned{To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		}, "c", v1alpha1.PlannedMoving, false},
		"the same, and c cannot take it either": {func(s *Snapshot) {
			far(s)
			s.Sites[2].Role = v1alpha1.DROnly
			s.Sites[0].Leaving, s.Policy.PlannedTo, s.Status.Planned = "drained", "b", &Planned{To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		}, "a", v1alpha1.PlannedWaiting, true},
		"it is given up while a is about to go": {func(s *Snapshot) {
			far(s)
			s.Sites[0].Leaving, s.Policy.AbortPlanned, s.Status.Planned = "drained", true, &Planned{To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		}, "a", v1alpha1.PlannedAborted, false},
	} {
		s := factstest.AtRest()
		tc.change(&s)
		d := plan(s, Decision{Status: s.Status, Topology: TopologyHealthy, Memory: Memory{LeavingSince: s.Now.Add(-leavingStands)}}, s.Sites[0])
		phase := v1alpha1.PlannedPhase("")
		if d.Status.Planned != nil {
			phase = d.Status.Planned.Phase
		}
		if d.Status.ActiveSite != tc.to || phase != tc.phase || (d.Stays != nil) != tc.stays || tc.stays && !strings.Contains(d.Message, "the planned failover waits") {
			t.Errorf("%s: %s %s %v: %s", name, d.Status.ActiveSite, phase, d.Stays, d.Message)
		}
	}
}

// TestWhoTakesTheRoleOfALeavingSite: when, and what is told meanwhile.
func TestWhoTakesTheRoleOfALeavingSite(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	failed := &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedReverted, FinishedAt: factstest.Start.Add(-leavingRetry + 1), Message: "no luck"}
	for name, tc := range map[string]struct {
		change func(s *Snapshot, since *time.Time)
		to     string
		stays  Reason
		says   string
	}{
		"b is at hand": {func(*Snapshot, *time.Time) {}, "b", "", ""},
		"b is near, at first": {func(s *Snapshot, since *time.Time) {
			s.Sites[1].MySQL.LagSeconds = lag(0.3)
			*since = s.Now.Add(-leavingPatience + 1)
		}, "a", "", ""},
		"b is near, a moment later": {func(s *Snapshot, since *time.Time) {
			s.Sites[1].MySQL.LagSeconds = lag(0.3)
			*since = s.Now.Add(-leavingPatience)
		}, "b", "", ""},
		"b is far": {func(s *Snapshot, _ *time.Time) { s.Sites[1].MySQL.LagSeconds = lag(3) }, "a", v1alpha1.ReasonTargetLags, "b is behind"},
		"b is far, not for long": {func(s *Snapshot, since *time.Time) {
			s.Sites[1].MySQL.LagSeconds = lag(3)
			*since = s.Now.Add(-leavingStands + 1)
		}, "a", "", ""},
		"it is paused":                 {func(s *Snapshot, _ *time.Time) { s.Policy.PausedUntil = s.Now.Add(1) }, "a", v1alpha1.ReasonPaused, "paused"},
		"the mode is Observe":          {func(s *Snapshot, _ *time.Time) { s.Policy.Mode = v1alpha1.FailoverObserve }, "a", v1alpha1.ReasonModeObserve, "Observe"},
		"nobody may take it":           {func(s *Snapshot, _ *time.Time) { s.Sites[1].Role = v1alpha1.DROnly }, "a", v1alpha1.ReasonNoFitCandidate, "b: "},
		"there is nobody":              {func(s *Snapshot, _ *time.Time) { s.Sites = s.Sites[:1] }, "a", v1alpha1.ReasonNoFitCandidate, "no other site may take it"},
		"the last try has just failed": {func(s *Snapshot, _ *time.Time) { s.Status.Planned = failed }, "a", "", "no luck"},
		"it failed a while ago": {func(s *Snapshot, _ *time.Time) {
			p := *failed
			p.FinishedAt = factstest.Start.Add(-leavingRetry)
			s.Status.Planned = &p
		}, "b", "", ""},
		"the last try has succeeded": {func(s *Snapshot, _ *time.Time) {
			p := *failed
			p.Phase = v1alpha1.PlannedSucceeded
			s.Status.Planned = &p
		}, "b", "", ""},
		"the last one was asked for": {func(s *Snapshot, _ *time.Time) {
			p := *failed
			p.Cause = v1alpha1.ReasonRequested
			s.Status.Planned = &p
		}, "b", "", ""},
		"the last one is not over": {func(s *Snapshot, _ *time.Time) {
			p := *failed
			p.Phase = v1alpha1.PlannedWaiting
			s.Status.Planned = &p
		}, "b", "", ""},
	} {
		s := factstest.AtRest()
		s.Sites, s.Sites[0].Leaving = s.Sites[:2], "drained"
		since := s.Now.Add(-time.Hour)
		tc.change(&s, &since)
		d := evacuate(s, Decision{Status: s.Status, Memory: Memory{LeavingSince: since}}, s.Sites[0])
		if d.Status.ActiveSite != tc.to {
			t.Errorf("%s: %s: %s", name, d.Status.ActiveSite, d.Message)
		}
		if tc.stays != "" || tc.says != "" {
			if d.Stays == nil || d.Stays.Reason != tc.stays || !strings.Contains(d.Stays.Message, tc.says) {
				t.Errorf("%s: %+v", name, d.Stays)
			}
		} else if d.Stays != nil {
			t.Errorf("%s: %+v", name, d.Stays)
		}
		if tc.to == "b" && d.Status.Planned.Cause != v1alpha1.ReasonSiteLeaving {
			t.Errorf("%s: %+v", name, d.Status.Planned)
		}
	}
	planned, other := v1alpha1.FailoverRecord{Kind: v1alpha1.FailoverPlanned, From: "a", To: "a"}, v1alpha1.FailoverRecord{Kind: v1alpha1.FailoverEmergency, From: "a", To: "a"}
	away := v1alpha1.FailoverRecord{Kind: v1alpha1.FailoverPlanned, From: "a", To: "b"}
	for name, tc := range map[string]struct {
		records []v1alpha1.FailoverRecord
		want    time.Duration
	}{
		"none": {nil, leavingRetry}, "one": {[]v1alpha1.FailoverRecord{planned}, leavingRetry}, "two": {[]v1alpha1.FailoverRecord{planned, planned}, 2 * leavingRetry},
		"two, with an emergency between": {[]v1alpha1.FailoverRecord{planned, other, planned, planned}, leavingRetry},
		"two, with a move between":       {[]v1alpha1.FailoverRecord{planned, away, planned, planned}, leavingRetry},
	} {
		if got := retryAfter(tc.records); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestTheNoteOfAPlannedFailover: what was decided about something else ends it, refuses it, or leaves it.
func TestTheNoteOfAPlannedFailover(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(s *Snapshot, d *Decision)
		phase    v1alpha1.PlannedPhase
		answered bool
	}{
		"it waits, and all is well": {func(*Snapshot, *Decision) {}, v1alpha1.PlannedWaiting, false},
		"it waits, and an emergency is begun": {func(_ *Snapshot, d *Decision) {
			d.Topology, d.Verdict, d.Status.Transition = TopologyActiveDown, VerdictFailover, &Transition{Kind: v1alpha1.FailoverEmergency}
		}, v1alpha1.PlannedRefused, false},
		"it waits, and another move is under way": {func(_ *Snapshot, d *Decision) {
			d.Topology, d.Status.Transition = TopologyTransition, &Transition{Kind: v1alpha1.FailoverPlanned}
		}, v1alpha1.PlannedWaiting, false},
		"it waits, and one look fails":           {func(_ *Snapshot, d *Decision) { d.Topology, d.Verdict = TopologyActiveSilent, VerdictWait }, v1alpha1.PlannedWaiting, false},
		"it waits, and the site is opened again": {func(_ *Snapshot, d *Decision) { d.Topology, d.Verdict = TopologyActiveReadOnly, VerdictReopen }, v1alpha1.PlannedWaiting, false},
		"it waits, and looks fail for long": {func(s *Snapshot, d *Decision) {
			d.Topology, d.Verdict = TopologyActiveSilent, VerdictWait
			s.Now = s.Now.Add(time.Minute + 1)
		}, v1alpha1.PlannedRefused, false},
		"it waits, and a change waits": {func(_ *Snapshot, d *Decision) {
			d.Topology, d.Verdict, d.Status.Transition = TopologyTransition, VerdictWait, &Transition{Kind: v1alpha1.FailoverEmergency}
		}, v1alpha1.PlannedRefused, false},
		"it waits, and nothing can be done": {func(_ *Snapshot, d *Decision) { d.Topology, d.Verdict = TopologyActiveSilent, VerdictBlocked }, v1alpha1.PlannedRefused, false},
		"it moves": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned.Phase, d.Status.Transition = v1alpha1.PlannedMoving, &Transition{Kind: v1alpha1.FailoverPlanned}
		}, v1alpha1.PlannedMoving, false},
		"it moved, and an emergency took over": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned.Phase, d.Status.Transition = v1alpha1.PlannedMoving, &Transition{Kind: v1alpha1.FailoverEmergency}
		}, v1alpha1.PlannedReverted, false},
		"it is over, and still asked for": {func(_ *Snapshot, d *Decision) { d.Status.Planned.Phase = v1alpha1.PlannedSucceeded }, v1alpha1.PlannedSucceeded, false},
		"it is over, and no more asked for": {func(s *Snapshot, d *Decision) {
			d.Status.Planned.Phase, s.Policy.PlannedTo = v1alpha1.PlannedSucceeded, ""
		}, v1alpha1.PlannedSucceeded, true},
		"it is not over, and no more asked for": {func(s *Snapshot, d *Decision) { s.Policy.PlannedTo = "" }, v1alpha1.PlannedWaiting, false},
		"there is none, and the group is down": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned, d.Topology, d.Verdict = nil, TopologyActiveDown, VerdictWait
		}, v1alpha1.PlannedRefused, false},
		"there is none, and the role moves": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned, d.Topology, d.Verdict = nil, TopologyTransition, VerdictWait
		}, "", false},
		"there is none, and all is well": {func(_ *Snapshot, d *Decision) { d.Status.Planned = nil }, "", false},
		"none, nobody asks, and the group is down": {func(s *Snapshot, d *Decision) {
			d.Status.Planned, d.Topology, s.Policy.PlannedTo = nil, TopologyActiveDown, ""
		}, "", false},
		"one is answered, and the group is down": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned.Phase, d.Status.Planned.Answered, d.Topology = v1alpha1.PlannedSucceeded, true, TopologyActiveDown
		}, v1alpha1.PlannedRefused, false},
		"one is not, and the group is down": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned.Phase, d.Topology = v1alpha1.PlannedSucceeded, TopologyActiveDown
		}, v1alpha1.PlannedSucceeded, false},
		"one moves, answered, and it is down": {func(_ *Snapshot, d *Decision) {
			d.Status.Planned.Phase, d.Status.Planned.Answered, d.Topology, d.Status.Transition = v1alpha1.PlannedMoving, true, TopologyActiveDown, &Transition{Kind: v1alpha1.FailoverPlanned}
		}, v1alpha1.PlannedMoving, true},
	} {
		s := factstest.AtRest()
		s.Policy.PlannedTo = "b"
		d := Decision{Status: s.Status, Topology: TopologyHealthy, Verdict: VerdictNothing}
		d.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now}
		tc.change(&s, &d)
		got := settlePlanned(s, d).Status.Planned
		switch {
		case got == nil && tc.phase == "":
		case got == nil || got.Phase != tc.phase || got.Answered != tc.answered:
			t.Errorf("%s: %+v", name, got)
		}
	}
	for cause, answered := range map[Reason]bool{v1alpha1.ReasonRequested: false, v1alpha1.ReasonSiteLeaving: true} {
		if d := (Decision{}).end(Planned{Cause: cause}, factstest.Start, v1alpha1.PlannedSucceeded, v1alpha1.ReasonOpened, ""); d.Status.Planned.Answered != answered || !d.Persist {
			t.Errorf("%s: %+v", cause, d.Status.Planned)
		}
		if d := (Decision{}).end(Planned{Cause: cause, Answered: true}, factstest.Start, v1alpha1.PlannedSucceeded, v1alpha1.ReasonOpened, ""); d.Status.Planned.Answered != answered {
			t.Errorf("%s: the answer to another one: %+v", cause, d.Status.Planned)
		}
	}
	for phase, over := range map[v1alpha1.PlannedPhase]bool{v1alpha1.PlannedWaiting: false, v1alpha1.PlannedMoving: false, v1alpha1.PlannedSucceeded: true} {
		if (&Planned{Phase: phase}).Over() != over {
			t.Errorf("%s", phase)
		}
	}
}

// TestWhoHasGivenItsRoleAway: a site that is about to go, and was when it gave the role away.
func TestWhoHasGivenItsRoleAway(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(b *Site, m *Memory)
		want   bool
	}{
		"it is about to go":          {func(*Site, *Memory) {}, true},
		"it stays":                   {func(b *Site, _ *Memory) { b.Leaving = "" }, false},
		"it has only just been seen": {func(_ *Site, m *Memory) { m.At("b").LeavingSince = time.Time{} }, false},
	} {
		s := factstest.AtRest()
		s.Sites[1].Leaving = "drained"
		d := Decision{Status: s.Status, Memory: Memory{Sites: map[string]*SiteMemory{"b": {LeavingSince: s.Now.Add(-time.Minute)}}}}
		d.Status.Planned = &Planned{From: "b", To: "a", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedSucceeded, FinishedAt: s.Now.Add(-time.Second)}
		tc.change(&s.Sites[1], &d.Memory)
		if got := d.decided().MovedAway(s, "b"); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
