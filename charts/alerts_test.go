// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const alertsFile = operatorChart + "/files/alerts.yaml"

// prometheusRule is what is used of that kind of the Prometheus operator.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ruleGroups `json:"spec"`
}

type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (g ruleGroups) all() map[string]rule {
	out := map[string]rule{}
	for _, group := range g.Groups {
		for _, r := range group.Rules {
			out[r.Alert] = r
		}
	}
	return out
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func alerts(t *testing.T) map[string]rule {
	t.Helper()
	var file ruleGroups
	if err := yaml.UnmarshalStrict([]byte(readFile(t, alertsFile)), &file); err != nil {
		t.Fatal(err)
	}
	return file.all()
}

// promtool plays series against the rules and looks at what fires, and when.
func TestAlertsFire(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", alertsFile}, {"test", "rules", "testdata/alerts.test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Every alert is shown to fire and not to fire, tells what to do, and is in the documentation.
func TestAlertsAreComplete(t *testing.T) {
	tests, page := readFile(t, "testdata/alerts.test.yaml"), readFile(t, "../docs/alerts.md")
	for name, r := range alerts(t) {
		if !strings.HasPrefix(name, "MysqlFailoverGroup") || r.Labels["severity"] != "warning" && r.Labels["severity"] != "critical" ||
			r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(name)) {
			t.Errorf("%s is incomplete: %+v", name, r)
		}
		if strings.Count(tests, "alertname: "+name+"\n") < 2 || !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts: []\n") {
			t.Errorf("%s is not shown to fire and not to fire", name)
		}
		if !strings.Contains(page, "\n## "+name+"\n") {
			t.Errorf("%s has no section in docs/alerts.md", name)
		}
	}
}

// An alert on a metric that nobody registers never fires.
func TestAlertsUseMetricsThatThereAre(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"../operator", "../sidecar/agent", "../sidecar/measure"} {
		before := code.Len()
		err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
				code.WriteString(readFile(t, file))
			}
			return err
		})
		if err != nil || code.Len() == before {
			t.Fatalf("%s: no source: %v", folder, err)
		}
	}
	for name, r := range alerts(t) {
		metrics := regexp.MustCompile(`\b(operator|sidecar)_[a-z_]+`).FindAllString(r.Expr, -1)
		if len(metrics) == 0 {
			t.Errorf("%s uses no metric of ours: %s", name, r.Expr)
		}
		for _, metric := range metrics {
			if !strings.Contains(code.String(), `"`+metric+`"`) {
				t.Errorf("%s uses %s, which neither the operator nor the sidecar declares", name, metric)
			}
		}
	}
}

// What was planned is told apart by its reason: a new one must not wake anybody, and one that was renamed neither.
func TestPlannedFailoversDoNotAlert(t *testing.T) {
	planned := strings.Join([]string{string(v1alpha1.ReasonRequested), string(v1alpha1.ReasonSiteLeaving), string(v1alpha1.ReasonOrderedUpdate), string(v1alpha1.ReasonVolumeFails), string(v1alpha1.ReasonPlannedReverted)}, "|")
	chosen := strings.Join([]string{string(v1alpha1.ReasonModeManual), string(v1alpha1.ReasonModeObserve)}, "|")
	for name, want := range map[string]string{"MysqlFailoverGroupFailedOver": planned, "MysqlFailoverGroupWouldNotFailOver": chosen} {
		expr := alerts(t)[name].Expr
		for _, found := range regexp.MustCompile(`reason!~"([^"]*)"`).FindAllStringSubmatch(expr, -1) {
			if found[1] != want {
				t.Errorf("%s leaves out %s, want %s", name, found[1], want)
			}
		}
		if !strings.Contains(expr, "reason!~") {
			t.Errorf("%s leaves nothing out: %s", name, expr)
		}
	}
	_, block, _ := strings.Cut(readFile(t, "../api/v1alpha1/reasons_failover.go"), "// Causes of planned failovers.\nconst (\n")
	block, _, _ = strings.Cut(block, "\n)")
	if causes := regexp.MustCompile(`(?m)^\tReason\w+ +Reason += "`).FindAllString(block, -1); len(causes) != 4 {
		t.Errorf("there are %d causes of planned failovers, want 4: MysqlFailoverGroupFailedOver must leave out all of them", len(causes))
	}
	if expr, want := alerts(t)["MysqlFailoverGroupMovedOffVolume"].Expr, `reason="`+string(v1alpha1.ReasonVolumeFails)+`"`; strings.Count(expr, want) != 5 || strings.Count(expr, "reason=") != 5 {
		t.Errorf("MysqlFailoverGroupMovedOffVolume looks for something else than %s: %s", want, expr)
	}
}

// The PrometheusRule holds the rules of the file, without those that are not wanted.
func TestPrometheusRule(t *testing.T) {
	const values = "crds: {enabled: false}\nmonitoring: {rules: {enabled: true, labels: {release: p}"
	for name, excluded := range map[string]string{"all": "", "some": "MysqlFailoverGroupKeyringFailed"} {
		t.Run(name, func(t *testing.T) {
			got := only[prometheusRule](t, objects(t, render(t, operatorChart, values+", excludeRules: ["+excluded+"]}}")))
			want := alerts(t)
			delete(want, excluded)
			if diff := cmp.Diff(want, got.Spec.all()); diff != "" {
				t.Errorf("rules (-file +rendered):\n%s", diff)
			}
			if got.Labels["release"] != "p" || got.Namespace != "mfg-system" {
				t.Errorf("metadata %+v", got.ObjectMeta)
			}
		})
	}
}
