// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryInvariantIsNamedByATest: a rule without a test that names it is only a wish.
func TestEveryInvariantIsNamedByATest(t *testing.T) {
	page, err := os.ReadFile("docs/internals/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (I[0-9]+) \|`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("docs/internals/invariants.md has %d rows", len(rows))
	}
	tests := testFiles(t)
	for _, row := range rows {
		if !regexp.MustCompile(row[1] + `([^0-9]|$)`).MatchString(tests) {
			t.Errorf("%s is named by no test", row[1])
		}
	}
}

// testFiles is the text of every test and transcript.
func testFiles(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, "_test.go") && path != "invariants_test.go" || strings.Contains(path, "testdata"+string(filepath.Separator)) && strings.HasSuffix(path, ".txt") {
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
