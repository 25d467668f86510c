// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

const (
	// fenceTimeout is the default of spec.sidecar.
	fenceTimeout = 2 * time.Second
	// noticing is how late a deadline may be renewed for the last time, and its end be acted upon.
	noticing = 3 * time.Second
	// endLimit is within what a mysqld must have ended whose sidecar hangs.
	endLimit = lease + fenceTimeout + noticing
	// repairLimit is within what the kubelet must have replaced a supervisor that stands still.
	repairLimit = time.Minute
)

// The two guards of an open site, the sidecar and mysqld's supervisor, fail one at a time.
var guardScenarios = []Scenario{
	{
		Name:       "hung-sidecar",
		Proves:     "A primary whose sidecar stands still, and that only clients reach, is ended by its own supervisor within its lease, before another site opens.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: func(ctx context.Context, s *Scene) error {
			return s.unguarded(ctx, func(ctx context.Context) error { return s.Stop(ctx, s.Active, sidecar.container, sidecar.name) })
		},
	},
	{
		Name:       "starved-sidecar",
		Proves:     "A primary whose sidecar gets no processor time, and that only clients reach, is ended by its own supervisor within its lease, before another site opens.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: func(ctx context.Context, s *Scene) error {
			return s.unguarded(ctx, func(ctx context.Context) error { return s.Starve(ctx, s.Active, sidecar) })
		},
	},
	{
		Name:       "killed-sidecar",
		Proves:     "A primary whose sidecar is killed as it is cut off from everybody but its clients accepts nothing beyond its lease, whether the next sidecar fences it or its supervisor ends it.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true, Play: killedSidecar,
	},
	{
		Name:   "sidecar-restart",
		Proves: "A sidecar that is killed and started again costs a short fence, and not mysqld.",
		Role:   stays, Lossless: true, Play: sidecarRestart,
	},
	{
		Name:   "stopped-supervisor",
		Proves: "While mysqld's supervisor stands still rows go on, and within a minute the kubelet has replaced it.",
		Play:   stoppedSupervisor,
	},
}

// unguarded makes a fault of the sidecar, cuts the site off, and watches mysqld. Whatever becomes of mysqld, the scenario goes on
// to the other site's opening, so that the judges see both.
func (s *Scene) unguarded(ctx context.Context, fault func(context.Context) error) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.watch(watched, s.Active, mysqld)
	if err != nil {
		return err
	}
	from := load.Now()
	if err := fault(ctx); err != nil {
		return err
	}
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	ended := s.mustEnd(ctx, server, from, endLimit)
	moved := s.MustMove(ctx)
	// Long enough for a mysqld that nobody ends to be seen writing beside the other site.
	return errors.Join(ended, moved, s.mustFollow(server, from, s.Candidate, s.DR), pause(ctx, 5*time.Second))
}

func killedSidecar(ctx context.Context, s *Scene) error {
	from := load.Now()
	if err := s.Kill(ctx, s.Active, sidecar); err != nil {
		return err
	}
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	if err := pause(ctx, endLimit-(load.Now()-from)); err != nil {
		return err
	}
	return errors.Join(s.MustBeShut(ctx, 10*time.Second, s.Active, s.DR), s.MustMove(ctx))
}

func sidecarRestart(ctx context.Context, s *Scene) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.watch(watched, s.Active, mysqld)
	if err != nil {
		return err
	}
	agent, err := s.watch(watched, s.Active, sidecar)
	if err != nil {
		return err
	}
	if err := s.Kill(ctx, s.Active, sidecar); err != nil {
		return err
	}
	if err := s.mustBeReplaced(ctx, agent, sidecar); err != nil {
		return err
	}
	if err := s.MustKeep(ctx, lease+5*time.Second); err != nil {
		return err
	}
	return server.mustLive("mysqld")
}

func stoppedSupervisor(ctx context.Context, s *Scene) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	guard, err := s.watch(watched, s.Active, supervisor)
	if err != nil {
		return err
	}
	if err := s.Stop(ctx, s.Active, supervisor.container, supervisor.name); err != nil {
		return err
	}
	if err := s.MustAccept(ctx, s.Active); err != nil {
		return err
	}
	if err := s.mustBeReplaced(ctx, guard, supervisor); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

// mustBeReplaced waits until a program of the active site has ended and another one of its kind runs.
func (s *Scene) mustBeReplaced(ctx context.Context, old *life, p program) error {
	s.Say("  expect: %s of %s (container %s) is replaced", p.name, s.Active, p.container)
	return stage.Poll(ctx, repairLimit, fmt.Sprintf("another %s in container %s", p.name, p.container), func(ctx context.Context) error {
		if old.mustLive(p.name) == nil {
			return fmt.Errorf("process %d is still there", old.pid)
		}
		pid, err := s.pid(ctx, s.Active, p)
		if err == nil && pid == old.pid {
			err = fmt.Errorf("process %d is still there", pid)
		}
		return err
	})
}
