// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"slices"
	"time"
)

// Watchdog is the order to the supervisor of mysqld: when to kill mysqld, unless the sidecar changes the order before.
type Watchdog struct {
	// Until is the deadline, on the clock of Instant.Mono; 0 means that mysqld is known to accept no commit.
	Until time.Duration
	// Sooner leaves an earlier deadline in force.
	Sooner bool
}

// Watch is the order for the supervisor of mysqld now. It follows from the state alone, and the sidecar gives it in the
// same moment as the state changes: before it sends the SQL of an opening, and after a fence is proven. So a sidecar
// that hangs, dies or starves has already said until when it vouches for a writable mysqld (I4).
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
		// It has to be fenced. Answers that arrive meanwhile belong to an epoch that the promotion gate does not count, so
		// they must not prolong anything (I2): the ladder's own deadline holds, or an earlier one.
		return Watchdog{Until: now.Mono + s.limits.Opening + s.limits.Fence, Sooner: true}
	default:
		// Open by right: until the lease ends, plus the time that the ladder then has. The promotion gate passes later.
		return Watchdog{Until: s.good + lease(s) + s.limits.Fence}
	}
}
