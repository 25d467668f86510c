// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

func drawPlanned(t *rapid.T) Snapshot {
	s := drawSnapshot(t)
	s.Status.ActiveSite = "b"
	s.Status.Transition = &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
		StartedAt: s.Now.Add(-time.Duration(rapid.IntRange(0, 6).Draw(t, "since")) * time.Second), DetectedAt: s.Now}
	s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving}
	s.Policy.PlannedTo = "b"
	for i := range s.Sites {
		site := &s.Sites[i]
		if site.Sidecar.Report.Answered {
			site.Sidecar.Report.GTIDExecuted = factstest.Set(rapid.SampledFrom([]string{"A:1-4", "A:1-5"}).Draw(t, site.Name+"reported")).String()
		}
	}
	return s
}

// TestPlannedPromotionHoldsEverything covers I13 with an oracle written the obvious way: the target is opened only if the
// old active site told, fenced and under this epoch, what it holds, and the target has executed it.
func TestPlannedPromotionHoldsEverything(t *testing.T) {
	promotions, reverts := 0, 0
	defer func() {
		if promotions == 0 || reverts == 0 {
			t.Errorf("the draws reached %d promotions and %d reverts: this test tested nothing", promotions, reverts)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			s := drawPlanned(t)
			d := Decide(s, drawMemory(t, s))
			if d.Status.ActiveSite == "a" {
				reverts++
			}
			if d.Verdict != VerdictPromote || d.Status.ActiveSite != "b" {
				continue
			}
			promotions++
			a, b := s.Sites[0].Sidecar, s.Sites[1]
			if !a.Answered || !a.Report.SuperReadOnly || a.Report.Epoch < s.Status.Epoch {
				t.Fatalf("I13: opened although a did not report itself fenced: %+v", a.Report)
			}
			if !b.MySQL.Executed.Contains(gtid.MustParse(a.Report.GTIDExecuted)) {
				t.Fatalf("I13: opened with %s, a holds %s", b.MySQL.Executed, a.Report.GTIDExecuted)
			}
		}
	})
}

// TestCheckStopsAPlannedLoss covers I13: the last guard stands by itself.
func TestCheckStopsAPlannedLoss(t *testing.T) {
	before := Durable{Epoch: 3, ActiveSite: "b"}
	after := before
	after.Transition = &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionOpening, From: "a", To: "b",
		FromExecuted: factstest.Set("A:1-5"), ToExecuted: factstest.Set("A:1-4")}
	d := Decision{Status: after}
	if err := d.check(Snapshot{Status: before}); err == nil {
		t.Error("I13: a planned failover that loses A:5 passes the last check")
	}
	after.Transition.ToExecuted = factstest.Set("A:1-5")
	if err := d.check(Snapshot{Status: before}); err != nil {
		t.Errorf("a planned failover that loses nothing is stopped: %v", err)
	}
}

