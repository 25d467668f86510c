// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestAPersonIsToldWhatTheyKeepFencedI29: wherever it decides, with the command that ends it.
func TestAPersonIsToldWhatTheyKeepFencedI29(t *testing.T) {
	two := func(status facts.Durable) facts.Snapshot {
		return factstest.World(status, factstest.Seen("a", "A:1-9", status.Epoch), factstest.Seen("b", "A:1-9", status.Epoch))
	}
	alone := func(s facts.Snapshot) facts.Snapshot { s.Sites[1].Role = v1alpha1.DROnly; return s }
	open := func(s facts.Snapshot) facts.Snapshot {
		s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
		return s
	}
	to := func(site string) facts.Durable {
		return facts.Durable{Epoch: 4, ActiveSite: site, Transition: &facts.Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "b", To: site,
			StartedAt: factstest.Start, DetectedAt: factstest.Start}}
	}
	for name, tc := range map[string]struct {
		s       facts.Snapshot
		kept    int
		rule    string
		verdict wire.RuleVerdict
		decides bool
	}{
		"the first site":                    {alone(two(facts.Durable{})), 0, promotion.RuleActiveKnown, wire.RuleAgainst, true},
		"the active site is back":           {alone(two(facts.Durable{Epoch: 4, ActiveSite: "a"})), 0, promotion.RuleActiveReturned, wire.RuleFor, false},
		"the only candidate of a group":     {open(two(facts.Durable{Epoch: 4, ActiveSite: "a"})), 1, promotion.RuleCandidate, wire.RuleAgainst, false},
		"the target, with nobody to follow": {alone(two(to("a"))), 0, promotion.RuleTarget, wire.RuleAgainst, true},
	} {
		tc.s.Sites[tc.kept].KeptFenced = true
		e, found := Explain(tc.s, facts.Memory{}, failover.Decide(tc.s, facts.Memory{})), false
		for _, r := range e.Rules {
			if r.Name != tc.rule {
				continue
			}
			found = true
			want := "kubectl mfg fence off GROUP " + tc.s.Sites[tc.kept].Name
			if r.Verdict != tc.verdict || !strings.Contains(wire.InWords(r.Remedies), want) || (e.DecidedBy == r.Name) != tc.decides || tc.verdict == wire.RuleAgainst && r.Reason != string(v1alpha1.ReasonKeptFenced) {
				t.Errorf("I29: %s: decided by %s: %+v", name, e.DecidedBy, r)
			}
		}
		if !found {
			t.Errorf("%s: no rule %s: %+v", name, tc.rule, e.Rules)
		}
		for _, r := range e.Rules {
			if strings.Contains(wire.InWords(r.Remedies), "fence off GROUP "+tc.s.Sites[1-tc.kept].Name) {
				t.Errorf("%s: the other one is told to be kept fenced too: %+v", name, r)
			}
			if at := tc.s.Sites[tc.kept]; r.Name == promotion.RuleActiveReturned && r.Input != at.Name+" "+promotion.IsKeptFenced(tc.s, facts.Memory{}, at) {
				t.Errorf("%s: what was looked at is not what is told: %s", name, r.Input)
			}
		}
	}
}
