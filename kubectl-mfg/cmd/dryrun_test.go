// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestDryRunServer: every verb that asks the operator for something has the API server check the very change, and keep
// nothing of it. The words alone would not tell: they are the same after a request that was carried out.
func TestDryRunServer(t *testing.T) {
	tests := map[string]struct {
		args   string
		group  func(*testing.T) *fakeAPI
		change func(*fakeAPI)
	}{
		"Failover":       {"failover orders --to frankfurt", loadHealthy, nil},
		"AcceptDataLoss": {"failover orders --to frankfurt --accept-data-loss", loadHealthy, lost},
		"Withdraw":       {"failover orders --abort", loadHealthy, order},
		"Abort": {"failover orders --abort", loadHealthy, func(f *fakeAPI) {
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedMoving}
		}},
		"Reclone":    {"reclone orders madrid", loadHealthy, nil},
		"RotateAll":  {"rotate orders --all", sealedGroup, nil},
		"RotateSite": {"rotate orders --site madrid", sealedGroup, nil},
		"RotateStop": {"rotate orders --stop", sealedGroup, func(f *fakeAPI) { f.groups[0].Annotations[v1alpha1.AnnotationRotateKeyring] = "*" }},
		"Adopt":      {"adopt orders", plainGroup, nil},
		"Pause":      {"pause orders --for 30m", loadHealthy, nil},
		"Resume": {"resume orders", loadHealthy, func(f *fakeAPI) {
			f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: "2026-11-03T12:30:00Z"}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := tc.group(t)
			if tc.change != nil {
				tc.change(f)
			}
			before := f.groups[0].DeepCopy()
			got := run(t, f, runOptions{}, append(strings.Fields(tc.args), "-n", "shop", "--dry-run=server")...)
			if got.code != cli.ExitHealthy || !strings.Contains(got.out, "the API server would take it") {
				t.Errorf("%+v", got)
			}
			if len(f.patched) != 1 || f.dryRuns != 1 {
				t.Errorf("%d of %d requests were dry runs: %v", f.dryRuns, len(f.patched), f.patched)
			}
			if diff := cmp.Diff(before, &f.groups[0]); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
		})
	}
}
