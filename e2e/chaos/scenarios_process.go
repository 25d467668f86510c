// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// Programs and machines that stop, die, or are taken away.
var processScenarios = []Scenario{
	{
		Name:       "paused-node",
		Proves:     "A primary whose node stands still, and wakes up when another site may be open, accepts nothing any more.",
		Invariants: []string{"I1", "I2", "I4"},
		Play:       play(hit((*Scene).Freeze), mustWrite),
	},
	{
		Name:       "paused-mysqld",
		Proves:     "A mysqld that stands still is killed by its sidecar before another site opens.",
		Invariants: []string{"I1", "I2"},
		Play:       play(hit(func(s *Scene, ctx context.Context, site string) error { return s.Stop(ctx, site, "mysql", "mysqld") }), mustWrite),
	},
	{
		Name:       "paused-sidecar",
		Proves:     "A primary whose sidecar stands still is ended by the kubelet before its lease could count as run out.",
		Invariants: []string{"I1", "I2", "I4"},
		Play:       play(hit(func(s *Scene, ctx context.Context, site string) error { return s.Stop(ctx, site, "sidecar", "sidecar") }), wait(lease), mustWrite),
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
		Play: play(isolate(bothWays), hit((*Scene).ForceDelete), mustMove),
	},
	{
		Name:       "force-deleted-pod",
		Proves:     "When the primary's pod is deleted by force, its successor on the volume, or another site, opens only after the old one has ended.",
		Invariants: []string{"I1", "I2", "I12"},
		Play:       play(hit((*Scene).ForceEnd), mustWrite),
	},
	{
		Name:       "crashed-mysqld",
		Proves:     "A mysqld that crashes comes back in place, read-only first, and loses nothing.",
		Invariants: []string{"I3"}, Role: stays, Lossless: true,
		Play: play(hit((*Scene).Crash), mustWrite),
	},
	{
		Name:       "dead-mysqld",
		Proves:     "A mysqld that cannot come back is replaced after crashGrace on its sidecar's word, without waiting for its lease.",
		Invariants: []string{"I1", "I2", "I7", "I8"}, Role: moves,
		Play: play(hit((*Scene).BreakMySQL), mustMove),
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
