// SPDX-License-Identifier: Apache-2.0

// Command mutants falsifies every condition of the packages that decide and of the shells that hold guards, and drops every effect,
// one at a time, in an overlay and never in the tree, and demands that somebody misses it: a test of the package, or the simulation.
// A mutant that nobody misses fails, unless it is an exception with its reason. docs/internals/simulation.md tells more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.StringVar(&o.only, "only", "", "hunt the mutants whose name, or file and line, this regular expression fits")
	flag.StringVar(&o.packages, "packages", "", "read and build only the packages whose folder this regular expression fits: a hunt in a few of them need not build all")
	flag.IntVar(&o.workers, "workers", 2, "how many mutants at once")
	flag.IntVar(&o.seeds, "seeds", 400, "how many random seeds for a mutant that no test of its core misses; 0 leaves the simulation out")
	flag.BoolVar(&o.simOnly, "simulation-only", false, "ask no test: what does the simulation find by itself?")
	flag.BoolVar(&o.list, "list", false, "list the mutants")
	flag.BoolVar(&o.check, "check", false, "only see whether every mutant compiles and every exception fits")
	flag.BoolVar(&o.goOn, "continue", false, "take over what an earlier hunt of the same code found out, and begin with what it knows of other code")
	flag.StringVar(&o.out, "out", "", "write the outcome of every mutant into this file, as JSON")
	flag.Parse()
	dir, err := os.MkdirTemp("", "mfg-mutants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A hunt that is ended keeps what it has found so far.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := o.run(ctx, dir)
	stop()
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if failed > 0 || err != nil {
		os.Exit(1)
	}
}

type options struct {
	root, only, out, packages string
	workers, seeds            int
	list, check, goOn         bool
	simOnly                   bool
}

// run returns how many mutants nobody missed.
func (o options) run(ctx context.Context, dir string) (int, error) {
	if o.simOnly && o.goOn {
		return 0, errors.New("-simulation-only does not go on: what it does not find was not shown to any test")
	}
	began := time.Now()
	chosen, err := o.chosen(cores)
	if err != nil {
		return 0, err
	}
	sources, err := load(ctx, o.root, chosen)
	if err != nil {
		return 0, err
	}
	file, points, err := overlay(dir, sources)
	if err != nil {
		return 0, err
	}
	wanted, err := o.mutants(sources, points)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(stale(within(exceptions, chosen), points)...); err != nil {
		return 0, err
	}
	if o.list {
		for _, m := range wanted {
			fmt.Println(m.key(m.change), " ", m.where)
		}
	}
	if o.check {
		err = compiles(ctx, o.root, file, chosen)
	}
	if o.list || o.check {
		fmt.Printf("%d mutants at %d points of %d packages, %d exceptions\n", len(wanted), len(points), len(sources), len(exceptions))
		return 0, err
	}
	h := newHunter(o, dir, sources, points)
	if err := h.prepare(ctx, file, wanted); err != nil {
		return 0, err
	}
	return h.all(ctx, wanted, began)
}

// chosen are the packages that are read, with those whose tests come by too.
func (o options) chosen(all []core) ([]core, error) {
	wanted, err := regexp.Compile(o.packages)
	if err != nil {
		return nil, fmt.Errorf("-packages: %w", err)
	}
	folders := map[string]bool{}
	for _, c := range all {
		if !wanted.MatchString(c.folder) {
			continue
		}
		for _, folder := range c.tested() {
			folders[folder] = true
		}
	}
	var out []core
	for _, c := range all {
		if folders[c.folder] {
			out = append(out, c)
		}
	}
	return out, nil
}

// mutants are those that were asked for.
func (o options) mutants(sources []*source, points []point) ([]mutant, error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	byFolder := map[string]*source{}
	for _, s := range sources {
		byFolder[s.folder] = s
	}
	var all []mutant
	for _, p := range points {
		for _, c := range p.changes {
			if wanted.MatchString(p.key(c) + " " + p.where) {
				all = append(all, mutant{point: p, change: c, source: byFolder[p.folder]})
			}
		}
	}
	return all, nil
}

