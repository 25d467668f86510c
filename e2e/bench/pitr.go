// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The parts of `make bench-pitr`.
const (
	partCost  = "cost"
	partPoint = "point"
)

func pitrParts() []string { return []string{partCost, partPoint} }

const (
	pitrNamespace = "bench-pitr"
	// pitrPairs is how often commits are counted with the archiver and without it, unless it is said.
	pitrPairs = 16
	// pitrPhase is how long one count takes: three intervals, so that it holds three rounds of the archiver.
	pitrPhase = 3 * pitrInterval
	// pitrWarmUp is how long the load runs before the first count: a new table takes fewer rows in its first minutes.
	pitrWarmUp = 2 * time.Minute
	// pitrInterval is spec.backup.pitr.interval.
	pitrInterval = 10 * time.Second
	// pitrSlack is how much older than that the recoverable point may be.
	pitrSlack = 5 * time.Second
	// pitrWatch is how long the recoverable point is watched, unless it is said.
	pitrWatch = time.Hour
	// pitrSettle is within which time an archiver that was frozen must have caught up.
	pitrSettle = 3 * time.Minute
	// pitrRows is how many rows a second are written while the point is watched, over so many connections.
	pitrRows, pitrWriters = 240, 8
	pitrRowBytes          = 512
)

func pitrPartsNamed(list string) ([]string, error) {
	if list == "" {
		return pitrParts(), nil
	}
	var wanted []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(pitrParts(), name) {
			return nil, fmt.Errorf("case %q is none of %s", name, strings.Join(pitrParts(), ", "))
		}
		wanted = append(wanted, name)
	}
	return wanted, nil
}

// pitrBench measures the archive of binary logs of one group.
type pitrBench struct {
	*bench
	s3      *stage.S3
	group   *stage.Group
	active  string
	figures pitrFigures
}

// measurePITR refuses what cannot be measured before the lab is asked for.
func (b *bench) measurePITR(ctx context.Context) error {
	parts, err := pitrPartsNamed(b.options.only)
	if err != nil {
		return err
	}
	if b.options.watch < time.Minute {
		return fmt.Errorf("duration %s: give a minute or more", b.options.watch)
	}
	p := &pitrBench{bench: b}
	if b.options.merge {
		if err := p.figures.read(b.options.out); err != nil {
			return err
		}
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	defer p.cleanUp(context.WithoutCancel(ctx))
	if err := p.prepare(ctx); err != nil {
		return err
	}
	var errs []error
	for _, part := range parts {
		measure := map[string]func(context.Context) error{partCost: p.cost, partPoint: p.point}[part]
		if err := measure(ctx); err != nil {
			err = fmt.Errorf("%s: %w", part, err)
			b.stage.Say("FAILED: %v", err)
			p.group.Diagnose(context.WithoutCancel(ctx), "bench-pitr")
			errs = append(errs, err)
			p.figures.FailedParts = append(p.figures.FailedParts, err.Error())
		}
		errs = append(errs, p.write())
		if ctx.Err() != nil {
			break
		}
	}
	p.figures.print(b.out)
	b.stage.Say("wrote %s", b.options.out)
	return errors.Join(errs...)
}

func (p *pitrBench) write() error {
	p.figures.Machine = thisMachine()
	p.figures.origin = origin{Commit: p.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second)}
	p.figures.judge()
	return writeJSON(p.options.out, p.figures)
}

func (p *pitrBench) cleanUp(ctx context.Context) {
	var errs []error
	if p.group != nil {
		errs = append(errs, p.group.Delete(ctx))
	}
	if p.s3 != nil {
		errs = append(errs, p.s3.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		p.stage.Say("clean up: %v", err)
	}
}

// prepare makes the storage, and a group of two sites that archives to it, encrypted, with a backup to begin with.
func (p *pitrBench) prepare(ctx context.Context) error {
	old := &stage.Group{Stage: p.stage, Namespace: pitrNamespace, Name: group}
	if err := old.Delete(ctx); err != nil {
		return err
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if p.s3, err = p.stage.StartS3(ctx, stage.S3Options{Name: "s3-bench-pitr", Size: resource.MustParse("12Gi")}); err != nil {
		return err
	}
	if err := p.s3.Grant(ctx, pitrNamespace); err != nil {
		return err
	}
	spec := p.spec()
	spec.Sites = spec.Sites[:2]
	spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{
			Name: "nightly", Method: v1alpha1.BackupLogical, Storage: p.s3.Storage("bench-pitr"),
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}},
		}},
		PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly", Interval: metav1.Duration{Duration: pitrInterval}},
	}
	if p.group, err = p.stage.NewGroup(ctx, pitrNamespace, group, spec); err != nil {
		return err
	}
	if p.active, err = emptyTable(ctx, p.group); err != nil {
		return err
	}
	if err := p.group.AwaitCaughtUp(ctx, p.active, loadDrain); err != nil {
		return err
	}
	if _, err := p.group.MakeBackup(ctx, "base", "nightly", bringUp); err != nil {
		return err
	}
	return p.keepsUp(ctx)
}

