// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestOutlook: explain calls a group healthy only where the operator says that nothing is due, and names the site that would take over.
func TestOutlook(t *testing.T) {
	explained := func(change func(*Explained)) Explained {
		e := Explained{Explanation: &wire.Explanation{
			Verdict: wire.VerdictNothing, Reason: string(v1alpha1.ReasonHealthy), DecidedBy: "ActiveSiteAcceptsWrites",
			Rules:      []wire.ExplainedRule{{Name: "ActiveSiteAcceptsWrites", Verdict: wire.RuleAgainst, Reason: string(v1alpha1.ReasonHealthy)}},
			Candidates: []wire.ExplainedCandidate{{Site: "south"}, {Site: "west", Fit: true}, {Site: "north", Fit: true}},
		}}
		change(&e)
		return e
	}
	for name, tc := range map[string]struct {
		change func(*Explained)
		want   string // empty where the group is not called healthy
	}{
		"Healthy":     {func(*Explained) {}, "healthy; would fail over to west"},
		"Blocked":     {func(e *Explained) { e.Explanation.Blockers = []string{"Paused", "Cooldown"} }, "healthy; would not fail over: Paused, Cooldown"},
		"Nobody":      {func(e *Explained) { e.Explanation.Candidates = nil }, "healthy; no site is fit to take over"},
		"Unwritable":  {func(e *Explained) { e.Explanation.Rules[0].Reason = "DiskFull" }, ""},
		"Due":         {func(e *Explained) { e.Explanation.Verdict = wire.VerdictBlocked }, ""},
		"NoOperator":  {func(e *Explained) { e.OperatorDown = true }, ""},
		"Unexplained": {func(e *Explained) { e.Explanation = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := explained(tc.change)
			if e.Healthy() != (tc.want != "") {
				t.Fatalf("healthy: %t", e.Healthy())
			}
			if tc.want != "" && e.Outlook() != tc.want {
				t.Errorf("%q, want %q", e.Outlook(), tc.want)
			}
		})
	}
	none := int64(0)
	if got := (Forecast{LostTransactions: &none}).Loss(); got != "no known loss" {
		t.Errorf("a loss of nothing: %q", got)
	}
}
