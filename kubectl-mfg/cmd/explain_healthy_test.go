// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestExplainHealthy: the first line for a group that is well says so, and who would take over.
func TestExplainHealthy(t *testing.T) {
	f := inspected(t)
	x := f.explanation
	x.Topology, x.Verdict, x.Reason, x.Message, x.DecidedBy, x.Blockers = "Healthy", wire.VerdictNothing, "Healthy", "paris is active", "ActiveSiteAcceptsWrites", nil
	for i, r := range x.Rules {
		if r.Name == x.DecidedBy {
			x.Rules[i].Verdict, x.Rules[i].Reason = wire.RuleAgainst, "Healthy"
		}
	}
	got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
	first, _, _ := strings.Cut(got.out, "\n")
	if got.code != cli.ExitHealthy || !strings.Contains(first, "healthy; would fail over to frankfurt") || strings.Contains(first, "does not fail over") {
		t.Errorf("exit code %d: %s", got.code, first)
	}
}
