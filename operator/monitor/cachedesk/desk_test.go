// SPDX-License-Identifier: Apache-2.0

package cachedesk

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// stubborn is a Port that takes its time, or never answers.
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
		known   bool
		patient bool
	}{
		"nobody":            {},
		"it answers":        {port: &stubborn{answer: behind}, want: "it lags", known: true},
		"it has caught up":  {port: &stubborn{answer: cache.Readiness{Known: true, Synced: true, Why: "it lags"}}, known: true},
		"it does not know":  {port: &stubborn{answer: cache.Readiness{Why: "it lags"}}},
		"it is slow":        {port: &stubborn{answer: behind, takes: time.Second}},
		"it hangs for ever": {port: &stubborn{answer: behind, hangs: make(chan struct{})}},
		"it needs 10 ms":    {port: &stubborn{answer: behind, takes: 10 * time.Millisecond}, want: "it lags", known: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &Desk{}
				if tc.port != nil {
					if tc.port.hangs != nil {
						tc.port.hangs = make(chan struct{}) // of this bubble
					}
					desk.Port = tc.port
				}
				began := time.Now()
				if got, known := desk.Behind("west"); got != tc.want || known != tc.known {
					t.Errorf("behind: %q, known %t, want %q, %t", got, known, tc.want, tc.known)
				}
				for epoch := range 100 {
					desk.Tell(failover.Durable{ActiveSite: "west", Epoch: int64(epoch + 1)})
				}
				if took := time.Since(began); took > Patience {
					t.Errorf("it took %s", took)
				}
				if tc.port == nil {
					return
				}
				desk.Behind("west")
				desk.Behind("west")
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
		desk := &Desk{Port: port}
		for _, d := range []failover.Durable{
			{ActiveSite: "east", Epoch: 3}, {ActiveSite: "east", Epoch: 3},
			{ActiveSite: "west", Epoch: 4, Transition: &failover.Transition{Kind: v1alpha1.FailoverPlanned, From: "east"}}, {ActiveSite: "west", Epoch: 4},
		} {
			desk.Tell(d)
			synctest.Wait()
		}
		want := []cache.MySQL{{Active: "east", Epoch: 3}, {Active: "west", Epoch: 4, Moving: true, Kind: v1alpha1.FailoverPlanned, From: "east"}, {Active: "west", Epoch: 4}}
		if !slices.Equal(port.told, want) {
			t.Errorf("told %+v", port.told)
		}
	})
}
