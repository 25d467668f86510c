// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The parts of `make bench-keyring`, in their order.
const (
	partRound       = "round"
	partThroughput  = "throughput"
	partPlanned     = "planned"
	partForceDelete = "pod-force-delete"
	partMysqldDead  = "mysqld-dead"
)

// keyringParts are all of them; mysqld-dead is measured if it is asked for.
func keyringParts() []string {
	return []string{partRound, partThroughput, partPlanned, partForceDelete, partMysqldDead}
}

// partsNamed picks parts from a list with commas, in their order.
func partsNamed(list string) ([]string, error) {
	if list == "" {
		return []string{partRound, partThroughput, partPlanned, partForceDelete}, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(keyringParts(), name) {
			return nil, fmt.Errorf("part %q is none of %s", name, strings.Join(keyringParts(), ", "))
		}
		wanted[name] = true
	}
	return slices.DeleteFunc(keyringParts(), func(name string) bool { return !wanted[name] }), nil
}

// Runs of each part on each group, unless it is said how many. Ten of planned failovers are forty moves, because a pause
// depends on the noise of the machine more than on anything else.
const (
	failoverRuns   = 10
	throughputRuns = 5
)

// runsOf is how often a part is measured on each group.
func (k *keyringBench) runsOf(part string) int {
	switch {
	case k.options.runs > 0:
		return k.options.runs
	case part == partThroughput:
		return throughputRuns
	}
	return failoverRuns
}

// arm is one of the two groups that are compared. Their specifications differ in encryption only.
type arm struct{ name, namespace string }

var arms = []arm{{armPlain, "bench-plain"}, {armEncrypted, "bench-sealed"}}

func (a arm) spec() v1alpha1.MysqlFailoverGroupSpec {
	if a.name == armEncrypted {
		return stage.EncryptedSpec(group)
	}
	return stage.DefaultSpec(group)
}

// keyringBench measures what encryption costs.
type keyringBench struct {
	*bench
	figures keyringFigures
}

