// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChoice(t *testing.T) {
	all := Cases()
	names := map[string]bool{}
	for _, c := range all {
		names[c.Name()] = true
	}
	if len(names) != len(all) || !names["Backup/Physical/Stored/node"] {
		t.Errorf("%d names of %d runs: %s", len(names), len(all), Names(all))
	}
	chosen := Choose(Cases(), 40, 7)
	if len(chosen) != 40 || !slices.Equal(chosen, Choose(Cases(), 40, 7)) || slices.Equal(chosen, Choose(Cases(), 40, 8)) {
		t.Errorf("the choice of a seed: %s", Names(chosen))
	}
	steps, distinct := map[[3]string]bool{}, map[Case]bool{}
	for _, c := range chosen {
		steps[[3]string{c.Work, c.Method, c.Step}], distinct[c] = true, true
	}
	if len(steps) != 2*len(kills) || len(distinct) != len(chosen) {
		t.Errorf("%d steps of %d, %d runs are distinct", len(steps), 2*len(kills), len(distinct))
	}
	if got := Choose(Cases(), 1000, 1); len(got) != len(all) {
		t.Errorf("%d of %d runs if all are wanted", len(got), len(all))
	}
	if got := Choose(nil, 3, 1); len(got) != 0 {
		t.Errorf("a choice of none: %v", got)
	}
}

func TestResultsAndTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "kills.json")
	r, err := Open(path, "b1", 7)
	if err != nil {
		t.Fatal(err)
	}
	all := Cases()
	r.Planned = 2
	r.Add(Result{Case: all[1], Passed: true, Outcome: "Completed | x", Attempts: 2})
	if err := r.Write(path, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(path, "b1", 7); err != nil || !r.Passed(all[1]) || r.Passed(all[0]) {
		t.Fatalf("read again: %+v, %v", r, err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteTable(page); err == nil {
		t.Error("a table with a hole")
	}
	r.Add(Result{Case: all[0], Doing: "reading"})
	r.Add(Result{Case: all[0], Doing: "reading again"})
	if err := r.WriteTable(page); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n", "\nafter\n", "2 runs by seed 7, 1 passed, 1 failed", "**failed**: reading again", "Completed / x"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is not in\n%s", want, raw)
		}
	}
	if strings.Contains(string(raw), "old") || strings.Count(string(raw), "\n| ") != 3 {
		t.Errorf("the page:\n%s", raw)
	}
	if other, err := Open(path, "b1", 8); err != nil || len(other.Runs) != 0 {
		t.Errorf("another seed: %+v, %v", other, err)
	}
	if _, err := Read(filepath.Join(filepath.Dir(path), "kills-b1-7.json")); err != nil {
		t.Errorf("what the other seed showed is gone: %v", err)
	}
}

// The repository's page has the place for the table.
func TestThePageHasItsPlace(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "internals", "backup-kills.md"))
	if err != nil {
		t.Fatal(err)
	}
	if page := string(raw); strings.Count(page, tableBegin) != 1 || strings.Count(page, tableEnd) != 1 {
		t.Error("docs/internals/backup-kills.md has no place for the table")
	}
}
