// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var (
	optionLine   = regexp.MustCompile(`(?m)^  (?:-[a-zA-Z?#], )?--([a-z0-9][a-zA-Z0-9_-]*)`)
	variableLine = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]+) +[^ ].*$`)
)

// OptionNames are the names of all options and variables that mysqld knows, with underscores, sorted.
func OptionNames(t testing.TB) []string {
	t.Helper()
	root, err := rootfs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runtime.LockOSThread() // see inRootfs
	defer runtime.UnlockOSThread()
	out, err := inRootfs(t.Context(), root, dir, "mysqld", "--no-defaults", "--verbose", "--help").Output()
	if err != nil {
		t.Fatalf("mysqld --verbose --help: %v", err)
	}
	text, variables, found := strings.Cut(string(out), "\n---------")
	if !found {
		t.Fatalf("no table of variables in\n%s", tail(text))
	}
	var names []string
	for _, m := range slices.Concat(optionLine.FindAllStringSubmatch(text, -1), variableLine.FindAllStringSubmatch(variables, -1)) {
		names = append(names, strings.ReplaceAll(m[1], "-", "_"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
