// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// stubborn is a Caches that takes its time, or never answers.
type stubborn struct {
	mu     sync.Mutex
	told   []cache.MySQL
	asked  int
	takes  time.Duration
	hangs  chan struct{}
	answer cache.Readiness
}

func (c *stubborn) wait() {
	if c.hangs != nil {
		<-c.hangs
	}
	time.Sleep(c.takes)
}

func (c *stubborn) Moved(_, _ string, now cache.MySQL) {
	c.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, now)
}

func (c *stubborn) Readiness(string, string, string) cache.Readiness {
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	c.wait()
	return c.answer
}

// I22: whoever looks after the caches may be absent, slow or hang: what is asked and told takes no time, and changes nothing.
func TestNobodyWaitsForTheCaches(t *testing.T) {
	behind := cache.Readiness{Known: true, Why: "it lags"}
	for name, tc := range map[string]struct {
		port    *stubborn
		want    string
		patient bool
	}{
		"nobody":            {},
		"it answers":        {port: &stubborn{answer: behind}, want: "it lags"},
		"it has caught up":  {port: &stubborn{answer: cache.Readiness{Known: true, Synced: true, Why: "it lags"}}},
		"it does not know":  {port: &stubborn{answer: cache.Readiness{Why: "it lags"}}},
		"it is slow":        {port: &stubborn{answer: behind, takes: time.Second}},
		"it hangs for ever": {port: &stubborn{answer: behind, hangs: make(chan struct{})}},
		"it needs 10 ms":    {port: &stubborn{answer: behind, takes: 10 * time.Millisecond}, want: "it lags"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &cacheDesk{}
				if tc.port != nil {
					if tc.port.hangs != nil {
						tc.port.hangs = make(chan struct{}) // of this bubble
					}
					desk.port = tc.port
				}
				began := time.Now()
				if got := desk.behind("west"); got != tc.want {
					t.Errorf("behind: %q, want %q", got, tc.want)
				}
				for epoch := range 100 {
					desk.tell(failover.Durable{ActiveSite: "west", Epoch: int64(epoch + 1)})
				}
				if took := time.Since(began); took > cachePatience {
					t.Errorf("it took %s", took)
				}
				if tc.port == nil {
					return
				}
				desk.behind("west")
				desk.behind("west")
				if tc.want == "" && (tc.port.takes > 0 || tc.port.hangs != nil) && tc.port.asked != 1 {
					t.Errorf("%d questions are under way at once", tc.port.asked)
				}
				if tc.port.hangs != nil {
					close(tc.port.hangs)
				}
				time.Sleep(time.Minute)
				if n := len(tc.port.told); n == 0 || n > 100 || tc.port.told[n-1].Epoch != 100 {
					t.Errorf("told %v: the last word is not what is durable last", tc.port.told)
				}
			})
		})
	}
}

// What is told is told once, and says what moves.
func TestWhatTheCachesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &stubborn{}
		desk := &cacheDesk{port: port}
		for _, d := range []failover.Durable{
			{ActiveSite: "east", Epoch: 3}, {ActiveSite: "east", Epoch: 3},
			{ActiveSite: "west", Epoch: 4, Transition: &failover.Transition{Kind: v1alpha1.FailoverPlanned}}, {ActiveSite: "west", Epoch: 4},
		} {
			desk.tell(d)
			synctest.Wait()
		}
		want := []cache.MySQL{{Active: "east", Epoch: 3}, {Active: "west", Epoch: 4, Moving: true, Kind: v1alpha1.FailoverPlanned}, {Active: "west", Epoch: 4}}
		if !slices.Equal(port.told, want) {
			t.Errorf("told %+v", port.told)
		}
	})
}

// The caches are told of nothing that is not durable: they would move the sessions to where MySQL may never be.
func TestTheCachesHearOnlyWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &stubborn{}
		l := testLoop(t, &pushes{}, reader{err: errors.New("away")})
		l.caches.port = port
		l.durable, l.loaded = failover.Durable{Epoch: 3, ActiveSite: "east"}, true
		l.authority.Set(statement("east", 3, false), time.Now())
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		_ = l.carryOut(t.Context(), group, failover.Snapshot{Status: l.durable}, begun(4))
		synctest.Wait()
		if len(port.told) != 0 {
			t.Errorf("told %+v", port.told)
		}
	})
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
			l := testLoop(t, &pushes{}, reader{})
			l.caches.port = &stubborn{answer: cache.Readiness{Known: true, Why: "it lags"}}
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
	}
}
