// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"
)

// PlainReport counts the clients of a site that are connected without TLS. It names none, because anybody may read it.
type PlainReport struct {
	// Connections were open at the last look. One that is open for a moment only may be missed.
	Connections int `json:"connections"`
	// QuietMillis is for how long this run of the sidecar has seen none; 0 if it sees some.
	QuietMillis int64 `json:"quietMillis"`
}

// Count is the number of connections, as far as it can be one.
func (p PlainReport) Count() int { return min(max(p.Connections, 0), math.MaxInt32) }

// Quiet is for how long none was seen; at most a day, which is as good as any longer time.
func (p PlainReport) Quiet() time.Duration {
	const most = 24 * time.Hour
	return time.Duration(min(max(p.QuietMillis, 0), most.Milliseconds())) * time.Millisecond
}
