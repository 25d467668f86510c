// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// lasts polls for a time, as long as nothing begins.
func lasts(s Snapshot, m Memory, d time.Duration) (Snapshot, Decision) {
	until := s.Now.Add(d)
	for {
		got := Decide(s, m)
		if m = got.Memory; got.Status.Transition != nil || !s.Now.Before(until) {
			return s, got
		}
		s.Status, s.Now = got.Status, s.Now.Add(s.Policy.PollInterval)
	}
}

func TestAStalledVolumeMovesTheRole(t *testing.T) {
	one := int64(1)
	for name, tc := range map[string]struct {
		reason string
		change func(*Snapshot)
		lasts  time.Duration
		kind   v1alpha1.FailoverKind
		to     string
		stands string
	}{
		"it hangs":                 {wire.WriteDiskStalled, nil, time.Minute, v1alpha1.FailoverEmergency, "b", ""},
		"not for long":             {wire.WriteDiskStalled, nil, 58 * time.Second, "", "", ""},
		"it fails":                 {wire.WriteDiskFailed, nil, time.Minute, v1alpha1.FailoverPlanned, "b", ""},
		"it is full":               {wire.WriteDiskFull, nil, time.Hour, "", "", ""},
		"MySQL alone hangs":        {wire.WriteNoAnswer, nil, time.Hour, "", "", ""},
		"that is switched off":     {wire.WriteDiskStalled, func(s *Snapshot) { s.Policy.StallTimeout = 0 }, time.Hour, "", "", ""},
		"it was opened just now":   {wire.WriteDiskStalled, func(s *Snapshot) { s.Sites[0].Sidecar.Report.WriteProbe.ForMillis = 59_000 }, time.Hour, "", "", ""},
		"the probe is of long ago": {wire.WriteDiskStalled, func(s *Snapshot) { s.Sites[0].Sidecar.Report.WriteProbe.AgeMillis = 11_000 }, time.Hour, "", "", ""},
		"so is the volume of b": {wire.WriteDiskStalled, func(s *Snapshot) {
			volumeOf(s, 1).Outcome, volumeOf(s, 1).Reason = wire.WriteFails, wire.WriteDiskStalled
		}, time.Minute, v1alpha1.FailoverEmergency, "c", ""},
		"nobody knows of b":           {wire.WriteDiskStalled, func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe = nil }, time.Minute, v1alpha1.FailoverEmergency, "c", ""},
		"b was not tried lately":      {wire.WriteDiskStalled, func(s *Snapshot) { volumeOf(s, 1).AgeMillis = 31_000 }, time.Minute, v1alpha1.FailoverEmergency, "c", ""},
		"the try of b says nothing":   {wire.WriteDiskStalled, func(s *Snapshot) { volumeOf(s, 1).Outcome = wire.WriteUnknown }, time.Minute, v1alpha1.FailoverEmergency, "c", ""},
		"all lie on the same storage": {wire.WriteDiskStalled, func(s *Snapshot) { volumeOf(s, 1).Outcome, volumeOf(s, 2).Outcome = wire.WriteFails, wire.WriteFails }, time.Hour, "", "", "cannot write to its data volume"},
		"b is unfit":                  {wire.WriteDiskStalled, func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, time.Minute, v1alpha1.FailoverEmergency, "c", ""},
		"it fails, and all others go": {wire.WriteDiskFailed, func(s *Snapshot) { s.Sites[1].Pod.VolumeGoes, s.Sites[2].Pod.VolumeGoes = true, true }, time.Minute, v1alpha1.FailoverPlanned, "b", ""},
		"mode Manual":                 {wire.WriteDiskStalled, func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverManual }, time.Hour, "", "", "spec.failover.mode is Manual"},
		"in the cooldown":             {wire.WriteDiskStalled, func(s *Snapshot) { s.Status.CooldownUntil = s.Now.Add(2 * time.Hour) }, time.Hour, "", "", "cooldown"},
		"paused":                      {wire.WriteDiskFailed, func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(2 * time.Hour) }, time.Hour, "", "", "paused"},
		"more would be lost than may": {wire.WriteDiskStalled, func(s *Snapshot) { s.Policy.MaxLost, s.Sites[0].MySQL.Executed = &one, factstest.Set("A:1-11") }, time.Hour, "", "", "maxLostTransactions"},
		"it fails, and b lags": {wire.WriteDiskFailed, func(s *Snapshot) {
			lag := 5.0
			s.Sites[1].MySQL.LagSeconds, s.Sites[2].Role = &lag, v1alpha1.DROnly
		}, time.Minute, v1alpha1.FailoverEmergency, "b", ""},
		"it fails, and b does not receive": {wire.WriteDiskFailed, func(s *Snapshot) { s.Sites[1].MySQL.IORunning = false }, time.Minute, v1alpha1.FailoverEmergency, "b", ""},
		"it fails, another move was given up": {wire.WriteDiskFailed, func(s *Snapshot) {
			s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedReverted, FinishedAt: s.Now, Answered: true}
		}, time.Minute, v1alpha1.FailoverPlanned, "b", ""},
		"it fails, as one before that has moved": {wire.WriteDiskFailed, func(s *Snapshot) {
			s.Status.Planned = &Planned{From: "b", To: "a", Cause: v1alpha1.ReasonVolumeFails, Phase: v1alpha1.PlannedSucceeded, FinishedAt: s.Now, Answered: true}
		}, time.Minute, v1alpha1.FailoverPlanned, "b", ""},
		"it fails, and was not fenced long ago": {wire.WriteDiskFailed, func(s *Snapshot) {
			s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonVolumeFails, Phase: v1alpha1.PlannedReverted, FinishedAt: s.Now.Add(time.Minute - leavingRetryMost), Answered: true}
		}, time.Minute, v1alpha1.FailoverPlanned, "b", ""},
		"mode Manual, and nobody is fit": {wire.WriteDiskStalled, func(s *Snapshot) {
			s.Policy.Mode, volumeOf(s, 1).Outcome, volumeOf(s, 2).Outcome = v1alpha1.FailoverManual, wire.WriteFails, wire.WriteFails
		}, time.Hour, "", "", "spec.failover.mode is Manual"},
		"paused, and nobody is fit": {wire.WriteDiskStalled, func(s *Snapshot) {
			s.Policy.PausedUntil, volumeOf(s, 1).Outcome, volumeOf(s, 2).Outcome = s.Now.Add(2*time.Hour), wire.WriteFails, wire.WriteFails
		}, time.Hour, "", "", "paused"},
		"who has most is not named first": {wire.WriteDiskStalled, func(s *Snapshot) {
			s.Sites[0].MySQL.Executed, s.Sites[2].MySQL.Executed, volumeOf(s, 1).Outcome, volumeOf(s, 2).Outcome = factstest.Set("A:1-10"), factstest.Set("A:1-10"), wire.WriteFails, wire.WriteFails
		}, time.Hour, "", "", "no site is fit (b: cannot write to its data volume (), so it could accept no commits, c: cannot write to its data volume (), so it could accept no commits)"},
		"it fails, and was not fenced": {wire.WriteDiskFailed, func(s *Snapshot) {
			s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonVolumeFails, Phase: v1alpha1.PlannedReverted, FinishedAt: s.Now, Answered: true}
		}, time.Minute, v1alpha1.FailoverEmergency, "b", ""},
	} {
		s := factstest.StalledGroup(tc.reason)
		if tc.change != nil {
			tc.change(&s)
		}
		_, d := lasts(s, Memory{}, tc.lasts)
		to, kind := "", v1alpha1.FailoverKind("")
		if tr := d.Status.Transition; tr != nil {
			to, kind = tr.To, tr.Kind
			if slices.Contains(d.Effects, Effect(Select{Site: "a"})) {
				t.Errorf("%s: the role is given to a, too: %v", name, d.Effects)
			}
			if kind == v1alpha1.FailoverEmergency && (tr.Reason != Reason(tc.reason) || tr.StartedAt.Sub(tr.DetectedAt) != time.Minute) {
				t.Errorf("%s: %s, detected %s before", name, tr.Reason, tr.StartedAt.Sub(tr.DetectedAt))
			}
		}
		if to != tc.to || kind != tc.kind {
			t.Errorf("%s: %s failover to %q: %s %s", name, kind, to, d.Reason, d.Message)
		}
		if (tc.stands != "") != (d.StallStands != "") || !strings.Contains(d.StallStands, tc.stands) || !strings.Contains(d.Message, tc.stands) {
			t.Errorf("%s: stands for %q: %s", name, d.StallStands, d.Message)
		}
	}
}

