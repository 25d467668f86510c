// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// hourRate keeps what the writer of an hour tells within the 10 MiB that the kubelet leaves of a log. The direct writers, with a
// hundred rows a second at the active site itself, are the load.
const hourRate = 20

// poorNetwork makes the network between all nodes slow and lossy for a time, in which nobody may be fenced.
func poorNetwork(d time.Duration) step {
	return func(ctx context.Context, s *Scene) error {
		from := load.Now()
		if err := s.Degrade(ctx, 20*time.Millisecond, 1, append(s.Others(s.Active), s.Active, cluster.HubName)...); err != nil {
			return err
		}
		if err := s.MustKeep(ctx, d); err != nil {
			return err
		}
		return mustNotFence(s.W.Probes.Peek(s.Active), from)
	}
}

// slowFor is how long a poor network must do no harm.
const slowFor = 3 * time.Minute

// What operations people meet sooner or later: poor networks and disks, backups of the wrong day, operators that come and go.
var moreScenarios = []Scenario{
	{
		Name:   "poor-network",
		Proves: "With 20 ms and 1 % of loss between all nodes, for three minutes nobody is fenced and no role moves.",
		Role:   stays, Lossless: true, Play: poorNetwork(slowFor),
	},
	{
		Name:   "poor-network-hour",
		Proves: "With 20 ms and 1 % of loss between all nodes, for an hour under load nobody is fenced and no role moves.",
		Role:   stays, Lossless: true, ByName: true, Rate: hourRate, Limit: 80 * time.Minute, Play: poorNetwork(time.Hour),
	},
	{
		Name:       "silent-cut-mixed",
		Proves:     "A primary that is cut off from everybody but its clients commits nothing after another site has, neither late transactions, XA and DDL nor events of its scheduler.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true, Play: play(isolate(bothWays), mustMove, wait(5*time.Second)),
	},
	{
		Name:       "planned-mixed",
		Proves:     "A planned failover leaves no late transaction, XA, DDL or event behind that commits on the old primary after the new one is open.",
		Invariants: []string{"I1", "I2"}, Role: moves, Lossless: true, Mixed: true,
		Play: func(ctx context.Context, s *Scene) error { return s.Plan(ctx, s.Candidate) },
	},
	{
		Name:       "status-of-an-old-backup",
		Proves:     "An operator that finds the status of an older epoch, as after a restore of etcd, while a site is open under a newer one, lets nobody write beside it, and the group becomes whole under an epoch that was never used.",
		Invariants: []string{"I1", "I2", "I5"}, Play: oldStatus,
	},
	{
		Name:       "etcd-of-an-old-backup",
		Proves:     "When etcd is restored from a backup of an older epoch under running kubelets, nobody writes beside the site that is open, and the group goes on under an epoch that was never used.",
		Invariants: []string{"I1", "I2", "I5"}, Play: oldEtcd,
	},
	{
		Name:       "operator-and-node-at-once",
		Proves:     "When the operator is killed and the primary's node loses its power at the same moment, the operator that comes back fails over; the pause is that of the clients.",
		Invariants: []string{"I1", "I2", "I7", "I9"}, Role: moves,
		Play: func(ctx context.Context, s *Scene) error {
			if err := errors.Join(s.CrashOperator(ctx, "as the node goes"), s.PowerOff(ctx, s.Active)); err != nil {
				return err
			}
			return s.MustMove(ctx)
		},
	},
	{
		Name:       "operator-replaced-in-failover",
		Proves:     "A failover that is under way while the operator is replaced, as in an upgrade, is finished by the new one, once.",
		Invariants: []string{"I1", "I2", "I5", "I9"}, Role: movesOnce, Play: replacedInFailover,
	},
	{
		Name:       "two-operators",
		Proves:     "Of two operators one decides, and the other takes its place when it is killed in the middle of a failover.",
		Invariants: []string{"I1", "I2", "I9"}, Role: moves, Play: twoOperators,
	},
}

