// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Everything that can befall the cache store, and what it must never cost MySQL. The role of MySQL is judged as in every scenario; the
// cache must be whole on the active site in the end, and take writes.
var cacheScenarios = []Scenario{
	{
		Name:   "cache-engine-killed",
		Proves: "A cache master that is killed while its site is active moves no role of MySQL; the record says that sessions may be lost, and the cache is whole on the active site again.",
		Role:   stays, Lossless: true, Cache: &CacheCase{},
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.SignalEngine(ctx, s.Active, syscall.SIGKILL); err != nil {
				return err
			}
			if err := s.MustRecord(ctx, "a change of the master that kept its sessions or says why not", func(p v1alpha1.CachePromotion) bool {
				return p.SessionsPreserved || p.Reason != ""
			}); err != nil {
				return err
			}
			return cacheHomeAndMySQL(ctx, s)
		},
	},
	{
		Name:   "cache-pod-lost",
		Proves: "When the cache pod of the active site is gone, another site's cache takes the traffic and MySQL stays; when the pod is back and has caught up, the traffic moves home with every session.",
		Role:   stays, Lossless: true, Cache: &CacheCase{}, Play: cacheOnlyAndHome(false),
	},
	{
		Name:   "cache-volume-lost",
		Proves: "A cache that has lost its volume comes back empty as a replica, never as the master over those that have the data.",
		Role:   stays, Lossless: true, Cache: &CacheCase{Volume: true}, Play: cacheOnlyAndHome(true),
	},
	{
		Name:       "cache-node-cut",
		Proves:     "When the active site is cut off, its cache loses the traffic with MySQL's role and without its consent, and follows the new master once the cut ends.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Cache: &CacheCase{TwoMasters: true},
		Play: play(func(ctx context.Context, s *Scene) error { return s.Isolate(ctx, s.Active, bothWays) }, mustMove,
			func(ctx context.Context, s *Scene) error { return s.MustCacheAt(ctx, s.Candidate) },
			func(ctx context.Context, s *Scene) error {
				return s.MustRecord(ctx, "a promotion without the old master, and why", func(p v1alpha1.CachePromotion) bool {
					return !p.SessionsPreserved && p.Reason != ""
				})
			}, heal, cacheHomeAndMySQL),
	},
	{
		Name:   "cache-two-masters",
		Proves: "A cache master that the operator and its replicas cannot reach, but its clients can, is one of two; once the cut ends there is one again within two polls of the cache, and its clients were cut.",
		Role:   stays, Lossless: true, Cache: &CacheCase{TwoMasters: true}, Play: twoCacheMasters,
	},
	{
		Name:   "cache-master-hangs",
		Proves: "A planned failover with a cache master that stands still moves MySQL all the same; the cache is promoted without it, and it follows once it goes on.",
		Role:   moves, Lossless: true, Cache: &CacheCase{},
		Play: play(func(ctx context.Context, s *Scene) error { return s.SignalEngine(ctx, s.Active, syscall.SIGSTOP) }, planToCandidate,
			mustMove, func(ctx context.Context, s *Scene) error { return s.MustCacheAt(ctx, s.Candidate) }, keepSessions, heal, cacheHomeAndMySQL),
	},
	{
		Name:   "cache-target-hangs",
		Proves: "A cache that stops in the middle of taking over leaves no cache without a master: MySQL moves, sessions are written again while it still stands, and it gets its place once it goes on.",
		Role:   moves, Lossless: true, Cache: &CacheCase{},
		Play: play(planToCandidate, func(ctx context.Context, s *Scene) error { return s.StopDuringFailover(ctx, s.Active, s.Candidate) },
			mustMove, keepSessions, heal, cacheHomeAndMySQL),
	},
	{
		Name:   "cache-full",
		Proves: "A cache that refuses writes for want of memory hands all its sessions over by a planned failover, and MySQL does not wait for it.",
		Role:   moves, Lossless: true, Cache: &CacheCase{Keeps: true},
		Play: func(ctx context.Context, s *Scene) error {
			from := s.Active
			if err := s.Fault(ctx, "the cache of "+from+" is full",
				func(ctx context.Context) error { return s.FullCache(ctx, from) },
				func(ctx context.Context) error { return s.RoomInCache(ctx, from) }); err != nil {
				return err
			}
			return play(wait(2*time.Second), planToCandidate, mustMove, func(ctx context.Context, s *Scene) error {
				return s.MustCacheAt(ctx, s.Candidate)
			}, keepSessions, heal, cacheHomeAndMySQL)(ctx, s)
		},
	},
	{
		Name:   "cache-slow",
		Proves: "A cache master that runs for a tenth of the time holds up no planned failover of MySQL, and the cache follows.",
		Role:   moves, Lossless: true, Cache: &CacheCase{},
		Play: func(ctx context.Context, s *Scene) error {
			stop := func() {}
			if err := s.Fault(ctx, "the cache of "+s.Active+" runs for a tenth of the time", func(ctx context.Context) (err error) {
				stop, err = s.SlowCache(ctx, s.Active)
				return err
			}, func(context.Context) error {
				stop()
				return nil
			}); err != nil {
				return err
			}
			return play(planToCandidate, mustMove, heal, cacheHomeAndMySQL)(ctx, s)
		},
	},
	{
		Name:       "cache-operator-killed",
		Proves:     "An operator that is killed in the middle of a move of the cache finds the move when it begins again, and there is one master on the active site.",
		Invariants: []string{"I1", "I2"}, Lossless: true, Cache: &CacheCase{}, Play: operatorKilledInCacheMove,
	},
	{
		Name:       "cache-goes-back",
		Proves:     "When MySQL's planned failover fails and the old primary is open again, the cache is on its site.",
		Invariants: []string{"I1", "I2"}, Lossless: true, Cache: &CacheCase{},
		Play: play(lockAtHome, targetDeath, wentBack, heal, cacheHomeAndMySQL),
	},
	{
		Name:   "cache-client-gave-up",
		Proves: "A hand-over of the cache that a client began and did not stay for, and that the server cannot end because its target stands still, wedges nothing: MySQL moves, and the cache follows.",
		Role:   moves, Lossless: true, Cache: &CacheCase{},
		Play: play(func(ctx context.Context, s *Scene) error { return s.SignalEngine(ctx, s.Candidate, syscall.SIGSTOP) },
			orderFailover, planToCandidate, mustMove, keepSessions, heal, cacheHomeAndMySQL),
	},
	{
		Name:   "cache-server-goes-on",
		Proves: "A hand-over that the server ended although nobody waited for it any more leaves one master with the traffic, on the active site, and loses no session.",
		Role:   stays, Lossless: true, Cache: &CacheCase{Keeps: true},
		Play: play(orderFailover, wait(3*time.Second), cacheHomeAndMySQL),
	},
}

