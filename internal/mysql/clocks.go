// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql/lag"
)

// LagBeside is LagSeconds for a replica whose clock is so many seconds ahead of its source's.
func (r ReplicaStatus) LagBeside(ahead float64) *float64 { return r.lag.With(ahead) }

// ReplicaBehind is a replica that is so many seconds behind by the clocks of two servers.
func ReplicaBehind(seconds float64) *ReplicaStatus {
	l := lag.ByClocks(seconds)
	return &ReplicaStatus{lag: l, LagSeconds: l.With(0)}
}

// readAheadMost is how long an answer may take for its server's clock to be known from it. The error is up to half of that.
const readAheadMost = 200 * time.Millisecond

// clockAhead is how far a server's clock is ahead of ours, if the server read now on it for this answer; nil if the answer took too long.
func clockAhead(now float64, asked time.Time, took time.Duration) *float64 {
	if took > readAheadMost {
		return nil
	}
	middle := asked.Add(took / 2)
	ahead := now - float64(middle.UnixMicro())/1e6
	return &ahead
}
