// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Everything down and up again, and operators that are lost on the way.
var coldScenarios = []Scenario{
	{
		Name:       "cold-start",
		Proves:     "After all sites lose their power at once the group comes back without help, with everything that was acknowledged or a report.",
		Invariants: []string{"I1", "I2", "I3", "I7"},
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.PowerOff(ctx, s.Active, s.Candidate, s.DR); err != nil {
				return err
			}
			if err := s.Heal(ctx); err != nil {
				return err
			}
			return s.MustWrite(ctx)
		},
	},
	{
		Name:       "cold-start-primary-last",
		Proves:     "After an outage of all sites and the operator the order in which they come back does not matter: replicas first, then the operator, the primary last.",
		Invariants: []string{"I1", "I2", "I3", "I6", "I7", "I9"}, Play: coldPrimaryLast,
	},
	{
		Name:       "cold-start-operator-last",
		Proves:     "Sites that come back without an operator stay closed, all of them, until it is there.",
		Invariants: []string{"I1", "I3"}, Play: coldOperatorLast,
	},
	{
		Name:       "operator-crashes-in-failover",
		Proves:     "An operator that is killed at every step of an emergency failover finishes it, once.",
		Invariants: []string{"I1", "I2", "I5", "I9"}, Role: movesOnce, Play: operatorCrashes,
	},
	{
		Name:       "operator-and-primary-lost",
		Proves:     "With operator and primary lost together nobody opens; the operator that comes back fails over.",
		Invariants: []string{"I1", "I2", "I3", "I9"}, Role: moves,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.NoOperator(ctx); err != nil {
				return err
			}
			if err := s.PowerOff(ctx, s.Active); err != nil {
				return err
			}
			if err := s.MustBeShut(ctx, lease+5*time.Second, s.Candidate, s.DR); err != nil {
				return err
			}
			s.Say("  heal: the operator is back")
			if err := s.ScaleOperator(ctx, 1); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:       "operator-down",
		Proves:     "A healthy primary stays writable for as long as the operator is down, because its peers vouch for it.",
		Invariants: []string{"I4"}, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.NoOperator(ctx); err != nil {
				return err
			}
			return s.MustKeep(ctx, 3*lease)
		},
	},
}

func coldPrimaryLast(ctx context.Context, s *Scene) error {
	if err := s.NoOperator(ctx); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active, s.Candidate, s.DR); err != nil {
		return err
	}
	if err := s.Boot(ctx, s.DR, s.Candidate); err != nil {
		return err
	}
	s.Say("  heal: the operator is back")
	if err := s.ScaleOperator(ctx, 1); err != nil {
		return err
	}
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

func coldOperatorLast(ctx context.Context, s *Scene) error {
	if err := s.NoOperator(ctx); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Candidate, s.Active, s.DR); err != nil {
		return err
	}
	if err := s.healLast(ctx); err != nil {
		return err
	}
	for _, site := range stage.Sites {
		if err := s.MustBeReadOnly(ctx, site); err != nil {
			return err
		}
	}
	if err := s.MustBeShut(ctx, 8*time.Second, stage.Sites...); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

// operatorCrashes kills the operator as soon as each step of a failover shows in the status.
func operatorCrashes(ctx context.Context, s *Scene) error {
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	steps := map[v1alpha1.TransitionStep]bool{}
	err := stage.Poll(ctx, recovery, s.Candidate+" to take over", func(ctx context.Context) error {
		group, err := s.Get(ctx)
		if err != nil {
			return err
		}
		t := group.Status.Transition
		if t == nil {
			return s.isActive(s.Candidate)(group)
		}
		if !steps[t.Step] {
			if err := s.CrashOperator(ctx, fmt.Sprintf("in step %s", t.Step)); err != nil {
				s.Say("  it was not there to be killed: %v", err)
			} else {
				steps[t.Step] = true
			}
		}
		return errors.New(stage.Describe(group))
	})
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return errors.New("the operator was killed in no step of the failover")
	}
	return s.MustWrite(ctx)
}
