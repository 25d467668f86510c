// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// runner plays scenarios on one lab.
type runner struct {
	*stage.Stage
	options options
	results results
	group   *stage.Group
	// play plays a scenario and tells what was wrong; tests have no lab to do it on.
	play func(context.Context, Scenario, *result) error
}

// scenarioLimit ends a scenario that hangs.
const scenarioLimit = 12 * time.Minute

func newRunner(ctx context.Context, out io.Writer, o options) (*runner, error) {
	if err := checkScenarios(scenarios()); err != nil {
		return nil, err
	}
	st, err := stage.Open(ctx, out)
	if err != nil {
		return nil, err
	}
	r := &runner{Stage: st, options: o}
	r.play = r.playOnLab
	if err := r.clean(ctx); err != nil {
		return nil, err
	}
	if err := st.InstallOperator(ctx); err != nil {
		return nil, err
	}
	build, err := cluster.BuildSum(st.Lab.Dir())
	if err != nil {
		return nil, err
	}
	r.results = newResults(build)
	if o.carryOn {
		err = r.results.carryOn(o.out)
	}
	return r, err
}

// clean takes back what an earlier run may have left behind and the lab does not know of.
func (r *runner) clean(ctx context.Context) error {
	errs := []error{flush(ctx, r.Lab), r.HealCaches(ctx)}
	for _, site := range stage.Sites {
		_, err := r.Lab.Kubectl(ctx, "uncordon", site)
		errs = append(errs, err)
		_, _ = r.Lab.Kubectl(ctx, "taint", "node", site, awayTaint+"-") // most have none
	}
	// Where no operator is installed there is nothing to scale.
	_, _ = r.Lab.Kubectl(ctx, "-n", stage.OperatorNamespace, "scale", "deployment/"+stage.OperatorName, "--replicas=1")
	g := &stage.Group{Stage: r.Stage, Namespace: namespace, Name: groupName}
	continueAll(ctx, g)
	for _, node := range append([]string{cluster.HubName}, stage.Sites...) {
		// Most have no such discipline, and a kernel without netem has none at all.
		_, _ = r.Lab.Exec(ctx, node, "tc", "qdisc", "del", "dev", uplink, "root")
		if err := r.Lab.Straighten(ctx, node); err != nil {
			return err
		}
	}
	for _, site := range apartSites {
		// It is an error for a file system that is not frozen, or not there.
		_ = fsfreeze(ctx, "--unfreeze", filepath.Join(smallVolumes(r.Stage), site))
	}
	return errors.Join(append(errs, mendAll(ctx, g), removeSmallVolumes(ctx, r.Stage))...)
}

// all plays the scenarios one after the other and fails if one of them did.
func (r *runner) all(ctx context.Context, chosen []Scenario) error {
	began := time.Now()
	passed, failed := 0, 0
	for n, sc := range chosen {
		if r.results.passed(sc.Name) {
			r.Say("%d/%d %s: passed before", n+1, len(chosen), sc.Name)
			passed++
			continue
		}
		r.Say("%d/%d %s: %s", n+1, len(chosen), sc.Name, sc.claim())
		got := r.one(ctx, sc)
		if ctx.Err() != nil {
			break
		}
		r.Say("%s", got.line())
		if got.Outcome == outcomePassed {
			passed++
		} else {
			failed++
		}
		r.results.add(got)
		// After each one, so that an hour is not lost by the last.
		if err := r.results.write(r.outFile(), complete(scenarios())); err != nil {
			return err
		}
	}
	left := len(chosen) - passed - failed
	r.Say("results are in %s", r.outFile())
	r.Say("%d passed, %d failed%s in %s", passed, failed, notRun(left), time.Since(began).Round(time.Second))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("broken off: %w", context.Cause(ctx))
	case failed > 0:
		return fmt.Errorf("%d scenarios failed", failed)
	}
	return nil
}

func notRun(left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf(", %d not run", left)
}

