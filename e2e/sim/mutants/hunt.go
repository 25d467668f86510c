// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// means is by what a guard was missed.
type means string

const (
	byRandom   means = "simulation, random"
	byDirected means = "simulation, directed"
	byTest     means = "core test"
	notFound   means = "not found"
	brokenRow  means = "broken"
)

// outcome is what came of one row.
type outcome struct {
	Guard, File string
	By          means
	// Alone is false if the simulation finds it only together with what stands behind it.
	Alone     bool
	Violation string   `json:",omitempty"`
	Scenario  string   `json:",omitempty"`
	Seed      int      `json:",omitempty"`
	Tests     []string `json:",omitempty"`
	// Seeds is how many were played, Seconds what the row took.
	Seeds   int
	Seconds float64
}

func (o outcome) String() string {
	how := o.Violation
	if o.Scenario != "" {
		how = o.Scenario + " " + how
	}
	if !o.Alone && o.Violation != "" {
		how = "with what stands behind it: " + how
	}
	if len(o.Tests) > 0 {
		how += " [" + o.Tests[0] + "]"
	}
	return fmt.Sprintf("%-20s %5.1fs %-72s %s", o.By, o.Seconds, o.File+" "+o.Guard, how)
}

// hunter plays the rows with the programs that have all variants built in.
type hunter struct {
	options
	dir    string
	broken map[int]error
}

// build makes the simulation and the tests of the cores, once for all rows.
func (h *hunter) build(ctx context.Context) error {
	file, err := h.sift(ctx, variants(rows))
	if err != nil {
		return err
	}
	if h.check {
		return nil
	}
	for _, c := range cores {
		if err := compile(ctx, h.root, "test", "-p", "1", "-c", "-vet=off", "-overlay", file, "-o", h.testsOf(c), c.packageOf()); err != nil {
			return err
		}
		if err := h.take(c); err != nil {
			return err
		}
		if failed := h.failing(ctx, c, 0, c.draws[len(c.draws)-1]); len(failed) > 0 {
			return fmt.Errorf("the tests of %s fail with all guards in place: %v", c.folder, failed)
		}
	}
	return compile(ctx, filepath.Join(h.root, "e2e"), "build", "-p", "1", "-overlay", file, "-o", h.program(), "./sim")
}

// sift makes the overlay of all variants and leaves out what does not apply, or does not compile.
func (h *hunter) sift(ctx context.Context, all []variant) (string, error) {
	h.broken = map[int]error{}
	for {
		good := slices.DeleteFunc(slices.Clone(all), func(v variant) bool { return h.broken[v.id] != nil })
		file, broken, err := overlay(h.root, h.dir, good)
		if err != nil {
			return "", err
		}
		maps.Copy(h.broken, broken)
		args := []string{"build", "-p", "1", "-gcflags=-e", "-overlay", file}
		for _, c := range cores {
			args = append(args, c.packageOf())
		}
		err = compile(ctx, h.root, args...)
		if err == nil {
			return file, nil
		}
		more := mistakes(err)
		if len(more) == 0 {
			return "", err
		}
		for _, v := range all {
			if said := more[v.id]; said != nil {
				h.broken[v.id] = fmt.Errorf("%s: %w", v.name, said)
			}
		}
	}
}

func (h *hunter) program() string { return filepath.Join(h.dir, "sim") }

func (h *hunter) testsOf(c core) string { return filepath.Join(h.dir, path.Base(c.folder)+".test") }

func (h *hunter) folderOf(c core) string { return filepath.Join(h.dir, "tree", c.folder) }

// hunt takes one guard away and looks for who misses it: what is known first, then the scripted schedules, then chance.
func (h *hunter) hunt(ctx context.Context, i int, known hint) outcome {
	r, began := rows[i], time.Now()
	out := outcome{Guard: r.guard, File: r.edits[0].file, By: notFound}
	c, err := coreOf(r.edits[0].file)
	if err := errors.Join(err, h.broken[alone(i)], h.broken[together(i)]); err != nil {
		out.By, out.Violation = brokenRow, err.Error()
		return out
	}
	out.Tests = h.tests(ctx, c, i)
	budget := h.seeds
	if len(out.Tests) > 0 {
		budget = min(h.few, h.seeds)
	}
	p := prey{hunter: h, row: r, known: known, budget: budget, out: &out}
	found := c.simulated && p.found(ctx, i)
	switch {
	case found && (out.Alone || len(out.Tests) > 0):
		out.By = byRandom
		if out.Scenario != "" {
			out.By = byDirected
		}
	case len(out.Tests) > 0:
		out.By = byTest
	}
	out.Seconds = time.Since(began).Seconds()
	return out
}

// with runs a program with a variant in place; 0 is none.
func (h *hunter) with(cmd *exec.Cmd, id int) (string, error) {
	var out bytes.Buffer
	cmd.Env = append(os.Environ(), environment+"="+strconv.Itoa(id))
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// prey is a row that is hunted.
type prey struct {
	*hunter
	row    row
	known  hint
	budget int
	out    *outcome
}

// perScenario is how many seeds a scripted schedule is played with. About every eighth fits; they differ in delays.
const perScenario = 100

// found plays without the guard, and if nothing comes of that without what stands behind it too.
func (p *prey) found(ctx context.Context, i int) bool {
	behind := len(p.row.behind) > 0
	p.out.Alone = p.play(ctx, alone(i), !behind || len(p.out.Tests) == 0)
	return p.out.Alone || behind && p.play(ctx, together(i), true)
}

func (p *prey) play(ctx context.Context, id int, random bool) bool {
	for _, seed := range p.known.Seeds {
		if p.seedsOf(ctx, id, "", span{seed, 1}) {
			return true
		}
	}
	for _, name := range p.row.directed {
		if p.seedsOf(ctx, id, name, span{1, perScenario}) {
			return true
		}
	}
	return random && p.seedsOf(ctx, id, "", span{1, p.budget})
}

type span struct{ from, count int }

var verdict = regexp.MustCompile(`FAIL seed ([0-9]+): (.*)`)

// seedsOf plays seeds until one breaks an invariant that holds with the guard in place.
func (p *prey) seedsOf(ctx context.Context, id int, scenario string, s span) bool {
	for s.count > 0 {
		out, err := p.with(p.sim(ctx, scenario, s), id)
		hit := verdict.FindStringSubmatch(out)
		switch {
		case err == nil:
			p.out.Seeds += s.count
			return false
		case hit == nil:
			p.out.Violation = "the simulation ends: " + firstLine(out)
			p.out.Scenario = scenario
			return true
		}
		seed, _ := strconv.Atoi(hit[1])
		p.out.Seeds += seed - s.from + 1
		if _, err := p.with(p.sim(ctx, scenario, span{seed, 1}), 0); err == nil {
			p.out.Seed, p.out.Violation, p.out.Scenario = seed, fmt.Sprintf("seed %d: %s", seed, hit[2]), scenario
			return true
		}
		s = span{seed + 1, s.count - (seed - s.from + 1)} // it breaks with the guard too
	}
	return false
}

func (p *prey) sim(ctx context.Context, scenario string, s span) *exec.Cmd {
	args := []string{"-quiet", "-workers", "1", "-from", strconv.Itoa(s.from), "-seeds", strconv.Itoa(s.count)}
	if scenario != "" {
		args = append(args, "-directed", scenario)
	}
	return exec.CommandContext(ctx, p.program(), args...)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
