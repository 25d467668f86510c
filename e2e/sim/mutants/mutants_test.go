// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// TestEveryRowApplies: a row whose text is not in its file any more, or that does not compile, would be a guard that nobody
// takes away. Whoever changes a guard brings its row up to date.
func TestEveryRowApplies(t *testing.T) {
	h := hunter{options: options{root: "../../..", check: true}, dir: t.TempDir()}
	if err := h.build(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.broken {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name()] {
			t.Errorf("two rows are named %q", r.name())
		}
		seen[r.name()] = true
		if r.breaks == "" {
			t.Errorf("%s names no invariant", r.name())
		}
		for _, e := range append(r.edits, r.behind...) {
			c, err := coreOf(e.file)
			if err != nil {
				t.Error(err)
			} else if !c.simulated && len(r.behind)+len(r.directed) > 0 {
				t.Errorf("%s is not simulated, so nobody plays what stands behind it", r.name())
			}
		}
	}
}

// TestOneProgramForAll: the changed body is taken when its variant was asked for, and only then.
func TestOneProgramForAll(t *testing.T) {
	const text = `package p

func f(n int) int {
	if n > 3 {
		return 1
	}
	return 2
}

var g = func() { f(1) }
`
	root, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(root+"/p.go", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []variant{
		{id: 1, edits: []edit{{"p.go", "n > 3", "n > 4"}}},
		{id: 3, edits: []edit{{"p.go", "f(1)", "f(5)"}}},
		{id: 5, edits: []edit{{"p.go", "return 2", "return 3"}, {"p.go", "n > 3", "false"}}},
		{id: 7, edits: []edit{{"p.go", "n < 3", "n > 4"}}},
		{id: 9, edits: []edit{{"p.go", "package p", "package q"}}},
	}
	_, broken, err := overlay(root, dir, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(broken) != 2 || broken[7] == nil || broken[9] == nil {
		t.Errorf("broken: %v", broken)
	}
	woven, err := os.ReadFile(dir + "/p.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"if mfgMutant == 1 {\n\tif n > 4 {\n\t\treturn 1\n\t}\n\treturn 2\n}",
		"if mfgMutant == 3 { f(5) \nreturn\n}",
		"if mfgMutant == 5 {\n\tif false {\n\t\treturn 1\n\t}\n\treturn 3\n}",
		"if n > 3 {\n\t\treturn 1\n\t}\n\treturn 2\n}",
	} {
		if !strings.Contains(string(woven), want) {
			t.Errorf("%q is not in\n%s", want, woven)
		}
	}
}
