// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// The API server is away.
var apiScenarios = []Scenario{
	{
		Name:       "api-server-away",
		Proves:     "With the API server away for operator and all nodes the primary stays open, and nobody else opens.",
		Invariants: []string{"I4", "I9"}, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			everywhere := append(s.Others(s.Active), s.Active, cluster.HubName)
			if err := s.Split(ctx, []string{cluster.HostName}, everywhere); err != nil {
				return err
			}
			return s.MustKeep(ctx, 30*time.Second)
		},
	},
	{
		Name:       "api-server-away-primary-dies",
		Proves:     "An operator that cannot persist its intent promotes nobody, although it sees the primary dead; it does once the API server is back.",
		Invariants: []string{"I2", "I9"}, Role: moves, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Split(ctx, []string{cluster.HostName}, []string{cluster.HubName}); err != nil {
				return err
			}
			if err := s.BreakQuietly(ctx, s.Active); err != nil {
				return err
			}
			if err := s.MustBeShut(ctx, 20*time.Second, s.Candidate, s.DR); err != nil {
				return err
			}
			s.Say("  heal: the API server is back")
			if err := s.Lab.HealAllNet(ctx); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
}