func TestForecastAnswersAsTheDecisionWould(t *testing.T) {
	lag := 0.5
	site := func(name string, executed string) Site {
		return Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true, Sidecar: Sidecar{Answered: true, At: factstest.Start},
			MySQL: MySQL{Direct: true, SuperReadOnly: true, ReadOnly: true, Executed: factstest.Set(executed), LagSeconds: &lag}}
	}
	s := factstest.Base()
	s.Sites = []Site{site("a", "A:1-10"), site("b", "A:1-8"), site("c", "A:1-7")}
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
	s.Status = Durable{Epoch: 3, ActiveSite: "a"}

	f := Decide(s, Memory{}).Forecast
	if f == nil || f.Site != "b" || f.Rule != "MostTransactions" || f.LostTransactions != 2 || f.BlockedBy != "" {
		t.Errorf("got %+v", f)
	}
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   Reason
	}{
		"nobody is fit":          {func(s *Snapshot) { s.Sites[1].Busy, s.Sites[2].Busy = "Clone", "Clone" }, v1alpha1.ReasonNoFitCandidate},
		"mode Manual":            {func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverManual }, v1alpha1.ReasonModeManual},
		"cooldown":               {func(s *Snapshot) { s.Status.CooldownUntil = s.Now.Add(time.Minute) }, v1alpha1.ReasonCooldown},
		"paused":                 {func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Minute) }, v1alpha1.ReasonPaused},
		"loss budget":            {func(s *Snapshot) { s.Policy.MaxLost = new(int64) }, v1alpha1.ReasonLossBudget},
		"a voucher out of reach": {func(s *Snapshot) { s.Sites[2].Sidecar.Answered = false }, v1alpha1.ReasonSiteMayStillVouch},
	} {
		changed := s
		changed.Sites = slices.Clone(s.Sites)
		tc.change(&changed)
		if f := Decide(changed, Memory{}).Forecast; f == nil || f.BlockedBy != tc.want || f.Message == "" {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// TestTheOnlyHopeIsProtected: the one candidate that has caught up must not be evicted, unless it gave its role away to go.
func TestTheOnlyHopeIsProtected(t *testing.T) {
	lag := 0.0
	s := factstest.Base()
	for _, name := range []string{"a", "b"} {
		s.Sites = append(s.Sites, Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true, Sidecar: Sidecar{Answered: true, At: factstest.Start},
			MySQL: MySQL{Direct: true, SuperReadOnly: name == "b", ReadOnly: name == "b", Executed: factstest.Set("A:1-9"), LagSeconds: &lag, ReplicaOf: "a", IORunning: true, SQLRunning: true}})
	}
	s.Status = Durable{Epoch: 3, ActiveSite: "a"}
	protected := func() bool { return Decide(s, Memory{}).Views[1].Protected }
	if !protected() {
		t.Error("the only candidate may be evicted")
	}
	s.Sites[1].Leaving = "node b is cordoned"
	if !protected() {
		t.Error("the only candidate may be evicted because somebody wants to")
	}
	s.Status.Planned = &Planned{From: "b", To: "a", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedSucceeded, Answered: true, FinishedAt: s.Now}
	if protected() {
		t.Error("a drained node keeps the site that gave its role away for that")
	}
	s.Now = s.Now.Add(24 * time.Hour)
	if !protected() {
		t.Error("a role that was given away long ago leaves the only candidate without protection")
	}
	s.Now = s.Now.Add(-24 * time.Hour)
	s.Sites[1].Leaving = ""
	if !protected() {
		t.Error("it stays unprotected although it came back")
	}
}

// TestALossThatCannotBeComparedIsNeverExact covers I10: a clone keeps the server's UUID, so a site whose data was thrown away
// before it was compared must not pass for one that had nothing of its own.
func TestALossThatCannotBeComparedIsNeverExact(t *testing.T) {
	s := factstest.Base()
	for _, name := range []string{"a", "b"} {
		s.Sites = append(s.Sites, Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true, Sidecar: Sidecar{Answered: true, At: factstest.Start},
			MySQL: MySQL{Direct: true, SuperReadOnly: name == "a", ReadOnly: name == "a", Executed: factstest.Set("A:1-9"), ServerUUID: name}})
	}
	s.Status = Durable{Epoch: 3, ActiveSite: "b", Records: []v1alpha1.FailoverRecord{
		{Epoch: 3, From: "a", To: "b", FromServerUUID: "a", LostTransactions: 5}}}
	s.Sites[0].Provisioned = false
	d := Decide(s, Memory{})
	if d.Status.Records[0].FromServerUUID != lineage.ServerReplaced || !d.Persist {
		t.Fatalf("I10: the record still speaks of the server that is cloned over: %+v", d.Status.Records[0])
	}
	s.Status, s.Sites[0].Provisioned = d.Status, true
	for range 3 {
		d = Decide(s, d.Memory)
		s.Status = d.Status
	}
	if r := d.Status.Records[0]; r.LossExact || r.LostTransactions != 5 {
		t.Errorf("I10: the loss is called exact: %+v", r)
	}
	if marked(s, d.Memory).Of("a").Unsettled {
		t.Error("a site that was cloned anew waits for a comparison for ever")
	}
}