func compiles(ctx context.Context, root, overlay string, cores []core) error {
	args := []string{"build", "-gcflags=-e", "-overlay", overlay}
	for _, c := range cores {
		args = append(args, c.packageOf())
	}
	_, err := output(ctx, root, "go", args...)
	return err
}

// prepare builds the programs and runs all of them without a mutant.
func (h *hunter) prepare(ctx context.Context, overlay string, wanted []mutant) error {
	files, err := tracked(ctx, h.root)
	if err != nil {
		return err
	}
	if err := h.copyTree(h.root, files); err != nil {
		return err
	}
	if h.prints, err = printsOf(h.tree(), files, cores); err != nil {
		return err
	}
	if !h.simOnly {
		if err := h.baselines(ctx, overlay, wanted); err != nil || h.seeds == 0 {
			return err
		}
	}
	if err := h.buildSimulation(ctx, h.root, overlay); err != nil {
		return err
	}
	h.schedules, err = h.simulated(ctx)
	fmt.Printf("the simulation: %d schedules pass without a mutant\n", len(h.schedules))
	return err
}

// baselines does that for the tests of the packages that are asked for.
func (h *hunter) baselines(ctx context.Context, overlay string, wanted []mutant) error {
	folders := map[string]bool{}
	for _, m := range wanted {
		for _, folder := range m.source.tested() {
			folders[folder] = true
		}
	}
	var asked []*source
	var of []core
	for _, s := range h.sources {
		if folders[s.folder] {
			asked, of = append(asked, s), append(of, s.core)
		}
	}
	if err := h.buildTests(ctx, h.root, overlay, of); err != nil {
		return err
	}
	for _, s := range asked {
		exams, err := h.baseline(ctx, s)
		if err != nil {
			return err
		}
		h.exams[s] = exams
		fmt.Printf("%s: %d runs of tests pass without a mutant\n", s.folder, len(exams))
	}
	return nil
}

func newHunter(o options, dir string, sources []*source, points []point) *hunter {
	return &hunter{options: o, programs: programs{dir: dir}, sources: sources, points: points, exams: map[*source][]exam{}}
}

func (h *hunter) folderOf(s *source) string { return filepath.Join(h.tree(), s.folder) }

// all hunts the mutants, a few at once.
func (h *hunter) all(ctx context.Context, wanted []mutant, began time.Time) (int, error) {
	known := results{file: h.out, all: map[string]outcome{}}
	if h.goOn {
		if err := known.read(h.points); err != nil {
			return 0, err
		}
	}
	var mu sync.Mutex
	var outcomes []outcome
	written := time.Now()
	numbers := make([]string, len(wanted))
	for i := range wanted {
		numbers[i] = strconv.Itoa(i)
	}
	err := h.each(numbers, func(number string) error {
		i, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		m := wanted[i]
		mu.Lock()
		before := known.all[m.key(m.change)]
		mu.Unlock()
		found, err := h.one(ctx, m, before)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes = append(outcomes, found)
		known.all[found.Mutant] = found
		if !found.isFound() {
			fmt.Println(found)
		}
		if time.Since(written) < writeEvery {
			return nil
		}
		written = time.Now()
		return known.write()
	})
	err = errors.Join(err, known.write())
	return summary(outcomes, time.Since(began)), err
}

// writeEvery is after how long the results are kept.
const writeEvery = 5 * time.Second

func (h *hunter) one(ctx context.Context, m mutant, before outcome) (outcome, error) {
	if why := reasonFor(m.point, m.change); why != "" {
		return outcome{Mutant: m.key(m.change), Where: m.where, By: excepted, Reason: why}, nil
	}
	if h.standing(before) {
		before.Where = m.where
		return before, nil
	}
	return h.hunt(ctx, m, before)
}
