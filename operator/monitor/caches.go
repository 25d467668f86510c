// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Caches is whoever looks after the caches. Both are answered from memory; a Caches that is nil, slow or hangs changes nothing here.
type Caches interface {
	// Moved leaves word of what was decided and is durable.
	Moved(namespace, group string, now cache.MySQL)
	// Readiness says whether a move to a site would keep the sessions.
	Readiness(namespace, group, site string) cache.Readiness
}

// cachePatience is how long this loop waits for an answer that is there already.
const cachePatience = 20 * time.Millisecond

// cacheDesk is how the loop of a group speaks to its Caches. There is never more than one call of each kind under way, so one that
// never returns costs two goroutines and nothing else.
type cacheDesk struct {
	port Caches
	key  types.NamespacedName
	// asking is true while a question is not answered.
	asking atomic.Bool

	mu      sync.Mutex
	telling bool
	next    *cache.MySQL
	last    cache.MySQL
}

// tell has the caches told of what is durable now, if that is something else than last time. It does not wait for that. What is new
// by the time the last word was taken replaces what was to be told.
func (c *cacheDesk) tell(d failover.Durable) {
	if c.port == nil {
		return
	}
	now := cache.MySQL{Active: d.ActiveSite, Epoch: d.Epoch}
	if d.Transition != nil {
		now.Moving, now.Kind = true, d.Transition.Kind
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now == c.last {
		return
	}
	c.last, c.next = now, &now
	if !c.telling {
		c.telling = true
		go c.deliver()
	}
}

func (c *cacheDesk) deliver() {
	for {
		c.mu.Lock()
		now := c.next
		c.next = nil
		c.telling = now != nil
		c.mu.Unlock()
		if now == nil {
			return
		}
		c.port.Moved(c.key.Namespace, c.key.Name, *now)
	}
}

// behind says why the cache of a site has not caught up; empty if it has, or if nobody says so at once.
func (c *cacheDesk) behind(site string) string {
	if c.port == nil || !c.asking.CompareAndSwap(false, true) {
		return ""
	}
	answers := make(chan cache.Readiness, 1)
	go func() {
		defer c.asking.Store(false)
		answers <- c.port.Readiness(c.key.Namespace, c.key.Name, site)
	}()
	timer := time.NewTimer(cachePatience)
	defer timer.Stop()
	select {
	case r := <-answers:
		if r.Known && !r.Synced {
			return r.Why
		}
	case <-timer.C:
	}
	return ""
}

// noteCache asks for the cache of the site that a planned failover is to move to, as long as nothing has begun.
func (l *loop) noteCache(group *v1alpha1.MysqlFailoverGroup, s *failover.Snapshot) {
	to := s.Policy.PlannedTo
	if group.Spec.Cache == nil || !group.Spec.Cache.Enabled || to == "" || s.Status.Transition != nil {
		return
	}
	for i := range s.Sites {
		if s.Sites[i].Name == to {
			s.Sites[i].CacheBehind = l.caches.behind(to)
		}
	}
}

// cachePolicy is how a planned failover waits for the cache of its target.
func cachePolicy(group *v1alpha1.MysqlFailoverGroup) (p failover.CachePolicy) {
	if c := group.Spec.Cache; c != nil && c.Enabled {
		p.SyncTimeout, p.Refuses = c.Planned.SyncTimeout.Duration, c.Planned.OnTimeout == v1alpha1.CacheRefuse
	}
	return p
}
