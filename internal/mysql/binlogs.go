// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// BinlogState describes the binary logs of a server.
type BinlogState struct {
	// Bytes is the size of all its logs together.
	Bytes int64
	// Purges is true while the server itself purges logs that are older than its limit.
	Purges bool
}

// Binlogs reads how much room the binary logs take, and whether the server purges them by age.
func (db *DB) Binlogs(ctx context.Context) (out BinlogState, err error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	err = db.onFresh(ctx, func(conn *sql.Conn) error {
		if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.binlog_expire_logs_auto_purge").Scan(&out.Purges); err != nil {
			return err
		}
		rows, err := conn.QueryContext(ctx, "SHOW BINARY LOGS")
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var name, encrypted string
			var size int64
			if err := rows.Scan(&name, &size, &encrypted); err != nil {
				return err
			}
			out.Bytes += size
		}
		return rows.Err()
	})
	if err != nil {
		return BinlogState{}, fmt.Errorf("read binary logs of %s: %w", db.target, err)
	}
	return out, nil
}

// PurgeBinlogs makes the server purge logs by age, or keep them all until the next call or its next start.
func (db *DB) PurgeBinlogs(ctx context.Context, purge bool) error {
	ctx, cancel := db.short(ctx)
	defer cancel()
	value := "OFF"
	if purge {
		value = "ON"
	}
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "SET GLOBAL binlog_expire_logs_auto_purge = "+value)
		return err
	})
	if err != nil {
		return fmt.Errorf("set binlog_expire_logs_auto_purge of %s: %w", db.target, err)
	}
	return nil
}

// RotateBinlog makes the server begin its next binary log. It makes no transaction.
func (db *DB) RotateBinlog(ctx context.Context) error {
	ctx, cancel := db.short(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "FLUSH LOCAL BINARY LOGS")
		return err
	})
	if err != nil {
		return fmt.Errorf("begin another binary log of %s: %w", db.target, err)
	}
	return nil
}
