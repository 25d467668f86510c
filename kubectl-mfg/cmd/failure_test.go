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

// TestRotateRoleStays: a role that does not move comes with the next step, as it does for failover.
func TestRotateRoleStays(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: func(n int) {
		if asked(r.f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(r.f, v1alpha1.PlannedReverted, "PauseTimeout", "paris is opened again")
			r.f.groups[0].Status.PlannedFailover.Remedies = []v1alpha1.Remedy{{Text: "find out what holds it up", Command: "kubectl mfg events orders -n shop"}}
			return
		}
		r.look(n)
	}}, "--all --yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "find out what holds it up") || !strings.Contains(got.errOut, "to go on: kubectl mfg rotate orders -n shop --all") {
		t.Errorf("%+v", got)
	}
}

// TestRotateOldCampaign: keys of a day ago are not those that somebody asks for now.
func TestRotateOldCampaign(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-02T11:59:59Z paris=3 frankfurt=2 madrid=2"
	keyringIn(r.f, "frankfurt").RotatedVersion = 3
	got := rotated(t, r, runOptions{}, "--all --yes")
	if got.code != cli.ExitRefused || len(r.f.patched) != 0 || !strings.Contains(got.errOut, "was begun at 2026-11-02T11:59:59Z (24h ago)") || !strings.Contains(got.errOut, "--all --restart") {
		t.Errorf("%+v", got)
	}
	if got := rotated(t, r, runOptions{}, "--all --yes --restart"); got.code != cli.ExitHealthy || strings.Join(r.did, ", ") != "rotate frankfurt, rotate madrid, paris -> frankfurt, rotate paris" {
		t.Errorf("%v %+v", r.did, got)
	}
}

// TestRotateReplicasOfAll: a part of what --all began is done by --all-replicas, and the rest is not forgotten.
func TestRotateReplicasOfAll(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	note := "2026-11-03T11:00:00Z paris=3 frankfurt=3 madrid=2"
	r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = note
	for _, want := range []string{"frankfurt v3 -> v4", "nothing was left to do: frankfurt, madrid"} { // the second run finds nothing
		got := rotated(t, r, runOptions{}, "--all-replicas --yes")
		if got.code != cli.ExitHealthy || !strings.Contains(got.out, want) || !strings.Contains(got.out, "paris is left\n  to go on: kubectl mfg rotate orders -n shop --all") {
			t.Errorf("%+v", got)
		}
		if now := r.f.groups[0].Annotations[v1alpha1.AnnotationRotation]; now != note {
			t.Errorf("the note of --all is %q", now)
		}
	}
	if got := rotated(t, r, runOptions{}, "--all --yes"); got.code != cli.ExitHealthy || asked(r.f, v1alpha1.AnnotationRotation) || strings.Join(r.did, ", ") != "rotate frankfurt, rotate madrid, paris -> frankfurt, rotate paris" {
		t.Errorf("%v %+v", r.did, got)
	}
	// The same goes for a part that is begun anew, unless the active site has its new keys since.
	for since, want := range map[int64]bool{0: true, 4: false} {
		r = &rotator{f: sealedGroup(t)}
		r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T11:00:00Z paris=3 frankfurt=3 madrid=2"
		if k := keyringIn(r.f, "paris"); since > 0 {
			k.KeyringVersion, k.RotatedVersion = since, since
		}
		got := rotated(t, r, runOptions{}, "--all-replicas --restart --yes")
		for _, said := range []string{got.out, got.errOut} { // the plan too: who reads it can still use --all
			if got.code != cli.ExitHealthy || strings.Contains(said, "what was begun with --all is not done: paris is left") != want {
				t.Errorf("%+v", got)
			}
		}
		if asked(r.f, v1alpha1.AnnotationRotation) != want {
			t.Errorf("the note of --all: %v", r.f.groups[0].Annotations)
		}
	}
	// What --all-replicas began says so, is over with the replicas, and becomes one of all sites once --all goes on with it.
	for args, want := range map[string]string{"--all-replicas --yes --timeout 3s": "2026-11-03T12:00:00Z replicas paris=", "--all --yes --timeout 3s": "2026-11-03T12:00:00Z paris="} {
		r = &rotator{f: sealedGroup(t), stuckAt: v1alpha1.KeyringUnsealed}
		r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T12:00:00Z replicas paris=3 frankfurt=3 madrid=2"
		rotated(t, r, runOptions{}, args)
		if now := r.f.groups[0].Annotations[v1alpha1.AnnotationRotation]; !strings.HasPrefix(now, want) {
			t.Errorf("%s: %q", args, now)
		}
	}
}
