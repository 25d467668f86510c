// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

// Clock returns the present instant.
type Clock func() fence.Instant

// NewClock returns the clock of the watchdog. Unlike the monotonic clock of Go it also counts while the machine is
// suspended, and no time service slows it down: a lease must not survive a sleep during which another site was opened. The supervisor of
// mysqld reads the same clock, so a deadline means the same moment to both.
func NewClock() (Clock, error) {
	begin, err := watchdog.Now()
	if err != nil {
		return nil, fmt.Errorf("read the clock of leases: %w", err)
	}
	// Time never goes backwards here, even if a later reading fails.
	fallback := time.Now()
	return func() fence.Instant {
		wall := time.Now()
		now, err := watchdog.Now()
		if err != nil {
			return fence.Instant{Mono: begin + wall.Sub(fallback), Wall: wall}
		}
		return fence.Instant{Mono: now, Wall: wall}
	}, nil
}
