// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Stop stops a program of a site with SIGSTOP, as a hypervisor does that freezes it: connections stay, nobody answers.
func (s *Scene) Stop(ctx context.Context, site string, p stage.Program) error {
	pid := 0
	return s.Fault(ctx, fmt.Sprintf("%s of %s (container %s) is stopped", p.Name, site, p.Container), func(ctx context.Context) (err error) {
		if pid, err = s.pid(ctx, site, p); err != nil {
			return err
		}
		return send(pid, syscall.SIGSTOP)
	}, func(context.Context) error {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); pid == 0 || strings.TrimSpace(string(name)) != p.Name {
			return nil // it was killed and started again meanwhile
		}
		return send(pid, syscall.SIGCONT)
	})
}

func send(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send signal %d to process %d: %w", sig, pid, err)
	}
	return nil
}

// continueAll lets all programs of a group's pods go on, in case an earlier run left them stopped.
func continueAll(ctx context.Context, g *stage.Group) {
	pods, err := g.Pods(ctx)
	if err != nil {
		return // no group, no pods
	}
	for _, pod := range pods {
		for _, p := range []stage.Program{mysqld, supervisor, sidecar} {
			pid, err := stage.FindIn(&pod, p)
			if err != nil {
				continue
			}
			_ = send(pid, syscall.SIGCONT)
			if groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil {
				if q, err := quotaOf(string(groups), "/sys/fs/cgroup"); err == nil && p == sidecar && q.starved() {
					_ = q.lift()
				}
			}
		}
	}
}

// Crash kills mysqld of a site as an OOM killer would. It is started again.
func (s *Scene) Crash(ctx context.Context, site string) error {
	return s.Fault(ctx, "mysqld of "+site+" is killed",
		func(ctx context.Context) error { return stage.KillProcess(ctx, s.Group, site, stage.Mysqld) }, nil)
}

// Freeze stops all containers of a node; its kubelet goes on.
func (s *Scene) Freeze(ctx context.Context, node string) error {
	return s.Fault(ctx, "all containers of "+node+" are stopped",
		func(ctx context.Context) error { return s.Lab.PauseNode(ctx, node) },
		func(ctx context.Context) error { return s.Lab.ResumeNode(ctx, node) })
}

// FreezeKubelet stops the kubelet of a node; its containers go on, and nobody starts or ends one.
func (s *Scene) FreezeKubelet(ctx context.Context, node string) error {
	return s.Fault(ctx, "the kubelet of "+node+" is stopped",
		func(ctx context.Context) error { return s.Lab.PauseKubelet(ctx, node) },
		func(ctx context.Context) error { return s.Lab.ResumeKubelet(ctx, node) })
}

// PowerOff takes the power from nodes, and Boot gives it back to those that have none.
func (s *Scene) PowerOff(ctx context.Context, nodes ...string) error {
	return s.Fault(ctx, fmt.Sprintf("%v loses its power", nodes), func(ctx context.Context) error {
		for _, node := range nodes {
			if err := s.Lab.KillNode(ctx, node); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		if err := s.Boot(ctx, nodes...); err != nil {
			return err
		}
		return s.Lab.AwaitReady(ctx, recovery, nodes...)
	})
}

// Boot starts those of the nodes that are off, in this order, and does not wait for them.
func (s *Scene) Boot(ctx context.Context, nodes ...string) error {
	st, err := s.Lab.Status(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		for _, n := range st.Nodes {
			if n.Name != node || !n.Killed {
				continue
			}
			s.Say("  power for %s", node)
			if err := s.Lab.StartNode(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// ForceDelete removes a site's pod object without waiting for anybody. The pod may go on running.
func (s *Scene) ForceDelete(ctx context.Context, site string) error {
	return s.Fault(ctx, "the pod of "+site+" is deleted by force", func(ctx context.Context) error {
		pod, err := s.Pod(ctx, site)
		if err != nil {
			return err
		}
		if err := s.Kube.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("delete pod: %w", err)
		}
		return nil
	}, nil)
}

// ForceEnd deletes a site's pod by force, and waits until its mysqld has ended.
func (s *Scene) ForceEnd(ctx context.Context, site string) error {
	pod, err := s.Pod(ctx, site)
	if err != nil {
		return err
	}
	if err := s.ForceDelete(ctx, site); err != nil {
		return err
	}
	return stage.Poll(ctx, recovery, "mysqld of the deleted pod to end", func(context.Context) error {
		if pid, err := stage.FindIn(pod, mysqld); err == nil {
			return fmt.Errorf("it runs, as process %d", pid)
		}
		return nil
	})
}

// Cordon keeps new pods off a node.
func (s *Scene) Cordon(ctx context.Context, node string) error {
	return s.Fault(ctx, node+" takes no pods", func(ctx context.Context) error {
		_, err := s.Lab.Kubectl(ctx, "cordon", node)
		return err
	}, func(ctx context.Context) error {
		_, err := s.Lab.Kubectl(ctx, "uncordon", node)
		return err
	})
}

// awayTaint keeps new pods off a node without a cordon, by which the operator would move the role away.
const awayTaint = "mfg-chaos/away"

// KeepOff keeps new pods off a node, and leaves the role where it is.
func (s *Scene) KeepOff(ctx context.Context, node string) error {
	return s.Fault(ctx, node+" takes no new pods", func(ctx context.Context) error { return s.taint(ctx, node, true) },
		func(ctx context.Context) error { return s.taint(ctx, node, false) })
}

func (s *Scene) taint(ctx context.Context, node string, on bool) error {
	taint := awayTaint + "-"
	if on {
		taint = awayTaint + "=true:NoSchedule"
	}
	_, err := s.Lab.Kubectl(ctx, "taint", "--overwrite", "node", node, taint)
	return err
}

// CrashOperator kills the operator as an OOM killer would. The kubelet starts it again.
func (s *Scene) CrashOperator(ctx context.Context, when string) error {
	return s.Fault(ctx, "the operator is killed "+when, s.KillOperator, nil)
}

// NoOperator ends the operator for as long as the fault lasts.
func (s *Scene) NoOperator(ctx context.Context) error {
	return s.Fault(ctx, "the operator is gone",
		func(ctx context.Context) error { return s.ScaleOperator(ctx, 0) },
		func(ctx context.Context) error { return s.ScaleOperator(ctx, 1) })
}

// settleTime lets rows be written before a fault, so that its edge is seen.
const settleTime = 3 * time.Second
