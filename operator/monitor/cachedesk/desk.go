// SPDX-License-Identifier: Apache-2.0

// Package cachedesk lets the poll loop of a group speak to the code that looks after its caches, without ever waiting for it.
package cachedesk

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Port looks after the caches. It answers both calls from memory; a Port that is nil, slow or hangs changes nothing here.
type Port interface {
	// Moved passes on a decision that is durable.
	Moved(namespace, group string, now cache.MySQL)
	// Readiness says whether a move to a site would keep the sessions.
	Readiness(namespace, group, site string) cache.Readiness
}

// Patience is how long this loop waits for an answer that should be ready.
const Patience = 20 * time.Millisecond

// Desk passes the calls of a group's loop to its Port. At most one call of each kind is under way, so a Port that never
// returns costs two goroutines and nothing else.
type Desk struct {
	Port Port
	Key  types.NamespacedName
	// asking is true while a question waits for its answer.
	asking atomic.Bool

	mu      sync.Mutex
	telling bool
	next    *cache.MySQL
	last    cache.MySQL
}

// Tell passes on what is durable now, if that has changed since the last call. It does not wait for the Port. If the Port is still
// busy, only the newest news is kept for it.
func (c *Desk) Tell(d failover.Durable) {
	if c.Port == nil {
		return
	}
	now := cache.MySQL{Active: d.ActiveSite, Epoch: d.Epoch}
	if d.Transition != nil {
		now.Moving, now.Kind, now.From = true, d.Transition.Kind, d.Transition.From
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

func (c *Desk) deliver() {
	for {
		c.mu.Lock()
		now := c.next
		c.next = nil
		c.telling = now != nil
		c.mu.Unlock()
		if now == nil {
			return
		}
		c.Port.Moved(c.Key.Namespace, c.Key.Name, *now)
	}
}

// Behind says why the cache of a site has not caught up; empty if it has. Known is false if the Port does not answer at once, or does not know.
func (c *Desk) Behind(site string) (why string, known bool) {
	if c.Port == nil || !c.asking.CompareAndSwap(false, true) {
		return "", false
	}
	answers := make(chan cache.Readiness, 1)
	go func() {
		defer c.asking.Store(false)
		answers <- c.Port.Readiness(c.Key.Namespace, c.Key.Name, site)
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case r := <-answers:
		if r.Known && !r.Synced {
			return r.Why, true
		}
		return "", r.Known
	case <-timer.C:
	}
	return "", false
}
