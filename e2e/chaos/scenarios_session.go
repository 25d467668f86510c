// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What clients can do to a fence.
var sessionScenarios = []Scenario{
	{
		Name:       "long-transaction",
		Proves:     "An open transaction and a statement that does not end do not keep a planned failover from moving the role, and nothing is lost.",
		Invariants: []string{"I1", "I2"}, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Hold(ctx, "a transaction is open on "+s.Active, s.Active,
				"BEGIN", "INSERT INTO app.writes (writer, worker, seq, site) VALUES (UUID(), 0, 0, 'open')"); err != nil {
				return err
			}
			if err := s.Hold(ctx, "a statement runs on "+s.Active, s.Active,
				"INSERT INTO app.writes (writer, worker, seq, site) SELECT UUID(), 0, SLEEP(120), 'running'"); err != nil {
				return err
			}
			return s.Plan(ctx, s.Candidate)
		},
	},
	{
		Name:       "lock-tables",
		Proves:     "A table lock that a client holds on a primary that is cut off does not outlast its fence.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Play: lockTables,
	},
	{
		Name:       "read-lock",
		Proves:     "A global read lock, which blocks every commit, keeps nobody from taking over, and its end opens nothing on the old site.",
		Invariants: []string{"I1", "I2"},
		Play: func(ctx context.Context, s *Scene) error {
			if _, err := s.Query(ctx, s.Active, "GRANT RELOAD ON *.* TO 'app'@'%'"); err != nil {
				return err
			}
			if err := s.Hold(ctx, "a client holds FLUSH TABLES WITH READ LOCK on "+s.Active, s.Active, "FLUSH TABLES WITH READ LOCK"); err != nil {
				return err
			}
			if err := pause(ctx, 5*time.Second); err != nil {
				return err
			}
			if err := s.CutOperator(ctx, s.Active); err != nil {
				return err
			}
			if err := s.MustMove(ctx); err != nil {
				return err
			}
			if err := s.Heal(ctx); err != nil {
				return err
			}
			return s.MustBeShut(ctx, 5*time.Second, s.Active)
		},
	},
	{
		Name:   "max-connections",
		Proves: "With every connection of the primary taken, operator and sidecar still get through: the role stays while nothing is asked, and moves when it is.",
		Role:   moves, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Crowd(ctx, s.Active, 16); err != nil {
				return err
			}
			s.Say("  expect: for 10s nothing moves")
			if err := s.during(ctx, 10*time.Second, s.unmoved); err != nil {
				return err
			}
			return s.Plan(ctx, s.Candidate)
		},
	},
}

func lockTables(ctx context.Context, s *Scene) error {
	if _, err := s.Query(ctx, s.Active, "CREATE TABLE IF NOT EXISTS app.locked (id INT PRIMARY KEY); GRANT LOCK TABLES ON app.* TO 'app'@'%'"); err != nil {
		return err
	}
	if err := s.Hold(ctx, "a client holds LOCK TABLES on "+s.Active, s.Active, "LOCK TABLES app.locked WRITE"); err != nil {
		return err
	}
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	return s.MustMove(ctx)
}

// Plan orders a planned failover and waits until it has an outcome, which must be that it succeeded.
func (s *Scene) Plan(ctx context.Context, to string) error {
	if err := s.PlanOnly(ctx, to); err != nil {
		return err
	}
	if err := s.outcome(ctx, to, v1alpha1.PlannedSucceeded); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}
