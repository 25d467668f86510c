// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// core is a package whose guards are taken away.
type core struct {
	folder string
	// simulated is true if the simulation runs it. Guards of the others are missed by their tests, or by nobody.
	simulated bool
	// draws is how often property tests are drawn, in one run of the tests after the other until one fails: most guards are missed by
	// a test that draws nothing. Where the simulation does not look, the property tests look longer.
	draws []string
	// reads are the files elsewhere that its tests read.
	reads []string
}

var cores = []core{
	{folder: "operator/failover", simulated: true, draws: []string{"0", "8", "100"}},
	{folder: "sidecar/fence", simulated: true, draws: []string{"0", "8", "100"}},
	{folder: "operator/authority", simulated: true, draws: []string{noDraws}},
	{folder: "operator/keyring", draws: []string{"0", "8", "100", "2000"}, reads: []string{"docs/keyring-phases.md"}},
	{folder: "api/wire", draws: []string{noDraws}},
	{folder: "operator/passwords", draws: []string{"0", "8", "100", "2000"}},
	{folder: "operator/rollout", draws: []string{"0", "8", "100", "5000"}},
}

// noDraws is for the tests of a core that has no property test.
const noDraws = ""

func (c core) packageOf() string { return "./" + c.folder }

// coreOf is the core that a file is of.
func coreOf(file string) (core, error) {
	for _, c := range cores {
		if c.folder == path.Dir(file) {
			return c, nil
		}
	}
	return core{}, fmt.Errorf("%s is of no core", file)
}

// take copies what the tests of a core read: the tree may change while the table is played.
func (h *hunter) take(c core) error {
	if err := os.CopyFS(h.folderOf(c), os.DirFS(filepath.Join(h.root, c.folder))); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	for _, file := range c.reads {
		body, err := os.ReadFile(filepath.Join(h.root, file))
		if err != nil {
			return fmt.Errorf("build: %w", err)
		}
		at := filepath.Join(h.dir, "tree", file)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return fmt.Errorf("build: %w", err)
		}
		if err := os.WriteFile(at, body, 0o600); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	return nil
}

// tests runs the tests of the guard's core without it and returns those that fail: first without draws of the property tests, then
// with more and more.
func (h *hunter) tests(ctx context.Context, c core, i int) []string {
	for _, draws := range c.draws {
		if failed := h.failing(ctx, c, alone(i), draws); len(failed) > 0 {
			return failed
		}
	}
	return nil
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

func (h *hunter) failing(ctx context.Context, c core, id int, draws string) []string {
	args := []string{"-test.timeout=20m"}
	if draws != noDraws {
		args = append(args, "-rapid.nofailfile", "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.checks="+draws)
	}
	cmd := exec.CommandContext(ctx, h.testsOf(c), args...)
	cmd.Dir = h.folderOf(c)
	out, err := h.with(cmd, id)
	failed := map[string]bool{}
	for _, hit := range failedTest.FindAllStringSubmatch(out, -1) {
		failed[hit[1]] = true
	}
	if err != nil && len(failed) == 0 {
		failed["(the tests of "+c.folder+" end: "+firstLine(out)+")"] = true
	}
	return slices.Sorted(maps.Keys(failed))
}
