// SPDX-License-Identifier: Apache-2.0

package kills

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func result(c Case, passed bool) Result {
	return Result{Case: c, Passed: passed, Answer: "done, as v2 | x", Events: []string{"KeyringUnsealed", "KeyringSealed"}, SealedAfterSeconds: 60, Seconds: 90}
}

func TestCasesAreDistinct(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases() {
		names[c.Name()] = true
	}
	if len(names) != 70 || !names["Rotation/rotating/node"] {
		t.Errorf("%d runs: %v", len(names), Names(Cases()))
	}
}

// A table is gathered in pieces, of one build.
func TestResultsAreGathered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "kills.json")
	first, err := Open(path, "b1")
	if err != nil {
		t.Fatal(err)
	}
	all := Cases()
	first.Add(result(all[0], false))
	first.Add(result(all[1], true))
	if err := first.Write(path, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, "b1")
	if err != nil {
		t.Fatal(err)
	}
	if again.Passed(all[0]) || !again.Passed(all[1]) || again.Passed(all[2]) || len(again.Missing()) != len(all)-2 {
		t.Errorf("read again: %+v", again.Runs)
	}
	again.Add(result(all[0], true))
	if len(again.Runs) != 2 || !again.Passed(all[0]) {
		t.Errorf("a run that was made again: %+v", again.Runs)
	}
	other, err := Open(path, "b2")
	if err != nil || len(other.Runs) != 0 {
		t.Errorf("another build: %+v, %v", other, err)
	}
	if aside, err := Read(strings.TrimSuffix(path, ".json") + "-b1.json"); err != nil || len(aside.Runs) != 2 {
		t.Errorf("what the other build showed is gone: %+v, %v", aside, err)
	}
}

func TestTable(t *testing.T) {
	to := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(to, []byte("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r Results
	for i, c := range Cases()[1:] {
		r.Add(result(c, i > 0))
	}
	if err := r.WriteTable(to); err == nil || r.Complete || !strings.Contains(err.Error(), Cases()[0].Name()) {
		t.Errorf("a table with a hole: %v", err)
	}
	failed := result(Cases()[0], false)
	failed.Doing = "waiting for it to be sealed"
	r.Add(failed)
	if !r.Complete {
		t.Error("not complete with every run")
	}
	if err := r.WriteTable(to); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, want := range []string{
		"before\n", "\nafter\n", "70 runs, 68 passed, 2 failed", "**failed**: waiting for it to be sealed", "| Rotation | Pending | mysqld |", "done, as v2 / x",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(page, "old") || strings.Count(page, "\n| ") != 71 {
		t.Errorf("the page:\n%s", page)
	}
}

// The repository's page has the place for the table.
func TestThePageHasItsPlace(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "encryption-kills.md"))
	if err != nil {
		t.Fatal(err)
	}
	if page := string(raw); strings.Count(page, tableBegin) != 1 || strings.Count(page, tableEnd) != 1 {
		t.Error("docs/internals/encryption-kills.md has no place for the table")
	}
}
