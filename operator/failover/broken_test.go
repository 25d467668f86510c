// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

// brokenElsewhere is a failover from a to b, whose gate would pass, while c alone has A:10-12 and cannot apply A:12.
func brokenElsewhere() (Snapshot, Memory) {
	s, m := cutOff()
	s.Status.Transition.FromExecuted = factstest.Set("A:1-9")
	m.At("a").Ack = &Ack{Epoch: 4, Fenced: true}
	s.Policy.DrainTimeout = 5 * time.Second
	c := &s.Sites[2].MySQL
	c.Executed, c.Retrieved, c.SQLRunning, c.SQLError = factstest.Set("A:1-9"), factstest.Set("A:10-12"), false, "duplicate key"
	m.DrainSince = factstest.Start
	return s, m
}

// TestABrokenApplierElsewhereI7I8: what only the relay log of a broken applier has is waited for until drainTimeout, and left behind
// then: it is counted, said, and stays where it is.
func TestABrokenApplierElsewhereI7I8(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		want   Verdict
		lost   string
	}{
		"it has had its time":            {func(*Snapshot, *Memory) {}, VerdictPromote, "A:10-12"},
		"it has its time":                {func(_ *Snapshot, m *Memory) { m.DrainSince = factstest.Start.Add(6 * time.Second) }, VerdictWait, ""},
		"it is slow":                     {func(s *Snapshot, _ *Memory) { s.Sites[2].MySQL.SQLRunning = true }, VerdictBlocked, ""},
		"it was stopped without error":   {func(s *Snapshot, _ *Memory) { s.Sites[2].MySQL.SQLError = "" }, VerdictBlocked, ""},
		"it has applied some of it":      {func(s *Snapshot, _ *Memory) { s.Sites[2].MySQL.Executed = factstest.Set("A:1-10") }, VerdictBlocked, ""},
		"the budget allows it":           {func(s *Snapshot, _ *Memory) { s.Policy.MaxLost = new(int64(3)) }, VerdictPromote, "A:10-12"},
		"the budget does not":            {func(s *Snapshot, _ *Memory) { s.Policy.MaxLost = new(int64(2)) }, VerdictBlocked, ""},
		"the old one is not known to be": {func(s *Snapshot, m *Memory) { m.At("a").Ack = &Ack{} }, VerdictWait, ""},
	} {
		s, m := brokenElsewhere()
		tc.change(&s, &m)
		d := Decide(s, m)
		if d.Verdict != tc.want {
			t.Errorf("%s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
		for _, e := range d.Effects {
			if e == Effect(Detach{Site: "c"}) || e == Effect(Follow{Site: "c", Source: "b"}) {
				t.Errorf("I8: %s: %s", name, e)
			}
		}
		if tc.want != VerdictPromote {
			continue
		}
		r := record(d.snapshot(s), *d.Status.Transition)
		said := slices.ContainsFunc(r.Evidence, func(e string) bool { return strings.Contains(e, "left behind: "+factstest.Set(tc.lost).String()) })
		if r.LostSet != factstest.Set(tc.lost).String() || r.LossExact || !said || !strings.Contains(d.Message, "left behind") {
			t.Errorf("I7: %s: lost %s, exact %t, evidence %q, message %q", name, r.LostSet, r.LossExact, r.Evidence, d.Message)
		}
	}
}

// TestTheBudgetCountsTheLastLookI7: what the old active site was seen to have after its failover had begun counts too.
func TestTheBudgetCountsTheLastLookI7(t *testing.T) {
	s, m := brokenElsewhere()
	s.Sites[2].MySQL.Retrieved = gtid.Set{}
	s.Policy.MaxLost = new(int64(2))
	m.At("a").Executed = factstest.Set("A:1-11")
	if d := Decide(s, m); d.Verdict != VerdictPromote {
		t.Errorf("within the budget: %s: %s", d.Verdict, d.Message)
	}
	m.At("a").Executed = factstest.Set("A:1-12")
	if d := Decide(s, m); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonLossBudget {
		t.Errorf("over the budget: %s: %s", d.Verdict, d.Message)
	}
	s.Status.Transition.FromExecuted, m.At("a").Executed = gtid.Set{}, gtid.Set{}
	if d := Decide(s, m); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonLossBudget {
		t.Errorf("not known: %s: %s", d.Verdict, d.Message)
	}
}

// snapshot is the next one, if nothing else changes.
func (d Decision) snapshot(s Snapshot) Snapshot {
	s.Status = d.Status
	return s
}

// TestABrokenTargetIsReplaced: only by a candidate that is not broken too, and never before it had its time (I8).
func TestABrokenTargetIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		to     string
	}{
		"by a whole one":              {func(*Snapshot, *Memory) {}, "b"},
		"not before its time":         {func(_ *Snapshot, m *Memory) { m.DrainSince = factstest.Start.Add(6 * time.Second) }, "c"},
		"not while it merely is slow": {func(s *Snapshot, _ *Memory) { s.Sites[2].MySQL.SQLRunning = true }, "c"},
		"not by another broken one": {func(s *Snapshot, _ *Memory) {
			s.Sites[1].MySQL.Retrieved, s.Sites[1].MySQL.SQLRunning, s.Sites[1].MySQL.SQLError = factstest.Set("A:10"), false, "duplicate key"
		}, "c"},
		"not by a dr-only one (I6)": {func(s *Snapshot, _ *Memory) { s.Sites[1].Role = v1alpha1.DROnly }, "c"},
		"not for the first active site, which holds what any held": {func(s *Snapshot, _ *Memory) {
			s.Status.Transition.Kind, s.Status.Transition.From = v1alpha1.FailoverBootstrap, ""
		}, "c"},
	} {
		s, m := brokenElsewhere()
		s.Status.ActiveSite, s.Status.Transition.To = "c", "c"
		tc.change(&s, &m)
		d := Decide(s, m)
		if d.Status.Transition.To != tc.to || d.Status.ActiveSite != tc.to || (tc.to == "b") != (d.Status.Epoch == 5) {
			t.Errorf("%s: %s under epoch %d: %s", name, d.Status.Transition.To, d.Status.Epoch, d.Message)
		}
	}
}

// TestWhatIsObtainableI7: what was applied anywhere is fetched, also from a site whose applier broke after it.
func TestWhatIsObtainableI7(t *testing.T) {
	s, m := brokenElsewhere()
	s.Sites[2].MySQL.Executed = factstest.Set("A:1-10")
	if lacks, where := lineage.Obtainable(s, m, s.Sites[1]); !lacks.Equal(factstest.Set("A:10")) || where != "c" {
		t.Errorf("I7: %s from %s", lacks, where)
	}
	all, where := lineage.LeftBehind(s, m, s.Sites[1])
	if !all.Equal(factstest.Set("A:10-12")) || !slices.Equal(where, []string{"c"}) {
		t.Errorf("I7: %s at %v", all, where)
	}
	m.At("c").Diverged = factstest.Set("A:12")
	if all, _ := lineage.LeftBehind(s, m, s.Sites[1]); !all.IsEmpty() {
		t.Errorf("I10: %s", all)
	}
}
