// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"slices"
	"time"
)

// Watchdog is what the supervisor of mysqld is told: when it must kill mysqld unless it is told otherwise before.
type Watchdog struct {
	// Until is the deadline, on the clock of Instant.Mono; 0 means that mysqld is known to accept no commit.
	Until time.Duration
	// Sooner leaves an earlier deadline in force.
	Sooner bool
}

// Watch says what the supervisor of mysqld is to be told now. It is derived from the state alone and told in the same
// moment as the state changes: before the SQL of an opening is sent, and after a fence is proven. So a sidecar that
// hangs, dies or starves has said already until when it vouches for a writable mysqld (I4).
func Watch(s State, now Instant) Watchdog {
	switch {
	case !s.exposed:
		// mysqld accepts no commit. A sidecar that hangs beside it costs nothing, and readers keep their replica.
		return Watchdog{}
	case behindWindow(s, now):
		// Writable for a clone or a rotation, behind offline_mode: until the window ends, and a fence after it.
		w, _ := s.word.WindowFor(s.site.Name, now.Wall)
		return Watchdog{Until: now.Mono + w.Deadline.Sub(now.Wall) + s.limits.Fence}
	case slices.ContainsFunc(closers, func(c closer) bool { return c.blocks(s, now) }):
		// It has to be fenced. Answers that arrive meanwhile are under an epoch that the promotion gate does not count, so
		// they must not prolong anything (I2): the ladder's own deadline holds, or an earlier one.
		return Watchdog{Until: now.Mono + s.limits.Opening + s.limits.Fence, Sooner: true}
	default:
		// Open by right: for the lease, and the time that the ladder has when it ends. The promotion gate passes later.
		return Watchdog{Until: s.good + lease(s) + s.limits.Fence}
	}
}
