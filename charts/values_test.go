// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	tableBegin = "<!-- values: written by go test -tags helm ./charts -update -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// value is one value of a chart with the comment "# --" above it.
type value struct{ path, fallback, meaning string }

// documented reads the commented values; the indentation tells how deep a key is.
func documented(t *testing.T, chart string) []value {
	t.Helper()
	raw, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	var values []value
	var path []string
	meaning := ""
	for line := range strings.Lines(string(raw)) {
		text := strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(text, "# -- "); ok {
			meaning = comment
			continue
		}
		key, _, isKey := strings.Cut(text, ":")
		if !isKey || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "-") {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth > len(path) {
			continue
		}
		path = append(path[:depth:depth], key)
		if meaning != "" {
			values = append(values, value{strings.Join(path, "."), fallback(t, tree, path), meaning})
			meaning = ""
		}
	}
	return values
}

func fallback(t *testing.T, tree map[string]any, path []string) string {
	t.Helper()
	var node any = tree
	for _, key := range path {
		node = node.(map[string]any)[key]
	}
	out, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestReadmeListsTheValues(t *testing.T) {
	for _, chart := range []string{operatorChart, groupChart} {
		t.Run(chart, func(t *testing.T) {
			var table strings.Builder
			table.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
			for _, v := range documented(t, chart) {
				fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, v.fallback, v.meaning)
			}
			file := chart + "/README.md"
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, rest, found := strings.Cut(string(raw), tableBegin)
			_, after, ended := strings.Cut(rest, tableEnd)
			if !found || !ended {
				t.Fatalf("%s has no place for the table of values", file)
			}
			want := before + tableBegin + table.String() + tableEnd + after
			if *update {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, string(raw)); diff != "" {
				t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
			}
		})
	}
}

// Every value of the operator's chart has a comment and a place in the schema, and the schema has nothing beside them.
func TestSchemaIsComplete(t *testing.T) {
	var schema struct {
		Definitions map[string]node `json:"definitions"`
		node
	}
	raw, err := os.ReadFile(operatorChart + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	inSchema := leaves("", schema.node, schema.Definitions)
	var inValues []string
	for _, v := range documented(t, operatorChart) {
		inValues = append(inValues, v.path)
	}
	slices.Sort(inSchema)
	slices.Sort(inValues)
	if diff := cmp.Diff(inValues, inSchema); diff != "" {
		t.Errorf("values (-documented +in the schema):\n%s", diff)
	}
}

// node is what is looked at of a JSON schema.
type node struct {
	Ref        string          `json:"$ref"`
	Properties map[string]node `json:"properties"`
}

func leaves(path string, n node, definitions map[string]node) []string {
	if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		n = definitions[name]
	}
	if len(n.Properties) == 0 {
		return []string{strings.TrimPrefix(path, ".")}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		all = append(all, leaves(path+"."+name, n.Properties[name], definitions)...)
	}
	return all
}
