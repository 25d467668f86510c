// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// Rows that no clone brings are told of the site that has them, and of the replica that lacks them.
func TestRowsOutsideInnoDBAreTold(t *testing.T) {
	found := func(tables, rows int) *wire.EngineReport { return &wire.EngineReport{Tables: tables, WithRows: rows} }
	for name, tc := range map[string]struct {
		reason   string
		a, b     *wire.EngineReport
		forA     Reason
		forB     Reason
		bAnswers bool
	}{
		"nobody looked":      {"sidecars of an older version", nil, nil, "", "", true},
		"none":               {"all is in InnoDB", found(0, 0), found(0, 0), "", "", true},
		"empty ones":         {"nothing to lose", found(2, 0), found(2, 0), "", "", true},
		"on both":            {"they were replicated", found(2, 2), found(2, 2), "RowsNotCloned", "", true},
		"not on the replica": {"it was cloned", found(2, 2), found(2, 1), "RowsNotCloned", "RowsMissing", true},
		"replica not asked":  {"it is not known", found(2, 2), nil, "RowsNotCloned", "", true},
		"not there yet":      {"the table itself has not been replicated", found(2, 2), found(0, 0), "RowsNotCloned", "", true},
		"replica silent":     {"what it said is of another poll", found(2, 2), found(2, 1), "RowsNotCloned", "", false},
	} {
		s := factstest.HealthyThree()
		s.Sites[0].Sidecar.Report.Engines, s.Sites[1].Sidecar.Report.Engines = tc.a, tc.b
		s.Sites[1].Sidecar.Answered = tc.bAnswers
		got := map[string]views.View{}
		for _, v := range Decide(s, Memory{}).Views {
			got[v.Name] = v
		}
		if got["a"].Reason != tc.forA || got["b"].Reason != tc.forB {
			t.Errorf("%s, %s: a %q, b %q, want %q, %q", name, tc.reason, got["a"].Reason, got["b"].Reason, tc.forA, tc.forB)
		}
		if tc.forA != "" && !strings.Contains(got["a"].Message, "ENGINE=InnoDB") || !got["a"].Healthy || !got["b"].Healthy {
			t.Errorf("%s: %+v, %+v", name, got["a"], got["b"])
		}
	}
}

// TestWhoLacksRowsIsPromotedByOrderOnlyI7: nobody else has them once the active site is lost, and no set of transactions tells.
func TestWhoLacksRowsIsPromotedByOrderOnlyI7(t *testing.T) {
	found := func(tables, rows int) *wire.EngineReport { return &wire.EngineReport{Tables: tables, WithRows: rows} }
	for name, tc := range map[string]struct {
		b, c  *wire.EngineReport
		force string
		to    string
	}{
		"both have them":              {found(2, 2), found(2, 2), "", "b"},
		"b was cloned without":        {found(2, 1), found(2, 2), "", "c"},
		"b has not looked":            {nil, found(2, 2), "", "c"},
		"the tables are not there":    {found(0, 0), found(2, 2), "", "b"}, // they are among the transactions that it lacks
		"both were":                   {found(2, 0), found(2, 1), "", ""},
		"both were, and a person did": {found(2, 0), found(2, 1), "b", "b"},
	} {
		s, m := factstest.ThreeSites(), Memory{}
		r := &s.Sites[0].Sidecar.Report
		r.Epoch, r.Answered, r.Writable = s.Status.Epoch, true, true
		for i, e := range []*wire.EngineReport{found(2, 2), tc.b, tc.c} {
			s.Sites[i].Sidecar.Report.Engines = e
		}
		d := Decide(s, m)
		if d.Status.RowsOutside != 2 || !d.Persist {
			t.Fatalf("%s: I9: what the active site has is not durable: %d", name, d.Status.RowsOutside)
		}
		s.Status = d.Status
		why := promotion.Preflight(s, d.Memory, s.Sites[0], "b")
		if refused := why.Reason == v1alpha1.ReasonNotFit; refused != (tc.to != "b" || tc.force != "") {
			t.Errorf("I7: %s: planned: %+v", name, why)
		}
		s.Sites[0].Sidecar, s.Sites[0].MySQL, s.Policy.ForceTo = Sidecar{}, MySQL{}, tc.force
		m = Memory{} // the operator was restarted
		for range s.Policy.Threshold + 3 {
			s.Now = s.Now.Add(s.Policy.PollInterval)
			d = Decide(s, m)
			if m = d.Memory; d.Status.Transition != nil {
				break
			}
		}
		to := ""
		if d.Status.Transition != nil {
			to = d.Status.Transition.To
		}
		if to != tc.to {
			t.Errorf("I7: %s: %s takes over: %s %s", name, to, d.Reason, d.Message)
		}
		if tc.to == "" && (d.Reason != v1alpha1.ReasonRowsMissing || !strings.Contains(d.Message, v1alpha1.AnnotationForceFailover+"=")) {
			t.Errorf("%s: says %s: %s", name, d.Reason, d.Message)
		}
	}
}

