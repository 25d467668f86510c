// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

const (
	namespace = "bench"
	group     = "bench"

	bringUp  = 6 * time.Minute
	recovery = 2 * time.Minute
	comeBack = 4 * time.Minute
	// Rows are written for a while before and after a fault, so that its edges are seen.
	writeBefore, writeAfter = 5 * time.Second, 3 * time.Second
)

// bench measures case by case.
type bench struct {
	stage   *stage.Stage
	options options
	figures figures
}

// sample is what one run measured.
type sample struct {
	seconds                     float64
	acked, lost, reported, over int
	margin                      time.Duration
}

// measure runs one case. A run that fails is reported, and does not count as a sample; too many of them end the case.
func (b *bench) measure(ctx context.Context, fault stage.Fault) error {
	var samples []sample
	var errs []error
	for n := 1; n <= b.options.runs && ctx.Err() == nil; n++ {
		b.stage.Say("%s, run %d of %d", fault.Name, n, b.options.runs)
		got, err := b.once(ctx, fault)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, run %d: %w", fault.Name, n, err))
			b.stage.Say("FAILED: %v", err)
			if len(errs) >= 3 {
				break
			}
		}
		if got != nil {
			b.stage.Say("%s: %.2f s, margin %s, %d rows acknowledged, %d of them missing, %d reported lost, %d overlaps",
				fault.Name, got.seconds, got.margin.Round(time.Millisecond), got.acked, got.lost, got.reported, got.over)
			samples = append(samples, *got)
		}
	}
	if len(samples) > 0 {
		b.figures.add(fault.Name, samples)
	}
	return errors.Join(errs...)
}

// once makes one fault on the active site of a group that is whole, and judges.
func (b *bench) once(ctx context.Context, fault stage.Fault) (*sample, error) {
	if err := b.stage.Restore(ctx); err != nil {
		return nil, err
	}
	spec := stage.DefaultSpec(group)
	if b.options.lease > 0 {
		spec.Sidecar.LeaseTimeout = metav1.Duration{Duration: b.options.lease}
	}
	g, err := b.stage.EnsureGroup(ctx, namespace, group, spec)
	if err != nil {
		return nil, err
	}
	got, err := faultOn(ctx, g, fault)
	if err != nil {
		g.Diagnose(ctx, "bench-"+fault.Name)
		err = errors.Join(err, b.stage.Restore(context.WithoutCancel(ctx)))
	}
	return got, err
}

func faultOn(ctx context.Context, g *stage.Group, fault stage.Fault) (*sample, error) {
	before, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		return nil, err
	}
	w, err := g.StartWitnesses(ctx, fault.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Abandon(context.WithoutCancel(ctx)) }()
	site := before.Status.ActiveSite
	time.Sleep(writeBefore)
	at, err := g.Break(ctx, fault, site)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitRecovery(ctx, fault, recovery); err != nil {
		return nil, err
	}
	time.Sleep(writeAfter)
	if err := w.StopService(ctx); err != nil {
		return nil, err
	}
	if err := g.Undo(ctx, fault, site); err != nil {
		return nil, err
	}
	after, err := g.Get(ctx)
	if err != nil {
		return nil, err
	}
	moved := after.Status.ActiveSite != site
	if moved {
		if _, err := g.AwaitExactLoss(ctx, comeBack); err != nil {
			return nil, err
		}
	}
	return judge(ctx, g, w, at)
}

// judge draws the verdict and turns it into a sample; it is a failure when the run proved the group wrong.
func judge(ctx context.Context, g *stage.Group, w *stage.Witnesses, fault time.Duration) (*sample, error) {
	t, err := w.Stop(ctx)
	if err != nil {
		return nil, err
	}
	v, err := w.Judge(ctx, t, fault)
	if err != nil {
		return nil, err
	}
	s := &sample{
		seconds: v.Pause.Length().Seconds(), acked: v.Acked, lost: len(v.Missing), reported: int(v.Lost),
		over: len(v.Overlaps), margin: v.Margin,
	}
	if len(v.Changes) == 0 {
		// The role stayed. What lies between the last commit before the fault and the first one after it is then the
		// time for which this one site accepted nothing.
		if pause, ok := journal.LongestPause(journal.Commits(t.All()...), fault); ok {
			s.margin = pause.Length()
		}
	}
	err = v.CheckWriters()
	for _, r := range v.Records {
		if r.From != r.To {
			err = errors.Join(err, g.CheckLoss(ctx, r, v.Missing))
		}
	}
	if len(v.Records) == 0 && len(v.Missing) > 0 {
		err = errors.Join(err, fmt.Errorf("%d acknowledged rows are missing though nothing failed over", len(v.Missing)))
	}
	return s, err
}
