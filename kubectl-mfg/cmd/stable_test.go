// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
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
		"pause":          {"pause orders --for 30m --dry-run=client", same, cli.ExitHealthy},
		"resume":         {"resume orders", same, cli.ExitHealthy},
		"reclone":        {"reclone orders madrid --dry-run=server", same, cli.ExitHealthy},
		"failover-asked": {"failover orders --to frankfurt --yes --wait=false", same, cli.ExitHealthy},
		"failover-force": {"failover orders --to frankfurt --accept-data-loss --dry-run=client", lost, cli.ExitHealthy},
		"failover-abort": {"failover orders --abort --dry-run=client", func(f *fakeAPI) {
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedWaiting, Message: "frankfurt catches up",
				StartedAt: &metav1.MicroTime{Time: noon}}
		}, cli.ExitHealthy},
		"list":  {"list", same, cli.ExitHealthy},
		"drill": {"drill orders --dry-run=client", func(f *fakeAPI) { f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"} }, cli.ExitHealthy},
		"adopt": {"adopt orders --dry-run=client", func(f *fakeAPI) { f.groups = plainGroup(t).groups }, cli.ExitHealthy},
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

// What doctor finds differs from cluster to cluster, how it says it does not.
func TestDoctorReportIsStable(t *testing.T) {
	rep := doctor.Report{
		APIVersion: report.APIVersion, Kind: "MfgDoctorReport", Metadata: report.Metadata{Name: "orders", Namespace: "shop"},
		Findings: []doctor.Finding{
			{Check: "operator", Level: doctor.OK, Message: "version v0.1.0 answers"},
			{Check: "swap", Level: doctor.Warn, Message: "node n1 has swap", Remedy: "swapoff -a on n1"},
			{Check: "eviction", Level: doctor.Fail, Message: "no PodDisruptionBudget mysql-orders: a drain may take every site at once"},
			{Check: "nodes", Level: doctor.Unknown, Message: "you may not list nodes"},
		},
	}
	raw, err := json.MarshalIndent(rep, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "verbs", "stable-doctor.json"), string(raw)+"\n")
}
