// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
	"time"

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

// TestExplainDoesNotPromise: a group whose active site does not serve, one without an active site, and one at which the operator has not looked for a
// while would not fail over automatically, as far as anybody knows.
func TestExplainDoesNotPromise(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeAPI, *wire.Explanation)
		says   string
	}{
		"the volume is full": {func(_ *fakeAPI, x *wire.Explanation) {
			for i, r := range x.Rules {
				if r.Name == x.DecidedBy {
					x.Rules[i].Reason = "DiskFull"
				}
			}
		}, "does not fail over"},
		"no active site yet": {func(f *fakeAPI, x *wire.Explanation) {
			f.groups[0].Status.Epoch, f.groups[0].Status.ActiveSite = 0, ""
			f.live.Groups[0].Epoch, f.live.Groups[0].ActiveSite = 0, ""
			x.Topology, x.Verdict, x.Reason, x.Loss = "Uninitialised", "Wait", "Restoring", nil
		}, "active site -"},
		"an old look": {func(f *fakeAPI, _ *wire.Explanation) {
			f.live.Groups[0].ObservedAt = f.live.IssuedAt.Add(-20 * time.Minute)
		}, "old: the operator last looked at this group 20m0s ago"},
		"a stale memory": {func(_ *fakeAPI, x *wire.Explanation) {
			x.Topology, x.Verdict, x.DecidedBy = "Unknown", "Wait", wire.RuleActiveSiteKnown
		}, "does not fail over: ActiveSiteKnown"},
	} {
		f := inspected(t)
		x := f.explanation
		x.Topology, x.Verdict, x.Reason, x.Message, x.DecidedBy, x.Blockers = "Healthy", wire.VerdictNothing, "Healthy", "paris is active", "ActiveSiteAcceptsWrites", nil
		for i, r := range x.Rules {
			if r.Name == x.DecidedBy {
				x.Rules[i].Verdict, x.Rules[i].Reason = wire.RuleAgainst, "Healthy"
			}
		}
		tc.change(f, x)
		got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
		if got.code != cli.ExitDegraded || !strings.Contains(got.out, tc.says) || strings.Contains(got.out, "would fail over automatically") {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.out)
		}
	}
}
