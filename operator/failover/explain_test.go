// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// first is the rule that keeps the role where it is, but for the gate before a failover began: that is a forecast.
func first(s Snapshot, e Explanation) (wire.ExplainedRule, bool) {
	for _, r := range e.Rules {
		forecast := r.Name == promotion.RuleGate && s.Status.Transition == nil
		if r.Verdict == wire.RuleAgainst && !forecast {
			return r, true
		}
	}
	return wire.ExplainedRule{}, false
}

// TestExplanationAgreesWithTheDecision: whatever is seen, the first rule that speaks against a failover is the one that
// the decision names, and where none does the role moves. An explanation that says something else is worse than none.
func TestExplanationAgreesWithTheDecision(t *testing.T) {
	reached := map[Verdict]int{}
	defer func() {
		for _, v := range []Verdict{VerdictNothing, VerdictWait, VerdictReopen, VerdictFailover, VerdictBlocked, VerdictPromote} {
			if reached[v] == 0 {
				t.Errorf("the draws never reached %s: %v", v, reached)
			}
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			s := drawSnapshot(t)
			drawPolicy(t, &s)
			m := drawMemory(t, s)
			d := Decide(s, m)
			e := Explain(s, m, d)
			rule, stopped := first(s, e)
			reached[d.Verdict]++
			noOrderWhileOneServes(t, s, e)
			if d.Verdict == VerdictBlocked && !strings.Contains(d.Message, "; ") {
				t.Fatalf("%s says what is wrong and not what to do: %s", d.Reason, d.Message)
			}
			switch {
			case d.Verdict == VerdictWait || d.Blocked():
				if !stopped || rule.Reason != string(d.Reason) {
					t.Fatalf("%s %s (%s), but the rules say %+v\n%+v", d.Verdict, d.Reason, d.Message, rule, e.Rules)
				}
				if e.Now || e.DecidedBy != rule.Name {
					t.Fatalf("now %t, decided by %q, want %s", e.Now, e.DecidedBy, rule.Name)
				}
			case d.Verdict == VerdictFailover && s.Status.Transition == nil && s.Policy.ForceTo == "":
				if stopped || !e.Now {
					t.Fatalf("fails over although %+v says no", rule)
				}
			case d.Verdict == VerdictNothing || d.Verdict == VerdictReopen:
				if !stopped || e.Now || e.DecidedBy != rule.Name {
					t.Fatalf("%s, but no rule says so: %+v", d.Verdict, e.Rules)
				}
			}
		}
	})
}

func drawPolicy(t *rapid.T, s *Snapshot) {
	if rapid.IntRange(0, 3).Draw(t, "policy") > 0 {
		return
	}
	p := &s.Policy
	p.Mode = rapid.SampledFrom([]v1alpha1.FailoverMode{v1alpha1.FailoverAuto, v1alpha1.FailoverManual, v1alpha1.FailoverObserve}).Draw(t, "mode")
	if rapid.Bool().Draw(t, "paused") {
		p.PausedUntil = s.Now.Add(time.Minute)
	}
	if rapid.Bool().Draw(t, "cooldown") {
		s.Status.CooldownUntil = s.Now.Add(time.Minute)
	}
	if rapid.Bool().Draw(t, "budget") {
		p.MaxLost = new(int64)
	}
}

