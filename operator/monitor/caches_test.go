// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/cachedesk"
)

// lagging looks after caches that have not caught up.
type lagging struct {
	mu   sync.Mutex
	told []cache.MySQL
}

func (c *lagging) Moved(_, _ string, now cache.MySQL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, now)
}

func (c *lagging) Readiness(string, string, string) cache.Readiness {
	return cache.Readiness{Known: true, Why: "it lags"}
}

// The caches are told of nothing that is not durable: they would move the sessions to where MySQL may never be.
func TestTheCachesHearOnlyWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &lagging{}
		l := testLoop(t, &pushes{}, reader{err: errors.New("away")})
		l.caches.Port = port
		l.durable, l.loaded = failover.Durable{Epoch: 3, ActiveSite: "east"}, true
		l.authority.Set(statement("east", 3, false), nil, time.Now())
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		_ = l.carryOut(t.Context(), group, failover.Snapshot{Status: l.durable}, begun(4))
		synctest.Wait()
		if len(port.told) != 0 {
			t.Errorf("told %+v", port.told)
		}
	})
}

// silent does not know.
type silent struct{ lagging }

func (*silent) Readiness(string, string, string) cache.Readiness { return cache.Readiness{} }

// Who would rather not move than lose sessions does not move while nobody knows whether they would be lost; everybody else moves.
func TestWhatIsNotKnownOfACache(t *testing.T) {
	for what, want := range map[v1alpha1.CacheOnTimeout]string{v1alpha1.CacheProceed: "", v1alpha1.CacheRefuse: "whether the cache of west has caught up is not known"} {
		for name, port := range map[string]cachedesk.Port{"does not know": &silent{}, "no port": nil} {
			l := testLoop(t, &pushes{}, reader{})
			l.caches.Port = port
			group := &v1alpha1.MysqlFailoverGroup{}
			group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Planned: v1alpha1.CachePlanned{OnTimeout: what}}
			s := failover.Snapshot{Policy: failover.Policy{PlannedTo: "west"}, Sites: []failover.Site{{Name: "east"}, {Name: "west"}}}
			l.noteCache(group, &s)
			if s.Sites[0].CacheBehind != "" || s.Sites[1].CacheBehind != want {
				t.Errorf("%s, %s: %+v", what, name, s.Sites)
			}
		}
	}
}

// Only a planned failover that a person asks for, and that has not begun, is asked about.
func TestWhenTheCacheIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		enabled bool
		to      string
		moving  bool
		want    string
	}{
		"asked for":  {enabled: true, to: "west", want: "it lags"},
		"no cache":   {to: "west"},
		"no request": {enabled: true},
		"under way":  {enabled: true, to: "west", moving: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where the moment for an answer does not pass while it is under way
				l := testLoop(t, &pushes{}, reader{})
				l.caches.Port = &lagging{}
				group := &v1alpha1.MysqlFailoverGroup{}
				group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: tc.enabled, Planned: v1alpha1.CachePlanned{SyncTimeout: metav1.Duration{Duration: time.Minute}, OnTimeout: v1alpha1.CacheRefuse}}
				s := failover.Snapshot{Policy: failover.Policy{PlannedTo: tc.to}, Sites: []failover.Site{{Name: "east"}, {Name: "west"}}}
				if tc.moving {
					s.Status.Transition = &failover.Transition{}
				}
				l.noteCache(group, &s)
				if s.Sites[0].CacheBehind != "" || s.Sites[1].CacheBehind != tc.want {
					t.Errorf("%+v", s.Sites)
				}
				want := failover.CachePolicy{}
				if tc.enabled {
					want = failover.CachePolicy{SyncTimeout: time.Minute, Refuses: true}
				}
				if got := cachePolicy(group); got != want {
					t.Errorf("policy %+v", got)
				}
			})
		})
	}
}
