// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Histories that part, and settings that are tampered with.
var dataScenarios = []Scenario{
	{
		Name:       "errant-transaction",
		Proves:     "A replica with a transaction of its own is fenced and held with that transaction named, and joins again once a person has its data thrown away.",
		Invariants: []string{"I10"}, Role: stays, Lossless: true, Play: errant,
	},
	{
		Name:       "divergence-recloned",
		Proves:     "With onDivergence Reclone a replica with a transaction of its own is cloned again by the operator.",
		Invariants: []string{"I10"}, Role: stays, Lossless: true,
		Tune: func(f *v1alpha1.FailoverSpec) { f.OnDivergence = v1alpha1.DivergenceReclone },
		Play: func(ctx context.Context, s *Scene) error {
			since, err := s.Query(ctx, s.DR, "SELECT NOW(3)")
			if err != nil {
				return err
			}
			if err := s.Err(ctx, s.DR); err != nil {
				return err
			}
			return s.MustClone(ctx, s.DR, since)
		},
	},
	{
		Name:       "errant-candidate",
		Proves:     "With the only candidate diverged a dead primary is not replaced, neither by it nor by the dr-only site; the group says so and goes on when the primary is back.",
		Invariants: []string{"I6", "I10"}, Role: stays, Lossless: true, Play: errantCandidate,
	},
	{
		Name:       "purged-binlogs",
		Proves:     "A replica whose next transactions the primary has purged is cloned again by the operator.",
		Invariants: []string{"I7"}, Role: stays, Lossless: true, Play: purged,
	},
	{
		Name:       "persist-tampering",
		Proves:     "SET PERSIST super_read_only=OFF on a replica is undone at once, and does not survive a restart.",
		Invariants: []string{"I1", "I3"}, Role: stays, Lossless: true, Play: tampered,
	},
	{
		Name:       "tampered-primary-comes-back",
		Proves:     "A primary with SET PERSIST super_read_only=OFF that was replaced comes back read-only.",
		Invariants: []string{"I1", "I2", "I3"}, Role: moves, Play: tamperedPrimary,
	},
}

func errant(ctx context.Context, s *Scene) error {
	if err := s.diverge(ctx, s.DR); err != nil {
		return err
	}
	return s.recloned(ctx, s.DR)
}

// diverge gives a site a transaction of its own and waits until it is held for that.
func (s *Scene) diverge(ctx context.Context, site string) error {
	if err := s.Err(ctx, site); err != nil {
		return err
	}
	return s.Must(ctx, site+" is held, with its transaction named", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, st := range group.Status.Sites {
			if st.Name == site && st.State == v1alpha1.SiteDiverged && st.Errant != "" && st.Message != "" {
				return nil
			}
		}
		return errors.New(stage.Describe(group))
	})
}

// recloned has a site cloned again by order, and waits until the group is whole.
func (s *Scene) recloned(ctx context.Context, site string) error {
	if err := reclone(ctx, s.Group, site); err != nil {
		return err
	}
	s.Say("  expect: the group is whole")
	_, err := s.Await(ctx, recovery, "the group to be whole", whole)
	return err
}

func errantCandidate(ctx context.Context, s *Scene) error {
	if err := s.diverge(ctx, s.Candidate); err != nil {
		return err
	}
	if err := s.BreakQuietly(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustBlock(ctx, "NoFitCandidate"); err != nil {
		return err
	}
	if err := s.MustBeShut(ctx, 5*time.Second, s.Active, s.Candidate, s.DR); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	if err := s.MustWrite(ctx); err != nil {
		return err
	}
	return s.recloned(ctx, s.Candidate)
}

func purged(ctx context.Context, s *Scene) error {
	if err := s.Cordon(ctx, s.DR); err != nil {
		return err
	}
	if err := s.Fault(ctx, "the pod of "+s.DR+" is away", func(ctx context.Context) error {
		return s.gone(ctx, s.DR)
	}, nil); err != nil {
		return err
	}
	var since string
	if err := s.Fault(ctx, s.Active+" purges its binary logs", func(ctx context.Context) error {
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
		var err error
		since, err = s.purge(ctx)
		return err
	}, nil); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	return s.MustClone(ctx, s.DR, since)
}

// MustClone waits until a site was cloned after a moment, by its own clock.
func (s *Scene) MustClone(ctx context.Context, site, since string) error {
	s.Say("  expect: %s is cloned", site)
	return ask(ctx, recovery, site+" to be cloned", func(ctx context.Context) error {
		out, err := s.Query(ctx, site, fmt.Sprintf(
			"SELECT COUNT(*) FROM performance_schema.clone_status WHERE STATE='Completed' AND BEGIN_TIME > '%s'", since))
		if err == nil && out != "1" {
			err = fmt.Errorf("no clone since %s", since)
		}
		return err
	})
}

// gone deletes a site's pod and waits until no program of it runs any more.
func (s *Scene) gone(ctx context.Context, site string) error {
	pod, err := s.Pod(ctx, site)
	if err != nil {
		return err
	}
	if err := stage.DeletePod(ctx, s.Group, site); err != nil {
		return err
	}
	return stage.Poll(ctx, patience, "the pod of "+site+" to go", func(ctx context.Context) error {
		pods, err := s.Pods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.UID == pod.UID {
				return errors.New("it is still there")
			}
		}
		return nil
	})
}

