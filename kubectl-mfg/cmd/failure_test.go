// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/rotate"
)

// outcomeReport is what a script reads of any of the reports.
type outcomeReport struct {
	Kind, APIVersion, Verb, Outcome, Message, Next, DryRun string
	Reason                                                 v1alpha1.Reason
	Metadata                                               struct{ Name, Namespace string }
}

// TestFailuresAreReported: who asked for JSON gets it also where nothing came of it, and the exit code stays.
func TestFailuresAreReported(t *testing.T) {
	failed := func(run func(t *testing.T, args ...string) ran) func(t *testing.T, args string) (ran, outcomeReport) {
		return func(t *testing.T, args string) (ran, outcomeReport) {
			t.Helper()
			var rep outcomeReport
			got := run(t, append(strings.Fields(args), "-n", "shop", "--yes", "-o", "json")...)
			if err := json.Unmarshal([]byte(got.out), &rep); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
			return got, rep
		}
	}
	tests := map[string]struct {
		run     func(t *testing.T, args ...string) ran
		args    string
		code    int
		outcome string
		kind    string
		reason  v1alpha1.Reason
		message string
		next    string
	}{
		"Preflight": {func(t *testing.T, args ...string) ran {
			f := loadHealthy(t)
			f.explanation = &wire.Explanation{Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", PlannedBlockedBy: "Paused", PlannedMessage: "paused until noon",
				PlannedRemedies: []wire.Remedy{{Text: "to go on", Command: "kubectl mfg resume orders -n shop"}}}}}
			return run(t, f, runOptions{}, args...)
		}, "failover orders --to frankfurt", cli.ExitRefused, cli.OutcomeRefused, "MfgRequestReport", "Paused", "paused until noon", "kubectl mfg resume orders -n shop"},
		"OperatorDown": {func(t *testing.T, args ...string) ran {
			f := loadHealthy(t)
			f.live = nil
			return run(t, f, runOptions{}, args...)
		}, "failover orders --to frankfurt", cli.ExitRefused, cli.OutcomeRefused, "MfgRequestReport", "", "no pod is ready", "kubectl get pods -n mfg-system"},
		"TimedOut": {func(t *testing.T, args ...string) ran { return run(t, loadHealthy(t), runOptions{}, args...) },
			"failover orders --to frankfurt --timeout 3s", cli.ExitTimeout, cli.OutcomeTimedOut, "MfgRequestReport", "", "the request stays in force", "kubectl mfg status orders"},
		"Force": {func(t *testing.T, args ...string) ran { return run(t, loadHealthy(t), runOptions{}, args...) },
			"failover orders --to frankfurt --accept-data-loss", cli.ExitRefused, cli.OutcomeRefused, "MfgRequestReport", "", "paris accepts writes", "kubectl mfg failover orders -n shop --to frankfurt"},
		"RotateRefused": {func(t *testing.T, args ...string) ran { return run(t, sealedGroup(t), runOptions{}, args...) },
			"rotate orders --site paris", cli.ExitRefused, cli.OutcomeRefused, rotate.Kind, "", "paris is the active site", "kubectl mfg rotate orders -n shop --all"},
		"RotateTimedOut": {func(t *testing.T, args ...string) ran { return run(t, sealedGroup(t), runOptions{}, args...) },
			"rotate orders --site madrid --timeout 3s", cli.ExitTimeout, rotate.OutcomeUnfinished, rotate.Kind, "", "no outcome within 3s", "kubectl mfg rotate orders -n shop --site madrid"},
		"RecoverRefused": {func(t *testing.T, args ...string) ran {
			f := newEscrowAPI(t)
			f.pods = nil
			return f.recovers(t, runOptions{}, args...)
		}, "recover-keyring orders frankfurt", cli.ExitRefused, cli.OutcomeRefused, "MfgRecoveryReport", "", "the pod of frankfurt is gone", "kubectl mfg reclone orders frankfurt"},
		"RecoverTimedOut": {func(t *testing.T, args ...string) ran {
			f := newEscrowAPI(t)
			f.idle = true
			return f.recovers(t, runOptions{}, args...)
		}, "recover-keyring orders frankfurt --timeout 3s", cli.ExitTimeout, cli.OutcomeTimedOut, "MfgRecoveryReport", "", "no outcome within 3s", "run it again, and it continues from there: kubectl mfg recover-keyring orders frankfurt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, rep := failed(tc.run)(t, tc.args)
			if got.code != tc.code || rep.Outcome != tc.outcome || rep.Kind != tc.kind || rep.Reason != tc.reason || rep.Metadata.Name != "orders" || rep.Verb == "" {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, rep)
			}
			if !strings.Contains(rep.Message, tc.message) || strings.HasPrefix(rep.Message, "refused") || !strings.Contains(rep.Next, tc.next) {
				t.Errorf("message %q, next %q", rep.Message, rep.Next)
			}
			if !strings.Contains(got.errOut, "error: ") {
				t.Errorf("stderr does not say it: %q", got.errOut)
			}
		})
	}
}