func keepSessions(ctx context.Context, s *Scene) error { return s.MustKeepSessions(ctx) }

func planToCandidate(ctx context.Context, s *Scene) error { return s.PlanOnly(ctx, s.Candidate) }

// cacheHomeAndMySQL is what must be in the end: the cache whole on the active site, and MySQL not disturbed.
func cacheHomeAndMySQL(ctx context.Context, s *Scene) error {
	return each(func(ctx context.Context, s *Scene) error { return s.MustCacheHome(ctx) }, keepSessions, mustWrite)(ctx, s)
}

// cacheOnlyAndHome loses the master's pod for as long as it takes another one to have the traffic, and then gives it back.
func cacheOnlyAndHome(volume bool) step {
	return func(ctx context.Context, s *Scene) error {
		if err := s.LoseCachePod(ctx, s.Active, volume); err != nil {
			return err
		}
		if err := s.MustCacheAt(ctx, s.Others(s.Active)...); err != nil {
			return err
		}
		if err := each(keepSessions, mustWrite, func(ctx context.Context, s *Scene) error { return s.unmoved(ctx) })(ctx, s); err != nil {
			return err
		}
		s.LosesNoneFromNow()
		if err := s.Heal(ctx); err != nil {
			return err
		}
		if volume {
			if _, err := s.Lab.RecycleVolumes(ctx); err != nil {
				return err
			}
		}
		if err := s.MustRecord(ctx, "the way home, with every session", func(p v1alpha1.CachePromotion) bool {
			return p.Kind == v1alpha1.CacheMoveHome && p.To == s.Active && p.SessionsPreserved
		}); err != nil {
			return err
		}
		return cacheHomeAndMySQL(ctx, s)
	}
}

