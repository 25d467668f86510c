// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/resp"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
	kept "github.com/mysql-mfg/mfg/e2e/writer/session"
)

// CacheCase gives a scenario a cache, with sessions in it, and says what must come of them.
type CacheCase struct {
	// Keeps means that no session may be lost.
	Keeps bool
	// TwoMasters means that a cache without the operator's word may take writes for a while: a cut is what the scenario is about.
	TwoMasters bool
	// Volume gives each cache pod a volume.
	Volume bool
}

// cacheSync is how long a planned failover of these scenarios waits for the cache.
const cacheSync = 3 * time.Second

// spec is the cache of the scenario, nil for one without.
func (c *CacheCase) spec() *v1alpha1.CacheSpec {
	if c == nil {
		return nil
	}
	spec := stage.CacheSpec(v1alpha1.CacheValkey)
	spec.Planned.SyncTimeout = metav1.Duration{Duration: cacheSync}
	if c.Volume {
		spec.Storage = &v1alpha1.CacheStorage{}
	}
	return &spec
}

// equip gives the group the cache that a scenario asks for, or takes it away, and waits until it is whole or gone. The scenarios share one
// group, so turning a cache on and off beside MySQL is part of every run.
func equip(ctx context.Context, g *stage.Group, c *CacheCase) error {
	if err := g.HealCaches(ctx); err != nil {
		return err
	}
	g.ContinueCaches(ctx)
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	want := c.spec()
	if have := group.Spec.Cache; have != nil && (want == nil || !equality.Semantic.DeepEqual(have.Storage == nil, want.Storage == nil)) {
		if err := patchGroup(ctx, g, `{"spec":{"cache":null}}`); err != nil {
			return err
		}
		if err := stage.Poll(ctx, mendLimit, "the cache to go", g.CacheNotGone); err != nil {
			return err
		}
	}
	if want == nil {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"cache": want}})
	if err != nil {
		return fmt.Errorf("encode cache: %w", err)
	}
	if err := patchGroup(ctx, g, string(raw)); err != nil {
		return err
	}
	_, err = g.AwaitCache(ctx, mendLimit, "the cache to be whole on the active site", stage.CacheNotHome)
	return err
}

// MustCache waits until the group's cache is as it must be.
func (s *Scene) MustCache(ctx context.Context, what string, check func(*v1alpha1.MysqlFailoverGroup) error) error {
	s.Say("  expect: %s", what)
	_, err := s.AwaitCache(ctx, patience, what, check)
	return err
}

// MustCacheHome waits until the cache's master is on the active site and every other one follows it.
func (s *Scene) MustCacheHome(ctx context.Context) error {
	return s.MustCache(ctx, "the cache is whole on the active site", stage.CacheNotHome)
}

// MustCacheAt waits until the cache's master is on a site, whatever the others do.
func (s *Scene) MustCacheAt(ctx context.Context, sites ...string) error {
	return s.MustCache(ctx, fmt.Sprintf("the cache's master is on one of %v", sites), func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := group.Status.Cache; c == nil || !slices.Contains(sites, c.ActiveSite) || c.Transition != nil {
			return errors.New(stage.DescribeCache(group))
		}
		return nil
	})
}

// MustKeepSessions waits until a session's write that is sent from now on was acknowledged.
func (s *Scene) MustKeepSessions(ctx context.Context) error {
	s.Say("  expect: sessions are written")
	return s.sessions.AwaitCommit(ctx, patience)
}

// MustRecord waits until a promotion of the cache was on record since the scenario began that a check says yes to.
func (s *Scene) MustRecord(ctx context.Context, what string, check func(v1alpha1.CachePromotion) bool) error {
	return s.MustCache(ctx, "on record is "+what, func(*v1alpha1.MysqlFailoverGroup) error {
		if !slices.ContainsFunc(s.promotions.Seen(), check) {
			return fmt.Errorf("there were %v", s.promotions.Said())
		}
		return nil
	})
}

// SignalEngine sends a signal to the engine of a site's cache; SIGSTOP is taken back.
func (s *Scene) SignalEngine(ctx context.Context, site string, sig syscall.Signal) error {
	var undo func(context.Context) error
	if sig == syscall.SIGSTOP {
		undo = func(ctx context.Context) error {
			s.ContinueCaches(ctx)
			return nil
		}
	}
	return s.Fault(ctx, fmt.Sprintf("the cache engine of %s gets signal %s", site, sig),
		func(ctx context.Context) error { return s.SignalCache(ctx, site, sig) }, undo)
}

