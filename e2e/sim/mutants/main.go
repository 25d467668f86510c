// SPDX-License-Identifier: Apache-2.0

// Command mutants takes each guard of the pure cores away in turn, in an overlay and never in the tree, and demands that it is
// missed: by the simulation, which must find a violation if it runs that core, or at least by a test of the core.
// A guard that nobody misses fails, and so does a row whose text is not in its file any more. docs/simulation.md tells more.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.StringVar(&o.only, "only", "", "run the rows whose name this regular expression fits")
	flag.IntVar(&o.workers, "workers", 2, "how many rows at once")
	flag.IntVar(&o.first, "first", 1, "begin with this row")
	flag.IntVar(&o.seeds, "seeds", 800, "never more random seeds than this for one row")
	flag.IntVar(&o.few, "few", 60, "random seeds for a guard that a test of the core misses already")
	flag.BoolVar(&o.check, "check", false, "only see whether every row applies and compiles")
	flag.BoolVar(&o.learn, "learn", false, "keep what was found in e2e/sim/mutants/"+hintsFile)
	flag.StringVar(&o.out, "out", "", "write the outcome of every row into this file, as JSON")
	flag.Parse()
	dir, err := os.MkdirTemp("", "mfg-mutants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	failed, err := o.run(context.Background(), dir)
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if failed > 0 || err != nil {
		os.Exit(1)
	}
}

type options struct {
	root, only, out            string
	workers, first, seeds, few int
	check, learn               bool
}

func (o options) run(ctx context.Context, dir string) (int, error) {
	began := time.Now()
	h := hunter{options: o, dir: dir}
	if err := h.build(ctx); err != nil {
		return 1, err
	}
	if o.check {
		for _, err := range h.broken {
			fmt.Println("BROKEN", err)
		}
		fmt.Printf("%d rows, %d broken\n", len(rows), len(h.broken))
		return len(h.broken), nil
	}
	known, err := readHints(o.root)
	if err != nil {
		return 1, err
	}
	outcomes, err := h.all(ctx, known)
	return summary(outcomes, time.Since(began)), err
}

// keep writes down what is known so far: the rest may take long, or be ended.
func (o options) keep(known hints, outcomes []outcome) error {
	if o.learn {
		if err := known.learn(o.root, outcomes[len(outcomes)-1]); err != nil {
			return err
		}
	}
	return write(o.out, outcomes)
}

// all plays the rows that were asked for, a few at once.
func (h *hunter) all(ctx context.Context, known hints) ([]outcome, error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var trouble error
	outcomes := make([]outcome, 0, len(rows))
	free := make(chan struct{}, h.workers)
	wanted := regexp.MustCompile(h.only)
	for i, r := range rows {
		if i+1 < h.first || !wanted.MatchString(r.name()) {
			continue
		}
		free <- struct{}{}
		mu.Lock()
		hint := known[r.name()]
		mu.Unlock()
		wait.Go(func() {
			defer func() { <-free }()
			found := h.hunt(ctx, i, hint)
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, found)
			fmt.Println(found)
			trouble = errors.Join(trouble, h.keep(known, outcomes))
		})
	}
	wait.Wait()
	return outcomes, trouble
}

// summary says how many guards were missed by what; it returns how many were not, or could not be tried.
func summary(all []outcome, took time.Duration) int {
	count := map[means]int{}
	for _, o := range all {
		count[o.By]++
	}
	failed := count[notFound] + count[brokenRow]
	fmt.Printf("%d guards: %d found by the simulation (%d at random, %d directed), %d by a test of the core alone, %d not found, %d broken; %s\n",
		len(all), count[byRandom]+count[byDirected], count[byRandom], count[byDirected], count[byTest], count[notFound], count[brokenRow],
		took.Round(time.Second))
	return failed
}

func write(file string, all []outcome) error {
	if file == "" {
		return nil
	}
	body, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write outcome: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write outcome: %w", err)
	}
	return os.WriteFile(file, append(body, '\n'), 0o600)
}
