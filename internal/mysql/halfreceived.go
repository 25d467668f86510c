// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// halfWait is how long an applier may take to stop before we look at it. An idle one stops in milliseconds.
const halfWait = 100 * time.Millisecond

// idleCoordinator finds the thread that reads the relay log, if every transaction that was received whole is executed:
// then it can only hold half a transaction, the rest of which never came.
const idleCoordinator = `SELECT t.PROCESSLIST_ID FROM performance_schema.replication_applier_status_by_coordinator c
JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME)
JOIN performance_schema.threads t ON t.THREAD_ID = c.THREAD_ID
WHERE c.CHANNEL_NAME = '' AND s.SERVICE_STATE = 'OFF' AND t.PROCESSLIST_ID IS NOT NULL
 AND GTID_SUBSET(s.RECEIVED_TRANSACTION_SET, @@GLOBAL.gtid_executed)`

// stopReplication ends both threads of the channel, the receiver first.
//
// A source that is lost in the middle of a transaction leaves half of it in the relay log. mysqld then lets STOP REPLICA
// wait a minute for the other half, which cannot come, because the receiver has stopped. So stopReplication kills the thread
// that waits: the half is rolled back, no client was told that it was committed, and nothing else is left to apply (I8).
func (db *DB) stopReplication(ctx context.Context, conn *sql.Conn) error {
	if err := boundWaits(ctx, conn); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	// The looks begin with the first statement: it waits too if an earlier caller went away and left mysqld waiting.
	go func() { stopped <- stopThreads(ctx, conn) }()
	look := time.NewTicker(halfWait)
	defer look.Stop()
	for {
		select {
		case err := <-stopped:
			return err
		case <-look.C:
			if err := db.killIdleCoordinator(ctx); err != nil {
				return errors.Join(err, <-stopped)
			}
		}
	}
}

// stillStops are the errors of a STOP REPLICA that gave up: the applier, or the receiver, stops once it is done with what it does.
var stillStops = []uint16{1875, 1876}

// stopThreads asks again while a thread still stops. The applier first finishes the transaction that it is applying.
func stopThreads(ctx context.Context, conn *sql.Conn) error {
	err := execAll(ctx, conn, "STOP REPLICA IO_THREAD", "STOP REPLICA SQL_THREAD")
	for ctx.Err() == nil && slices.Contains(stillStops, number(err)) {
		err = execAll(ctx, conn, "STOP REPLICA IO_THREAD", "STOP REPLICA SQL_THREAD")
	}
	return err
}

// boundWaits has statements about replication give up after a few seconds. mysqld lets STOP REPLICA wait for a busy thread for a year, whether
// or not its client is there, and KILL does not end it: one such session for each poll would use up the server's memory.
func boundWaits(ctx context.Context, conn *sql.Conn) error {
	return execAll(ctx, conn, "SET SESSION lock_wait_timeout = 2, GLOBAL rpl_stop_replica_timeout = 2")
}

func (db *DB) killIdleCoordinator(ctx context.Context) error {
	ctx, cancel := db.short(ctx)
	defer cancel()
	var thread uint64
	err := db.pool.QueryRowContext(ctx, idleCoordinator).Scan(&thread)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // it has stopped, or applies a transaction that was received whole, which must not be interrupted
	}
	if err != nil {
		return fmt.Errorf("find the thread that reads the relay log: %w", err)
	}
	if _, err := db.pool.ExecContext(ctx, fmt.Sprintf("KILL %d", thread)); err != nil && number(err) != numberNoSuchThread {
		return fmt.Errorf("kill the thread that waits for half a transaction: %w", err)
	}
	return nil
}
