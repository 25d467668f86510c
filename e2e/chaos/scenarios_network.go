// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// Cuts: who can reach whom, and what may follow from it.
var networkScenarios = []Scenario{
	{
		Name:       "silent-cut",
		Proves:     "A primary that is cut off from everybody but its clients closes by its own clock before another site opens.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Play: play(isolate(bothWays), mustMove),
	},
	{
		Name:       "one-way-cut-out",
		Proves:     "A primary whose packets reach nobody, though it hears everybody, counts as cut off and closes in time.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Play: play(isolate(outward), mustMove),
	},
	{
		Name:       "one-way-cut-in",
		Proves:     "A primary that hears nobody, though its packets arrive, counts as cut off and closes in time.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Play: play(isolate(inward), mustMove),
	},
	{
		Name:   "mysql-cut",
		Proves: "A cut between the MySQL servers only stops replication and moves no role.",
		Role:   stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.CutMySQL(ctx, s.Active, s.Others(s.Active)...); err != nil {
				return err
			}
			return s.MustKeep(ctx, 15*time.Second)
		},
	},
	{
		Name:       "operator-cut-from-primary",
		Proves:     "A primary that only the operator cannot reach is closed by way of its peers before another site opens.",
		Invariants: []string{"I1", "I2", "I4", "I5"}, Role: moves,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.CutOperator(ctx, s.Active); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:       "operator-cut-from-all",
		Proves:     "An operator that reaches no site does nothing, and the primary stays open because its peers vouch for it.",
		Invariants: []string{"I4", "I9"}, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.CutOperator(ctx, append(s.Others(s.Active), s.Active)...); err != nil {
				return err
			}
			return s.MustKeep(ctx, 2*lease)
		},
	},
	{
		Name:       "split-with-a-peer",
		Proves:     "With {primary, peer} on one side and {operator, candidate} on the other nobody is promoted, because the peer may still vouch, and the group says so; the primary goes on, keeps the Service, and nothing is lost.",
		Invariants: []string{"I1", "I2", "I4"}, Role: stays, Lossless: true, Play: split,
	},
	{
		Name:   "primary-cut-from-peers",
		Proves: "A primary that reaches the operator and no peer stays open, and nobody takes its place.",
		Role:   stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Split(ctx, []string{s.Active}, s.Others(s.Active)); err != nil {
				return err
			}
			return s.MustKeep(ctx, lease+5*time.Second)
		},
	},
	{
		Name:       "flapping-cable",
		Proves:     "A primary that is cut off again and again, each time for less than its lease, never writes beside another site.",
		Invariants: []string{"I1", "I2", "I3", "I4"}, Play: flapping,
	},
	{
		Name:       "candidate-cut-too",
		Proves:     "With primary and candidate both cut off nobody is promoted, least of all the dr-only site, and the primary returns whole.",
		Invariants: []string{"I1", "I4", "I6", "I9"}, Role: stays, Lossless: true, Play: bothCut,
	},
}

func isolate(way direction) step {
	return func(ctx context.Context, s *Scene) error { return s.Isolate(ctx, s.Active, way) }
}

func split(ctx context.Context, s *Scene) error {
	if err := s.Split(ctx, []string{s.Active, s.DR}, []string{cluster.HubName, s.Candidate}); err != nil {
		return err
	}
	if err := s.MustBlock(ctx, "SiteMayStillVouch"); err != nil {
		return err
	}
	// Longer than the lease of the primary and everything that is added to it.
	if err := s.MustBeShut(ctx, lease+10*time.Second, s.Candidate, s.DR); err != nil {
		return err
	}
	if err := s.unmoved(ctx); err != nil {
		return err
	}
	if err := s.mustBePrimary(ctx, s.Active); err != nil {
		return err
	}
	return s.MustAccept(ctx, s.Active)
}

func flapping(ctx context.Context, s *Scene) error {
	for range 4 {
		if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
			return err
		}
		if err := pause(ctx, 6*time.Second); err != nil {
			return err
		}
		if err := s.Heal(ctx); err != nil {
			return err
		}
		if err := pause(ctx, 4*time.Second); err != nil {
			return err
		}
	}
	return s.MustWrite(ctx)
}

func bothCut(ctx context.Context, s *Scene) error {
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	if err := s.Isolate(ctx, s.Candidate, bothWays); err != nil {
		return err
	}
	// The primary closes meanwhile. What matters is that nobody else opens.
	if err := s.MustBeShut(ctx, lease+10*time.Second, s.Candidate, s.DR); err != nil {
		return err
	}
	return s.unmoved(ctx)
}
