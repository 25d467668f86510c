// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	namespace = "bench"
	group     = "bench"

	bringUp  = 6 * time.Minute
	recovery = 2 * time.Minute
	comeBack = 4 * time.Minute
)

// bench measures case by case.
type bench struct {
	stage   *stage.Stage
	options options
	figures figures
	// commit is what was measured.
	commit string
	out    io.Writer
}

func (b *bench) spec() v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(group)
	stage.SetLease(&spec, b.options.lease)
	return spec
}

// failedSessions is how many sessions of a case may fail before it is given up.
const failedSessions = 3

// measure runs one case, session by session. A run that fails is reported and is no sample; too many of them end the
// case.
func (b *bench) measure(ctx context.Context, c benchCase) error {
	runs := c.runs
	if b.options.runs > 0 {
		runs = b.options.runs
	}
	var samples []sample
	var errs []error
	for done := 0; done < runs && len(errs) < failedSessions && ctx.Err() == nil; {
		b.stage.Say("%s, run %d of %d", c.Name, done+1, runs)
		got, err := b.session(ctx, c, min(max(c.batch, 1), runs-done))
		for _, s := range got {
			b.stage.Say("%s: %.3f s (all connections together %.3f s), margin %.3f s, %.0f commits/s, %d rows acknowledged, "+
				"%d of them missing, %d reported lost, %d overlaps", c.Name, s.Seconds, s.MergedSeconds, s.MarginSeconds,
				s.CommitsPerSecond, s.Acked, s.Lost, s.Reported, s.Overlaps)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, after run %d: %w", c.Name, done+len(got), err))
			b.stage.Say("FAILED: %v", err)
		}
		samples = append(samples, got...)
		done += len(got) + count(err != nil)
	}
	if len(samples) > 0 || len(errs) > 0 {
		b.figures.add(c, b.spec(), outcome{samples: samples, errs: errs, commit: b.commit})
	}
	return errors.Join(errs...)
}

// session makes up to a number of faults under one set of writers.
func (b *bench) session(ctx context.Context, c benchCase, runs int) ([]sample, error) {
	if err := b.stage.Restore(ctx); err != nil {
		return nil, err
	}
	g, err := b.stage.EnsureGroup(ctx, namespace, group, b.spec())
	if err != nil {
		return nil, err
	}
	return b.sessionOn(ctx, g, c, runs)
}

// sessionOn makes them on a group that is there.
func (b *bench) sessionOn(ctx context.Context, g *stage.Group, c benchCase, runs int) ([]sample, error) {
	// What an earlier run was killed over; uncordoning a node that is not cordoned is nothing.
	for _, site := range stage.Sites {
		if err := uncordonNode(ctx, g, site); err != nil {
			return nil, err
		}
	}
	s, err := openSession(ctx, g, c.Name, b.options.rate)
	if err != nil {
		return nil, err
	}
	p := pace{before: 5 * time.Second, after: 3 * time.Second}
	if runs > 1 {
		p = pace{before: 3 * time.Second, after: 2 * time.Second}
	}
	var failed error
	for n := 0; n < runs && failed == nil && ctx.Err() == nil && !s.lost(); n++ {
		failed = s.once(ctx, c, p)
	}
	ctx = context.WithoutCancel(ctx)
	if failed != nil {
		g.Diagnose(ctx, "bench-"+c.Name)
		failed = errors.Join(failed, b.repair(ctx, g, c))
	}
	if failed == nil && !s.lost() {
		// The rows of every site are compared, so every site has to be there.
		_, failed = g.AwaitReady(ctx, bringUp)
	}
	samples, err := s.finish(ctx)
	if s.lost() && failed == nil && err == nil {
		mend(ctx, g)
	}
	return samples, errors.Join(failed, err)
}

// mendLimit is how long a diverged site may take to be whole again; making a new group takes about as long.
const mendLimit = 2 * time.Minute

// mend gives a site up that holds what was lost, as a person does who has looked at it. What it cannot mend is made again
// by the next session.
func mend(ctx context.Context, g *stage.Group) {
	now, err := g.Await(ctx, mendLimit, "every site to have its place", inPlace)
	if err != nil {
		return
	}
	for _, site := range now.Status.Sites {
		if site.State != v1alpha1.SiteDiverged {
			continue
		}
		if err := annotate(ctx, g, v1alpha1.AnnotationRecloneSite, site.Name+":confirm"); err != nil {
			g.Say("  %v", err)
			return
		}
		if _, err := g.AwaitReady(ctx, mendLimit); err != nil {
			g.Say("  %s was not recloned: %v", site.Name, err)
			return
		}
	}
}

// repair takes back what a run that failed may have left.
func (b *bench) repair(ctx context.Context, g *stage.Group, c benchCase) error {
	err := b.stage.Restore(ctx)
	switch c.Name {
	case "drain":
		for _, site := range stage.Sites {
			err = errors.Join(err, uncordonNode(ctx, g, site))
		}
	case "operator-node":
		err = errors.Join(err, g.InstallOperator(ctx))
	case "mysqld-dead":
		for _, site := range stage.Sites {
			err = errors.Join(err, setMode(ctx, g, site, 0o640))
		}
	}
	return err
}
