// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/internal/clock"
)

const (
	// BeatEvery is how often a running process beats.
	BeatEvery = time.Second
	// frozenAfter is shorter than the time that another operator needs to become the leader.
	frozenAfter = 8 * time.Second
	// thawing is how long a process that was frozen answers no site: longer than the leader election takes to notice that
	// the Lease is lost, and to end this process.
	thawing = 12 * time.Second
)

// Pulse notices that this process was stopped for a while (SIGSTOP, a starved or suspended machine). When it continues, another
// operator may lead and have begun a failover: this one must not pass on what it knows any more, not even once (I4).
type Pulse struct {
	mu     sync.Mutex
	last   time.Time
	thawed time.Time
}

// Beat notes that this process runs.
func (p *Pulse) Beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && clock.Elapsed(p.last, now) > frozenAfter {
		p.thawed = now
	}
	p.last = now
}

// ThawedAt is when this process last continued after it was stopped; zero if it never was.
func (p *Pulse) ThawedAt(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && clock.Elapsed(p.last, now) > frozenAfter {
		return now // it continues right now, before the first beat
	}
	return p.thawed
}

// Steady is true if this process was not stopped recently. Since it continued counts by the clock that stands still while the machine is
// suspended: the leader election needs that long of running time.
func (p *Pulse) Steady(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return clock.Elapsed(p.last, now) <= frozenAfter && now.Sub(p.thawed) > thawing
}
