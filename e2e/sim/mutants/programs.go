// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// programs are the tests of the cores and the simulation, each with all mutants built in.
type programs struct{ dir string }

func (p programs) testsOf(c core) string {
	return filepath.Join(p.dir, strings.ReplaceAll(c.folder, "/", "-")+".test")
}

func (p programs) simulation() string { return filepath.Join(p.dir, "sim") }

// tree is a copy of the repository. Tests read files of it, and the real one may change during a hunt.
func (p programs) tree() string { return filepath.Join(p.dir, "tree") }

// buildTests compiles the tests of the cores, buildSimulation the simulation.
func (p programs) buildTests(ctx context.Context, root, overlay string, cores []core) error {
	for _, c := range cores {
		if _, err := output(ctx, root, "go", "test", "-p", "1", "-c", "-vet=off", "-overlay", overlay, "-o", p.testsOf(c), c.packageOf()); err != nil {
			return err
		}
	}
	return nil
}

func (p programs) buildSimulation(ctx context.Context, root, overlay string) error {
	_, err := output(ctx, filepath.Join(root, "e2e"), "go", "build", "-p", "1", "-overlay", overlay, "-o", p.simulation(), "./sim")
	return err
}

// tracked are the files of the repository.
func tracked(ctx context.Context, root string) ([]string, error) {
	out, err := output(ctx, root, "git", "ls-files", "-co", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

func (p programs) copyTree(root string, files []string) error {
	for _, name := range files {
		body, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		at := filepath.Join(p.tree(), name)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		if err := os.WriteFile(at, body, 0o600); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	return nil
}

// result is how a program ended.
type result struct {
	said   string
	failed bool
	// late is true if it did not end in time.
	late bool
}

// mostMemory, in KiB, bounds what a mutant that never ends can take from the machine.
const mostMemory = "6000000"

// run runs a program with a mutant active, or none if it is "", and notes what it reaches in a file, or not if that is "".
func run(ctx context.Context, limit time.Duration, dir, mutant, reach string, command ...string) (result, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, "sh", append([]string{"-c", `ulimit -v ` + mostMemory + ` && exec "$@"`, "sh"}, command...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), activeIn+"="+mutant, reachIn+"="+reach)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r := result{said: out.String(), failed: err != nil, late: bounded.Err() != nil}
	var exit *exec.ExitError
	if err != nil && !r.late && !errors.As(err, &exit) {
		return r, fmt.Errorf("run %s: %w", command[0], err)
	}
	return r, ctx.Err()
}

// arguments are those of a program of tests.
func (s *source) arguments(draws int, tests ...string) []string {
	args := []string{"-test.run", "^(" + strings.Join(tests, "|") + ")$", "-test.failfast", "-test.v"}
	if s.properties {
		args = append(args, "-rapid.nofailfile", "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.checks="+strconv.Itoa(draws))
	}
	return args
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failing names the test that failed, or says how the program ended.
func (r result) failing() string {
	if hit := failedTest.FindStringSubmatch(r.said); hit != nil {
		return hit[1]
	}
	// A panic ends the program in the test that was begun last.
	last := ""
	for line := range strings.Lines(r.said) {
		if name, is := strings.CutPrefix(line, "=== RUN   "); is {
			last, _, _ = strings.Cut(strings.TrimSpace(name), "/")
		}
	}
	return last
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
