// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const prometheusProgram = "../../bin/prometheus"

// mayBeEmpty are the panels of the dashboard of MySQL that have nothing to show of some healthy groups, or on some file systems.
var mayBeEmpty = map[string]bool{"Days until it is full": true, "Files left": true, "Lag": true}

// Debian's Prometheus reads the operator and the sidecars of the shared group, with the labels that the PodMonitor gives, answers every query of
// the dashboards, and evaluates every alert.
func TestPrometheusAnswersEveryDashboard(t *testing.T) {
	g, _ := whole(t)
	p := startPrometheus(t, g)
	// Rates want two scrapes, and a measurement is up to 15 s old.
	sleep(t, 75*time.Second)
	files, err := filepath.Glob("../../charts/mfg/files/dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$namespace", g.Namespace, "$group", g.Name, "$site", ".*")
	for _, file := range files {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &dashboard)
		}
		if err != nil {
			t.Fatal(err)
		}
		asked, empty := 0, 0
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				asked++
				var answer struct {
					Result []json.RawMessage `json:"result"`
				}
				if err := p.ask(t.Context(), "/api/v1/query?query="+url.QueryEscape(fill.Replace(target.Expr)), &answer); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), panel.Title, err)
					continue
				}
				if len(answer.Result) > 0 {
					continue
				}
				empty++
				if filepath.Base(file) == "mfg-mysql.json" && !mayBeEmpty[panel.Title] {
					t.Errorf("%s: %s is empty: %s", filepath.Base(file), panel.Title, target.Expr)
				}
			}
		}
		t.Logf("%s: %d queries, %d of them with nothing to show", filepath.Base(file), asked, empty)
	}
	checkRules(t, p)
}

// checkRules looks whether every alert could be evaluated.
func checkRules(t *testing.T, p prometheus) {
	t.Helper()
	var answer struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.ask(t.Context(), "/api/v1/rules", &answer); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, group := range answer.Groups {
		for _, rule := range group.Rules {
			rules++
			if rule.Health != "ok" {
				t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	t.Logf("%d alerts were evaluated", rules)
	if rules < 20 {
		t.Errorf("Prometheus knows %d alerts", rules)
	}
}

// prometheus is the address of a server.
type prometheus string

// ask gets the data of an answer.
func (p prometheus) ask(ctx context.Context, path string, into any) error {
	body, err := get(ctx, string(p)+path)
	if err != nil {
		return err
	}
	var answer struct {
		Status string          `json:"status"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("GET %s: %s", path, body)
	}
	return json.Unmarshal(answer.Data, into)
}

// startPrometheus starts a server that reads the operator and a group; it ends with the test.
func startPrometheus(t *testing.T, g *stage.Group) prometheus {
	t.Helper()
	if _, err := os.Stat(prometheusProgram); errors.Is(err, fs.ErrNotExist) {
		if out, err := exec.CommandContext(t.Context(), "../../hack/promtool.sh", prometheusProgram, "prometheus").CombinedOutput(); err != nil {
			t.Fatalf("take prometheus out of Debian's package: %v\n%s", err, out)
		}
	}
	operator, err := lab.Lab.Kubectl(t.Context(), "-n", stage.OperatorNamespace, "get", "pods", "-l", "app.kubernetes.io/name=mfg", "-o", "jsonpath={.items[0].status.podIP}")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../charts/mfg/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: 5s, evaluation_interval: 15s}\nrule_files: [%q]\nscrape_configs:\n", rules)
	fmt.Fprintf(&config, "- job_name: operator\n  static_configs: [{targets: ['%s:8080']}]\n- job_name: sidecars\n  static_configs:\n", strings.TrimSpace(string(operator)))
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "  - {targets: ['%s:8090'], labels: {mysql_namespace: %q, failover_group: %q, site: %q, pod: %q}}\n", pod.Status.PodIP, g.Namespace, g.Name, site, pod.Name)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), prometheusProgram, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The end of the test's context has killed it.
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; sleep(t, time.Second) {
		if _, err = get(t.Context(), "http://"+addr+"/-/ready"); err == nil {
			return prometheus("http://" + addr)
		}
		if time.Now().After(deadline) {
			t.Fatalf("prometheus is not ready: %v", err)
		}
	}
}
