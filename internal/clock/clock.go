// SPDX-License-Identifier: Apache-2.0

// Package clock measures how long ago something was in a process whose machine may have been suspended.
package clock

import "time"

// Elapsed is the time from since to now by whichever of the two clocks of a time.Time says more. Go's monotonic clock stands still while
// a machine is suspended (CLOCK_MONOTONIC), and the wall clock can be set back; neither makes an age look smaller than the other says.
// A wall clock that is set forward makes an age look larger, so use it where too old is the safe answer.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
