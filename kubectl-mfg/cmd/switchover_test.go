// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

// TestSwitchover: the word that many know is a planned failover, and takes what that takes.
func TestSwitchover(t *testing.T) {
	got := run(t, fleet(t), runOptions{}, "switchover", "orders", "-n", "shop", "--to", "frankfurt", "--dry-run=client")
	if want := run(t, fleet(t), runOptions{}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--dry-run=client"); got != want || got.out == "" {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestListWatch: a list is shown again when it has changed, until it is interrupted.
func TestListWatch(t *testing.T) {
	f := loadHealthy(t)
	ctx, cancel := context.WithCancel(t.Context())
	tick := func(n int) {
		switch n {
		case 1:
			lost(f)
		case 2:
			cancel()
		}
	}
	got := run(t, f, runOptions{tick: tick, ctx: ctx}, "list", "-n", "shop", "-w")
	if strings.Count(got.out, "orders") != 2 {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, "list", "-w", "--interval", "1ms"); got.code != cli.ExitUsage {
		t.Errorf("%+v", got)
	}
}

// TestListWatchOnASmallScreen: the groups with trouble are on it, and the rest is a command away.
func TestListWatchOnASmallScreen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got := run(t, fleet(t), runOptions{width: 80, high: 4, ctx: ctx, tick: func(int) { cancel() }}, "list", "-A", "-w")
	if !strings.Contains(got.out, "... 2 more lines: see kubectl mfg dashboard -A") || strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "stock") {
		t.Errorf("%+v", got)
	}
}

// TestMySQLArguments: whose password is typed follows from the command line alone.
func TestMySQLArguments(t *testing.T) {
	a := newApp(cli.Environment{IOStreams: discarded()})
	var seen *mysqlclient.Op
	a.perform = func(_ context.Context, op operation, _ func(context.Context, Cluster) (int, error)) error {
		seen, _ = op.(*mysqlclient.Op)
		return op.Validate()
	}
	for line, want := range map[string]mysqlclient.Op{
		"mysql orders":                               {Account: "admin"},
		"mysql orders rome":                          {Account: "admin", Site: "rome"},
		"mysql orders --account app":                 {Account: "app"},
		"mysql orders --login me":                    {User: "me"},
		"mysql orders rome -- --table":               {Account: "admin", Site: "rome", Args: []string{"--table"}},
		"mysql orders --login me --account readonly": {User: "me", Account: "readonly"},
	} {
		a.main(t.Context(), strings.Fields(line+" "))
		if seen == nil || seen.Account != want.Account || seen.User != want.User || seen.Site != want.Site || strings.Join(seen.Args, " ") != strings.Join(want.Args, " ") {
			t.Errorf("%s: %+v", line, seen)
		}
	}
	if a.main(t.Context(), strings.Fields("mysql orders --user kube")); *a.flags.AuthInfoName != "kube" || seen.User != "" || seen.Account != "admin" {
		t.Errorf("--user is the user of the kubeconfig %q, for %+v", *a.flags.AuthInfoName, seen)
	}
	for _, line := range []string{"mysql", "mysql orders rome paris"} {
		if code := a.main(t.Context(), strings.Fields(line)); code != cli.ExitUsage {
			t.Errorf("%s: exit code %d", line, code)
		}
	}
}
