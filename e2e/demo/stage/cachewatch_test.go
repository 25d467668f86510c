// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestEveryPromotionIsSeenOnce(t *testing.T) {
	at := func(seconds int64, to string) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Status.Cache = &v1alpha1.CacheStatus{LastPromotion: &v1alpha1.CachePromotion{At: metav1.NewMicroTime(time.Unix(seconds, 0)), To: to}}
		return g
	}
	w := &CacheWatch{}
	w.last = *at(1, "east").Status.Cache.LastPromotion // from before
	for _, g := range []*v1alpha1.MysqlFailoverGroup{{}, at(1, "east"), at(2, "west"), at(2, "west"), at(3, "east")} {
		w.Note(g)
	}
	if seen := w.Seen(); len(seen) != 2 || seen[0].To != "west" || seen[1].To != "east" {
		t.Errorf("seen %+v", seen)
	}
}

func TestACacheIsWholeOnlyIfAllFollowOneMaster(t *testing.T) {
	group := func(change func(*v1alpha1.CacheStatus)) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "west"}}
		g.Status.ActiveSite = "east"
		g.Status.Cache = &v1alpha1.CacheStatus{ActiveSite: "east", Sites: []v1alpha1.CacheSiteStatus{
			{Name: "east", Role: v1alpha1.CacheMaster}, {Name: "west", Role: v1alpha1.CacheReplica, Link: "Up"},
		}}
		change(g.Status.Cache)
		return g
	}
	for name, c := range map[string]struct {
		change      func(*v1alpha1.CacheStatus)
		whole, home bool
	}{
		"whole":       {func(*v1alpha1.CacheStatus) {}, true, true},
		"moving":      {func(c *v1alpha1.CacheStatus) { c.Transition = &v1alpha1.CacheTransition{} }, false, false},
		"no master":   {func(c *v1alpha1.CacheStatus) { c.ActiveSite = "" }, false, false},
		"two masters": {func(c *v1alpha1.CacheStatus) { c.Sites[1].Role = v1alpha1.CacheMaster }, false, false},
		"syncing":     {func(c *v1alpha1.CacheStatus) { c.Sites[1].Link = "Syncing" }, false, false},
		"one unknown": {func(c *v1alpha1.CacheStatus) { c.Sites = c.Sites[:1] }, false, false},
		"away": {func(c *v1alpha1.CacheStatus) {
			c.ActiveSite, c.Sites[0], c.Sites[1] = "west", v1alpha1.CacheSiteStatus{Name: "east", Role: v1alpha1.CacheReplica, Link: "Up"}, v1alpha1.CacheSiteStatus{Name: "west", Role: v1alpha1.CacheMaster}
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(c.change)
			if whole := CacheNotWhole(g) == nil; whole != c.whole {
				t.Errorf("whole = %t", whole)
			}
			if home := CacheNotHome(g) == nil; home != c.home {
				t.Errorf("home = %t", home)
			}
		})
	}
	if CacheNotHome(&v1alpha1.MysqlFailoverGroup{}) == nil {
		t.Error("a group without a cache has a whole one")
	}
}
