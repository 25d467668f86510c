// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// role is what must become of the active site's role.
type role int

const (
	// mayMove leaves it open: both are right, and which one it is depends on who is faster.
	mayMove role = iota
	// stays means that the same site is active at the end, and that nobody else ever was.
	stays
	// moves means that another site has taken over.
	moves
	// movesOnce means that one did, and that the role moved no second time.
	movesOnce
)

// Scenario is one way to break a group, and what must come of it.
type Scenario struct {
	Name string
	// Proves is one sentence, Invariants are those of docs/internals/invariants.md that it stands on.
	Proves     string
	Invariants []string
	// Role is what must become of the active site's role.
	Role role
	// Lossless means that no acknowledged row may be missing, also if it were reported.
	Lossless bool
	// Tune changes the group's failover settings for this scenario.
	Tune func(*v1alpha1.FailoverSpec)
	// Mixed has transactions that commit late, XA, DDL and an event written, too. They are judged by when they were committed;
	// how many of them a failover loses is not compared.
	Mixed bool
	// Apart gives the scenario a group of its own, on volumes that may be filled.
	Apart bool
	// Cache gives the group a cache with sessions in it; nil: the group has none.
	Cache *CacheCase
	// ByName leaves the scenario out of a complete run: it takes too long, and shows what a shorter one shows, for longer.
	ByName bool
	// Rate is how many rows a second go through the Service; 0 is the writer's own.
	Rate int
	// Limit ends the scenario if it hangs; 0 is scenarioLimit.
	Limit time.Duration
	// UnderWay is how many commits of the old primary may still end when it goes on after it stood still: one on each connection that
	// had one under way (docs/guarantees.md, "A machine that is stopped and resumed"). Everywhere else it is none.
	UnderWay int
	// Play makes the fault, waits for what must follow, and heals what has to be healed before the end. Whatever it
	// leaves broken is healed after it.
	Play step
}

// step is one beat of a scenario.
type step = func(context.Context, *Scene) error

// play puts steps together.
func play(steps ...step) step {
	return func(ctx context.Context, s *Scene) error {
		for _, next := range steps {
			if err := next(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// hit makes a fault on the active site.
func hit(fault func(*Scene, context.Context, string) error) step {
	return func(ctx context.Context, s *Scene) error { return fault(s, ctx, s.Active) }
}

// each takes every step, whatever comes of the ones before it, so that the judges see what follows from a failure, too.
func each(steps ...step) step {
	return func(ctx context.Context, s *Scene) error {
		var errs []error
		for _, next := range steps {
			errs = append(errs, next(ctx, s))
		}
		return errors.Join(errs...)
	}
}

func mustMove(ctx context.Context, s *Scene) error { return s.MustMove(ctx) }

func mustWrite(ctx context.Context, s *Scene) error { return s.MustWrite(ctx) }

// mustOutlive makes sure that the active site stays what it is, and accepts commits, for a lease and some time more.
func mustOutlive(more time.Duration) step {
	return func(ctx context.Context, s *Scene) error { return s.MustKeep(ctx, lease+more) }
}

func heal(ctx context.Context, s *Scene) error { return s.Heal(ctx) }

// wait lets time go by.
func wait(d time.Duration) step {
	return func(ctx context.Context, _ *Scene) error { return pause(ctx, d) }
}

// claim is what the scenario proves, with the numbers of the invariants.
func (sc Scenario) claim() string {
	if len(sc.Invariants) == 0 {
		return sc.Proves
	}
	text := sc.Proves + " ("
	for i, number := range sc.Invariants {
		if i > 0 {
			text += ", "
		}
		text += number
	}
	return text + ")"
}

// scenarios are all of them, in the order in which they run.
func scenarios() []Scenario {
	return slices.Concat(
		networkScenarios, processScenarios, sessionScenarios, deathScenarios, dataScenarios,
		apiScenarios, coldScenarios, cooldownScenarios, controlScenarios, movingScenarios, diskScenarios, moreScenarios, cacheScenarios,
	)
}

// checkScenarios tells what is wrong with the list itself.
func checkScenarios(all []Scenario) error {
	seen := map[string]bool{}
	for _, sc := range all {
		switch {
		case sc.Name == "" || sc.Proves == "" || sc.Play == nil:
			return fmt.Errorf("scenario %q is not whole", sc.Name)
		case seen[sc.Name]:
			return fmt.Errorf("two scenarios are called %s", sc.Name)
		case len(sc.Name) > maxName:
			return fmt.Errorf("the name %s is too long for that of a pod", sc.Name)
		}
		seen[sc.Name] = true
	}
	return nil
}

// maxName keeps the names of writers within those of pods.
const maxName = 30
