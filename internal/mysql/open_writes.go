// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// readOnlyOff clears super_read_only too, at once.
const readOnlyOff = "SET GLOBAL read_only = OFF"

const countChannels = "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"

// OpenWrites lets clients commit. It refuses with ErrReplicaConfigured while any replication channel is configured: a
// writable replica is how histories part. Sessions are cut first, so that no pool goes on with what it knew before; they
// can connect again when the server is open. After an error the server may be offline, read-only or open, and calling
// again is safe.
//
// Its only caller is the sidecar: nobody else may decide that a site opens.
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
	// A window that was not ended in order has left it off.
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

// forgetDonors takes back whom the server may be cloned from. The statement of a clone whose sender has died may still be on its
// way, and came after the last look at whether the server accepts writes; it is refused without this.
func forgetDonors(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SET GLOBAL clone_valid_donor_list = DEFAULT")
	if err != nil && number(err) != numberUnknownVariable {
		return fmt.Errorf("reset clone_valid_donor_list: %w", err)
	}
	return nil // a server without the plugin receives no clone
}
