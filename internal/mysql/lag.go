// SPDX-License-Identifier: Apache-2.0

package mysql

// silentHeartbeats is after how many heartbeat periods without a word a source counts as unheard.
const silentHeartbeats = 3

// lagFacts are the times, in seconds since 1970 with 0 for "never", from which the lag of a replica is told. Original
// commits are on the clock of the server that committed, everything else on the replica's own.
type lagFacts struct {
	now, interval float64
	// connected: the receiver has a connection. applying: the applier runs. caughtUp: retrieved ⊆ executed.
	connected, applying, caughtUp bool
	// heartbeat is when the last one came, queuedAt when the last transaction was received, queued its original commit.
	heartbeat, queued, queuedAt float64
	// pending are original commits of transactions that are being received or applied at this moment.
	pending []float64
}

// seconds is the lag as ReplicaStatus.LagSeconds defines it.
func (f lagFacts) seconds() *float64 {
	// Without a connection the source may have any number of transactions that this replica has never heard of.
	if !f.connected {
		return nil
	}
	// A backlog that nobody works on has an age that is not visible anywhere.
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
		// Its age only grows while it is pending, so this needs no fresh contact: it can be too small, never 0 for long.
		return since(f.now, oldest)
	}
	// A connection can be cut without either end knowing: only a recent word from the source counts.
	if f.now-max(f.heartbeat, f.queuedAt) > silentHeartbeats*f.interval {
		return nil
	}
	switch {
	case !f.caughtUp && f.queued == 0:
		return nil
	case !f.caughtUp:
		// Between two transactions no worker holds one; the newest received is then the best bound there is.
		return since(f.now, f.queued)
	case f.queuedAt > f.heartbeat && f.queued > 0:
		// The source is busy, heartbeats come only at the end of its log: the lag is what it was at the last receipt.
		return since(f.queuedAt, f.queued)
	default:
		return since(f.now, f.now)
	}
}

// since is a duration that clock skew cannot make negative.
func since(now, then float64) *float64 {
	d := max(0, now-then)
	return &d
}
