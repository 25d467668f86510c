// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScenariosAreWhole(t *testing.T) {
	all := scenarios()
	if err := checkScenarios(all); err != nil {
		t.Error(err)
	}
	if len(all) < 25 {
		t.Errorf("there are %d scenarios, 25 were promised", len(all))
	}
	raw, err := os.ReadFile("../../docs/internals/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		if !strings.HasSuffix(sc.Proves, ".") {
			t.Errorf("what %s proves is no sentence: %q", sc.Name, sc.Proves)
		}
		for _, number := range sc.Invariants {
			if !strings.Contains(string(raw), "| "+number+" |") {
				t.Errorf("%s stands on %s, which docs/internals/invariants.md does not have", sc.Name, number)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	all := scenarios()
	got, err := choose(all, "power-loss, silent-cut")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sc := range got {
		names = append(names, sc.Name)
	}
	if diff := cmp.Diff([]string{"silent-cut", "power-loss"}, names); diff != "" {
		t.Errorf("chosen (-want +got):\n%s", diff)
	}
	if _, err := choose(all, "silent-cut,nonsense"); err == nil {
		t.Error("a name that does not exist was taken")
	}
}

// made is a run's output: a result for each of the scenarios.
func made(all []Scenario) results {
	r := newResults("b")
	for _, sc := range all {
		r.add(result{Name: sc.Name, Proves: sc.claim(), Outcome: outcomePassed})
	}
	return r
}

func TestTableIsOfACompleteRunOnly(t *testing.T) {
	all := scenarios()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "chaos.json"), filepath.Join(dir, "chaos.md")
	const around = "before\n" + tableBegin + "\nold\n" + tableEnd + "\nafter\n"
	if err := os.WriteFile(to, []byte(around), 0o600); err != nil {
		t.Fatal(err)
	}
	part := made(all[1:])
	if err := part.write(from, all); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(from, to, all); err == nil {
		t.Error("a table was made although a scenario has no result")
	}
	if raw, _ := os.ReadFile(to); string(raw) != around {
		t.Errorf("the document was changed: %s", raw)
	}
	part.add(result{Name: all[0].Name, Proves: "x", Outcome: outcomeFailed, Failover: "a -> b (Emergency)", Held: []string{"a"}, Lost: 3, Reported: 4})
	if err := part.write(from, all); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(from, to, all); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n", "\nafter\n", "1 failed",
		"| `" + all[0].Name + "` | x | failed | a -> b (Emergency); a held | 0.00 s | 0 | 3 | 4 |\n",
		"| `" + all[1].Name + "` | ",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the document lacks %q:\n%s", want, raw)
		}
	}
}

func TestContinueTakesOnlyTheSameBuild(t *testing.T) {
	all := scenarios()
	path := filepath.Join(t.TempDir(), "chaos.json")
	before := made(all[:2])
	if err := before.write(path, all); err != nil {
		t.Fatal(err)
	}
	same, other := newResults("b"), newResults("c")
	if err := same.carryOn(path); err != nil || !same.passed(all[0].Name) || same.passed(all[2].Name) {
		t.Errorf("carried on with %+v, %v", same, err)
	}
	if err := other.carryOn(path); err == nil {
		t.Error("results of another build were taken")
	}
}

// A file system is filled only if it is one of our own.
func TestFillRefusesTheMachinesDisk(t *testing.T) {
	dir := t.TempDir()
	filler := filepath.Join(dir, "sub", "filler")
	if err := os.Mkdir(filepath.Dir(filler), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fill(filepath.Dir(filler), filler); err == nil {
		t.Error("it was filled")
	}
	if _, err := os.Stat(filler); err == nil {
		t.Error("a filler was made")
	}
}