// twoPolls is within what two masters must be one once they are seen: two polls of the cache, and what their replies take.
const twoPolls = 8 * time.Second

func twoCacheMasters(ctx context.Context, s *Scene) error {
	if err := s.CutCacheOperator(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustCacheAt(ctx, s.Others(s.Active)...); err != nil {
		return err
	}
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	with := group.Status.Cache.ActiveSite
	if a, b := s.engine(ctx, s.Active)["role"], s.engine(ctx, with)["role"]; a != "master" || b != "master" {
		return fmt.Errorf("there were to be two masters: %s says %s, %s says %s", s.Active, a, with, b)
	}
	client, err := s.DialCache(ctx, s.Active)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Do("PING"); err != nil {
		return fmt.Errorf("a client of the old master: %w", err)
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	s.Say("  expect: one master again within %s, and no client of the old one", twoPolls)
	if err := stage.Poll(ctx, twoPolls, "one master", func(ctx context.Context) error {
		var masters []string
		for _, site := range append([]string{s.Active}, s.Others(s.Active)...) {
			if s.engine(ctx, site)["role"] == "master" {
				masters = append(masters, site)
			}
		}
		if len(masters) != 1 {
			return fmt.Errorf("masters are %v", masters)
		}
		if _, err := client.Do("PING"); err == nil {
			return errors.New("a client of the old master was not cut")
		}
		return nil
	}); err != nil {
		return err
	}
	events, err := s.Events(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(events, func(line string) bool { return strings.Contains(line, "SecondMaster") }) {
		return errors.New("no event tells of the second master")
	}
	return each(cacheHomeAndMySQL, func(ctx context.Context, s *Scene) error { return s.unmoved(ctx) })(ctx, s)
}

// orderFailover has the cache's master hand over to the candidate's, as somebody who does not stay for the outcome.
func orderFailover(ctx context.Context, s *Scene) error {
	info := s.engine(ctx, s.Active)
	target, err := s.CachePod(ctx, s.Candidate)
	if err != nil {
		return err
	}
	// By the address and port that the master knows it by.
	host, port := target.Status.PodIP, fmt.Sprint(v1alpha1.CachePort)
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "ip="+host+",") {
			_, after, _ := strings.Cut(value, "port=")
			port, _, _ = strings.Cut(after, ",")
		}
	}
	return s.Fault(ctx, "somebody has the cache of "+s.Active+" hand over to "+s.Candidate+", and leaves", func(ctx context.Context) error {
		_, err := s.CacheDo(ctx, s.Active, "FAILOVER", "TO", host, port, "TIMEOUT", "5000")
		return err
	}, nil)
}

// operatorKilledInCacheMove kills the operator as soon as a move of the cache is on record.
func operatorKilledInCacheMove(ctx context.Context, s *Scene) error {
	if err := s.PlanOnly(ctx, s.Candidate); err != nil {
		return err
	}
	hit := false
	for end := time.Now().Add(patience); time.Now().Before(end) && !hit; {
		group, err := s.Get(ctx)
		if err != nil {
			return err
		}
		c := group.Status.Cache
		hit = c != nil && c.Transition != nil
		if moved := c != nil && c.ActiveSite == s.Candidate && c.Transition == nil; moved {
			break // it was faster than we looked
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if !hit {
		return errors.New("no move of the cache was seen on record: nothing is proven")
	}
	if err := s.CrashOperator(ctx, "in the middle of a move of the cache"); err != nil {
		return err
	}
	return cacheHomeAndMySQL(ctx, s)
}
