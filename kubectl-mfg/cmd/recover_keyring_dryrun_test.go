// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

// TestRecoverKeyringRights: what may not be done is known before anything is begun, and what can be done without is.
func TestRecoverKeyringRights(t *testing.T) {
	tests := map[string]struct {
		denied string
		quiet  bool
		code   int
		says   []string
	}{
		"ReadSecret":        {"get secrets", false, cli.ExitError, []string{"user may not get secrets", "kubectl auth can-i get secrets/" + lostSecret}},
		"ListPods":          {"list pods", false, cli.ExitError, []string{"you have no right to: list pods", "nothing was changed"}},
		"Exec":              {"create pods/exec", false, cli.ExitError, []string{"create pods/exec", "nothing was changed"}},
		"CreateSecret":      {"create secrets", false, cli.ExitError, []string{"create secrets (namespace shop)", "nothing was changed"}},
		"DeleteSecret":      {"delete secrets", false, cli.ExitError, []string{"delete secrets " + lostSecret, "nothing was changed"}},
		"PatchSecret":       {"patch secrets", false, cli.ExitError, []string{"patch secrets " + lostSecret, "nothing was changed"}},
		"CreateSecretAfter": {"create secrets", true, cli.ExitError, []string{"user may not create secrets", "kubectl auth can-i create secrets -n shop"}},
		"PatchStatus":       {"patch status", false, cli.ExitHealthy, []string{"the operator sets it"}},
		"Owner":             {"update finalizers", false, cli.ExitHealthy, []string{"the operator adds the owner"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEscrowAPI(t)
			before := f.state(t)
			f.denied, f.quietRights = []string{tc.denied}, tc.quiet
			got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
			if got.code != tc.code {
				t.Errorf("exit code %d, want %d: %s", got.code, tc.code, got.errOut)
			}
			for _, want := range tc.says {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.errOut)
				}
			}
			if tc.code == cli.ExitHealthy {
				checkRecovered(t, f)
			} else {
				checkUntouched(t, f, []byte(before))
			}
		})
	}
	t.Run("Events", func(t *testing.T) {
		f := newEscrowAPI(t)
		f.denied = []string{"get events", "create events"}
		got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
		if got.code != cli.ExitHealthy || !strings.Contains(got.errOut, "no event was recorded") {
			t.Errorf("%+v", got)
		}
	})
}

// TestRecoverKeyringDryRun: every object and step, the key redacted, nothing kept.
func TestRecoverKeyringDryRun(t *testing.T) {
	for file, tc := range map[string]struct {
		args    string
		changes []string
		dryRuns int
	}{
		"client.txt":  {"--dry-run=client", nil, 0},
		"client.json": {"--dry-run=client -o json", nil, 0},
		"server.txt":  {"--dry-run=server", []string{"read pod"}, 3},
	} {
		t.Run(file, func(t *testing.T) {
			f := newEscrowAPI(t)
			before := f.state(t)
			got := f.recovers(t, runOptions{width: 120}, append([]string{"recover-keyring", "orders", "frankfurt", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != cli.ExitHealthy || !slices.Equal(f.changes, tc.changes) || f.dryRuns != tc.dryRuns {
				t.Errorf("changes %v, %d dry runs: %+v", f.changes, f.dryRuns, got)
			}
			golden(t, filepath.Join("testdata", "recover", file), got.out)
			checkUntouched(t, f, []byte(before))
		})
	}
	t.Run("ServerRefuses", func(t *testing.T) {
		f := newEscrowAPI(t)
		f.denied, f.quietRights = []string{"create secrets"}, true
		got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--dry-run=server")
		if got.code != cli.ExitError || !strings.Contains(got.errOut, "step create") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("Incomplete", func(t *testing.T) {
		f := newEscrowAPI(t)
		f.store(keyrings.Bare(f.group(), *f.site(), []byte(keyMaterial)))
		got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--dry-run=server")
		if got.code != cli.ExitHealthy || f.dryRuns != 3 || len(f.changes) > 0 {
			t.Errorf("changes %v, %d dry runs: %+v", f.changes, f.dryRuns, got)
		}
	})
}

// TestRecoverKeyringPlanOfALoss: nobody is shown a plan, or asked, where its only source is lost already.
func TestRecoverKeyringPlanOfALoss(t *testing.T) {
	for _, args := range []string{"--dry-run=client", "--dry-run=server", ""} {
		f := newEscrowAPI(t)
		f.pods = nil
		got := f.recovers(t, runOptions{stdin: "y\n"}, append([]string{"recover-keyring", "orders", "frankfurt", "-n", "shop"}, strings.Fields(args)...)...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "the pod of frankfurt is gone") || strings.Contains(got.out+got.errOut, "Step 1") || strings.Contains(got.errOut, "[y/N]") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestRecoverKeyringPlanNeedsNoRights: whoever may not carry it out can show it to somebody who may.
func TestRecoverKeyringPlanNeedsNoRights(t *testing.T) {
	f := newEscrowAPI(t)
	f.denied = []string{"list pods", "create pods/exec", "create secrets", "delete secrets", "patch secrets"}
	got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--dry-run=client")
	for _, want := range []string{"Step 1", "you have no right to: list pods, create pods/exec", "whether the pod still runs was not looked at"} {
		if got.code != cli.ExitHealthy || !strings.Contains(got.out, want) {
			t.Errorf("lacks %q: %+v", want, got)
		}
	}
	if got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--dry-run=server"); got.code != cli.ExitError {
		t.Errorf("the server has to be asked with the rights: %+v", got)
	}
}

// TestRecoverKeyringReport: one typed answer for scripts.
func TestRecoverKeyringReport(t *testing.T) {
	f := newEscrowAPI(t)
	got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes", "-o", "json")
	golden(t, filepath.Join("testdata", "recover", "succeeded.json"), got.out)
	checkRecovered(t, f)
}

// TestRecoveryIsRecordedOnce: the event has a name of its own, and an old one that Kubernetes forgot is not made again.
func TestRecoveryIsRecordedOnce(t *testing.T) {
	f := newEscrowAPI(t)
	args := []string{"recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes"}
	f.recovers(t, runOptions{}, args...)
	clear(f.events)
	f.secrets[lostSecret].CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
	if got := f.recovers(t, runOptions{}, args...); got.code != cli.ExitHealthy || len(f.events) != 0 {
		t.Errorf("%d events: %+v", len(f.events), got)
	}
}
