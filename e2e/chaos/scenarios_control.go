// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// cooldown is long enough for a second fault to fall into it for certain.
const cooldown = 45 * time.Second

func longCooldown(f *v1alpha1.FailoverSpec) { f.Cooldown = metav1.Duration{Duration: cooldown} }

func mode(m v1alpha1.FailoverMode) func(*v1alpha1.FailoverSpec) {
	return func(f *v1alpha1.FailoverSpec) { f.Mode = m }
}

// A second fault soon after the first.
var cooldownScenarios = []Scenario{
	{
		Name:       "second-fault-in-cooldown",
		Proves:     "After a second fault within the cooldown the group does not fail over and says why; when the cooldown ends, it does.",
		Invariants: []string{"I1", "I2"}, Role: moves, Lossless: true, Tune: longCooldown,
		Play: func(ctx context.Context, s *Scene) error {
			if err := secondFault(ctx, s); err != nil {
				return err
			}
			return s.MustReturn(ctx)
		},
	},
	{
		Name:       "cooldown-overridden",
		Proves:     "A second fault within the cooldown fails over at once when a person orders it.",
		Invariants: []string{"I1", "I2"}, Role: moves, Lossless: true, Tune: longCooldown,
		Play: func(ctx context.Context, s *Scene) error {
			if err := secondFault(ctx, s); err != nil {
				return err
			}
			if err := s.Annotate(ctx, v1alpha1.AnnotationForceFailover, s.Active); err != nil {
				return err
			}
			return s.MustReturn(ctx)
		},
	},
}

// secondFault fails over, brings the old site back, and breaks the new one within the cooldown.
func secondFault(ctx context.Context, s *Scene) error {
	if err := s.BreakQuietly(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	if err := s.Must(ctx, "the group is whole with "+s.Candidate+" active", whole); err != nil {
		return err
	}
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	if until := group.Status.CooldownUntil; until == nil || time.Until(until.Time) < 10*time.Second {
		return fmt.Errorf("the cooldown lasts until %v: too short to show anything", until)
	}
	if err := s.BreakQuietly(ctx, s.Candidate); err != nil {
		return err
	}
	return s.MustBlock(ctx, "Cooldown")
}

// MustReturn waits until the site that was active at the start is so again.
func (s *Scene) MustReturn(ctx context.Context) error {
	if err := s.Must(ctx, s.Active+" takes over", s.isActive(s.Active)); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

// What a person has decided, the operator keeps to.
var controlScenarios = []Scenario{
	{
		Name:   "mode-manual",
		Proves: "In mode Manual a dead primary is not replaced until a person orders it.",
		Role:   moves, Lossless: true, Tune: mode(v1alpha1.FailoverManual),
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.blocked(ctx, "ModeManual"); err != nil {
				return err
			}
			if err := s.Annotate(ctx, v1alpha1.AnnotationForceFailover, s.Candidate); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:   "mode-observe",
		Proves: "In mode Observe a failover that is due is reported and not carried out, until the mode changes.",
		Role:   moves, Lossless: true, Tune: mode(v1alpha1.FailoverObserve),
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.blocked(ctx, "ModeObserve"); err != nil {
				return err
			}
			if err := s.Patch(ctx, `{"spec":{"failover":{"mode":"Auto"}}}`); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:   "pause-until",
		Proves: "While the group is paused the operator does not replace a dead primary; it does when the pause ends.",
		Role:   moves, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			until := time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339)
			if err := s.Annotate(ctx, v1alpha1.AnnotationPauseUntil, until); err != nil {
				return err
			}
			if err := s.blocked(ctx, "Paused"); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:       "loss-budget",
		Proves:     "A failover that is known to lose more than the loss budget is blocked, and nothing is lost once the primary is back.",
		Invariants: []string{"I7"}, Role: stays, Lossless: true,
		Tune: func(f *v1alpha1.FailoverSpec) { f.MaxLostTransactions = ptr.To(int64(0)) }, Play: lossBudget,
	},
}

// blocked breaks the primary for good and looks on while nobody may take its place.
func (s *Scene) blocked(ctx context.Context, reason string) error {
	if err := s.BreakQuietly(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustBlock(ctx, reason); err != nil {
		return err
	}
	if err := s.MustBeShut(ctx, 5*time.Second, s.Others(s.Active)...); err != nil {
		return err
	}
	if err := s.mustServeReads(ctx, s.Others(s.Active)...); err != nil {
		return err
	}
	return s.unmoved(ctx)
}

func lossBudget(ctx context.Context, s *Scene) error {
	if err := s.CutMySQL(ctx, s.Active, s.Others(s.Active)...); err != nil {
		return err
	}
	// Until the operator has seen what the replicas lack.
	if err := pause(ctx, 8*time.Second); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustBlock(ctx, "LossBudget"); err != nil {
		return err
	}
	return s.MustBeShut(ctx, lease+5*time.Second, s.Others(s.Active)...)
}

// Roles that move because somebody wants it.
var movingScenarios = []Scenario{
	{
		Name:       "planned-there-and-back",
		Proves:     "A planned failover there and back loses nothing.",
		Invariants: []string{"I1", "I2"}, Role: moves, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Plan(ctx, s.Candidate); err != nil {
				return err
			}
			if err := s.Must(ctx, "the group is whole", whole); err != nil {
				return err
			}
			return s.Plan(ctx, s.Active)
		},
	},
	{
		Name:       "planned-refused",
		Proves:     "A planned failover to the dr-only site is refused and changes nothing.",
		Invariants: []string{"I6"}, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.PlanOnly(ctx, s.DR); err != nil {
				return err
			}
			if err := s.outcome(ctx, s.DR, v1alpha1.PlannedRefused); err != nil {
				return err
			}
			return s.unmoved(ctx)
		},
	},
	{
		Name:       "operator-crashes-in-planned",
		Proves:     "An operator that is killed in the middle of a planned failover leaves exactly one site open, and nothing is lost.",
		Invariants: []string{"I1", "I2", "I9"}, Lossless: true, Play: crashInPlanned,
	},
	{
		Name:       "drained-node",
		Proves:     "Draining the node of the active site moves the role first and loses nothing.",
		Invariants: []string{"I1", "I2"}, Role: moves, Lossless: true, Play: drain,
	},
	{
		Name:   "evicted-candidate",
		Proves: "The only candidate that has caught up cannot be evicted.",
		Role:   stays, Lossless: true, Play: evict,
	},
}