// keyring measures the parts that were asked for, one after the other.
func (b *bench) keyring(ctx context.Context) error {
	k := &keyringBench{bench: b}
	parts, err := partsNamed(b.options.only)
	if err != nil {
		return err
	}
	if b.options.merge {
		if err := k.figures.read(b.options.out); err != nil {
			return err
		}
	}
	var errs []error
	for _, part := range parts {
		b.stage.Say("part %s", part)
		k.figures.forgive(part)
		err := k.measure(ctx, part)
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

// write is done after every part, so that an hour's figures are not lost by the last one.
func (k *keyringBench) write() error {
	k.figures.Machine, k.figures.Commit = thisMachine(), k.commit
	k.figures.judge()
	return writeJSON(k.options.out, k.figures)
}

func (k *keyringBench) measure(ctx context.Context, part string) error {
	switch part {
	case partRound:
		return k.round(ctx)
	case partThroughput:
		return k.throughput(ctx)
	}
	return k.failovers(ctx, part)
}

func (k *keyringBench) origin() origin {
	return origin{Commit: k.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second)}
}

// both takes the two groups that are there, or makes them; they are whole, and the encrypted one is sealed.
func (k *keyringBench) both(ctx context.Context) (map[string]*stage.Group, error) {
	if err := k.stage.Restore(ctx); err != nil {
		return nil, err
	}
	groups := map[string]*stage.Group{}
	for _, a := range arms {
		g, err := k.ensure(ctx, a)
		if err != nil {
			return nil, err
		}
		groups[a.name] = g
	}
	return groups, nil
}

func (k *keyringBench) ensure(ctx context.Context, a arm) (*stage.Group, error) {
	g, err := k.stage.EnsureGroup(ctx, a.namespace, group, a.spec())
	if err != nil {
		return nil, err
	}
	return g, a.await(ctx, g)
}

// await waits until a group is whole, and sealed if it is to be.
func (a arm) await(ctx context.Context, g *stage.Group) error {
	if _, err := g.AwaitReady(ctx, bringUp); err != nil || a.name != armEncrypted {
		return err
	}
	_, err := g.Await(ctx, bringUp, "every keyring to be sealed", allSealed)
	return err
}

// allSealed says why a group is not sealed.
func allSealed(group *v1alpha1.MysqlFailoverGroup) error {
	if e := group.Status.EncryptionAtRest; e == nil || !e.Sealed || len(e.Sites) < len(group.Spec.Sites) {
		return fmt.Errorf("the keyrings are %s", phases(group))
	}
	return nil
}

func phases(group *v1alpha1.MysqlFailoverGroup) string {
	var all []string
	if e := group.Status.EncryptionAtRest; e != nil {
		for _, s := range e.Sites {
			all = append(all, fmt.Sprintf("%s %s %s", s.Name, s.Phase, s.Stage))
		}
	}
	return strings.Join(all, ", ")
}

// movesOfSession is how many planned failovers share one set of writers: they leave the group whole.
const movesOfSession = 4

// failovers makes one case on both groups in turn, and begins with the other one each time: what changes on the machine
// meanwhile then changes for both.
func (k *keyringBench) failovers(ctx context.Context, name string) error {
	named, err := casesNamed(name)
	if err != nil {
		return err
	}
	c, batch := named[0], 1
	if name == partPlanned {
		batch = movesOfSession
		c.batch = batch
	}
	if _, err := k.both(ctx); err != nil {
		return err
	}
	outcomes := map[string]outcome{}
	runs := k.runsOf(name)
	for n := range runs {
		order := slices.Clone(arms)
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, a := range order {
			k.stage.Say("%s, run %d of %d, %s", name, n+1, runs, a.name)
			outcomes[a.name] = k.run(ctx, outcomes[a.name], keyringRun{of: a, what: c, number: n + 1, faults: batch})
		}
		compared := compare(name, outcomes)
		compared.origin = k.origin()
		k.figures.put(compared)
		if err := k.write(); err != nil {
			return err
		}
		tooMany := slices.ContainsFunc(arms, func(a arm) bool { return len(outcomes[a.name].errs) >= failedSessions })
		if tooMany || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(slices.Clone(outcomes[armPlain].errs), outcomes[armEncrypted].errs...)...)
}

// keyringRun is one set of writers on one of the groups.
type keyringRun struct {
	of             arm
	what           benchCase
	number, faults int
}

// run adds what came of a run to what came of those before it.
func (k *keyringBench) run(ctx context.Context, o outcome, r keyringRun) outcome {
	samples, proof, err := k.faults(ctx, r)
	for i, s := range samples {
		samples[i].Run = r.number
		k.stage.Say("%s, %s: %.3f s (operator's %s), margin %.3f s, %d acknowledged rows missing, %.1f %% stolen",
			r.what.Name, r.of.name, s.Seconds, operatorSaid(s), s.MarginSeconds, s.Lost, s.StolenPercent)
	}
	if err != nil {
		o.errs = append(o.errs, fmt.Errorf("after %d samples: %w", len(o.samples), err))
		k.stage.Say("FAILED: %v", err)
	}
	if proof.Encryption != "" {
		o.table = proof
	}
	o.samples = append(o.samples, samples...)
	return o
}

func operatorSaid(s sample) string {
	if v, ok := operatorPause(s); ok {
		return fmt.Sprintf("%.3f s", v)
	}
	return "unknown"
}

func (k *keyringBench) faults(ctx context.Context, r keyringRun) ([]sample, tableProof, error) {
	if err := k.stage.Restore(ctx); err != nil {
		return nil, tableProof{}, err
	}
	g, err := k.ensure(ctx, r.of)
	if err != nil {
		return nil, tableProof{}, err
	}
	if err := g.EnsureApp(ctx); err != nil {
		return nil, tableProof{}, err
	}
	proof, err := r.of.prove(ctx, g, writesTable)
	if err != nil {
		return nil, proof, err
	}
	samples, err := k.sessionOn(ctx, g, r.what, r.faults)
	return samples, proof, err
}