// oldStatus moves the role, and gives the group the status back that it had before, as a restored etcd would.
func oldStatus(ctx context.Context, s *Scene) error {
	if err := s.Plan(ctx, s.Candidate); err != nil {
		return err
	}
	moved, err := s.Get(ctx)
	if err != nil {
		return err
	}
	newest := moved.Status.Epoch
	s.W.Remember(moved)
	if err := s.NoOperator(ctx); err != nil {
		return err
	}
	if err := s.Fault(ctx, fmt.Sprintf("the status of epoch %d is restored, and sites are at %d", s.W.Before.Status.Epoch, newest), func(ctx context.Context) error {
		group, err := s.Get(ctx)
		if err != nil {
			return err
		}
		group.Status = *s.W.Before.Status.DeepCopy()
		if err := s.Kube.Status().Update(ctx, group); err != nil {
			return fmt.Errorf("restore status: %w", err)
		}
		return nil
	}, nil); err != nil {
		return err
	}
	s.Say("  heal: the operator is back")
	if err := s.ScaleOperator(ctx, 1); err != nil {
		return err
	}
	return s.mustPass(ctx, newest)
}

// mustPass waits until the group goes on under an epoch that no site has passed yet, and clients write.
func (s *Scene) mustPass(ctx context.Context, newest int64) error {
	if err := s.Must(ctx, fmt.Sprintf("the group goes on under an epoch after %d", newest), func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.Epoch <= newest || group.Status.Transition != nil {
			return errors.New(stage.Describe(group))
		}
		return nil
	}); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

// oldEtcd moves the role, and restores etcd as it was before that, with everything that the cluster knew.
func oldEtcd(ctx context.Context, s *Scene) error {
	backup, err := s.Lab.BackUpEtcd(ctx)
	if err != nil {
		return err
	}
	if err := s.Plan(ctx, s.Candidate); err != nil {
		return err
	}
	moved, err := s.Get(ctx)
	if err != nil {
		return err
	}
	newest := moved.Status.Epoch
	s.W.Remember(moved)
	if err := s.Fault(ctx, fmt.Sprintf("etcd is restored as it was at epoch %d, and sites are at %d", s.W.Before.Status.Epoch, newest), func(ctx context.Context) error {
		return s.W.Probes.WithoutAPI(func() error { return s.Lab.RestoreEtcd(ctx, backup) })
	}, nil); err != nil {
		return err
	}
	if err := s.replaceOperator(ctx); err != nil {
		return err
	}
	return s.mustPass(ctx, newest)
}

// awaitTransition waits until a failover is under way.
func (s *Scene) awaitTransition(ctx context.Context) error {
	return s.Must(ctx, "a failover is under way", func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.Transition == nil && group.Status.ActiveSite == s.Active {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
}

// replaceOperator has Kubernetes put another pod in the place of the operator's, as an upgrade does.
func (s *Scene) replaceOperator(ctx context.Context) error {
	return s.Fault(ctx, "the operator is replaced", func(ctx context.Context) error {
		_, err := s.Lab.Kubectl(ctx, "-n", stage.OperatorNamespace, "rollout", "restart", "deployment/"+stage.OperatorName)
		return err
	}, nil)
}

func replacedInFailover(ctx context.Context, s *Scene) error {
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	if err := s.awaitTransition(ctx); err != nil {
		return err
	}
	if err := s.replaceOperator(ctx); err != nil {
		return err
	}
	return s.MustMove(ctx)
}

func twoOperators(ctx context.Context, s *Scene) error {
	if err := s.Fault(ctx, "there are two operators", func(ctx context.Context) error {
		return s.ScaleOperator(ctx, 2)
	}, func(ctx context.Context) error { return s.ScaleOperator(ctx, 1) }); err != nil {
		return err
	}
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return err
	}
	if len(pods) != 2 {
		return fmt.Errorf("%d operators run, want 2", len(pods))
	}
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	if err := s.awaitTransition(ctx); err != nil {
		return err
	}
	if err := s.Fault(ctx, "the one that leads is deleted by force", func(ctx context.Context) error {
		return s.deleteLeader(ctx)
	}, nil); err != nil {
		return err
	}
	return s.MustMove(ctx)
}

// deleteLeader deletes the pod of the operator that holds the lease.
func (s *Scene) deleteLeader(ctx context.Context) error {
	holder, err := s.Lab.Kubectl(ctx, "-n", stage.OperatorNamespace, "get", "leases", "-o", "jsonpath={.items[*].spec.holderIdentity}")
	if err != nil {
		return err
	}
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if strings.Contains(holder, pods[i].Name+"_") {
			return client.IgnoreNotFound(s.Kube.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)))
		}
	}
	return fmt.Errorf("none of the operators holds the lease, %q does", holder)
}