// TestWhoOpensTheActiveSiteAgainLacksNothingI7: what is compared is what the role would move to.
func TestWhoOpensTheActiveSiteAgainLacksNothingI7(t *testing.T) {
	s := factstest.ThreeSites()
	s.Status.RowsOutside = 2
	lacks := func(site int, tr *Transition) bool {
		if s.Status.Transition, s.Status.ActiveSite = tr, "a"; tr != nil {
			s.Status.ActiveSite = tr.To
		}
		s.Sites[site].Sidecar.Report.Engines = &wire.EngineReport{Tables: 2, WithRows: 1}
		return promotion.IsWithoutRows(s, Memory{}, s.Sites[site]) != ""
	}
	from := func(kind v1alpha1.FailoverKind, from, to string) *Transition {
		return &Transition{Kind: kind, Step: v1alpha1.TransitionFencing, From: from, To: to}
	}
	for name, tc := range map[string]struct {
		site  int
		t     *Transition
		lacks bool
	}{
		"the active site":           {0, nil, false},
		"a replica":                 {1, nil, true},
		"the target of a failover":  {1, from(v1alpha1.FailoverEmergency, "a", "b"), true},
		"the old one, opened again": {0, from(v1alpha1.FailoverPlanned, "a", "a"), false},
		"the first one":             {1, from(v1alpha1.FailoverBootstrap, "", "b"), false},
	} {
		if got := lacks(tc.site, tc.t); got != tc.lacks {
			t.Errorf("I7: %s: lacks rows: %t", name, got)
		}
	}
}

// TestWhatIsKnownOfRowsI7I9: it is noted of the site that is open, by its own word, and told of whom it concerns.
func TestWhatIsKnownOfRowsI7I9(t *testing.T) {
	found := func(rows int) *wire.EngineReport { return &wire.EngineReport{Tables: 2, WithRows: rows} }
	for name, tc := range map[string]struct {
		change  func(s *Snapshot)
		rows    int
		persist bool
	}{
		"others than before": {func(*Snapshot) {}, 2, true},
		"as many as before":  {func(s *Snapshot) { s.Status.RowsOutside = 2 }, 2, false},
		"it is not open":     {func(s *Snapshot) { s.Sites[0].Sidecar.Report.Writable = false }, 1, false},
		"it has not looked":  {func(s *Snapshot) { s.Sites[0].Sidecar.Report.Engines = nil }, 1, false},
	} {
		s := factstest.AtRest()
		s.Status.RowsOutside, s.Sites[0].Sidecar.Report.Engines = 1, found(2)
		tc.change(&s)
		if d := (Decision{Status: s.Status}).noteRows(s); d.Status.RowsOutside != tc.rows || d.Persist != tc.persist {
			t.Errorf("I9: %s: %d rows, persisted %t", name, d.Status.RowsOutside, d.Persist)
		}
	}
	lacks := func(s *Snapshot, site int) { s.Sites[site].Sidecar.Report.Engines = found(1) }
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   Reason
	}{
		"nobody lacks any":      {func(*Snapshot) {}, v1alpha1.ReasonTargetLost},
		"c lacks them":          {func(s *Snapshot) { lacks(s, 2) }, v1alpha1.ReasonRowsMissing},
		"the target alone does": {func(s *Snapshot) { lacks(s, 1); s.Sites[2].Role = v1alpha1.DROnly }, v1alpha1.ReasonTargetLost},
		"c has not looked":      {func(s *Snapshot) { s.Sites[2].Sidecar.Report.Engines = nil }, v1alpha1.ReasonRowsMissing},
		"c is silent":           {func(s *Snapshot) { s.Sites[2].Sidecar = Sidecar{} }, v1alpha1.ReasonTargetLost},
		"I29: c is kept fenced": {func(s *Snapshot) { s.Sites[2].KeptFenced = true }, v1alpha1.ReasonKeptFenced},
		"c is not in escrow":    {func(s *Snapshot) { s.Sites[2].Sidecar.Report.Keyring = factstest.Keyring("behind") }, v1alpha1.ReasonKeyringNotEscrowed},
		"nor is the target":     {func(s *Snapshot) { s.Sites[1].Sidecar.Report.Keyring = factstest.Keyring("behind"); lacks(s, 2) }, v1alpha1.ReasonKeyringNotEscrowed},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, Site{Name: "a"}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		s.Status.RowsOutside = 2
		s.Sites[1].Sidecar.Report.Engines, s.Sites[2].Sidecar.Report.Engines = found(2), found(2)
		tc.change(&s)
		if got := promotion.LostFor(s, Memory{}, s.Sites[1]); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		evidence := strings.Join(pass(s, Decision{Status: s.Status}, s.Sites[1], Gate{}).Status.Transition.Evidence, "; ")
		if short := s.Sites[1].Sidecar.Report.Engines.WithRows < 2; strings.Contains(evidence, "rows outside InnoDB") != short {
			t.Errorf("I7: %s: opened by %q", name, evidence)
		}
		s.Sites[1].Sidecar.Answered = false
		if why := promotion.IsWithoutRows(s, Memory{}, s.Sites[1]); why != "" {
			t.Errorf("%s: of a silent site: %s", name, why)
		}
	}
}
