// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// readOnlyOff clears super_read_only too, in the same step.
const readOnlyOff = "SET GLOBAL read_only = OFF"

const countChannels = "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"

// OpenWrites lets clients commit. It refuses with ErrReplicaConfigured while any replication channel is configured: a
// writable replica makes histories diverge. It first cuts sessions with offline_mode, so that no pool continues with what it
// knew before; clients can connect again once the server is open. After an error the server may be offline, read-only or
// open, and calling again is safe.
//
// Only the sidecar calls it: no other program may decide that a site opens.
func (db *DB) OpenWrites(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	if err := db.onFresh(ctx, func(conn *sql.Conn) error { return openWrites(ctx, conn) }); err != nil {
		return fmt.Errorf("open writes on %s: %w", db.target, err)
	}
	return nil
}

func openWrites(ctx context.Context, conn *sql.Conn) error {
	var channels int
	if err := conn.QueryRowContext(ctx, countChannels).Scan(&channels); err != nil {
		return fmt.Errorf("count replication channels: %w", err)
	}
	if channels > 0 {
		return ErrReplicaConfigured
	}
	// A window that did not end in order has left the event scheduler off.
	if err := resumeEvents(ctx, conn); err != nil {
		return err
	}
	if err := forgetDonors(ctx, conn); err != nil {
		return err
	}
	if err := execAll(ctx, conn, offlineOn, readOnlyOff, offlineOff); err != nil {
		return err
	}
	st, err := readVariables(ctx, conn)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if !st.Writable() || st.OfflineMode {
		return fmt.Errorf("read back: read_only is %v, offline_mode is %v", st.ReadOnly, st.OfflineMode)
	}
	return nil
}

// forgetDonors empties the list of donors that the server may clone from. The statement of a clone whose sender has died may still
// be on its way, after the last look at whether the server accepts writes; without a listed donor, the server refuses it.
func forgetDonors(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SET GLOBAL clone_valid_donor_list = DEFAULT")
	if err != nil && number(err) != numberUnknownVariable {
		return fmt.Errorf("reset clone_valid_donor_list: %w", err)
	}
	return nil // a server without the plugin receives no clone
}
