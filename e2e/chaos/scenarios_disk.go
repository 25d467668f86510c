// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Disks that are full, stand still, are slow or fail. Each has a group apart, on file systems of its own.
var diskScenarios = []Scenario{
	{
		Name:       "disk-full",
		Proves:     "A primary whose disk is full acknowledges nothing that it cannot keep, and goes on, or is replaced, without a loss that is not reported.",
		Invariants: []string{"I1", "I2", "I5"}, Apart: true,
		Play: play(hit((*Scene).Fill), wait(20*time.Second), heal, mustWrite),
	},
	{
		Name:       "disk-full-of-a-replica",
		Proves:     "A replica whose disk is full disturbs nobody, and catches up once there is room.",
		Invariants: []string{"I5"}, Apart: true, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Fill(ctx, s.Candidate); err != nil {
				return err
			}
			return s.MustKeep(ctx, 15*time.Second)
		},
	},
	{
		Name:       "frozen-disk",
		Proves:     "A primary whose disk does not answer for 40 s, and then does, writes beside nobody, and every acknowledged row is there or reported.",
		Invariants: []string{"I1", "I2", "I4"}, Apart: true,
		Play: play(hit((*Scene).FreezeDisk), wait(40*time.Second), heal, mustWrite),
	},
	{
		Name:       "stalled-disk",
		Proves:     "A primary whose disk does not answer for longer than stallTimeout is replaced, and writes beside nobody, also once the disk goes on.",
		Invariants: []string{"I1", "I2", "I4", "I7"}, Role: moves, Apart: true,
		Play: play(hit((*Scene).FreezeDisk), mustMoveInTime, wait(5*time.Second), heal, mustWrite),
	},
	{
		// An open site whose volume hangs accepts writes by every variable of MySQL; only its clients know better.
		Name:       "stalled-disk-ordered",
		Proves:     "In mode Manual a primary whose disk does not answer stays until a person orders another site, and then writes beside nobody, also once the disk goes on.",
		Invariants: []string{"I1", "I2", "I4", "I7"}, Role: moves, Apart: true, Tune: mode(v1alpha1.FailoverManual),
		Play: play(hit((*Scene).FreezeDisk), wait(20*time.Second), orderCandidate, mustMoveInTime, wait(5*time.Second), heal, mustWrite),
	},
	{
		Name:       "failing-disk",
		Proves:     "A primary whose disk returns an error for every read and write is replaced, and comes back once the disk is mended: as a replica, or held for what only it has.",
		Invariants: []string{"I1", "I2", "I4", "I7"}, Role: moves, Apart: true,
		Play: play(hit((*Scene).BreakDisk), mustMoveInTime, heal, mustWrite),
	},
	{
		Name:       "slow-disk",
		Proves:     "A primary whose disk stands still for 0.3 s of every second is slower, and is neither fenced nor replaced.",
		Invariants: []string{"I7"}, Role: stays, Lossless: true, Apart: true,
		Play: play(hit((*Scene).SlowDisk), mustOutlive(20*time.Second), heal, mustWrite),
	},
}

// orderCandidate orders the candidate to take over, whatever may be lost.
func orderCandidate(ctx context.Context, s *Scene) error {
	return s.Annotate(ctx, v1alpha1.AnnotationForceFailover, s.Candidate)
}

// mustMoveInTime waits for a failover that begins only after stallTimeout, which is most of our patience.
func mustMoveInTime(ctx context.Context, s *Scene) error {
	what := s.Candidate + " takes over"
	s.Say("  expect: %s", what)
	if _, err := s.Await(ctx, recovery, what, s.isActive(s.Candidate)); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}
