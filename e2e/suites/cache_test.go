// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
	sessioned "github.com/mysql-mfg/mfg/e2e/writer/session"
)

// Times of the cache. How long a move takes is measured by `make bench-cache`.
const (
	cacheUp = 2 * time.Minute
	// cacheMoves bounds what follows a fault, the start of a pod and a first synchronisation included.
	cacheMoves = 90 * time.Second
	// cacheTooLong is when a pause is no longer a slow machine.
	cacheTooLong = 10 * time.Second
)

// mysqlPods are the MySQL pods with how often their containers were restarted.
func mysqlPods(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	pods, err := g.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range pods {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		out[p.Labels[v1alpha1.LabelSite]] = fmt.Sprintf("%s, restarted %d times", p.UID, restarts)
	}
	return out
}

func samePods(t *testing.T, g *stage.Group, before map[string]string, what string) {
	t.Helper()
	for site, now := range mysqlPods(t, g) {
		if before[site] != now {
			t.Errorf("%s: the MySQL pod of %s was %s, and is %s", what, site, before[site], now)
		}
	}
}

// cacheOn turns the shared group's cache on, waits until it is whole, and turns it off when the test ends.
func cacheOn(t *testing.T, g *stage.Group, spec v1alpha1.CacheSpec) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		if err := setSpec(ctx, g, func(s *v1alpha1.MysqlFailoverGroupSpec) { s.Cache = nil }); err != nil {
			t.Errorf("take the cache away: %v", err)
		} else if err := stage.Poll(ctx, cacheUp, "the cache to go", g.CacheNotGone); err != nil {
			t.Error(err)
		}
	})
	before := mysqlPods(t, g)
	if err := setSpec(t.Context(), g, func(s *v1alpha1.MysqlFailoverGroupSpec) { s.Cache = &spec }); err != nil {
		t.Fatal(err)
	}
	group := cacheHome(t, g, cacheUp)
	samePods(t, g, before, "turning the cache on")
	return group
}

func cacheHome(t *testing.T, g *stage.Group, limit time.Duration) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	group, err := g.AwaitCache(t.Context(), limit, "the cache to be whole on the active site", stage.CacheNotHome)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// sessions starts a session writer that ends with the test, however it ends.
func sessions(t *testing.T, g *stage.Group, name string) *stage.ServiceWriter {
	t.Helper()
	w, err := g.StartSessions(t.Context(), fmt.Sprintf("%s-%d", name, time.Now().Unix()%1_000_000), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Remove(context.Background()) })
	return w
}

// endSessions ends the writer and says what it saw; no two caches may have taken writes at the same time.
func endSessions(t *testing.T, w *stage.ServiceWriter) (sessioned.Verdict, journal.Journal) {
	t.Helper()
	j, err := w.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := sessioned.Judge(j)
	t.Logf("%d writes of %d sessions, through %v; %d sessions lost, refused %v", v.Acked, v.Sessions, v.Servers, v.LostSessions, j.Refused)
	for _, o := range v.Overlaps {
		t.Errorf("a cache that was not the master with the traffic took writes: %s", o)
	}
	return v, j
}

// keptSessions judges a planned move: nothing lost, and nobody waited for long.
func keptSessions(t *testing.T, w *stage.ServiceWriter, at time.Duration) {
	t.Helper()
	v, j := endSessions(t, w)
	for _, l := range v.Lost {
		t.Errorf("session %d: write %d was acknowledged, and found was %s", l.Worker, l.Seq, l.Found)
	}
	if len(v.Servers) != 2 {
		t.Errorf("writes went to %v, want two servers", v.Servers)
	}
	pause, ok := journal.LongestPause(j.Commits, at)
	t.Logf("the sessions waited %s", pause.Length())
	if !ok || pause.Length() > cacheTooLong {
		t.Errorf("the sessions waited %s, seen to its end %t", pause.Length(), ok)
	}
}

