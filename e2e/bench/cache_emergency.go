// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// cacheState is what the cache of the active site is like when MySQL fails.
type cacheState struct {
	name string
	// preserved is what the record must say of the sessions; nil: either is right.
	preserved *bool
	// spoil makes it so, and tells how to take it back.
	spoil func(ctx context.Context, g *stage.Group, site string) (undo func(context.Context) error, err error)
}

// stateNone is the group without a cache.
const stateNone = "none"

func cacheStates() []cacheState {
	yes, no := true, false
	nothing := func(context.Context) error { return nil }
	return []cacheState{
		{name: stateNone},
		{name: "healthy", preserved: &yes, spoil: func(context.Context, *stage.Group, string) (func(context.Context) error, error) {
			return nothing, nil
		}},
		{name: "dead", preserved: &no, spoil: func(ctx context.Context, g *stage.Group, site string) (func(context.Context) error, error) {
			return nothing, g.SignalCache(ctx, site, syscall.SIGKILL)
		}},
		{name: "stopped", preserved: &no, spoil: func(ctx context.Context, g *stage.Group, site string) (func(context.Context) error, error) {
			return func(ctx context.Context) error {
				g.ContinueCaches(ctx)
				return nil
			}, g.SignalCache(ctx, site, syscall.SIGSTOP)
		}},
		{name: "slow", spoil: func(ctx context.Context, g *stage.Group, site string) (func(context.Context) error, error) {
			stop, err := g.SlowCache(ctx, site)
			if err != nil {
				return nothing, err
			}
			return func(context.Context) error {
				stop()
				return nil
			}, nil
		}},
		{name: "full", preserved: &yes, spoil: func(ctx context.Context, g *stage.Group, site string) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return g.RoomInCache(ctx, site) }, g.FullCache(ctx, site)
		}},
		{name: "cut off", preserved: &no, spoil: func(ctx context.Context, g *stage.Group, site string) (func(context.Context) error, error) {
			return g.HealCaches, g.CutCache(ctx, site)
		}},
	}
}

// cacheEmergency are emergencies of MySQL beside caches in all states.
type cacheEmergency struct {
	origin
	States  []cacheStateRow `json:"states"`
	Against []string        `json:"against,omitempty"`
}

// cacheStateRow is one state.
type cacheStateRow struct {
	Cache      string  `json:"cache"`
	Runs       int     `json:"runs"`
	P50Seconds float64 `json:"p50Seconds"`
	MaxSeconds float64 `json:"maxSeconds"`
	// Ratio compares the median with that of the group without a cache; Interval is where it lies with 95 % certainty.
	Ratio    float64   `json:"toNoneRatio,omitempty"`
	Interval *interval `json:"interval95,omitempty"`
	Verdict  verdict   `json:"verdict,omitempty"`
	// Promotions are what the groups had on record, Wrong the runs in which that was not right.
	Promotions []string `json:"promotions,omitempty"`
	Wrong      []string `json:"wrong,omitempty"`
	FailedRuns []string `json:"failedRuns,omitempty"`
	Samples    []sample `json:"samples"`
}

