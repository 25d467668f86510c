// SPDX-License-Identifier: Apache-2.0

// Package lag computes how far a replica is behind, from what its server says of its threads. It is pure.
package lag

import "time"

// readAheadMost is how long an answer may take for its server's clock to be known from it. The error is up to half of that.
const readAheadMost = 200 * time.Millisecond

// Ahead is how far a server's clock is ahead of ours, in seconds, if the server read now on it for this answer; nil if the answer took too long.
func Ahead(now float64, asked time.Time, took time.Duration) *float64 {
	if took > readAheadMost {
		return nil
	}
	middle := asked.Add(took / 2)
	ahead := now - float64(middle.UnixMicro())/1e6
	return &ahead
}

// silentHeartbeats is how many heartbeat periods a source may be silent before it counts as unheard.
const silentHeartbeats = 3

// Facts are the times, in seconds since 1970 with 0 for "never", from which the lag of a replica follows. Original
// commits are on the clock of the server that committed, everything else on the replica's own.
type Facts struct {
	Now, Interval float64
	// Connected: the receiver has a connection. Applying: the applier runs. CaughtUp: retrieved ⊆ executed.
	Connected, Applying, CaughtUp bool
	// Heartbeat is when the last one came, QueuedAt when the last transaction was received, Queued its original commit.
	Heartbeat, Queued, QueuedAt float64
	// Pending are the original commits of the transactions that are being received or applied at this moment.
	Pending []float64
}

// Lag is how far a replica is behind, by its own clock alone or by two clocks.
type Lag struct {
	seconds float64
	// clocks is true if seconds is a moment on the replica's clock minus one on the source's. Then it is wrong by as much as the
	// replica's clock is ahead, and may be negative.
	clocks bool
}

// Of returns the lag of a replica; nil if it is not known.
func (f Facts) Of() *Lag {
	// Without a connection, the source may have any number of transactions that this replica has never heard of.
	if !f.Connected {
		return nil
	}
	// If no applier works on a backlog, its age does not show anywhere.
	if !f.CaughtUp && !f.Applying {
		return nil
	}
	oldest := 0.0
	for _, t := range f.Pending {
		if t > 0 && (oldest == 0 || t < oldest) {
			oldest = t
		}
	}
	if oldest > 0 {
		// Its age only grows while it is pending, so this needs no fresh contact: it can be too small, but not 0 for long.
		return &Lag{f.Now - oldest, true}
	}
	// A connection can be cut without either end knowing: only a recent word from the source counts.
	if f.Now-max(f.Heartbeat, f.QueuedAt) > silentHeartbeats*f.Interval {
		return nil
	}
	switch {
	case !f.CaughtUp && f.Queued == 0:
		return nil
	case !f.CaughtUp:
		// Between two transactions no worker holds one; then the newest received one is the best bound there is.
		return &Lag{f.Now - f.Queued, true}
	case f.QueuedAt > f.Heartbeat && f.Queued > 0:
		// The source is busy, and heartbeats come only at the end of its log: the lag is that of the last receipt.
		return &Lag{f.QueuedAt - f.Queued, true}
	default:
		return &Lag{}
	}
}

// With corrects the lag by how much the replica's clock is ahead of the source's.
func (l *Lag) With(ahead float64) *float64 {
	if l == nil {
		return nil
	}
	seconds := l.seconds
	if l.clocks {
		seconds = max(0, seconds-ahead)
	}
	return &seconds
}

// ByClocks is a lag of so many seconds by the clocks of two servers.
func ByClocks(seconds float64) *Lag { return &Lag{seconds, true} }