func TestExplainRanksAndNamesWhy(t *testing.T) {
	type ranked struct{ Site, By, Unfit, Planned string }
	tests := map[string]struct {
		change func(*Snapshot)
		want   []ranked
	}{
		"MostTransactions": {func(*Snapshot) {}, []ranked{{"c", "MostTransactions", "", ""}, {"b", "MostTransactions", "", ""}}},
		"MostTransactions, on a volume that goes": {func(s *Snapshot) { s.Sites[2].Pod.VolumeGoes = true },
			[]ranked{{"c", "MostTransactions", "", "VolumeTerminating"}, {"b", "MostTransactions", "", ""}}},
		"VolumeStays": {func(s *Snapshot) {
			s.Sites[1].MySQL.Executed, s.Sites[1].MySQL.Retrieved, s.Sites[2].Pod.VolumeGoes = factstest.Set("A:1-8"), factstest.Set("A:1-9"), true
		}, []ranked{{"b", "VolumeStays", "", ""}, {"c", "VolumeStays", "", "VolumeTerminating"}}},
		"LeastToApply, on a volume that goes": {func(s *Snapshot) {
			s.Sites[1].MySQL.Executed, s.Sites[1].MySQL.Retrieved, s.Sites[2].Pod.VolumeGoes = factstest.Set("A:1-8"), factstest.Set("A:1-9"), true
			for i := range s.Sites[1:] { // as many as b has still to apply to be waited for
				s.Sites[1+i].MySQL.Retrieved = factstest.Set("A:1-509")
			}
			s.Sites[2].MySQL.Executed = factstest.Set("A:1-509")
		}, []ranked{{"c", "LeastToApply", "", "VolumeTerminating"}, {"b", "LeastToApply", "", ""}}},
		"LeastToApply": {func(s *Snapshot) {
			s.Sites[1].MySQL.Executed, s.Sites[1].MySQL.Retrieved = factstest.Set("A:1-8"), factstest.Set("A:1-9")
		}, []ranked{{"c", "LeastToApply", "", ""}, {"b", "LeastToApply", "", ""}}},
		"Priority": {func(s *Snapshot) { s.Sites[1].MySQL.Executed, s.Sites[1].Priority = factstest.Set("A:1-9"), 5 },
			[]ranked{{"b", "Priority", "", ""}, {"c", "Priority", "", ""}}},
		"Name": {func(s *Snapshot) { s.Sites[1].MySQL.Executed = factstest.Set("A:1-9") },
			[]ranked{{"b", "Name", "", ""}, {"c", "Name", "", ""}}},
		"Fit": {func(s *Snapshot) { s.Sites[2].Role = v1alpha1.DROnly },
			[]ranked{{"b", "Fit", "", ""}, {"c", "Fit", "is dr-only", "NotFit"}}},
		"OnlyOne": {func(s *Snapshot) { s.Sites = s.Sites[:2] }, []ranked{{"b", "OnlyCandidate", "", ""}}},
		"Paused": {func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Hour) },
			[]ranked{{"c", "MostTransactions", "", "Paused"}, {"b", "MostTransactions", "", "Paused"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := factstest.HealthyThree()
			s.Sites = slices.Clone(s.Sites)
			tc.change(&s)
			d := Decide(s, Memory{})
			e := Explain(s, Memory{}, d)
			var got []ranked
			for _, c := range e.Candidates {
				got = append(got, ranked{c.Site, c.RankedBy, c.Unfit, c.PlannedBlockedBy})
				if c.Because == "" || c.Fit != (c.Unfit == "") {
					t.Errorf("%+v", c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// The forecast is of the same opinion, or one of both lies.
			if f := d.Forecast; f.Site != e.Candidates[0].Site || e.Candidates[0].Fit && e.Candidates[0].RankedBy != "Fit" && f.Rule != e.Candidates[0].RankedBy {
				t.Errorf("forecast %+v, explanation %+v", f, e.Candidates[0])
			}
		})
	}
}

func TestExplainLossAndBlockers(t *testing.T) {
	s := factstest.HealthyThree()
	e := Explain(s, Memory{}, Decide(s, Memory{}))
	if e.Loss == nil || e.Loss.Site != "c" || e.Loss.Transactions == nil || *e.Loss.Transactions != 1 || factstest.Short(e.Loss.Set) != "A:10" {
		t.Errorf("loss %+v", e.Loss)
	}
	if len(e.Blockers) != 0 || e.DecidedBy != promotion.RuleActiveWrites || e.Now {
		t.Errorf("blockers %v, decided by %s", e.Blockers, e.DecidedBy)
	}
	s.Policy.Mode, s.Policy.PausedUntil, s.Status.CooldownUntil = v1alpha1.FailoverManual, s.Now.Add(time.Hour), s.Now.Add(time.Hour)
	s.Sites[1].Sidecar.Answered = false
	e = Explain(s, Memory{}, Decide(s, Memory{}))
	want := []string{string(v1alpha1.ReasonModeManual), string(v1alpha1.ReasonPaused), string(v1alpha1.ReasonCooldown), string(v1alpha1.ReasonSiteMayStillVouch)}
	if diff := cmp.Diff(want, e.Blockers); diff != "" {
		t.Errorf("all blockers are told at once (-want +got):\n%s", diff)
	}
	for _, r := range e.Rules {
		if r.Verdict == wire.RuleAgainst && (r.Remedy == "" || r.Reason == "") {
			t.Errorf("no way out of %+v", r)
		}
	}
}

// noOrderWhileOneServes: an order takes the role from whoever has it, and what that acknowledges meanwhile is lost.
func noOrderWhileOneServes(t *rapid.T, s Snapshot, e Explanation) {
	active, _ := s.Site(s.Status.ActiveSite)
	serves := active.Writable()
	if tr := s.Status.Transition; tr != nil {
		from, _ := s.Site(tr.From)
		serves = serves || from.Writable()
	}
	for _, r := range e.Rules {
		if serves && strings.Contains(r.Remedy, "accept-data-loss") {
			t.Fatalf("a site serves, and a person is told to take its role: %+v", r)
		}
	}
}

// TestExplainWhileTheRoleMoves: what is lost is counted against the old active site, whose role it was, and nobody is told that a
// planned failover could begin.
func TestExplainWhileTheRoleMoves(t *testing.T) {
	s := factstest.HealthyThree()
	s.Sites = slices.Clone(s.Sites)
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	s.Status = Durable{Epoch: 4, ActiveSite: "c", Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing,
		From: "a", To: "c", FromExecuted: factstest.Set("A:1-12"), StartedAt: s.Now, DetectedAt: s.Now}}
	e := Explain(s, Memory{}, Decide(s, Memory{}))
	lost := map[string]int64{}
	for _, c := range e.Candidates {
		if c.LostTransactions != nil {
			lost[c.Site] = *c.LostTransactions
		}
		if c.PlannedBlockedBy != string(v1alpha1.ReasonRoleIsMoving) || !strings.Contains(c.PlannedMessage, "moving to c") {
			t.Errorf("a planned failover seems possible: %+v", c)
		}
	}
	if diff := cmp.Diff(map[string]int64{"b": 4, "c": 3}, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	if l := e.Loss; l == nil || l.Site != "c" || l.Transactions == nil || *l.Transactions != 3 {
		t.Errorf("loss %+v", l)
	}
	s.Status.Transition.FromExecuted = factstest.Set("")
	e = Explain(s, Memory{Sites: map[string]*SiteMemory{"c": {Executed: factstest.Set("A:1-9")}}}, Decide(s, Memory{}))
	if l := e.Loss; l == nil || l.Transactions != nil || e.Candidates[0].LostTransactions != nil {
		t.Errorf("what the old active site had is not known, but so is the loss: %+v", l)
	}
	s.Status.Transition.From, s.Status.Transition.Kind = "", v1alpha1.FailoverBootstrap
	if l := Explain(s, Memory{}, Decide(s, Memory{})).Loss; l != nil {
		t.Errorf("nobody had the role, and something is lost: %+v", l)
	}
	s = factstest.HealthyThree()
	s.Status = Durable{}
	if c := Explain(s, Memory{}, Decide(s, Memory{})).Candidates[0]; c.PlannedBlockedBy != string(v1alpha1.ReasonNotHealthy) || !strings.Contains(c.PlannedMessage, "no site is active yet") {
		t.Errorf("without an active site a planned failover seems possible: %+v", c)
	}
}
