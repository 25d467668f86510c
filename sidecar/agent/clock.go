// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// Clock tells the instant.
type Clock func() fence.Instant

// NewClock returns a clock on CLOCK_BOOTTIME. Unlike the monotonic clock of Go it also counts while the machine is
// suspended: a lease must not survive a sleep during which another site was opened.
func NewClock() (Clock, error) {
	begin, err := bootTime()
	if err != nil {
		return nil, fmt.Errorf("read boot time: %w", err)
	}
	// Time never goes backwards here, even if a later reading should fail.
	fallback := time.Now()
	return func() fence.Instant {
		wall := time.Now()
		now, err := bootTime()
		if err != nil {
			return fence.Instant{Mono: wall.Sub(fallback), Wall: wall}
		}
		return fence.Instant{Mono: now - begin, Wall: wall}
	}, nil
}

func bootTime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
