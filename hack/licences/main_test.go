// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"m/LICENSE", "m/NOTICE.txt", "m/license.go", "m/README.md", "m/copied/COPYING", "m/copied/deep/x.go", "m/unused/LICENSE", "go/LICENSE", "go/src/fmt/x.go", "bare/x.go", "own/LICENSE",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages := func(text string) (all []pkg) {
		t.Helper()
		if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "$", dir)), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	files, err := collect(packages(`[{"Dir": "$/m/copied/deep", "Module": {"Path": "example.org/m", "Version": "v1", "Dir": "$/m"}},
		{"Dir": "$/go/src/fmt", "Standard": true, "Root": "$/go"}, {"Dir": "$/own", "Module": {"Path": "own", "Main": true, "Dir": "$/own"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"example.org/m@v1/LICENSE", "example.org/m@v1/NOTICE.txt", "example.org/m@v1/copied/COPYING", "go/LICENSE"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := collect(packages(`[{"Dir": "$/bare", "Module": {"Path": "example.org/bare", "Version": "v1", "Dir": "$/bare"}}]`)); err == nil {
		t.Error("a module without a licence was taken")
	}
}
