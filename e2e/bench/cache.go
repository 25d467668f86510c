// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// The parts of `make bench-cache`, in their order. Planned failovers are the case planned of both groups, emergencies the case
// mysqld-dead: the site lives on without MySQL, so that the state of its cache is what differs.
const (
	cachePartPlanned   = "planned"
	cachePartEmergency = "emergency"
)

func cacheParts() []string { return []string{cachePartPlanned, cachePartEmergency} }

// cachePartsNamed picks parts from a list with commas; all for none.
func cachePartsNamed(list string) ([]string, error) {
	if list == "" {
		return cacheParts(), nil
	}
	var wanted []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(cacheParts(), name) {
			return nil, fmt.Errorf("part %q is none of %s", name, strings.Join(cacheParts(), ", "))
		}
		wanted = append(wanted, name)
	}
	return wanted, nil
}

// Runs of each part, unless it is said how many: ten of five moves are the fifty that must lose no session.
const (
	cacheRuns       = 10
	cacheMovesOfRun = 5
	// cacheEmergencyRuns is of each state of the cache.
	cacheEmergencyRuns = 5
)

// cacheSettle bounds what a cache needs to be whole again after a move or a fault.
const cacheSettle = 2 * time.Minute

// cacheArm is one of the two groups that are compared. Their specifications differ in the cache only.
type cacheArm struct {
	name, namespace string
	cache           bool
}

const (
	armWithout = "without"
	armWith    = "with"
)

var cacheArms = []cacheArm{{armWithout, "bench-plain", false}, {armWith, "bench-cache", true}}

// cacheBench measures what a cache costs MySQL, and what its sessions see.
type cacheBench struct {
	*bench
	figures cacheFigures
}

// cache measures the parts that were asked for, one after the other.
func (b *bench) cache(ctx context.Context) error {
	k := &cacheBench{bench: b}
	parts, err := cachePartsNamed(b.options.only)
	if err != nil {
		return err
	}
	if b.options.merge {
		if err := k.figures.read(b.options.out); err != nil {
			return err
		}
	}
	k.figures.FailedParts = nil
	var errs []error
	for _, part := range parts {
		b.stage.Say("part %s", part)
		measure := k.planned
		if part == cachePartEmergency {
			measure = k.emergencies
		}
		err := measure(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", part, err)
			k.figures.FailedParts = append(k.figures.FailedParts, err.Error())
			b.stage.Say("FAILED: %v", err)
		}
		errs = append(errs, err, k.write())
		if ctx.Err() != nil {
			break
		}
	}
	k.figures.print(b.out)
	b.stage.Say("wrote %s", b.options.out)
	return errors.Join(errs...)
}

// write is done after every run, so that an hour's figures are not lost by the last one.
func (k *cacheBench) write() error {
	k.figures.Machine = thisMachine()
	k.figures.judge()
	return writeJSON(k.options.out, k.figures)
}

func (k *cacheBench) origin() origin {
	return origin{Commit: k.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second)}
}

// ensure takes a group that is there, or makes it; it is whole, and so is its cache.
func (k *cacheBench) ensure(ctx context.Context, a cacheArm) (*stage.Group, error) {
	if err := errors.Join(k.stage.Restore(ctx), k.stage.HealCaches(ctx)); err != nil {
		return nil, err
	}
	spec := stage.DefaultSpec(group)
	stage.SetLease(&spec, k.options.lease)
	if a.cache {
		c := stage.CacheSpec(v1alpha1.CacheValkey)
		spec.Cache = &c
	}
	g, err := k.stage.EnsureGroup(ctx, a.namespace, group, spec)
	if err != nil {
		return nil, err
	}
	if _, err := g.AwaitReady(ctx, bringUp); err != nil || !a.cache {
		return g, err
	}
	g.ContinueCaches(ctx)
	_, err = g.AwaitCache(ctx, cacheSettle, "the cache to be whole on the active site", stage.CacheNotHome)
	return g, err
}

