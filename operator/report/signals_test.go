// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	_ "github.com/mysql-mfg/mfg/operator/archiving"
	_ "github.com/mysql-mfg/mfg/operator/backups"
	_ "github.com/mysql-mfg/mfg/operator/cache/loop"
	_ "github.com/mysql-mfg/mfg/operator/controller"
	_ "github.com/mysql-mfg/mfg/operator/monitor"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	_ "github.com/mysql-mfg/mfg/operator/server"
	_ "github.com/mysql-mfg/mfg/operator/tracing"
	_ "github.com/mysql-mfg/mfg/operator/upgrade/turns"
)

// Whoever declares an event or a metric is imported above, or by who is: TestEverySignalIsOnThePage tells of one that is not.

var update = flag.Bool("update", false, "write docs/reference/signals.md again")

// TestSignalsPage: each event, condition and metric is on the page. To write it again:
// go test ./operator/report -run TestSignalsPage -update.
func TestSignalsPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "signals.md")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := signalsPage(t, string(got))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Error("docs/reference/signals.md is not what the code says; run this test with -update")
	}
}

func signalsPage(t *testing.T, before string) string {
	var b strings.Builder
	b.WriteString("# Conditions, events and metrics\n\nMade from the code; `go test ./operator/report -run TestSignalsPage -update` writes it again. " +
		"Alerts: [alerts.md](../alerts.md). The metrics of sidecars: [fence.md](../internals/fence.md#metrics).\n\n" +
		"## Conditions\n\nIn `status.conditions[]` of a group. The message says what to do.\n\n| Type | True while |\n|---|---|\n")
	for _, c := range conditions(t) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c[0], c[1])
	}
	b.WriteString("\n## Events\n\nOf a group; `kubectl mfg events` shows them. The note gives the cause and the next command. `related` of one about a site is that site's Service or pod.\n\n| Reason | Type | Meaning |\n|---|---|---|\n")
	meaning, isEvent := meanings(t), map[v1alpha1.Reason]bool{}
	var rows []row
	for _, e := range events.Table() {
		rows = append(rows, row{string(e.Reason), fmt.Sprintf("| `%s` | %s | %s |\n", e.Reason, e.Type, meaning[e.Reason])})
		isEvent[e.Reason] = true
	}
	b.WriteString(inPlace(rows, section(before, "Events")))
	b.WriteString("\n## Reasons\n\nOf conditions, sites, decisions, refusals and planned failovers, in one word each; those in the table of events name states too. " +
		"Those of a write probe that fails: [failover.md](../failover.md).\n\n| Reason | Given when |\n|---|---|\n")
	for _, r := range slices.Sorted(maps.Keys(meaning)) {
		if !isEvent[r] {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r, meaning[r])
		}
	}
	b.WriteString("\n## Metrics\n\nOf the operator that leads, at Service `mfg-metrics`.\n\n| Series | Labels | |\n|---|---|---|\n")
	rows = nil
	for _, m := range series(t) {
		rows = append(rows, row{m[0], fmt.Sprintf("| `%s` | %s | %s |\n", m[0], m[1], m[2])})
	}
	b.WriteString(inPlace(rows, section(before, "Metrics")))
	return b.String()
}

// section is a part of the page.
func section(page, title string) string {
	_, rest, _ := strings.Cut(page, "\n## "+title+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// row is one of a table, by what it is about.
type row struct{ name, text string }

// inPlace joins rows in the order in which a section has them; those that it has not come last, by their names. In which order the packages
// declare them says nothing to a reader.
func inPlace(rows []row, section string) string {
	place := func(r row) int {
		if i := strings.Index(section, "\n| `"+r.name+"` |"); i >= 0 {
			return i
		}
		return len(section)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.name, b.name))
	})
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.text)
	}
	return b.String()
}

// conditions are the types of conditions, and what the API says of each.
func conditions(t *testing.T) [][2]string {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Condition") {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		_, meaning, found := strings.Cut(strings.TrimSpace(spec.Doc.Text()), ": ")
		if err != nil || !found {
			t.Fatalf("%s: %v: no meaning in %q", spec.Names[0].Name, err, spec.Doc.Text())
		}
		out = append(out, [2]string{name, strings.ReplaceAll(meaning, "\n", " ")})
		return true
	})
	return out
}