// TestAnOrderMovesAStalledSiteI2I7: while no client gets a commit acknowledged, a person's order is followed where the rules keep the role; the gate
// waits for the proof that the old site is closed, as in any failover. A site that may only have been slow is not given up.
func TestAnOrderMovesAStalledSiteI2I7(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		to     string
	}{
		"mode Manual":          {func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverManual }, "b"},
		"switched off":         {func(s *Snapshot) { s.Policy.StallTimeout = 0 }, "b"},
		"a pause":              {func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Hour) }, "b"},
		"no budget":            {func(s *Snapshot) { s.Policy.MaxLost, s.Sites[0].MySQL.Executed = new(int64), factstest.Set("A:1-11") }, "b"},
		"it hangs for a while": {func(s *Snapshot) { s.Sites[0].Sidecar.Report.WriteProbe.ForMillis = 9_999 }, ""},
		"the volume is full":   {func(s *Snapshot) { s.Sites[0].Sidecar.Report.WriteProbe.Reason = wire.WriteDiskFull }, ""},
		"the probe is old":     {func(s *Snapshot) { s.Sites[0].Sidecar.Report.WriteProbe.AgeMillis = 11_000 }, ""},
		"the order is to stay": {func(s *Snapshot) { s.Policy.StallTimeout, s.Policy.ForceTo = 0, "a" }, ""},
		"nobody knows that":    {func(s *Snapshot) { s.Policy.StallTimeout, s.Policy.ForceTo = 0, "elsewhere" }, ""},
	} {
		s := factstest.StalledGroup(wire.WriteDiskStalled)
		s.Policy.ForceTo = "b"
		tc.change(&s)
		s, d := lasts(s, Memory{}, 20*time.Second)
		if tr := d.Status.Transition; (tr == nil) != (tc.to == "") || tr != nil && (tr.To != tc.to || tr.From != "a" || tr.Kind != v1alpha1.FailoverForced || !d.Hold || s.Now.Sub(tr.DetectedAt) != promotion.StallLasts) {
			t.Errorf("%s: %+v, %s", name, tr, d.Message)
		}
		if waits := name == "it hangs for a while"; d.OrderWaits != waits {
			t.Errorf("%s: the order waits: %t", name, d.OrderWaits)
		}
		if tc.to == "" {
			continue
		}
		if slices.Contains(d.Effects, Effect(Select{Site: "a"})) {
			t.Errorf("%s: the role is given to a, too: %v", name, d.Effects)
		}
		if slices.ContainsFunc(d.Effects, func(e Effect) bool { _, opens := e.(Open); return opens }) {
			t.Errorf("%s: a site is opened before the old one is proven closed: %v", name, d.Effects)
		}
	}
}

