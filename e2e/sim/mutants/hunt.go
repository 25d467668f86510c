// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// means is by what a mutant was missed.
type means string

const (
	byTest     means = "core test"
	byTimeout  means = "core test, by timeout"
	byDirected means = "simulation, directed"
	byRandom   means = "simulation, random"
	notFound   means = "not found"
	notReached means = "not reached"
	excepted   means = "exception"
)

// outcome is what came of one mutant.
type outcome struct {
	Mutant, Where string
	By            means
	Test          string `json:",omitempty"`
	Draws         int    `json:",omitempty"`
	Scenario      string `json:",omitempty"`
	Seed          string `json:",omitempty"`
	Violation     string `json:",omitempty"`
	Reason        string `json:",omitempty"`
	// Tests and Seeds are how many were asked in vain.
	Tests   int `json:",omitempty"`
	Seeds   int `json:",omitempty"`
	Seconds float64
	// Sources and Own say of which code this was found out: of all that is built in, and of the core with its tests.
	Sources, Own string
}

func (o outcome) isFound() bool {
	return o.By == byTest || o.By == byTimeout || o.By == byDirected || o.By == byRandom
}

// mutant is a point with what is done there.
type mutant struct {
	point
	change change
	source *source
}

func (m mutant) active() string { return strconv.Itoa(m.id) + ":" + string(m.change) }

// hunter holds all that is known before the hunt.
type hunter struct {
	options
	programs
	sources   []*source
	points    []point
	exams     map[*source][]exam
	schedules []exam
	prints    prints
}

// hunt shows a mutant to the tests of its core that see it, the fastest first, and then to the simulation.
func (h *hunter) hunt(ctx context.Context, m mutant, before outcome) (outcome, error) {
	began := time.Now()
	out := outcome{Mutant: m.key(m.change), Where: m.where, By: notReached, Sources: h.prints.sources, Own: h.prints.own[m.folder]}
	done := func(err error) (outcome, error) { out.Seconds = time.Since(began).Seconds(); return out, err }
	for _, group := range h.groups(m, before) {
		out.By = notFound
		found, err := h.ask(ctx, m, group, &out)
		if err != nil || found {
			return done(err)
		}
		out.Tests += len(group)
	}
	if before.By == notFound && before.Sources == h.prints.sources && before.Seeds >= h.seeds {
		out.By, out.Seeds = notFound, before.Seeds // the simulation was asked
		return done(nil)
	}
	return done(h.simulate(ctx, m, &out))
}

// quick is what a group of tests may take together.
const quick = 300 * time.Millisecond

// groups are the tests that see a mutant, several fast ones in one run of the program. What missed it before comes first.
func (h *hunter) groups(m mutant, before outcome) [][]exam {
	var out [][]exam
	var took time.Duration
	for _, e := range h.examsOf(m.source) {
		if !e.sees(m.point, m.change) {
			continue
		}
		if e.test == before.Test && e.draws == before.Draws {
			out = slices.Insert(out, 0, []exam{e})
			took = quick
			continue
		}
		last := len(out) - 1
		if last >= 0 && took+e.took < quick && out[last][0].draws == e.draws && out[last][0].in == e.in {
			out[last], took = append(out[last], e), took+e.took
			continue
		}
		out, took = append(out, []exam{e}), e.took
	}
	return out
}

// examsOf are the tests that may see a core, its own first.
func (h *hunter) examsOf(s *source) []exam {
	var all []exam
	for _, folder := range s.tested() {
		for of, exams := range h.exams {
			if of.folder == folder {
				all = append(all, exams...)
			}
		}
	}
	return all
}

// ask runs tests with a mutant.
func (h *hunter) ask(ctx context.Context, m mutant, group []exam, out *outcome) (bool, error) {
	names := make([]string, len(group))
	for i, e := range group {
		names[i] = e.test
	}
	r, err := h.test(ctx, m, group, names)
	if err != nil || !r.failed {
		return false, err
	}
	name := r.failing()
	if group[0].in.timed && name != "" {
		if r, err = h.test(ctx, m, group, []string{name}); err != nil || !r.failed {
			return false, err
		}
	}
	out.By, out.Test, out.Draws = byTest, name, group[0].draws
	if r.late {
		out.By = byTimeout
	}
	return true, nil
}

func (h *hunter) test(ctx context.Context, m mutant, group []exam, names []string) (result, error) {
	command := append([]string{h.testsOf(group[0].in.core)}, group[0].in.arguments(group[0].draws, names...)...)
	return run(ctx, limit(group...), h.folderOf(group[0].in), m.active(), "", command...)
}

var verdict = regexp.MustCompile(`FAIL seed ([0-9]+): (.*)`)

// simulate plays the schedules that come by the mutant: scripted ones first.
func (h *hunter) simulate(ctx context.Context, m mutant, out *outcome) error {
	for _, e := range h.schedules {
		if !e.sees(m.point, m.change) {
			continue
		}
		out.By = notFound
		r, err := run(ctx, limit(e), h.dir, m.active(), "", h.play(e)...)
		if err != nil {
			return err
		}
		if !r.failed {
			out.Seeds += e.count
			continue
		}
		out.By, out.Scenario = byRandom, e.scenario
		if e.scenario != "" {
			out.By = byDirected
		}
		switch hit := verdict.FindStringSubmatch(r.said); {
		case hit != nil:
			out.Seed, out.Violation = hit[1], hit[2]
		case r.late:
			out.Violation = "it does not end"
		default:
			out.Violation = firstLine(r.said)
		}
		return nil
	}
	if out.By == notFound {
		out.Seeds = max(out.Seeds, h.seeds) // the others do not come by
	}
	return nil
}
