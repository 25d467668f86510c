// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Programs and machines that stop, die, or are taken away.
var processScenarios = []Scenario{
	{
		Name:       "paused-node",
		Proves:     "A primary whose node stands still, and wakes up when another site may be open, accepts nothing any more.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Play: pausedNode,
	},
	{
		Name:       "paused-mysqld",
		Proves:     "A mysqld that stands still is killed by its sidecar before another site opens.",
		Invariants: []string{"I1", "I2"}, Play: pausedMysqld,
	},
	{
		Name:       "paused-sidecar",
		Proves:     "A primary whose sidecar stands still is ended within its lease, though everybody can reach it, and rows go on.",
		Invariants: []string{"I1", "I2", "I4"}, Play: pausedSidecar,
	},
	{
		Name:       "power-loss",
		Proves:     "After a loss of power at the primary a candidate takes over, and what was lost is counted exactly once the old site is back.",
		Invariants: []string{"I1", "I2", "I7", "I8"}, Role: moves,
		Play: play(hit(func(s *Scene, ctx context.Context, site string) error { return s.PowerOff(ctx, site) }), mustMove),
	},
	{
		Name:       "hung-bystander",
		Proves:     "A site whose mysqld stands still vouches for nobody: its sidecar acknowledges the epoch in time, and the role moves past it.",
		Invariants: []string{"I1", "I2", "I5"}, Role: moves,
		Play: play(stopBystander, hit(func(s *Scene, ctx context.Context, site string) error { return s.PowerOff(ctx, site) }), mustMove),
	},
	{
		Name:       "deleted-behind-a-cut",
		Proves:     "The pod object of a primary that is cut off, deleted by force, proves nothing: the pod still runs, and its lease is waited for.",
		Invariants: []string{"I1", "I2", "I4", "I12"}, Role: moves,
		Play: deletedBehindACut,
	},
	{
		Name:       "force-deleted-pod",
		Proves:     "When the primary's pod is deleted by force, its successor on the volume, or another site, opens only after the old one has ended.",
		Invariants: []string{"I1", "I2", "I12"}, Play: forceDeleted,
	},
	{
		Name:       "crashed-mysqld",
		Proves:     "A mysqld that crashes comes back in place, read-only first, and loses nothing.",
		Invariants: []string{"I3"}, Role: stays, Lossless: true,
		Play: crashedMysqld,
	},
	{
		Name:       "dead-mysqld",
		Proves:     "A mysqld that cannot come back is replaced after crashGrace on its sidecar's word, without waiting for its lease.",
		Invariants: []string{"I1", "I2", "I7", "I8"}, Role: moves,
		Play: deadMysqld,
	},
	{
		Name:   "both-replicas-lost",
		Proves: "A primary that has lost both replicas goes on, as long as the operator vouches for it.",
		Role:   stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.PowerOff(ctx, s.Others(s.Active)...); err != nil {
				return err
			}
			return s.MustKeep(ctx, lease+5*time.Second)
		},
	},
}

// stopBystander stops the mysqld of the site that can neither be the active one nor follow it in the role.
func stopBystander(ctx context.Context, s *Scene) error { return s.Stop(ctx, s.DR, "mysql", "mysqld") }

func pausedNode(ctx context.Context, s *Scene) error {
	if err := s.Freeze(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	return s.MustBeShut(ctx, 5*time.Second, s.Active)
}

func pausedMysqld(ctx context.Context, s *Scene) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.watch(watched, s.Active, mysqld)
	if err != nil {
		return err
	}
	from := load.Now()
	if err := s.Stop(ctx, s.Active, mysqld.container, mysqld.name); err != nil {
		return err
	}
	if err := s.mustEnd(ctx, server, from, endLimit); err != nil {
		return err
	}
	return errors.Join(s.MustWrite(ctx), s.mustFollow(server, from, s.Others(s.Active)...))
}

func pausedSidecar(ctx context.Context, s *Scene) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.watch(watched, s.Active, mysqld)
	if err != nil {
		return err
	}
	from := load.Now()
	if err := s.Stop(ctx, s.Active, sidecar.container, sidecar.name); err != nil {
		return err
	}
	return errors.Join(s.mustEnd(ctx, server, from, endLimit), s.MustWrite(ctx), s.mustFollow(server, from, s.Others(s.Active)...))
}

// deletedBehindACut looks whether the lease was waited for: an old primary that was reached until the cut is open until then.
func deletedBehindACut(ctx context.Context, s *Scene) error {
	from := load.Now()
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	if err := s.ForceDelete(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	at, some := firstCommit(s.W.Probes.Peek(s.Candidate), from)
	if some && at-from < lease {
		return fmt.Errorf("%s accepted a commit %s after the cut: the lease of %s was not waited for", s.Candidate, at-from, lease)
	}
	return nil
}

func forceDeleted(ctx context.Context, s *Scene) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.watch(watched, s.Active, mysqld)
	if err != nil {
		return err
	}
	from := load.Now()
	if err := s.ForceEnd(ctx, s.Active); err != nil {
		return err
	}
	return errors.Join(s.MustWrite(ctx), s.mustFollow(server, from, s.Others(s.Active)...))
}

func crashedMysqld(ctx context.Context, s *Scene) error {
	from := load.Now()
	if err := s.Crash(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustWrite(ctx); err != nil {
		return err
	}
	// What was sent before the crash may be acknowledged after it was ordered: the pause that follows is what counts.
	return s.mustComeBackShut(ctx, s.Active, from+crashed)
}

// crashed is when a mysqld that was killed is certainly gone, and none has come back.
const crashed = 300 * time.Millisecond

func deadMysqld(ctx context.Context, s *Scene) error {
	from := load.Now()
	if err := s.BreakMySQL(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	at, some := firstCommit(s.W.Probes.Peek(s.Candidate), from)
	if !some || at-from >= lease {
		return fmt.Errorf("%s accepted its first commit %s after the fault (%t): the lease of %s was waited for", s.Candidate, at-from, some, lease)
	}
	return nil
}