// meanings are the reasons, and what the API says of each.
func meanings(t *testing.T) map[v1alpha1.Reason]string {
	files, err := filepath.Glob(filepath.Join("..", "..", "api", "v1alpha1", "reasons*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no reasons", err)
	}
	out := map[v1alpha1.Reason]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			_, meaning, found := strings.Cut(strings.TrimSpace(spec.Doc.Text()), ": ")
			if err != nil || !found {
				t.Fatalf("%s: %v: no meaning in %q", spec.Names[0].Name, err, spec.Doc.Text())
			}
			if !strings.HasPrefix(meaning, "spec.") && !strings.HasPrefix(meaning, "kubectl ") {
				meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
			}
			out[v1alpha1.Reason(value)] = strings.ReplaceAll(meaning, "\n", " ")
			return true
		})
	}
	return out
}

// recorder is a registry that keeps what it is given.
type recorder struct {
	prometheus.Registerer
	all []prometheus.Collector
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.all = append(r.all, c)
	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) { r.all = append(r.all, all...) }

// described is how client_golang prints the name, the help and the labels of a series.
var described = regexp.MustCompile(`fqName: "([^"]+)", help: (".*"), unit: ".*", constLabels: {.*}, variableLabels: {(.*)}}`)

func series(t *testing.T) [][3]string {
	r := &recorder{}
	if err := metrics.Register(r); err != nil {
		t.Fatal(err)
	}
	var out [][3]string
	for _, c := range r.all {
		descs := make(chan *prometheus.Desc, 10)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("cannot read %s", d)
			}
			help, err := strconv.Unquote(m[2])
			if err != nil {
				t.Fatal(err)
			}
			labels := "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
			out = append(out, [3]string{m[1], labels, help})
		}
	}
	return out
}

// TestEverySignalIsOnThePage: what is declared in a package that this test does not import would be missing in the tables; and what the
// tables promise and nothing emits would be waited for in vain.
func TestEverySignalIsOnThePage(t *testing.T) {
	var names []string
	code := ""
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		code += string(raw)
		for _, m := range declared.FindAllStringSubmatch(string(raw), -1) {
			names = append(names, m[1])
		}
		return nil
	})
	if listed := len(events.Table()) + len(series(t)); err != nil || len(names) != listed {
		t.Fatalf("%v; %d are declared, and %d are on the page: %q", err, len(names), listed, names)
	}
	for _, name := range names {
		if len(regexp.MustCompile(`[^/\w] *\b`+name+`\b`).FindAllString(code, -1)) < 2 {
			t.Errorf("%s is declared and never made", name)
		}
	}
}

// declared is an event or a collector.
var declared = regexp.MustCompile(`(?m)^\s*(?:var )?(\w+) += (?:events\.(?:Normal|Warning)|(?:metrics\.)?(?:Gauge|Counter|Histogram))\(`)

func TestEventTable(t *testing.T) {
	seen := map[v1alpha1.Reason]bool{}
	for _, e := range events.Table() {
		if seen[e.Reason] {
			t.Errorf("reason %s is there twice", e.Reason)
		}
		seen[e.Reason] = true
		if e.Reason == "" || e.Action == "" {
			t.Errorf("event %q is incomplete: %+v", e.Reason, e)
		}
		if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
			t.Errorf("event %s has type %q", e.Reason, e.Type)
		}
	}
	if len(seen) == 0 {
		t.Fatal("the table is empty")
	}
}

// TestMetrics: every series passes the linter of Prometheus, and none of a group is left once the group is gone.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := metrics.Register(registry); err != nil {
		t.Fatal(err)
	}
	touched := touchAllSeries(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	metrics.ForgetGroup("ns", "g")
	families, err := registry.Gather()
	if err != nil || touched < 20 {
		t.Fatalf("%v; %d series", err, touched)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "failover_group" {
					t.Errorf("%s is left of a group that is gone", family.GetName())
				}
			}
		}
	}
}

// touchAllSeries gives each series a value, of site a of the group if it has such labels.
func touchAllSeries(t *testing.T) (touched int) {
	r := &recorder{}
	if err := metrics.Register(r); err != nil {
		t.Fatal(err)
	}
	for i, m := range series(t) {
		labels := prometheus.Labels{}
		for name := range strings.SplitSeq(strings.Trim(m[1], "`"), "`, `") {
			if name == "" {
				continue // a series of the operator as a whole has no labels
			}
			labels[name] = map[string]string{"mysql_namespace": "ns", "failover_group": "g", "site": "a"}[name]
		}
		switch c := r.all[i].(type) {
		case *prometheus.GaugeVec:
			c.With(labels).Set(1)
		case *prometheus.CounterVec:
			c.With(labels).Inc()
		case *prometheus.HistogramVec:
			c.With(labels).Observe(1)
		default:
			t.Fatalf("%s is a %T", m[0], c)
		}
		touched++
	}
	return touched
}
