// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const dashboardsFolder = operatorChart + "/files/dashboards"

// dashboard is what is used of a dashboard of Grafana.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(dashboardsFolder + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal([]byte(readFile(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// variable finds what Grafana fills in.
var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// filled is a query as Prometheus gets it.
func filled(expr string) string {
	return variable.ReplaceAllStringFunc(strings.ReplaceAll(expr, "$__rate_interval", "2m"), func(string) string { return ".*" })
}

// declaredMetrics are the metrics in the source of operator and sidecar.
func declaredMetrics(t *testing.T) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	for _, folder := range []string{"../operator", "../sidecar"} {
		err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			for _, found := range regexp.MustCompile(`"((?:operator|sidecar)_[a-z_]+)"`).FindAllStringSubmatch(readFile(t, file), -1) {
				declared[found[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return declared
}

var metricName = regexp.MustCompile(`\b(operator|sidecar)_[a-z_]+`)

// A panel on a metric that nobody has stays empty, and nobody knows why.
func TestDashboardsUseMetricsThatThereAre(t *testing.T) {
	declared := declaredMetrics(t)
	for file, d := range dashboards(t) {
		queries := 0
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				queries++
				used := metricName.FindAllString(target.Expr, -1)
				if len(used) == 0 {
					t.Errorf("%s: %q uses no metric of ours: %s", file, p.Title, target.Expr)
				}
				for _, metric := range used {
					if !declared[metric] && !declared[strings.TrimSuffix(metric, "_bucket")] {
						t.Errorf("%s: %q uses %s, which neither the operator nor the sidecar declares", file, p.Title, metric)
					}
				}
			}
		}
		for _, v := range d.Templating.List {
			for _, metric := range metricName.FindAllString(string(v.Query), -1) {
				if !declared[metric] {
					t.Errorf("%s: the variable %s uses %s, which nobody declares", file, v.Name, metric)
				}
			}
		}
		if queries < 15 {
			t.Errorf("%s has %d queries", file, queries)
		}
	}
}

// Every metric of mysqld and its volume is on a dashboard, but for one that tells how many inodes there were.
func TestDashboardsShowEverySeriesOfMysqld(t *testing.T) {
	var shown strings.Builder
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				shown.WriteString(target.Expr + "\n")
			}
		}
	}
	for metric := range declaredMetrics(t) {
		if strings.HasPrefix(metric, "sidecar_mysql_") && metric != "sidecar_mysql_up" && !regexp.MustCompile(`\b`+metric+`\b`).MatchString(shown.String()) {
			t.Errorf("%s is on no dashboard", metric)
		}
	}
}

// promtool reads every query, as the rule of a file.
func TestEveryQueryOfADashboardIsOne(t *testing.T) {
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	check := func(all []recording) (string, error) {
		raw, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": all}}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", path).CombinedOutput()
		return string(out), err
	}
	for file, d := range dashboards(t) {
		var all []recording
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, recording{"dashboard:query", filled(target.Expr)})
			}
		}
		if out, err := check(all); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	if out, err := check([]recording{{"dashboard:query", "sum(rate(sidecar_mysql_up[2m])"}}); err == nil {
		t.Errorf("promtool reads what is no query:\n%s", out)
	}
}

// Grafana fills in only what a dashboard declares; panels have numbers of their own and do not cover each other.
func TestDashboardsAreWhole(t *testing.T) {
	uids := map[string]string{}
	for file, d := range dashboards(t) {
		if other := uids[d.UID]; d.UID == "" || d.Title == "" || other != "" {
			t.Errorf("%s: uid %q, title %q, the same as %q", file, d.UID, d.Title, other)
		}
		uids[d.UID] = file
		declared := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			declared = append(declared, v.Name)
		}
		for _, found := range variable.FindAllStringSubmatch(readFile(t, dashboardsFolder+"/"+file), -1) {
			if !slices.Contains(declared, found[1]) {
				t.Errorf("%s uses the variable %s, which it does not declare", file, found[1])
			}
		}
		seen := map[int]bool{}
		for i, p := range d.Panels {
			if seen[p.ID] {
				t.Errorf("%s: two panels have the number %d", file, p.ID)
			}
			seen[p.ID] = true
			for _, o := range d.Panels[:i] {
				a, b := p.GridPos, o.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: %q covers %q", file, p.Title, o.Title)
				}
			}
			if p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %q is beyond the edge", file, p.Title)
			}
		}
	}
}

// The ConfigMaps have the files as they are, and only if they are asked for.
func TestDashboardConfigMaps(t *testing.T) {
	const ask = "crds: {enabled: false}\nmonitoring: {dashboards: {enabled: %}}"
	of := func(values string) map[string]*corev1.ConfigMap {
		found := map[string]*corev1.ConfigMap{}
		for _, object := range objects(t, render(t, operatorChart, values)) {
			if c, is := object.(*corev1.ConfigMap); is {
				found[c.Name] = c
			}
		}
		return found
	}
	if got := of(strings.Replace(ask, "%", "false", 1)); len(got) > 0 {
		t.Errorf("nobody asked for %v", slices.Collect(maps.Keys(got)))
	}
	got := of("crds: {enabled: false}\nmonitoring: {dashboards: {enabled: true, annotations: {grafana_folder: MySQL}}}")
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"mfg-dashboard-groups", "mfg-dashboard-mysql"}) {
		t.Errorf("%v", names)
	}
	for _, c := range got {
		if c.Labels["grafana_dashboard"] != "1" || c.Annotations["grafana_folder"] != "MySQL" || c.Namespace != "mfg-system" {
			t.Errorf("%+v", c.ObjectMeta)
		}
		for file, text := range c.Data {
			if strings.TrimSpace(text) != strings.TrimSpace(readFile(t, dashboardsFolder+"/"+file)) {
				t.Errorf("%s is not the file", file)
			}
			if len(text) > 500<<10 {
				t.Errorf("%s has %d bytes, and a ConfigMap a MiB", file, len(text))
			}
		}
	}
}