// keepsUp waits until the archiver is as far behind as it may be, and not further: nothing of an earlier pause is left to do.
func (p *pitrBench) keepsUp(ctx context.Context) error {
	_, err := p.group.AwaitArchiver(ctx, p.active, pitrSettle, func(s wire.ArchiverStatus) error {
		if s.State != wire.ArchiverArchiving || s.Latest.IsZero() || time.Since(s.Latest) > pitrInterval+pitrSlack {
			return fmt.Errorf("the latest point is %s old; %s", time.Since(s.Latest).Round(time.Millisecond), stage.DescribeArchiver(s))
		}
		return nil
	})
	return err
}

// stays says whether the role is still where the measurement began.
func (p *pitrBench) stays(ctx context.Context) error {
	now, err := p.group.Get(ctx)
	if err == nil && now.Status.ActiveSite != p.active {
		err = fmt.Errorf("the role moved from %s to %s under load: nothing was measured", p.active, now.Status.ActiveSite)
	}
	return err
}

// cost counts commits of connections that send their next row once the last one is acknowledged, in turn with the archiver and with an archiver that
// is frozen. The load does not pause between: after each thaw what was left behind is archived first, outside of what is counted.
func (p *pitrBench) cost(ctx context.Context) error {
	var err error
	if p.active, err = emptyTable(ctx, p.group); err != nil {
		return err
	}
	a, err := p.group.Archiver(ctx, p.active)
	if err != nil {
		return err
	}
	defer func() { _ = a.Thaw() }()
	load, err := p.startLoad(ctx, loadConnections, 0)
	if err != nil {
		return err
	}
	defer load.stop()
	pairs := pitrPairs
	if p.options.runs > 0 {
		pairs = p.options.runs
	}
	c := &pitrCost{Connections: loadConnections, RowBytes: pitrRowBytes, PhaseSeconds: pitrPhase.Seconds()}
	p.figures.Cost = c
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pitrWarmUp):
	}
	for n := range pairs {
		// Each pair begins with what the last one ended with.
		for i := range 2 {
			frozen := (n+i)%2 == 1
			s, err := p.phase(ctx, a, load, frozen)
			if err != nil {
				return err
			}
			s.Pair = n + 1
			c.Samples = append(c.Samples, s)
			p.stage.Say("pair %d of %d, archiver %s: %.0f commits a second, p99 %.1f ms, %.1f %% stolen", n+1, pairs, s.Archiver, s.CommitsPerSecond,
				1000*s.P99CommitSeconds, s.StolenPercent)
		}
		if err := errors.Join(p.stays(ctx), p.write()); err != nil {
			return err
		}
	}
	c.Failed = load.stop()
	return a.Thaw()
}

// phase counts once.
func (p *pitrBench) phase(ctx context.Context, a *stage.Archiver, load *pitrLoad, frozen bool) (pitrPhaseSample, error) {
	s := pitrPhaseSample{Archiver: archiverLive}
	var err error
	if frozen {
		s.Archiver = archiverFrozen
		err = a.Freeze()
	} else if err = a.Thaw(); err == nil {
		err = p.keepsUp(ctx)
	}
	if err != nil {
		return s, err
	}
	before, err := a.Status()
	if err != nil {
		return s, err
	}
	start, err := readProcessors()
	if err != nil {
		return s, err
	}
	from := time.Now()
	select {
	case <-ctx.Done():
		return s, ctx.Err()
	case <-time.After(pitrPhase):
	}
	until := time.Now()
	now, err := readProcessors()
	if err != nil {
		return s, err
	}
	after, err := a.Status()
	if err != nil {
		return s, err
	}
	s.Uploads, s.StolenPercent = after.UploadsSucceeded-before.UploadsSucceeded, start.stolenUntil(now)
	s.CommitsPerSecond, s.P99CommitSeconds = load.between(from, until)
	if frozen != (s.Uploads == 0) {
		return s, fmt.Errorf("%d uploads in a phase of an archiver that is %s", s.Uploads, s.Archiver)
	}
	return s, nil
}
