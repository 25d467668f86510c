// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// apart are modules whose versions cannot be the same everywhere: Kubernetes asks for clients of an etcd that has no released server.
var apart = []string{"go.etcd.io/etcd/"}

// Two versions of one library compile it, and all that imports it, twice: `make demo` on empty caches took 40 % longer for that.
func TestModulesShareTheirVersions(t *testing.T) {
	files := strings.Fields(output(t, "git", "ls-files", "*go.mod"))
	if len(files) < 6 {
		t.Fatalf("found only %v", files)
	}
	versions := map[string]map[string][]string{} // of a module, by version: the files that name it
	for _, file := range files {
		for path, version := range required(t, file) {
			if versions[path] == nil {
				versions[path] = map[string][]string{}
			}
			versions[path][version] = append(versions[path][version], file)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(versions)) {
		of := versions[path]
		if len(of) > 1 && !slices.ContainsFunc(apart, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			t.Errorf("%s is required in more than one version, take the highest everywhere (go mod edit -require, then GOWORK=off go mod tidy): %v", path, of)
		}
	}
	for _, prefix := range apart {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(versions)), func(path string) bool { return strings.HasPrefix(path, prefix) && len(versions[path]) > 1 }) {
			t.Errorf("no module below %s has two versions any more: drop the exception", prefix)
		}
	}
}

// The image of the operator holds the program and no files of time zones: without those in the program every time zone of a schedule but UTC is
// unknown, while tests on a machine that has such files pass.
func TestTheOperatorKnowsTimeZones(t *testing.T) {
	if !slices.Contains(strings.Fields(output(t, "go", "list", "-deps", "./operator")), "time/tzdata") {
		t.Error("the operator is built without time/tzdata")
	}
}

// required are the versions of the modules that a go.mod asks for, after its replacements.
func required(t *testing.T, file string) map[string]string {
	t.Helper()
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(output(t, "go", "mod", "edit", "-json", file)), &mod); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range mod.Require {
		out[r.Path] = r.Version
	}
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			out[r.Old.Path] = r.New.Version
		} else {
			delete(out, r.Old.Path) // a folder of this repository
		}
	}
	return out
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}