func crashInPlanned(ctx context.Context, s *Scene) error {
	if _, err := s.Query(ctx, s.Active, "CREATE TABLE IF NOT EXISTS app.locked (id INT PRIMARY KEY); GRANT LOCK TABLES ON app.* TO 'app'@'%'"); err != nil {
		return err
	}
	if err := s.Hold(ctx, "a client holds LOCK TABLES on "+s.Active, s.Active, "LOCK TABLES app.locked WRITE"); err != nil {
		return err
	}
	if err := s.PlanOnly(ctx, s.Candidate); err != nil {
		return err
	}
	if err := s.awaitMoving(ctx); err != nil {
		return err
	}
	if err := s.CrashOperator(ctx, "in the middle of it"); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

func drain(ctx context.Context, s *Scene) error {
	if err := s.Fault(ctx, "the node of "+s.Active+" is drained", func(ctx context.Context) error {
		_, err := s.Lab.Kubectl(ctx, "drain", s.Active, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s",
			"--pod-selector="+v1alpha1.LabelGroup+"="+s.Name)
		return err
	}, func(ctx context.Context) error {
		_, err := s.Lab.Kubectl(ctx, "uncordon", s.Active)
		return err
	}); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	if r := group.Status.Failovers[0]; r.Kind != v1alpha1.FailoverPlanned {
		return fmt.Errorf("the role moved by %s failover, not by a planned one", r.Kind)
	}
	return nil
}

func evict(ctx context.Context, s *Scene) error {
	s.Say("  expect: %s has caught up and is protected", s.Candidate)
	var pod *corev1.Pod
	if err := stage.Poll(ctx, patience, s.Candidate+" to be protected", func(ctx context.Context) error {
		var err error
		pod, err = s.Pod(ctx, s.Candidate)
		if err == nil && pod.Labels[v1alpha1.LabelProtected] != v1alpha1.HealthyYes {
			err = fmt.Errorf("its pod has the labels %v", pod.Labels)
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.Fault(ctx, s.Candidate+" is to be evicted", func(ctx context.Context) error {
		err := s.Core.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		})
		if !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("the eviction was not refused for being one too many, but ended with: %v", err) //nolint:errorlint // nil is the worst of them
		}
		s.Say("  it was refused: %v", err)
		return nil
	}, nil); err != nil {
		return err
	}
	now, err := s.Pod(ctx, s.Candidate)
	if err != nil {
		return err
	}
	if now.UID != pod.UID || now.DeletionTimestamp != nil {
		return errors.New("the candidate has another pod")
	}
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	if err := whole(group); err != nil {
		return fmt.Errorf("it was refused, but: %w: %s", err, stage.Describe(group))
	}
	return nil
}
