// SPDX-License-Identifier: Apache-2.0

package report_test

import (
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

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report"
)

var update = flag.Bool("update", false, "write docs/reference/signals.md anew")

// TestSignalsPage: whoever meets an event, a condition or a metric can look it up. To write the page anew:
// go test ./operator/report -run TestSignalsPage -update.
func TestSignalsPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "signals.md")
	want := signalsPage(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/signals.md is not what the code says; run this test with -update")
	}
}

func signalsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Conditions, events and metrics\n\nMade from the code; `go test ./operator/report -run TestSignalsPage -update` writes it anew. " +
		"Alerts: [alerts.md](../alerts.md). The metrics of sidecars: [fence.md](../fence.md#metrics).\n\n" +
		"## Conditions\n\nIn `status.conditions[]` of a group. The message says what to do.\n\n| Type | True while |\n|---|---|\n")
	for _, c := range conditions(t) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c[0], c[1])
	}
	b.WriteString("\n## Events\n\nOf a group; `kubectl mfg events` shows them. The note gives the cause and the next command. `related` of one about a site is that site's Service or pod.\n\n| Reason | Type | Meaning |\n|---|---|---|\n")
	meaning, isEvent := meanings(t), map[v1alpha1.Reason]bool{}
	for _, e := range report.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Reason, e.Type, meaning[e.Reason])
		isEvent[e.Reason] = true
	}
	b.WriteString("\n## Reasons\n\nOf conditions, sites, decisions, refusals and planned failovers, in one word each; those in the table of events name states too. " +
		"Those of a write probe that fails: [failover.md](../failover.md).\n\n| Reason | Given when |\n|---|---|\n")
	for _, r := range slices.Sorted(maps.Keys(meaning)) {
		if !isEvent[r] {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r, meaning[r])
		}
	}
	b.WriteString("\n## Metrics\n\nOf the operator that leads, at Service `mfg-metrics`.\n\n| Series | Labels | |\n|---|---|---|\n")
	for _, m := range metrics(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m[0], m[1], m[2])
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

func metrics(t *testing.T) [][3]string {
	r := &recorder{}
	if err := report.Register(r); err != nil {
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

// TestEverySignalIsMade: what the tables promise and nothing emits would be waited for in vain.
func TestEverySignalIsMade(t *testing.T) {
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
	if err != nil || len(names) < len(report.Table()) {
		t.Fatalf("%v; %d names", err, len(names))
	}
	for _, name := range names {
		made := regexp.MustCompile(`report\.` + name + `\b|\b` + name + `\.(WithLabelValues|Set|Inc)`)
		if !made.MatchString(code) {
			t.Errorf("%s is declared and never made", name)
		}
	}
}

// declared is an event or a collector of package report.
var declared = regexp.MustCompile(`(?m)^\s*(?:var )?([A-Z]\w+) += (?:normal|warning|prometheus\.New\w+)\(`)
