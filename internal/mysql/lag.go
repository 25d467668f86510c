// SPDX-License-Identifier: Apache-2.0

package mysql

import "time"

// silentHeartbeats is how many heartbeat periods a source may be silent before it counts as unheard.
const silentHeartbeats = 3

// lagFacts are the times, in seconds since 1970 with 0 for "never", from which the lag of a replica follows. Original
// commits are on the clock of the server that committed, everything else on the replica's own.
type lagFacts struct {
	now, interval float64
	// connected: the receiver has a connection. applying: the applier runs. caughtUp: retrieved ⊆ executed.
	connected, applying, caughtUp bool
	// heartbeat is when the last one came, queuedAt when the last transaction was received, queued its original commit.
	heartbeat, queued, queuedAt float64
	// pending are the original commits of the transactions that are being received or applied at this moment.
	pending []float64
}

// lag is how far a replica is behind, by its own clock alone or by two clocks.
type lag struct {
	seconds float64
	// clocks is true if seconds is a moment on the replica's clock minus one on the source's. Then it is wrong by as much as the
	// replica's clock is ahead, and may be negative.
	clocks bool
}

// of returns the lag of a replica; nil if it is not known.
func (f lagFacts) of() *lag {
	// Without a connection, the source may have any number of transactions that this replica has never heard of.
	if !f.connected {
		return nil
	}
	// If no applier works on a backlog, its age does not show anywhere.
	if !f.caughtUp && !f.applying {
		return nil
	}
	oldest := 0.0
	for _, t := range f.pending {
		if t > 0 && (oldest == 0 || t < oldest) {
			oldest = t
		}
	}
	if oldest > 0 {
		// Its age only grows while it is pending, so this needs no fresh contact: it can be too small, but not 0 for long.
		return &lag{f.now - oldest, true}
	}
	// A connection can be cut without either end knowing: only a recent word from the source counts.
	if f.now-max(f.heartbeat, f.queuedAt) > silentHeartbeats*f.interval {
		return nil
	}
	switch {
	case !f.caughtUp && f.queued == 0:
		return nil
	case !f.caughtUp:
		// Between two transactions no worker holds one; then the newest received one is the best bound there is.
		return &lag{f.now - f.queued, true}
	case f.queuedAt > f.heartbeat && f.queued > 0:
		// The source is busy, and heartbeats come only at the end of its log: the lag is that of the last receipt.
		return &lag{f.queuedAt - f.queued, true}
	default:
		return &lag{}
	}
}

// with corrects the lag by how much the replica's clock is ahead of the source's.
func (l *lag) with(ahead float64) *float64 {
	if l == nil {
		return nil
	}
	seconds := l.seconds
	if l.clocks {
		seconds = max(0, seconds-ahead)
	}
	return &seconds
}

// LagBeside is LagSeconds for a replica whose clock is so many seconds ahead of its source's.
func (r ReplicaStatus) LagBeside(ahead float64) *float64 { return r.lag.with(ahead) }

// ReplicaBehind is a replica that is so many seconds behind by the clocks of two servers.
func ReplicaBehind(seconds float64) *ReplicaStatus {
	l := &lag{seconds, true}
	return &ReplicaStatus{lag: l, LagSeconds: l.with(0)}
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
