// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"
)

// cacheChain holds the cuts of cache pods on their nodes. Like the lab's own it sits where a packet comes in, before its connection is
// looked up: open connections are cut, and the sender learns nothing.
const cacheChain = "MFG-CACHE"

// CutCache cuts the cache pod of a site off from everybody but the kubelet of its node.
func (g *Group) CutCache(ctx context.Context, site string) error {
	pod, err := g.CachePod(ctx, site)
	if err != nil {
		return err
	}
	node, own := pod.Spec.NodeName, pod.Status.PodIP
	rules := []string{"-s " + own, "-d " + own}
	if _, err := g.Lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-C", "PREROUTING", "-j", cacheChain); err != nil {
		// The chain may be there without being hooked in, if an earlier run was killed in between.
		_, _ = g.Lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-N", cacheChain)
		if _, err := g.Lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-I", "PREROUTING", "-j", cacheChain); err != nil {
			return fmt.Errorf("prepare cuts at %s: %w", node, err)
		}
	}
	for _, rule := range rules {
		argv := append([]string{"iptables", "-w", "-t", "mangle", "-A", cacheChain}, strings.Fields(rule)...)
		if _, err := g.Lab.Exec(ctx, node, append(argv, "-j", "DROP")...); err != nil {
			return fmt.Errorf("cut the cache of %s: %w", site, err)
		}
	}
	return nil
}

// HealCaches takes all cuts of cache pods back.
func (s *Stage) HealCaches(ctx context.Context) error {
	nodes, err := s.Lab.Nodes()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		if _, err := s.Lab.Exec(ctx, n.Name, "iptables", "-w", "-t", "mangle", "-S", cacheChain); err != nil {
			continue // a node that was never cut this way, or is off, has no such chain
		}
		_, err := s.Lab.Exec(ctx, n.Name, "iptables", "-w", "-t", "mangle", "-F", cacheChain)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ContinueCaches lets the engines of all caches go on, in case an earlier run left one stopped.
func (g *Group) ContinueCaches(ctx context.Context) {
	pods, err := g.CachePods(ctx)
	if err != nil {
		return // no group, no pods
	}
	for i := range pods {
		if pid, err := FindIn(&pods[i], cacheProgram); err == nil {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// How a slow cache stands still and goes on.
const (
	cacheStands = 90 * time.Millisecond
	cacheGoes   = 10 * time.Millisecond
)

// SlowCache has the engine of a site's cache run for a tenth of the time, until it is told to stop.
func (g *Group) SlowCache(ctx context.Context, site string) (stop func(), err error) {
	pid, err := g.CacheProcess(ctx, site)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			// A process that has ended needs nothing more.
			if syscall.Kill(pid, syscall.SIGSTOP) != nil {
				return
			}
			time.Sleep(cacheStands)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			time.Sleep(cacheGoes)
		}
	})
	return func() {
		cancel()
		done.Wait()
	}, nil
}

// tightMemory is less than an empty engine uses, roomyMemory what CacheSpec gives.
const (
	tightMemory = "1048576"
	roomyMemory = "67108864"
)

// FullCache has the cache of a site refuse writes for want of memory.
func (g *Group) FullCache(ctx context.Context, site string) error {
	if _, err := g.CacheDo(ctx, site, "CONFIG", "SET", "maxmemory-policy", "noeviction"); err != nil {
		return err
	}
	_, err := g.CacheDo(ctx, site, "CONFIG", "SET", "maxmemory", tightMemory)
	return err
}

// RoomInCache takes that back.
func (g *Group) RoomInCache(ctx context.Context, site string) error {
	if _, err := g.CacheDo(ctx, site, "CONFIG", "SET", "maxmemory", roomyMemory); err != nil {
		return err
	}
	_, err := g.CacheDo(ctx, site, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	return err
}
