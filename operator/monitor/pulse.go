// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"sync"
	"time"
)

const (
	beatEvery = time.Second
	// frozenAfter is shorter than the time in which another operator could have become the leader.
	frozenAfter = 8 * time.Second
	// thawing is how long a process that was frozen answers nobody: longer than the leader election takes to notice that
	// the Lease is lost, and to end this process.
	thawing = 12 * time.Second
)

// pulse notices that this process was stopped for a while (SIGSTOP, a starved machine). When it goes on, another operator
// may lead and have begun a failover: what this one knows must not be told any more, not even once (I4).
type pulse struct {
	mu     sync.Mutex
	last   time.Time
	thawed time.Time
}

// run beats until ctx ends.
func (p *pulse) run(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		p.beat(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {
		p.thawed = now
	}
	p.last = now
}

// steady is true if this process was not stopped lately.
func (p *pulse) steady(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.last) <= frozenAfter && now.Sub(p.thawed) > thawing
}
