// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"strings"
)

// What stops an applier that cannot read its relay log, as mysqld 9.7 reports it. A log that is torn at its end is
// repaired by mysqld itself when it starts, so these are left: an empty log, one without a whole header and no complete
// transaction before it, damage in any log but the last one, damage while mysqld runs, and an index that names what is
// not there.
const (
	numberRelayLogRead = 13121
	numberApplierInit  = 13124 // what START REPLICA itself calls 1872
	numberReplicaFatal = 13117 // many things: its text says which
	// numberAnonymous is what a transaction without its head comes to. The log was rotated in its middle, and an applier that
	// starts again begins with the oldest log that is left (GTID_ONLY), which begins with the rest. No source with GTIDs sends one.
	numberAnonymous     = 1782
	textRelayLogNotOpen = "Could not open log file"
)

// uninitialized is true if the channel cannot be set up from what is on disk. Then the receiver cannot run either.
func (s channelState) uninitialized() bool { return s.applierErrno == numberApplierInit }

// unreadable is true if the applier was stopped by its relay log and by nothing else: an error of a transaction would
// come back with the same transaction, and a log that was fetched again would only hide it for a moment.
func (s channelState) unreadable() bool {
	switch {
	case s.applier != "OFF":
		return false // what runs can read
	case s.uninitialized(), s.applierErrno == numberRelayLogRead, s.applierErrno == numberAnonymous:
		return true
	}
	return s.applierErrno == numberReplicaFatal && strings.HasPrefix(s.applierError, textRelayLogNotOpen)
}

// refetch throws away a relay log that cannot be read and fetches it again by GTID positions. RESET REPLICA keeps the
// channel's configuration, the password too, and touches neither gtid_executed nor the data.
//
// That it may be thrown away without having been applied (I8) rests on three things. The channel's configuration is the
// one that was asked for, so all that is in the log came from this source: a change of source empties it. The caller asks
// to follow only the open active site, or in a failover the site that has what is missing once nothing is left to apply
// (operator/failover: shouldFollow, drained). And the receiver is connected: with a running receiver shouldFollow is true
// only if the active site's executed set holds all that this replica has retrieved; a dead source would keep the log.
func refetch(ctx context.Context, conn *sql.Conn, have channelState) error {
	if have.receiver != "ON" && !have.uninitialized() {
		// Not the applier: it would forget its error, and it was seen to go on with the next log after one that it could
		// not open, when it was started again beside a running receiver: it ran, and applied nothing.
		return execAll(ctx, conn, "START REPLICA IO_THREAD")
	}
	return execAll(ctx, conn, "STOP REPLICA", "RESET REPLICA", "START REPLICA")
}