// planned moves both groups in turn, and begins with the other one each time: what changes on the machine meanwhile then changes for
// both.
func (k *cacheBench) planned(ctx context.Context) error {
	for _, a := range cacheArms {
		if _, err := k.ensure(ctx, a); err != nil {
			return err
		}
	}
	runs := cacheRuns
	if k.options.runs > 0 {
		runs = k.options.runs
	}
	p := &cachePlanned{WriterRate: cmp.Or(k.options.rate, fullRate)}
	k.figures.Planned = p
	var errs []error
	for n := range runs {
		order := slices.Clone(cacheArms)
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, a := range order {
			k.stage.Say("planned, run %d of %d, %s a cache", n+1, runs, a.name)
			if err := k.run(ctx, a, n+1, p); err != nil {
				k.stage.Say("FAILED: %v", err)
				errs, p.FailedRuns = append(errs, err), append(p.FailedRuns, err.Error())
			}
		}
		p.origin = k.origin()
		if err := k.write(); err != nil {
			return err
		}
		if len(errs) >= failedSessions || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// run is one set of writers on one of the groups.
func (k *cacheBench) run(ctx context.Context, a cacheArm, number int, p *cachePlanned) error {
	samples, err := k.moves(ctx, a, number, p)
	for i, s := range samples {
		samples[i].Run = number
		k.stage.Say("planned, %s a cache: %.3f s (operator's %s), %d acknowledged rows missing, %.1f %% stolen",
			a.name, s.Seconds, operatorSaid(s), s.Lost, s.StolenPercent)
	}
	to := &p.Without
	if a.cache {
		to = &p.With
	}
	to.Samples = append(to.Samples, samples...)
	if err != nil {
		return fmt.Errorf("run %d, %s a cache: %w", number, a.name, err)
	}
	return nil
}

// moves makes some planned failovers of one group under one set of writers, with sessions in its cache if it has one.
func (k *cacheBench) moves(ctx context.Context, a cacheArm, run int, p *cachePlanned) ([]sample, error) {
	g, err := k.ensure(ctx, a)
	if err != nil {
		return nil, err
	}
	named, err := casesNamed(cachePartPlanned)
	if err != nil {
		return nil, err
	}
	c := named[0]
	c.batch = cacheMovesOfRun
	if !a.cache {
		return k.movesWithout(ctx, g, c, run)
	}
	c.recover = func(ctx context.Context, g *stage.Group, before *v1alpha1.MysqlFailoverGroup) error {
		if err := awaitMove(ctx, g, before); err != nil {
			return err
		}
		group, err := g.AwaitCache(ctx, cacheSettle, "the cache to follow", stage.CacheNotHome)
		if err == nil {
			p.note(group)
		}
		return err
	}
	samples, j, moved := k.underSessions(ctx, g, g, c, run)
	if j == nil {
		return samples, moved
	}
	pauses := cachePauses(*j)
	p.take(run, *j, pauses)
	if moved == nil && len(pauses) != len(samples) {
		moved = fmt.Errorf("MySQL moved %d times, and the sessions %d times", len(samples), len(pauses))
	}
	return samples, moved
}

// movesWithout moves the group without a cache. The same sessions are written meanwhile, in the cache of the other group, which stays where it
// is: what the clients of a cache take of two processors is no cost of one that follows MySQL.
func (k *cacheBench) movesWithout(ctx context.Context, g *stage.Group, c benchCase, run int) ([]sample, error) {
	other, err := k.ensure(ctx, cacheArms[1])
	if err != nil {
		return nil, err
	}
	samples, j, moved := k.underSessions(ctx, other, g, c, run)
	if j == nil {
		return samples, moved
	}
	if changes := cachePauses(*j); len(changes) > 0 {
		return samples, errors.Join(moved, fmt.Errorf("the cache of the other group moved %d times meanwhile", len(changes)))
	}
	return samples, moved
}

// underSessions moves one group while sessions are written in the cache of a group, the same or another. The journal is nil if there is none.
func (k *cacheBench) underSessions(ctx context.Context, cached, moving *stage.Group, c benchCase, run int) ([]sample, *journal.Journal, error) {
	w, err := cached.StartSessions(ctx, fmt.Sprintf("%d-%d", run, time.Now().Unix()%1_000_000), k.dir(run))
	if err != nil {
		return nil, nil, err
	}
	samples, moved := k.sessionOn(ctx, moving, c, cacheMovesOfRun)
	j, err := w.Stop(context.WithoutCancel(ctx))
	if err != nil {
		return samples, nil, errors.Join(moved, err, w.Remove(context.WithoutCancel(ctx)))
	}
	return samples, &j, moved
}

// cachePauses are the pauses of the unluckiest session at each change of the server that took writes.
func cachePauses(j journal.Journal) []cacheSample {
	acked := journal.Commits(j)
	changes := journal.FenceMargins(acked)
	var all []cacheSample
	for i, c := range changes {
		until := time.Duration(1<<63 - 1)
		if i+1 < len(changes) {
			until = changes[i+1].At - changes[i+1].Margin
		}
		worst, whole := journal.LongestClientPause(acked, c.At-c.Margin, until)
		all = append(all, cacheSample{
			Seconds: round(worst.Length().Seconds()), MergedSeconds: round(c.Margin.Seconds()), Whole: whole || until == time.Duration(1<<63-1),
		})
	}
	return all
}
