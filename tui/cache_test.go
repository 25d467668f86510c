// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// withCache adds a cache store to a group: its master is in paris, and both others follow.
func withCache(g *v1alpha1.MysqlFailoverGroup) *v1alpha1.MysqlFailoverGroup {
	g.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey, MaxMemory: resource.MustParse("512Mi")}
	g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCacheReady, Status: metav1.ConditionTrue, Reason: "AsExpected"})
	used := resource.MustParse("120Mi")
	opened := g.Status.Failovers[0].OpenedAt.Time
	g.Status.Cache = &v1alpha1.CacheStatus{
		ActiveSite: "paris",
		Sites: []v1alpha1.CacheSiteStatus{
			{Name: "paris", Role: v1alpha1.CacheMaster, UsedMemory: &used},
			{Name: "frankfurt", Role: v1alpha1.CacheReplica, Link: "Up", OffsetBehind: pointer(int64(1536)), UsedMemory: &used},
			{Name: "madrid", Role: v1alpha1.CacheReplica, Link: "Syncing", UsedMemory: &used},
		},
		LastPromotion: &v1alpha1.CachePromotion{At: metav1.NewMicroTime(opened.Add(100 * time.Millisecond)), Kind: v1alpha1.CacheMovePlanned, From: "frankfurt", To: "paris",
			Method: v1alpha1.CacheByTakeOver, SessionsPreserved: true, TookMillis: 214},
	}
	return g
}

// cached goes on with a cache store in orders.
func cached(s *story) *story {
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{withCache(object("orders", 7, "paris", "frankfurt", "madrid"))}, At: s.at.Add(ahead)})
	return s
}

// cacheFollows goes on with the cache's move beside a failover that is under way: the old master is silent with its site.
func cacheFollows(s *story) *story {
	g := withCache(object("orders", 8, "paris", "frankfurt", "madrid"))
	g.Status.ActiveSite, g.Status.ActiveSiteSince, g.Status.Phase = "frankfurt", nil, v1alpha1.GroupFailingOver
	g.Status.Transition = &v1alpha1.Transition{
		Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "paris", To: "frankfurt", Reason: "ActiveSiteSilent",
		DetectedAt: metav1.NewMicroTime(s.at.Add(-13 * time.Second)), StartedAt: metav1.NewMicroTime(s.at.Add(-9 * time.Second)),
	}
	g.Status.Cache.ActiveSite = "frankfurt"
	g.Status.Cache.Sites[0] = v1alpha1.CacheSiteStatus{Name: "paris"}
	g.Status.Cache.Sites[1].Role, g.Status.Cache.Sites[1].Link, g.Status.Cache.Sites[1].OffsetBehind = v1alpha1.CacheMaster, "", nil
	g.Status.Cache.LastPromotion = &v1alpha1.CachePromotion{At: metav1.NewMicroTime(s.at.Add(-6 * time.Second)), Kind: v1alpha1.CacheMoveEmergency, From: "paris", To: "frankfurt",
		Method: v1alpha1.CacheByPromotion, TookMillis: 3120, Reason: "Gone"}
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{g}, At: s.at.Add(ahead)})
	return s
}

// TestCacheStep: how far the cache is in a failover that unfolds.
func TestCacheStep(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.CacheStatus)
		want   string
	}{
		"Done": {func(*v1alpha1.CacheStatus) {}, "[x] +7.0s   cache       sessions NOT preserved [Gone], frankfurt has the traffic"},
		"Next": {func(c *v1alpha1.CacheStatus) { c.ActiveSite = "paris" }, "[ ]         cache       follows to frankfurt"},
		"Now": {func(c *v1alpha1.CacheStatus) {
			c.ActiveSite, c.Transition = "", &v1alpha1.CacheTransition{Kind: v1alpha1.CacheMoveEmergency, To: "frankfurt"}
		}, "[>] +13 s   cache       moves to frankfurt"},
		"Before": {func(c *v1alpha1.CacheStatus) { c.LastPromotion = nil }, "[x]         cache       frankfurt had the traffic already"},
	} {
		s := cacheFollows(failingOver(cached(begin(Options{Group: "orders"}))))
		g := s.m.fleet.groups["shop/orders"]
		tc.change(g.object.Status.Cache)
		s.m.fleet.rebuild(g)
		s.m.width, s.m.height = 200, 60
		if got := s.m.frame().Bare(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: want %q:\n%s", name, tc.want, got)
		}
	}
}

// TestCacheNews: a change of the master is news, and one that lost sessions says so.
func TestCacheNews(t *testing.T) {
	s := begin(Options{Group: "orders"})
	at := s.at
	tell := func(c *wire.CacheStatus) {
		g := told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0))
		g.Cache = c
		s.tell(false, g)
	}
	moved := func(n int, preserved bool) *wire.CacheStatus {
		return &wire.CacheStatus{ActiveSite: "rome", LastPromotion: &wire.CachePromotion{At: at.Add(time.Duration(n) * time.Second), From: "paris", To: "rome", SessionsPreserved: preserved, Reason: map[bool]string{false: "Gone"}[preserved]}}
	}
	before := len(s.m.fleet.groups["shop/orders"].news)
	tell(&wire.CacheStatus{ActiveSite: "paris"})
	tell(moved(1, true))
	tell(moved(1, true))
	tell(moved(2, false))
	tell(&wire.CacheStatus{LastPromotion: moved(2, false).LastPromotion})
	var got []string
	for _, i := range s.m.fleet.groups["shop/orders"].news[before:] {
		got = append(got, i.words)
	}
	want := []string{"cache: master paris -> rome, sessions preserved", "cache: master paris -> rome, sessions NOT preserved [Gone]", "cache: traffic rome -> -"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCacheByTheOperatorAlone: where the custom resource cannot be read, the operator's words say the same of the cache.
func TestCacheByTheOperatorAlone(t *testing.T) {
	s := newStory(Options{Namespace: "shop", Group: "orders"})
	g := told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0))
	g.Cache = &wire.CacheStatus{
		Ready: pointer(false), Reason: "Because", Message: "the words", ActiveSite: "paris", Transition: &wire.CacheTransition{Kind: "Home", From: "paris", To: "frankfurt", StartedAt: s.at},
		LastPromotion: &wire.CachePromotion{At: s.at, Kind: "Planned", From: "frankfurt", To: "paris", Method: "TakeOver", SessionsPreserved: true, TookMillis: 214},
		Sites:         []wire.CacheSiteStatus{{Name: "paris", Role: "master", UsedMemoryBytes: pointer(int64(2048))}, {Name: "frankfurt", Role: "replica", Link: "Up", BehindBytes: pointer(int64(7))}},
	}
	s.tell(true, g)
	s.m.width, s.m.height = 120, 60
	lines := strings.Split(s.m.frame().Bare(), "\n")
	for _, want := range []string{"Cache     paris master, has the traffic, 2.0Ki", "frankfurt replica, link up, 7 B behind", "Moving    paris → frankfurt, home, for 0s", "took 214ms, sessions preserved", "Problem   the words [Because]"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("lacks %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