// promoted waits until the group's last promotion is of a kind and to a site, and returns it.
func promoted(t *testing.T, g *stage.Group, kind v1alpha1.CacheMove, to string) v1alpha1.CachePromotion {
	t.Helper()
	group, err := g.AwaitCache(t.Context(), cacheMoves, fmt.Sprintf("a promotion (%s) to %q to be on record", kind, to), func(group *v1alpha1.MysqlFailoverGroup) error {
		c := group.Status.Cache
		if c == nil || c.LastPromotion == nil || c.LastPromotion.Kind != kind || to != "" && c.LastPromotion.To != to {
			return fmt.Errorf("the last one is %+v; %s", lastPromotion(group), stage.DescribeCache(group))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := lastPromotion(group)
	t.Logf("on record: %+v", p)
	return p
}

// followed waits until the cache has followed MySQL's planned failover with every session. On a machine that is short of processors the old
// master may be given its role back once because the budget ran out, and then the master comes home; that may be the only cause.
// What is on record, or an event, from before the failover says nothing of it.
func followed(t *testing.T, g *stage.Group, to string, since time.Time) {
	t.Helper()
	group, err := g.AwaitCache(t.Context(), cacheMoves, fmt.Sprintf("the cache to follow to %q", to), func(group *v1alpha1.MysqlFailoverGroup) error {
		if p := lastPromotion(group); p.At.Time.Before(since) || p.To != to || p.Kind != v1alpha1.CacheMovePlanned && p.Kind != v1alpha1.CacheMoveHome {
			return fmt.Errorf("the last one is %+v; %s", p, stage.DescribeCache(group))
		}
		return nil
	})
	if err != nil {
		events, _ := g.Events(t.Context())
		t.Fatalf("%v\n%s", err, strings.Join(events, "\n"))
	}
	p := lastPromotion(group)
	t.Logf("on record: %+v", p)
	if !p.SessionsPreserved || p.Method != v1alpha1.CacheByTakeOver {
		t.Errorf("a planned failover did not keep the sessions: %+v", p)
	}
	if p.Kind == v1alpha1.CacheMoveHome {
		checkEventSince(t, g, since, string(v1alpha1.ReasonCacheMoveFailed), "it did not take over within")
	}
}

func lastPromotion(group *v1alpha1.MysqlFailoverGroup) v1alpha1.CachePromotion {
	if group.Status.Cache == nil || group.Status.Cache.LastPromotion == nil {
		return v1alpha1.CachePromotion{}
	}
	return *group.Status.Cache.LastPromotion
}

// A group of before gets a cache of Valkey with TLS, which follows the role: with all sessions by a planned failover, and without the
// old site when that is lost; a cache that is lost alone comes home. MySQL notices none of it.
func TestCacheFollowsTheRole(t *testing.T) {
	g, _ := whole(t)
	afterCooldown(t)
	w := witnesses(t, g)
	group := cacheOn(t, g, stage.CacheSpec(v1alpha1.CacheValkey))
	if group.Spec.TLS == nil {
		t.Fatal("the shared group has no TLS, so its cache has none either")
	}

	planned := sessions(t, g, "planned")
	sleep(t, 2*time.Second)
	at, since := load.Now(), time.Now()
	to := moveRole(t, g)
	followed(t, g, to, since)
	cacheHome(t, g, cacheMoves)
	sleep(t, 2*time.Second)
	keptSessions(t, planned, at)
	if out := onLab(t, "password of the cache", strings.ReplaceAll(commandsOf(t, "cache.md", "password of the cache"), "-n shop", "-n "+g.Namespace)); !strings.Contains(out, "role:master") {
		t.Errorf("the commands of docs/cache.md do not reach the master: %q", out)
	}
	// From before the cache was turned on: neither that nor the move may have cost a row.
	if v, _ := judge(t, w, at); len(v.Missing) > 0 || v.Lost > 0 || v.Pause.Length() > tooLong {
		t.Errorf("%d rows are missing, %d reported lost, clients waited %s", len(v.Missing), v.Lost, v.Pause.Length())
	}

	cacheAlone(t, g, to)
	cacheEmergency(t, g, to)

	before := mysqlPods(t, g)
	if err := setSpec(t.Context(), g, func(s *v1alpha1.MysqlFailoverGroupSpec) { s.Cache.Enabled = false }); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), cacheUp, "the cache to go", g.CacheNotGone); err != nil {
		t.Error(err)
	}
	samePods(t, g, before, "turning the cache off")
}

// cacheAlone loses the master's pod and nothing else: another site's cache takes the traffic, and gives it back.
func cacheAlone(t *testing.T, g *stage.Group, active string) {
	t.Helper()
	epoch := cacheHome(t, g, cacheMoves).Status.Epoch
	w := sessions(t, g, "alone")
	if err := g.DeleteCachePod(t.Context(), active, true); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitCache(t.Context(), cacheMoves, "another site's cache to take the traffic", func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := group.Status.Cache; c == nil || c.ActiveSite == active || c.ActiveSite == "" {
			return errors.New(stage.DescribeCache(group))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if p := promoted(t, g, v1alpha1.CacheMoveHome, active); !p.SessionsPreserved || p.Method != v1alpha1.CacheByTakeOver {
		t.Errorf("the way home did not keep the sessions: %+v", p)
	}
	if after := cacheHome(t, g, cacheMoves); after.Status.Epoch != epoch || after.Status.ActiveSite != active {
		t.Errorf("MySQL's role moved with the cache's pod: epoch %d to %d, active %s", epoch, after.Status.Epoch, after.Status.ActiveSite)
	}
	endSessions(t, w)
}

// cacheEmergency loses the active site: MySQL fails over, and the cache follows with what its replica has.
func cacheEmergency(t *testing.T, g *stage.Group, active string) {
	t.Helper()
	w := sessions(t, g, "emergency")
	watch := g.WatchCache(t.Context())
	t.Cleanup(watch.Stop)
	kill := fault(t, "node-kill")
	if _, err := g.Break(t.Context(), kill, active); err != nil {
		t.Fatal(err)
	}
	group, err := g.Await(t.Context(), tooLong, "another site to be active", func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.ActiveSite == active || group.Status.Transition != nil {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	to := group.Status.ActiveSite
	if _, err := g.AwaitCache(t.Context(), cacheMoves, "the cache's master to be on "+to, func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := group.Status.Cache; c == nil || c.ActiveSite != to || c.Transition != nil {
			return errors.New(stage.DescribeCache(group))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	sleep(t, time.Second)
	watch.Stop()
	t.Logf("on record: %v", watch.Said())
	// Before MySQL fails over its lease has to run out, so the cache may have gone another way to where it is now.
	if !slices.ContainsFunc(watch.Seen(), func(p v1alpha1.CachePromotion) bool {
		return !p.SessionsPreserved && p.Reason != "" && p.Method == v1alpha1.CacheByPromotion
	}) {
		t.Errorf("the old master was dead, and no record says that sessions may be lost: %v", watch.Said())
	}
	if err := w.AwaitCommit(t.Context(), cacheMoves); err != nil {
		t.Error(err)
	}
	endSessions(t, w)
	if err := g.Undo(t.Context(), kill, active); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	cacheHome(t, g, cacheMoves)
}

// The same commands as Dragonfly has, spoken by a proxy in front of Valkey: the real one cannot be had in the lab. The old master ends
// itself after the take-over and comes back as a replica.
func TestDragonflysCommandsKeepTheSessions(t *testing.T) {
	g, _ := whole(t)
	afterCooldown(t)
	cacheOn(t, g, stage.CacheSpec(v1alpha1.CacheDragonfly))
	w := sessions(t, g, "dragonfly")
	sleep(t, 2*time.Second)
	at, since := load.Now(), time.Now()
	to := moveRole(t, g)
	followed(t, g, to, since)
	cacheHome(t, g, cacheMoves)
	sleep(t, 2*time.Second)
	keptSessions(t, w, at)
}
