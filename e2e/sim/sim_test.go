// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSeeds plays a few runs, so that a change that breaks I1 to I10, or I13, badly does not wait for `make sim`.
func TestSeeds(t *testing.T) {
	total, failed := run(1, 200, 2, true)
	for _, f := range failed {
		t.Errorf("seed %d: %s; make sim SEED=%d", f.seed, f.failure, f.seed)
	}
	if total.promotions < 50 || total.commits < 10_000 {
		t.Errorf("the runs are empty: %d promotions, %d commits", total.promotions, total.commits)
	}
}

// TestSameSeedSameRun: a seed that does not repeat its run is no repro.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		first, second := simulate(seed, true).transcript, simulate(seed, true).transcript
		if !slices.Equal(first, second) {
			t.Errorf("seed %d does not give the same run twice", seed)
		}
	}
}

// TestSaved plays the runs that once found something. Each file is named by its seed; what it holds is the transcript of
// that time, for people.
func TestSaved(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		seed, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), ".txt"), 10, 64)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			if text, err := os.ReadFile(file); err != nil || len(text) == 0 {
				t.Fatalf("no transcript: %v", err)
			}
			if w := simulate(seed, false); w.failure != nil {
				t.Errorf("%s", w.failure)
			}
		})
	}
}

// TestHistory: the model's own sets agree with the real ones.
func TestHistory(t *testing.T) {
	var a, b history
	a[0], a[1], b[0], b[2] = 7, 2, 9, 1
	c := sets{}
	if got, want := c.of(a.union(b)).text, c.of(a).set.Union(c.of(b).set).String(); got != want {
		t.Errorf("union: %s, want %s", got, want)
	}
	if got, want := a.without(b), c.of(a).set.Subtract(c.of(b).set).Count(); got != want {
		t.Errorf("without: %d, want %d", got, want)
	}
	if a.contains(b) != c.of(a).set.Contains(c.of(b).set) || !a.union(b).contains(b) {
		t.Error("contains")
	}
}
