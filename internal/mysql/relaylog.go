// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"strings"
)

// These errors of mysqld 9.7 stop an applier that cannot read its relay log. mysqld itself repairs a log that is torn at
// its end when it starts, so these cases are left: an empty log, one without a whole header and no complete transaction
// before it, damage in any log but the last one, damage while mysqld runs, and an index that names a missing file.
const (
	numberRelayLogRead = 13121
	numberApplierInit  = 13124 // START REPLICA itself reports it as 1872
	numberReplicaFatal = 13117 // covers many errors: its text says which
	// numberAnonymous is the error for a transaction without its head. The log was rotated in its middle, and an applier that
	// starts again begins with the oldest log that is left (GTID_ONLY), which begins with the rest. No source with GTIDs sends one.
	numberAnonymous     = 1782
	textRelayLogNotOpen = "Could not open log file"
)

// uninitialized is true if mysqld cannot set up the channel from the files on disk. Then the receiver cannot run either.
func (s channelState) uninitialized() bool { return s.applierErrno == numberApplierInit }

// unreadable is true if only its relay log has stopped the applier: an error of a transaction would come back with the
// same transaction, and fetching the log again would only hide it for a moment.
func (s channelState) unreadable() bool {
	switch {
	case s.applier != "OFF":
		return false // an applier that runs can read its log
	case s.uninitialized(), s.applierErrno == numberRelayLogRead, s.applierErrno == numberAnonymous:
		return true
	}
	return s.applierErrno == numberReplicaFatal && strings.HasPrefix(s.applierError, textRelayLogNotOpen)
}

// refetch deletes a relay log that cannot be read and fetches it again by GTID positions. RESET REPLICA keeps the
// channel's configuration, the password too, and touches neither gtid_executed nor the data.
//
// It may delete the log before it is applied (I8) for three reasons. The channel's configuration is the requested one, so
// the whole log came from this source: a change of source empties it. The caller asks to follow only the open active site,
// or in a failover the site that has what is missing, once nothing is left to apply (operator/failover: shouldFollow,
// drained). And the receiver is connected: with a running receiver, shouldFollow is true only if the active site's executed
// set holds all that this replica has retrieved; with a dead source the log is kept.
func refetch(ctx context.Context, conn *sql.Conn, have channelState) error {
	if have.receiver != "ON" && !have.uninitialized() {
		// Do not start the applier: it would forget its error. Tests saw that an applier started beside a running receiver,
		// after a log that it could not open, continued with the next log: it ran, and applied nothing.
		return execAll(ctx, conn, "START REPLICA IO_THREAD")
	}
	return execAll(ctx, conn, "STOP REPLICA", "RESET REPLICA", "START REPLICA")
}
