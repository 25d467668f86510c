// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// CutNode takes the cable out of a node (or of the client namespace): nothing comes in, and
// nothing goes out.
func (c *Cluster) CutNode(ctx context.Context, name string) error {
	return c.setLink(ctx, name, false)
}

// HealNode puts the cable back.
func (c *Cluster) HealNode(ctx context.Context, name string) error {
	return c.setLink(ctx, name, true)
}

func (c *Cluster) setLink(ctx context.Context, name string, up bool) error {
	return c.update(func(s *state) error {
		e, err := find(s.namespaces(), name)
		if err != nil {
			return err
		}
		if s.Killed[name] {
			return fmt.Errorf("node %s is dead: `lab node start %s` first", name, name)
		}
		if up {
			delete(s.Cut, name)
			return ip(ctx, "link set %s up", e.Veth())
		}
		s.Cut[name] = true
		return ip(ctx, "link set %s down", e.Veth())
	})
}

// PauseNode stops every process of every container on a node. Its kubelet goes on.
func (c *Cluster) PauseNode(_ context.Context, name string) error {
	return c.update(func(s *state) error {
		if err := s.checkAlive(name); err != nil {
			return err
		}
		s.Paused[name] = true
		// Frozen, none can fork while we go through them.
		if err := c.cgroups.freeze(name, true); err != nil {
			return err
		}
		return errors.Join(c.signalContainers(name, syscall.SIGSTOP), c.cgroups.freeze(name, false))
	})
}

// ResumeNode lets the containers of a paused node go on.
func (c *Cluster) ResumeNode(_ context.Context, name string) error {
	return c.update(func(s *state) error {
		if err := s.checkAlive(name); err != nil {
			return err
		}
		delete(s.Paused, name)
		return c.signalContainers(name, syscall.SIGCONT)
	})
}

// PauseKubelet stops the kubelet of a node (SIGSTOP): containers go on, and nobody starts or ends one.
func (c *Cluster) PauseKubelet(_ context.Context, node string) error {
	return c.signalKubelet(node, syscall.SIGSTOP)
}

// ResumeKubelet lets the kubelet of a node go on.
func (c *Cluster) ResumeKubelet(_ context.Context, node string) error {
	return c.signalKubelet(node, syscall.SIGCONT)
}

func (c *Cluster) signalKubelet(node string, sig syscall.Signal) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	if err := s.checkAlive(node); err != nil {
		return err
	}
	kubelet, ok := s.Processes["kubelet-"+node]
	if !ok || !kubelet.Alive() {
		return fmt.Errorf("no kubelet runs on node %s", node)
	}
	if err := syscall.Kill(kubelet.PID, sig); err != nil {
		return fmt.Errorf("signal kubelet of %s: %w", node, err)
	}
	return nil
}

func (s *state) checkAlive(node string) error {
	if _, err := find(s.Nodes, node); err != nil {
		return err
	}
	if s.Killed[node] {
		return fmt.Errorf("node %s is dead: `lab node start %s` first", node, node)
	}
	return nil
}

func (c *Cluster) signalContainers(node string, sig syscall.Signal) error {
	pids, err := c.cgroups.members(node)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}

// KillNode is a loss of power: the cable first, so that no process can say good-bye on the
// network, then all processes at once, then everything that lives in memory only.
func (c *Cluster) KillNode(ctx context.Context, name string) error {
	return c.update(func(s *state) error {
		e, err := find(s.Nodes, name)
		if err != nil || s.Killed[name] {
			return err
		}
		if err := ip(ctx, "link set %s down", e.Veth()); err != nil {
			return err
		}
		s.Killed[name] = true
		delete(s.Paused, name)
		if err := c.cgroups.kill(name, sysGroup(name)); err != nil {
			return err
		}
		for _, p := range nodePrograms {
			delete(s.Processes, p+"-"+name)
		}
		return errors.Join(c.clearRuntime(name), c.cgroups.remove(name))
	})
}

// StartNode boots a killed node. What was on its disk is still there; cuts stay in force.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	var node Endpoint
	if err := c.update(func(s *state) error {
		e, err := find(s.Nodes, name)
		if err != nil {
			return err
		}
		if !s.Killed[name] {
			return fmt.Errorf("node %s is not dead", name)
		}
		node = e
		// In case an earlier start was broken off.
		if err := errors.Join(c.cgroups.kill(name, sysGroup(name)), c.clearRuntime(name), removeEndpoint(ctx, e)); err != nil {
			return err
		}
		return c.makeEndpoint(ctx, s, e)
	}); err != nil {
		return err
	}
	if err := c.startNode(ctx, node); err != nil {
		return err
	}
	return c.update(func(s *state) error {
		delete(s.Killed, name)
		return nil
	})
}

// AwaitReady waits until the named nodes (all if none is named) are Ready.
func (c *Cluster) AwaitReady(ctx context.Context, limit time.Duration, nodes ...string) error {
	if len(nodes) == 0 {
		all, err := c.Nodes()
		if err != nil {
			return err
		}
		for _, n := range all {
			nodes = append(nodes, n.Name)
		}
	}
	return poll(ctx, limit, "nodes to be ready", func() error {
		ready, err := c.readyNodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if !slices.Contains(ready, n) {
				return errors.Join(fmt.Errorf("node %s is not ready", n), c.ended(n))
			}
		}
		return nil
	})
}

// errHopeless ends a poll: what is waited for cannot come any more.
var errHopeless = errors.New("it cannot come any more")

// ended says which of a node's programs ended though nobody ended it, and its last words.
func (c *Cluster) ended(node string) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	for _, program := range nodePrograms {
		name := program + "-" + node
		if id, started := s.Processes[name]; started && !id.Alive() {
			said, _ := os.ReadFile(c.logPath(name)) // without it the name still tells most
			return fmt.Errorf("%s has ended: %w; the end of its log: %s", name, errHopeless, tail(strings.TrimSpace(string(said)), 500))
		}
	}
	return nil
}
