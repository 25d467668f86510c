// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// result is what one part did.
type result struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
	// Said are the last words of the failed tests.
	Said []string `json:"said,omitempty"`
	// Seconds is how long the part took, with its compiling; Tests how long each test did, the slowest first.
	Seconds float64  `json:"seconds"`
	Tests   []timing `json:"tests,omitempty"`
}

// timing is how long one test took, with the tests below it.
type timing struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// slow is how many tests the closing words name.
const slow = 10

// slowest are the tests that took longest, of those that hold no others: what a test with subtests took is in them.
func slowest(tests []timing, n int) []timing {
	holds := map[string]bool{}
	for _, t := range tests {
		for name := t.Name; ; {
			cut := strings.LastIndexByte(name, '/')
			if cut < 0 || cut < strings.LastIndexByte(name, ' ') {
				break // what is left is the package
			}
			name = name[:cut]
			holds[name] = true
		}
	}
	leaves := slices.DeleteFunc(slices.Clone(tests), func(t timing) bool { return holds[t.Name] })
	slices.SortStableFunc(leaves, bySeconds)
	return leaves[:min(n, len(leaves))]
}

func bySeconds(a, b timing) int {
	return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
}

// printTimes tells how long each part took, how long all of them did if that is known, and which tests took longest.
func printTimes(out io.Writer, parts []timing, took float64, tests []timing) {
	var sum float64
	for _, p := range parts {
		sum += p.Seconds
		_, _ = fmt.Fprintf(out, "time %-12s %8.1f s\n", p.Name, p.Seconds)
	}
	_, _ = fmt.Fprintf(out, "time %-12s %8.1f s\n", "together", cmp.Or(took, sum))
	for _, t := range slowest(tests, slow) {
		_, _ = fmt.Fprintf(out, "slow %8.1f s  %s\n", t.Seconds, t.Name)
	}
}

func path(dir, part string) string { return filepath.Join(dir, part+".json") }

// record leaves a part's counts for total, and fails with it.
func record(dir, part string, r result) error {
	if part == "" {
		return errors.New("record result: the part has no name")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("record result: %w", err)
	}
	if err := os.WriteFile(path(dir, part), raw, 0o600); err != nil {
		return fmt.Errorf("record result: %w", err)
	}
	if len(r.Failed) > 0 {
		return errFailed
	}
	return nil
}

// total adds up the parts and prints the closing line. A part that left no counts has failed: it was killed, or never
// ran.
func total(out io.Writer, dir string, took float64, parts []string) error {
	var sum result
	var times []timing
	for _, part := range parts {
		raw, err := os.ReadFile(path(dir, part))
		if errors.Is(err, fs.ErrNotExist) {
			sum.Failed = append(sum.Failed, part+" (did not finish)")
			continue
		}
		var r result
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			return fmt.Errorf("read result of %s: %w", part, err)
		}
		sum.Passed += r.Passed
		times = append(times, timing{part, r.Seconds})
		for _, t := range r.Tests {
			sum.Tests = append(sum.Tests, timing{part + ": " + t.Name, t.Seconds})
		}
		for _, name := range r.Failed {
			sum.Failed = append(sum.Failed, part+": "+name)
		}
		for _, line := range r.Said {
			sum.Said = append(sum.Said, part+": "+line)
		}
		for _, name := range r.Skipped {
			sum.Skipped = append(sum.Skipped, part+": "+name)
		}
	}
	printTimes(out, times, took, sum.Tests)
	for _, name := range sum.Skipped {
		_, _ = fmt.Fprintln(out, "skipped", name)
	}
	for _, line := range sum.Said {
		_, _ = fmt.Fprintln(out, "said", line)
	}
	for _, name := range sum.Failed {
		_, _ = fmt.Fprintln(out, "failed", name)
	}
	_, _ = fmt.Fprintf(out, "%d passed, %d failed\n", sum.Passed, len(sum.Failed))
	if len(sum.Failed) > 0 {
		return errFailed
	}
	return nil
}