// emergencies makes MySQL fail beside caches in every state, in turn, and begins with another state each time.
func (k *cacheBench) emergencies(ctx context.Context) error {
	runs := cacheEmergencyRuns
	if k.options.runs > 0 {
		runs = k.options.runs
	}
	states := cacheStates()
	e := &cacheEmergency{}
	for _, s := range states {
		e.States = append(e.States, cacheStateRow{Cache: s.name})
	}
	k.figures.Emergency = e
	var errs []error
	for n := range runs {
		for i := range states {
			at := (i + n) % len(states)
			row := &e.States[at]
			k.stage.Say("emergency, run %d of %d, cache %s", n+1, runs, row.Cache)
			if err := k.emergency(ctx, states[at], row, n+1); err != nil {
				err = fmt.Errorf("run %d, cache %s: %w", n+1, row.Cache, err)
				k.stage.Say("FAILED: %v", err)
				errs, row.FailedRuns = append(errs, err), append(row.FailedRuns, err.Error())
			}
			e.origin = k.origin()
			if err := k.write(); err != nil {
				return err
			}
			if len(errs) >= failedSessions || ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

func (k *cacheBench) emergency(ctx context.Context, state cacheState, row *cacheStateRow, run int) error {
	a := cacheArms[0]
	if state.name != stateNone {
		a = cacheArms[1]
	}
	g, err := k.ensure(ctx, a)
	if err != nil {
		return err
	}
	named, err := casesNamed("mysqld-dead")
	if err != nil {
		return err
	}
	c := named[0]
	var watch *stage.CacheWatch
	if state.spoil != nil {
		ruin, mendAfter := c.Break, c.Repair
		undo := func(context.Context) error { return nil }
		c.Break = func(ctx context.Context, g *stage.Group, site string) error {
			watch = g.WatchCache(ctx)
			var err error
			if undo, err = state.spoil(ctx, g, site); err != nil {
				return err
			}
			return ruin(ctx, g, site)
		}
		c.Repair = func(ctx context.Context, g *stage.Group, site string) error {
			// Only now: the cache must be what it is while it follows MySQL.
			err := settled(ctx, g)
			watch.Stop()
			return errors.Join(err, undo(ctx), mendAfter(ctx, g, site))
		}
		// Also after a run that failed half-way.
		defer func() {
			if watch != nil {
				watch.Stop()
			}
			_ = undo(context.WithoutCancel(ctx))
		}()
	}
	samples, err := k.sessionOn(ctx, g, c, 1)
	for i := range samples {
		samples[i].Run = run
		k.stage.Say("emergency, cache %s: MySQL's clients waited %.3f s", state.name, samples[i].Seconds)
	}
	row.Samples = append(row.Samples, samples...)
	if err != nil || state.spoil == nil {
		return err
	}
	row.Promotions = append(row.Promotions, watch.Said()...)
	if text := wrongRecords(state, watch.Seen(), samples); text != "" {
		row.Wrong = append(row.Wrong, fmt.Sprintf("run %d: %s: %v", run, text, watch.Said()))
	}
	return nil
}

// settled waits until the cache's master is on the active site, and for the record of that.
func settled(ctx context.Context, g *stage.Group) error {
	_, err := g.AwaitCache(ctx, cacheSettle, "the cache's master to be on the active site", func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := group.Status.Cache; c == nil || c.ActiveSite != group.Status.ActiveSite || c.Transition != nil {
			return errors.New(stage.DescribeCache(group))
		}
		return nil
	})
	time.Sleep(time.Second)
	return err
}

// wrongRecords says what is not right with the records: one of them must lead to the site that MySQL went to, and they must tell the
// truth of the sessions.
func wrongRecords(state cacheState, seen []v1alpha1.CachePromotion, samples []sample) string {
	if len(samples) == 0 {
		return "no sample"
	}
	to := samples[len(samples)-1].To
	if !slices.ContainsFunc(seen, func(p v1alpha1.CachePromotion) bool { return p.To == to }) {
		return "no record of a promotion to " + to
	}
	lost := slices.ContainsFunc(seen, func(p v1alpha1.CachePromotion) bool { return !p.SessionsPreserved && p.Reason != "" })
	unexplained := slices.ContainsFunc(seen, func(p v1alpha1.CachePromotion) bool { return !p.SessionsPreserved && p.Reason == "" })
	switch {
	case unexplained:
		return "sessions were lost without a reason"
	case state.preserved != nil && *state.preserved == lost:
		return fmt.Sprintf("sessions preserved must be %t", *state.preserved)
	}
	return ""
}

// judge sums up and says what is against it.
func (e *cacheEmergency) judge() {
	e.Against = nil
	var none []sample
	for i := range e.States {
		if e.States[i].Cache == stateNone {
			none = e.States[i].Samples
		}
	}
	reference := percentile(measuredBy(clientPause, none), 50)
	for i := range e.States {
		r := &e.States[i]
		seconds := measuredBy(clientPause, r.Samples)
		r.Runs, r.P50Seconds, r.MaxSeconds = len(seconds), percentile(seconds, 50), percentile(seconds, 100)
		if r.Cache != stateNone {
			r.Ratio = ratio(r.P50Seconds, reference)
			r.Interval = ratioInterval(pairsOf(none, r.Samples, clientPause))
			r.Verdict = verdictOf(r.Interval)
			if r.Verdict == verdictMissed {
				e.Against = append(e.Against, fmt.Sprintf("emergency, cache %s: MySQL's pause is %.2f times that without a cache", r.Cache, r.Ratio))
			}
		}
		for _, text := range slices.Concat(r.Wrong, r.FailedRuns) {
			e.Against = append(e.Against, fmt.Sprintf("emergency, cache %s: %s", r.Cache, text))
		}
		for _, s := range r.Samples {
			if s.Overlaps > 0 {
				e.Against = append(e.Against, fmt.Sprintf("emergency, cache %s: two sites accepted commits at the same time", r.Cache))
			}
		}
	}
}

func (e *cacheEmergency) print(w io.Writer) {
	for _, r := range e.States {
		at := "no interval"
		if r.Interval != nil {
			at = fmt.Sprintf("95 %%: %.2f to %.2f", r.Interval.Low, r.Interval.High)
		}
		fmt.Fprintf(w, "MySQL's pause in an emergency, cache %s (%d runs)\tp50 %.2f s, worst %.2f s\t%.2f times without, %s\t%s, %d records wrong\n",
			r.Cache, r.Runs, r.P50Seconds, r.MaxSeconds, r.Ratio, at, r.Verdict, len(r.Wrong))
	}
}
