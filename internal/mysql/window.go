// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// superReadOnlyOff leaves read_only=ON: the server still refuses writes of ordinary accounts, even if offline_mode is lifted.
const superReadOnlyOff = "SET GLOBAL super_read_only = OFF"

// SetOfflineMode lets ordinary accounts in or keeps them out. Switching it on cuts their sessions.
func (db *DB) SetOfflineMode(ctx context.Context, on bool) error {
	ctx, cancel := db.short(ctx)
	defer cancel()
	statement := offlineOff
	if on {
		statement = offlineOn
	}
	if _, err := db.pool.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s on %s: %w", statement, db.target, err)
	}
	return nil
}

// KeepOut keeps ordinary accounts out of a read-only site, and cuts their sessions. With everybody it also ends those of all other
// clients, once: locks that they hold, such as the metadata lock of an idle transaction, delay the applier.
func (db *DB) KeepOut(ctx context.Context, everybody bool) error {
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		if err := execAll(ctx, conn, offlineOn); err != nil || !everybody {
			return err
		}
		_, err := killSessions(ctx, conn)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep clients out of %s: %w", db.target, err)
	}
	return nil
}

// PreparedXA counts the XA transactions that are prepared and not ended.
func (db *DB) PreparedXA(ctx context.Context) (n int, err error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	conn, err := db.pool.Conn(ctx)
	if err == nil {
		defer func() { _ = conn.Close() }()
		n, err = CountPreparedXA(ctx, conn)
	}
	if err != nil {
		return 0, fmt.Errorf("look for prepared XA transactions on %s: %w", db.target, err)
	}
	return n, nil
}

// CutSessions ends the sessions of all clients once. They may connect again.
func (db *DB) CutSessions(ctx context.Context) error {
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		_, err := killSessions(ctx, conn)
		return err
	})
	if err != nil {
		return fmt.Errorf("cut sessions on %s: %w", db.target, err)
	}
	return nil
}

// BeginWindow lets our own work write on a site that is not active (clone, rotation). Before super_read_only comes off,
// offline_mode keeps all others out and the event scheduler is off; read_only stays on. BeginWindow reads the flags back; if
// ordinary accounts could get in, it closes the window again and the error says so.
func (db *DB) BeginWindow(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		if err := execAll(ctx, conn, offlineOn); err != nil {
			return err
		}
		if err := stopEvents(ctx, conn); err != nil {
			return err
		}
		if err := execAll(ctx, conn, superReadOnlyOff); err != nil {
			return err
		}
		st, err := readVariables(ctx, conn)
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		if st.SuperReadOnly || !st.ReadOnly || !st.OfflineMode {
			// A window needs all three flags: if someone changed one meanwhile, the reasons are not known here.
			_, fenceErr := fenceOn(ctx, conn, FenceOptions{})
			_ = resumeEvents(ctx, conn) // OpenWrites does it too
			return fmt.Errorf("read back: super_read_only is %v, read_only is %v, offline_mode is %v (fenced again: %v)",
				st.SuperReadOnly, st.ReadOnly, st.OfflineMode, fenceErr == nil)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("begin window on %s: %w", db.target, err)
	}
	return nil
}

// EndWindow fences again and lets readers in.
func (db *DB) EndWindow(ctx context.Context) error {
	if _, err := db.Fence(ctx, FenceOptions{}); err != nil {
		return fmt.Errorf("end window: %w", err)
	}
	ctx, cancel := db.short(ctx)
	defer cancel()
	// Best effort: behind the fence no event runs, and OpenWrites does it too.
	_ = db.onFresh(ctx, func(conn *sql.Conn) error { return resumeEvents(ctx, conn) })
	return nil
}