// purge removes all binary logs of the active site but the newest and tells when, by the server's own clock.
func (s *Scene) purge(ctx context.Context) (string, error) {
	if _, err := s.Query(ctx, s.Active, "FLUSH BINARY LOGS"); err != nil {
		return "", err
	}
	// Until its readers have moved on from the old one, or it stays.
	if err := pause(ctx, 2*time.Second); err != nil {
		return "", err
	}
	out, err := s.Query(ctx, s.Active, "SHOW BINARY LOG STATUS")
	if err != nil {
		return "", err
	}
	file, _, _ := strings.Cut(out, "\t")
	if _, err := s.Query(ctx, s.Active, "PURGE BINARY LOGS TO '"+file+"'"); err != nil {
		return "", err
	}
	logs, err := s.Query(ctx, s.Active, "SHOW BINARY LOGS")
	if err != nil {
		return "", err
	}
	if n := strings.Count(logs, "\n") + 1; n != 1 {
		return "", fmt.Errorf("%s kept %d binary logs", s.Active, n)
	}
	return s.Query(ctx, s.Active, "SELECT NOW(3)")
}

const tamper = "SET PERSIST super_read_only=OFF; SET PERSIST read_only=OFF; SET PERSIST_ONLY skip_replica_start=OFF"

func tampered(ctx context.Context, s *Scene) error {
	if err := s.Fault(ctx, "somebody persists super_read_only=OFF on "+s.Candidate, func(ctx context.Context) error {
		_, err := s.Query(ctx, s.Candidate, clientsOut+tamper)
		return err
	}, s.resetPersist(s.Candidate)); err != nil {
		return err
	}
	s.Say("  expect: %s is read-only again", s.Candidate)
	if err := ask(ctx, 15*time.Second, "the fence of "+s.Candidate, func(ctx context.Context) error {
		out, err := s.Query(ctx, s.Candidate, "SELECT @@super_read_only")
		if err == nil && out != "1" {
			err = fmt.Errorf("super_read_only is %s", out)
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.Crash(ctx, s.Candidate); err != nil {
		return err
	}
	return s.MustBeReadOnly(ctx, s.Candidate)
}

// resetPersist takes a tampered setting away, where the server still has it.
func (s *Scene) resetPersist(site string) func(context.Context) error {
	return func(ctx context.Context) error {
		return ask(ctx, patience, "persisted settings of "+site+" to go", func(ctx context.Context) error {
			_, err := s.Query(ctx, site, "RESET PERSIST IF EXISTS super_read_only; RESET PERSIST IF EXISTS read_only; RESET PERSIST IF EXISTS skip_replica_start")
			return err
		})
	}
}

func tamperedPrimary(ctx context.Context, s *Scene) error {
	if err := s.Fault(ctx, "somebody persists super_read_only=OFF on "+s.Active, func(ctx context.Context) error {
		_, err := s.Query(ctx, s.Active, tamper)
		return err
	}, s.resetPersist(s.Active)); err != nil {
		return err
	}
	if err := s.BreakQuietly(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	if err := s.healLast(ctx); err != nil {
		return err
	}
	return s.MustBeReadOnly(ctx, s.Active)
}