// CutCacheOperator cuts the operator off from the cache pod of a site, while clients go on reaching it.
func (s *Scene) CutCacheOperator(ctx context.Context, site string) error {
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return err
	}
	cache, err := s.CachePod(ctx, site)
	if err != nil {
		return err
	}
	var drops []drop
	for _, pod := range pods {
		drops = append(drops,
			drop{node: cache.Spec.NodeName, match: "-s " + pod.Status.PodIP + " -d " + cache.Status.PodIP},
			drop{node: cache.Spec.NodeName, match: "-s " + cache.Status.PodIP + " -d " + pod.Status.PodIP})
	}
	// Its replicas, too, or nobody would have a reason to believe that it is gone.
	for _, other := range s.Others(site) {
		pod, err := s.CachePod(ctx, other)
		if err != nil {
			return err
		}
		drops = append(drops,
			drop{node: cache.Spec.NodeName, match: "-s " + pod.Status.PodIP + " -d " + cache.Status.PodIP},
			drop{node: cache.Spec.NodeName, match: "-s " + cache.Status.PodIP + " -d " + pod.Status.PodIP})
	}
	return s.rules(ctx, "the cache of "+site+" reaches neither operator nor replicas, and its clients reach it", drops)
}

// LoseCachePod deletes a cache pod by force, with its claim if it has one, and keeps its successor away until it is healed.
func (s *Scene) LoseCachePod(ctx context.Context, site string, volume bool) error {
	if err := s.KeepOff(ctx, site); err != nil {
		return err
	}
	return s.Fault(ctx, fmt.Sprintf("the cache pod of %s is lost, its volume too: %t", site, volume), func(ctx context.Context) error {
		if volume {
			claims := &corev1.PersistentVolumeClaim{}
			if err := s.Kube.DeleteAllOf(ctx, claims, client.InNamespace(s.Namespace), client.MatchingLabels{
				v1alpha1.LabelGroup: s.Name, v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelSite: site,
			}); err != nil {
				return fmt.Errorf("delete claim: %w", err)
			}
		}
		return s.DeleteCachePod(ctx, site, true)
	}, nil)
}

// engine asks a cache directly, or says that it does not answer.
func (s *Scene) engine(ctx context.Context, site string) map[string]string {
	info, err := s.CacheInfo(ctx, site)
	if err != nil {
		return map[string]string{"role": "no answer: " + err.Error()}
	}
	return info
}

// StopDuringFailover waits for the master of a site's cache to hand over, and stops the engine of another site in that moment.
func (s *Scene) StopDuringFailover(ctx context.Context, master, target string) error {
	pid, err := s.CacheProcess(ctx, target)
	if err != nil {
		return err
	}
	c, err := s.DialCache(ctx, master)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		v, err := c.Do("INFO", "replication")
		f := resp.Section(v.Text)
		// A connection that was cut is a hand-over that we were late for.
		if err != nil || f["role"] != "master" || f["master_failover_state"] != "no-failover" {
			s.Say("  the hand-over: role %s, %s", f["role"], f["master_failover_state"])
			return s.Fault(ctx, "the cache engine of "+target+" stops in the middle of it",
				func(context.Context) error { return send(pid, syscall.SIGSTOP) },
				func(context.Context) error { return send(pid, syscall.SIGCONT) })
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the cache never handed over")
}

// LosesNoneFromNow: whatever was lost before, no session is lost from this moment on.
func (s *Scene) LosesNoneFromNow() { s.keepsFrom = load.Now() }

// judgeSessions ends the session writer and judges what it saw, once all faults are taken back.
func (s *Scene) judgeSessions(ctx context.Context, c CacheCase) error {
	if err := s.MustCacheHome(ctx); err != nil {
		return err
	}
	if err := s.MustKeepSessions(ctx); err != nil {
		return err
	}
	j, err := s.sessions.Stop(ctx)
	if err != nil {
		return fmt.Errorf("session writer: %w", err)
	}
	return c.judge(j, s.keepsFrom, s.Say)
}

// judge takes no session for lost before a moment; 0 is none.
func (c CacheCase) judge(j journal.Journal, keepsFrom time.Duration, say func(string, ...any)) error {
	v := kept.Judge(j)
	say("  sessions: %d writes of %d sessions, %d sessions and %d keys lost, refused %v", v.Acked, v.Sessions, v.LostSessions, len(v.Lost), j.Refused)
	var errs []error
	if v.Acked == 0 {
		errs = append(errs, errors.New("no write of a session was acknowledged: nothing is proven"))
	}
	if n := kept.LostBetween(v.Lost, keepsFrom, math.MaxInt64); keepsFrom > 0 && n > 0 {
		errs = append(errs, fmt.Errorf("%d sessions were lost after the moment from which none might be", n))
	}
	if c.Keeps && v.LostSessions > 0 {
		errs = append(errs, fmt.Errorf("%d sessions were lost, the first: write %d of session %d, found was %s",
			v.LostSessions, v.Lost[0].Seq, v.Lost[0].Worker, v.Lost[0].Found))
	}
	if !c.TwoMasters {
		for _, o := range v.Overlaps {
			errs = append(errs, fmt.Errorf("a cache that was not the master with the traffic took writes: %s", o))
		}
	}
	return errors.Join(errs...)
}