// outFile keeps the results of single scenarios apart, so that they never pass for a complete run.
func (r *runner) outFile() string {
	if r.options.only != "" && !r.options.carryOn {
		return r.options.out + ".part"
	}
	return r.options.out
}

// one plays one scenario, from a group that is whole to a verdict, and leaves no fault behind.
func (r *runner) one(ctx context.Context, sc Scenario) result {
	began := time.Now()
	got := result{Name: sc.Name, Proves: sc.claim(), Outcome: outcomePassed}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(sc.Limit, scenarioLimit))
	defer cancel()
	if err := r.play(bounded, sc, &got); err != nil {
		got.Outcome, got.Error = outcomeFailed, err.Error()
	}
	got.Seconds = rounded(time.Since(began).Seconds())
	return got
}

func (r *runner) playOnLab(ctx context.Context, sc Scenario, got *result) (err error) {
	g, err := r.ready(ctx, sc)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if sc.Apart {
		defer func() { err = errors.Join(err, r.removeApart(context.WithoutCancel(ctx), g)) }()
	}
	g.WriterArgs = nil
	if sc.Rate > 0 {
		g.WriterArgs = []string{fmt.Sprintf("--rate=%d", sc.Rate)}
	}
	w, err := g.StartWitnesses(ctx, sc.Name)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() { _ = w.Abandon(context.WithoutCancel(ctx)) }()
	if r.options.narrated {
		defer g.Narrate(ctx)()
	}
	s := newScene(g, w)
	if sc.Cache != nil {
		if s.sessions, err = g.StartSessions(ctx, sc.Name, w.Dir); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		defer func() { _ = s.sessions.Remove(context.WithoutCancel(ctx)) }()
		s.promotions = g.WatchCache(ctx)
		defer s.promotions.Stop()
	}
	if sc.Mixed {
		if err := w.Mix(ctx); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	// The tables and accounts of the witnesses are on every site before anything breaks: a failover that loses them counts statements that
	// are no rows, and the judge compares rows.
	if err := g.AwaitCaughtUp(ctx, w.Before.Status.ActiveSite, recovery); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	sc.Play = play(wait(settleTime), sc.Play)
	return act(ctx, sc, s, crew{
		diagnose: func() { g.Diagnose(ctx, "chaos-"+sc.Name) },
		heal: func(ctx context.Context) error {
			return errors.Join(s.Heal(ctx), flush(ctx, r.Lab), r.HealCaches(ctx), r.Restore(ctx))
		},
		hear:    s.hear,
		compare: s.CheckLoss,
	}, got)
}

// crew is what is done around a scenario and needs the lab.
type crew struct {
	// diagnose keeps what there is to see of a failure.
	diagnose func()
	// heal takes back all faults.
	heal func(context.Context) error
	// hear draws the verdict over what the writers saw, as Scene.hear does.
	hear    func(context.Context, *result) (stage.Verdict, stage.Testimony, error)
	compare comparison
}

// comparison is stage.Group's CheckLoss: a failover's record against the rows of both its sites.
type comparison func(context.Context, v1alpha1.FailoverRecord, []journal.Commit) error

// act plays a scenario, takes back what it broke, and judges it.
func act(ctx context.Context, sc Scenario, s *Scene, c crew, got *result) error {
	err := sc.Play(ctx, s)
	if err != nil {
		// Before anything is healed, because that is when there is something to see.
		c.diagnose()
	}
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
	defer cancel()
	if healErr := c.heal(healing); healErr != nil {
		return errors.Join(err, healErr)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var sessions error
	if sc.Cache != nil && s.sessions != nil {
		sessions = s.judgeSessions(ctx, *sc.Cache)
	}
	concluded := errors.Join(sessions, conclude(ctx, sc, s, c, got))
	if err == nil && concluded != nil {
		c.diagnose()
	}
	return errors.Join(err, concluded)
}