// TestAnOrderGoesBeforeTheRulesOfAStall: c is ordered when the stall is over its time, and the rules would take b.
func TestAnOrderGoesBeforeTheRulesOfAStall(t *testing.T) {
	s, m := factstest.StalledGroup(wire.WriteDiskStalled), Memory{}
	s.Policy.ForceTo, m.At("a").StalledSince = "c", s.Now.Add(-time.Hour)
	if tr := Decide(s, m).Status.Transition; tr == nil || tr.To != "c" || tr.Kind != v1alpha1.FailoverForced {
		t.Errorf("c is ordered: %+v", tr)
	}
}

func volumeOf(s *Snapshot, site int) *wire.VolumeProbe {
	return s.Sites[site].Sidecar.Report.VolumeProbe
}

// TestAStallCountsUnbroken: a write that succeeds, or fails for another reason, starts it again; a lost answer does not.
func TestAStallCountsUnbroken(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(*Site)
		moves   bool
	}{
		"a lost answer":    {func(a *Site) { a.Sidecar = Sidecar{} }, true},
		"a write succeeds": {func(a *Site) { a.Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteDone} }, false},
		"offline_mode":     {func(a *Site) { a.Sidecar.Report.WriteProbe = fails(wire.WriteOffline, 3_600_000) }, false},
	} {
		s := factstest.StalledGroup(wire.WriteDiskStalled)
		s, d := lasts(s, Memory{}, 50*time.Second)
		other := s
		other.Sites = append([]Site(nil), s.Sites...)
		tc.between(&other.Sites[0])
		other.Now = s.Now.Add(s.Policy.PollInterval)
		m := Decide(other, d.Memory).Memory
		s.Now = other.Now.Add(s.Policy.PollInterval)
		if _, d = lasts(s, m, 20*time.Second); (d.Status.Transition != nil) != tc.moves {
			t.Errorf("%s: %s %s", name, d.Reason, d.Message)
		}
	}
}

// TestAStalledSiteIsNotOpenedAgain: fenced, it may have more than its successor, which fetches that; it is no place to go back to.
func TestAStalledSiteIsNotOpenedAgain(t *testing.T) {
	for reason, again := range map[Reason]bool{ReasonDiskStalled: false, ReasonDiskFailed: false, v1alpha1.ReasonActiveSiteSilent: true} {
		s, m := cutOff()
		s.Status.Transition.Reason = reason
		s.Sites[0] = factstest.Seen("a", "A:1-10", 4)
		d := Decide(s, m)
		if back := d.Status.ActiveSite == "a"; back != again {
			t.Errorf("%s: active is %s: %s", reason, d.Status.ActiveSite, d.Message)
		}
		if !again && d.Verdict == VerdictPromote {
			t.Errorf("I7: %s: b is opened without what a has: %s", reason, d.Message)
		}
	}
}

// TestAStallIsMoreUrgentThanARequest: who is asked for may be on the same storage, and waits for what the stalled site cannot give.
func TestAStallIsMoreUrgentThanARequest(t *testing.T) {
	s := factstest.StalledGroup(wire.WriteDiskStalled)
	well := factstest.StalledGroup(wire.WriteDiskStalled)
	well.Sites[0].Sidecar.Report.WriteProbe = nil
	if d := Decide(well, Memory{}); d.Next != 0 {
		t.Errorf("a healthy group is looked at in %s for a stall that is none", d.Next)
	}
	s, d := lasts(s, Memory{}, 58*time.Second)
	if d.Next <= 0 || d.Next > 2*time.Second {
		t.Errorf("the stall is over its time in 2 s, and looked at in %s", d.Next)
	}
	s.Now, s.Policy.PlannedTo = s.Now.Add(2*time.Second), "c"
	d = Decide(s, d.Memory)
	if tr := d.Status.Transition; tr == nil || tr.Kind != v1alpha1.FailoverEmergency || tr.To != "b" {
		t.Errorf("%+v: %s", d.Status.Transition, d.Message)
	}
}
