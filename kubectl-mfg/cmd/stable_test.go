// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cmd/report"
)

// TestReportsAreStable: the typed reports of the verbs whose other tests look at words; what programs read does not change
// unnoticed.
func TestReportsAreStable(t *testing.T) {
	same := func(*fakeAPI) {}
	tests := map[string]struct {
		args   string
		change func(*fakeAPI)
		code   int
	}{
		"pause":          {"pause orders --for 30m --dry-run=client", same, exitHealthy},
		"resume":         {"resume orders", same, exitHealthy},
		"reclone":        {"reclone orders madrid --dry-run=server", same, exitHealthy},
		"failover-asked": {"failover orders --to frankfurt --yes --wait=false", same, exitHealthy},
		"failover-force": {"failover orders --to frankfurt --accept-data-loss --dry-run=client", lost, exitHealthy},
		"failover-abort": {"failover orders --abort --dry-run=client", func(f *fakeAPI) {
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedWaiting, Message: "frankfurt catches up",
				StartedAt: &metav1.MicroTime{Time: noon}}
		}, exitHealthy},
		"list": {"list", same, exitHealthy},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			tc.change(f)
			got := run(t, f, runOptions{}, append(strings.Fields(tc.args), "-n", "shop", "-o", "json")...)
			if got.code != tc.code {
				t.Errorf("exit code %d, want %d: %s", got.code, tc.code, got.errOut)
			}
			var typed metav1.TypeMeta
			if err := json.Unmarshal([]byte(got.out), &typed); err != nil || typed.APIVersion != report.APIVersion || typed.Kind == "" {
				t.Errorf("%v: %+v", err, typed)
			}
			golden(t, filepath.Join("testdata", "verbs", "stable-"+name+".json"), got.out)
		})
	}
}
