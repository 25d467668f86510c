// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Before the hunt everything is run with no mutant active, each test and each schedule by itself. All must pass: a test that
// fails anyway would miss every mutant. What each of them reaches is noted, so that a mutant is shown only to who can see it.

// exam is a test of a core, with a number of draws, or a schedule of the simulation.
type exam struct {
	test     string
	in       *source // whose test it is
	draws    int
	scenario string
	from     int
	count    int
	took     time.Duration
	reach    []byte
}

// sees is true if the exam comes by with the condition the other way, or at the effect.
func (e exam) sees(p point, c change) bool {
	if c == force {
		return e.reach[2*p.id+1] != 0
	}
	return e.reach[2*p.id] != 0
}

// patience is how long something may take that takes no time to speak of; what never ends is ended then.
const patience = 5 * time.Second

// limit is how long the exam may take with a mutant.
func limit(exams ...exam) time.Duration {
	total := patience
	for _, e := range exams {
		total += 10 * e.took
	}
	return total
}

// mostBaseline is for one test without a mutant.
const mostBaseline = 5 * time.Minute

// baseline runs the tests of a core, and returns who sees what. It fails if any of them does.
func (h *hunter) baseline(ctx context.Context, s *source) ([]exam, error) {
	r, err := run(ctx, mostBaseline, h.folderOf(s), "", "", h.testsOf(s.core), "-test.list", "^Test")
	if err != nil || r.failed {
		return nil, fmt.Errorf("%s: list tests: %w %s", s.folder, err, r.said)
	}
	var mu sync.Mutex
	var exams []exam
	err = h.each(strings.Fields(r.said), func(test string) error {
		for _, draws := range s.draws {
			e, property, err := h.sit(ctx, s, exam{test: test, in: s, draws: draws})
			if err != nil {
				return err
			}
			mu.Lock()
			exams = append(exams, e)
			mu.Unlock()
			if !property {
				break // it draws nothing
			}
		}
		return nil
	})
	slices.SortFunc(exams, func(a, b exam) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.test, b.test)) })
	return exams, err
}

// each does something for all, a few at once, and ends with the first error.
func (h *hunter) each(all []string, do func(string) error) error {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var trouble error
	free := make(chan struct{}, h.workers)
	for _, one := range all {
		free <- struct{}{}
		mu.Lock()
		failed := trouble != nil
		mu.Unlock()
		if failed {
			break
		}
		wait.Go(func() {
			defer func() { <-free }()
			if err := do(one); err != nil {
				mu.Lock()
				defer mu.Unlock()
				trouble = errors.Join(trouble, err)
			}
		})
	}
	wait.Wait()
	return trouble
}

// sit runs one test without any mutant.
func (h *hunter) sit(ctx context.Context, s *source, e exam) (exam, bool, error) {
	if e.draws <= 0 {
		return e, false, fmt.Errorf("%s: properties are to be drawn %d times, which proves nothing", s.folder, e.draws)
	}
	reach, err := h.notes(s.folder + e.test + strconv.Itoa(e.draws))
	if err != nil {
		return e, false, err
	}
	began := time.Now()
	r, err := run(ctx, mostBaseline, h.folderOf(s), "", reach, append([]string{h.testsOf(s.core)}, s.arguments(e.draws, e.test)...)...)
	if err != nil {
		return e, false, err
	}
	if r.failed {
		return e, false, fmt.Errorf("%s: %s fails without any mutant, drawn %d times:\n%s", s.folder, e.test, e.draws, r.said)
	}
	e.took = time.Since(began)
	e.reach, err = os.ReadFile(reach)
	return e, strings.Contains(r.said, "[rapid]"), err
}

// notes makes an empty file for what is reached.
func (h *hunter) notes(of string) (string, error) {
	at := filepath.Join(h.dir, "reach-"+strings.ReplaceAll(of, "/", "-"))
	return at, os.WriteFile(at, make([]byte, 2*len(h.points)+1), 0o600)
}

const (
	// perScenario is how many seeds a scripted schedule is played with. About every eighth fits; they differ in delays.
	perScenario = 100
	// perRun is how many random seeds are played in one go: a mutant is shown only to the seeds that come by.
	perRun = 10
)

// simulated plays all schedules without any mutant. A seed that fails then is no proof of anything, and the hunt does not begin.
func (h *hunter) simulated(ctx context.Context) ([]exam, error) {
	r, err := run(ctx, mostBaseline, h.dir, "", "", h.simulation(), "-scenarios")
	if err != nil || r.failed {
		return nil, fmt.Errorf("list scenarios: %w %s", err, r.said)
	}
	var all []exam
	for line := range strings.Lines(r.said) {
		all = append(all, exam{scenario: strings.TrimSpace(line), from: 1, count: perScenario})
	}
	for from := 1; from <= h.seeds; from += perRun {
		all = append(all, exam{from: from, count: min(perRun, h.seeds-from+1)})
	}
	numbers := make([]string, len(all))
	for i := range all {
		numbers[i] = strconv.Itoa(i)
	}
	return all, h.each(numbers, func(number string) error {
		i, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		reach, err := h.notes("sim" + number)
		if err != nil {
			return err
		}
		began := time.Now()
		r, err := run(ctx, mostBaseline, h.dir, "", reach, h.play(all[i])...)
		if err != nil {
			return err
		}
		if r.failed {
			return fmt.Errorf("the simulation fails without any mutant:\n%s", r.said)
		}
		all[i].took = time.Since(began)
		all[i].reach, err = os.ReadFile(reach)
		return err
	})
}

// play is the command that plays a schedule.
func (h *hunter) play(e exam) []string {
	args := []string{h.simulation(), "-quiet", "-workers", "1", "-from", strconv.Itoa(e.from), "-seeds", strconv.Itoa(e.count)}
	if e.scenario != "" {
		args = append(args, "-directed", e.scenario)
	}
	return args
}
