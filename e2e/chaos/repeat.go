// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// repeats are scenarios that ran many times: what happens once in twenty runs is seen only so.
type repeats struct {
	Build        string     `json:"build"`
	LeaseSeconds float64    `json:"leaseSeconds"`
	Finished     time.Time  `json:"finished"`
	Scenarios    []repeated `json:"scenarios"`
}

// repeated are the runs of one scenario and what they come to.
type repeated struct {
	Name   string `json:"name"`
	Runs   int    `json:"runs"`
	Passed int    `json:"passed"`
	// The sums over all runs, those that failed too.
	Overlaps     int   `json:"overlaps"`
	ByServers    int   `json:"overlapsByServers"`
	Acknowledged int   `json:"acknowledged"`
	Lost         int   `json:"lost"`
	Reported     int64 `json:"reported"`
	// Seconds from the first fault, of the runs that passed: the clients' pause, and until the last commit of a site that was left alone.
	PauseP50    float64  `json:"pauseP50Seconds"`
	PauseMax    float64  `json:"pauseMaxSeconds"`
	AcceptedP50 float64  `json:"acceptedP50Seconds"`
	AcceptedMax float64  `json:"acceptedMaxSeconds"`
	Samples     []result `json:"samples"`
}

// repeat plays scenarios in turn, each as often as was asked for, so that what changes on the machine meets all of them.
func (r *runner) repeat(ctx context.Context, chosen []Scenario) error {
	file := strings.TrimSuffix(r.options.out, ".json") + "-repeat.json"
	all := repeats{Build: r.results.Build, LeaseSeconds: lease.Seconds(), Scenarios: make([]repeated, len(chosen))}
	failed := 0
	for run := 0; run < r.options.repeat && ctx.Err() == nil; run++ {
		for i, sc := range chosen {
			r.Say("run %d of %d, %s: %s", run+1, r.options.repeat, sc.Name, sc.claim())
			got := r.one(ctx, sc)
			if ctx.Err() != nil {
				break
			}
			r.Say("%s", got.line())
			if got.Outcome != outcomePassed {
				failed++
			}
			all.Scenarios[i].add(got)
			if err := all.write(file); err != nil {
				return err
			}
		}
	}
	for _, s := range all.Scenarios {
		if s.Runs > 0 {
			r.Say("%s", s.line())
		}
	}
	r.Say("results are in %s", file)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("broken off: %w", context.Cause(ctx))
	case failed > 0:
		return fmt.Errorf("%d runs failed", failed)
	}
	return nil
}

// add takes a run and sums up again.
func (s *repeated) add(got result) {
	*s = sumUp(append(s.Samples, got))
}

func sumUp(runs []result) repeated {
	s := repeated{Samples: runs}
	var pauses, accepted []float64
	for _, run := range runs {
		s.Name = run.Name
		s.Runs++
		s.Overlaps, s.ByServers = s.Overlaps+run.Overlaps, s.ByServers+run.ByServers
		s.Acknowledged, s.Lost, s.Reported = s.Acknowledged+run.Acknowledged, s.Lost+run.Lost, s.Reported+run.Reported
		if run.Outcome == outcomePassed {
			s.Passed++
			pauses, accepted = append(pauses, run.PauseSeconds), append(accepted, run.AcceptedSeconds)
		}
	}
	s.PauseP50, s.PauseMax = middle(pauses), worst(pauses)
	s.AcceptedP50, s.AcceptedMax = middle(accepted), worst(accepted)
	return s
}

// middle is the smallest value that half of the values do not exceed.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(float64(len(sorted))/2))-1]
}

func worst(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}

func (s repeated) line() string {
	return fmt.Sprintf("%s: %d of %d passed, %d overlaps acknowledged and %d by the servers; pause p50 %.2f s, worst %.2f s; "+
		"last commit of the old primary p50 %.2f s, worst %.2f s; %d acknowledged, %d lost, %d reported", s.Name, s.Passed, s.Runs,
		s.Overlaps, s.ByServers, s.PauseP50, s.PauseMax, s.AcceptedP50, s.AcceptedMax, s.Acknowledged, s.Lost, s.Reported)
}

func (a repeats) write(path string) error {
	a.Finished = time.Now().UTC().Truncate(time.Second)
	return writeJSON(path, a)
}
