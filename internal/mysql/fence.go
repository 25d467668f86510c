// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// The rungs of the ladder that Fence can climb.
const (
	// StageNone: the server was read-only already.
	StageNone = ""
	// StageReadOnly: offline_mode and super_read_only were enough.
	StageReadOnly = "ReadOnly"
	// StageKillSessions: sessions that offline_mode does not cut had to be killed.
	StageKillSessions = "KillSessions"
)

const (
	defaultLockWait = time.Second
	// fenceBudget bounds the ladder when the caller's context has no deadline.
	fenceBudget = 10 * time.Second
)

// FenceOptions tune the ladder.
type FenceOptions struct {
	// LockWait is how long super_read_only=ON may wait for locks of other sessions before they are killed. MySQL counts in
	// whole seconds; LockWait is rounded up, and zero means one second.
	LockWait time.Duration
}

// FenceResult is the proof of a fence.
type FenceResult struct {
	// Stage is the rung that was needed.
	Stage string
	// ReadBack is what the server's variables said after super_read_only=ON; clients' commits can no longer make its
	// Executed set grow (FLUSH statements of accounts with RELOAD still do, with empty transactions). It leaves out what
	// comes from tables: replication, clone and databases are zero.
	ReadBack Status
	// PreparedXA counts XA transactions that are prepared and not ended. While there are any, offline_mode stays on:
	// super_read_only does not refuse XA COMMIT, and any ordinary account may end any of them.
	PreparedXA int
}

const (
	offlineOn       = "SET GLOBAL offline_mode = ON"
	offlineOff      = "SET GLOBAL offline_mode = OFF"
	superReadOnlyOn = "SET GLOBAL super_read_only = ON"
)

// Fence makes the server refuse every commit of clients, and proves it by reading back. An error means that nothing is
// proven: not even that the server is still writable.
//
// First, offline_mode=ON cuts the sessions of ordinary accounts, because super_read_only=ON waits for their locks and running statements;
// Fence lifts it again, best effort, once it has read the fence back, so that reads continue. If super_read_only=ON still waits after
// LockWait, Fence kills the sessions that are left (accounts with CONNECTION_ADMIN), and tries again until ctx ends. A prepared XA
// transaction keeps offline_mode on, see FenceResult. Fence never kills dump threads, the applier or sessions of the operator, the sidecar
// and replication: replicas must be able to fetch the last transactions of a fenced source.
//
// It uses a connection of its own: a pooled one may hang in a partition.
func (db *DB) Fence(ctx context.Context, opts FenceOptions) (FenceResult, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fenceBudget)
		defer cancel()
	}
	var result FenceResult
	err := db.onFresh(ctx, func(conn *sql.Conn) (err error) {
		result, err = fenceOn(ctx, conn, opts)
		return err
	})
	if err != nil {
		return FenceResult{}, fmt.Errorf("fence %s: %w", db.target, errors.Join(ErrNotFenced, err))
	}
	return result, nil
}

func fenceOn(ctx context.Context, conn *sql.Conn, opts FenceOptions) (FenceResult, error) {
	before, err := readVariables(ctx, conn)
	if err != nil {
		return FenceResult{}, fmt.Errorf("read flags: %w", err)
	}
	result := FenceResult{Stage: StageNone, ReadBack: before}
	if !before.fenced() {
		if result, err = climb(ctx, conn, opts); err != nil {
			return FenceResult{}, err
		}
	}
	if !result.ReadBack.OfflineMode {
		return result, nil
	}
	return letReadersIn(ctx, conn, result)
}

// letReadersIn lifts offline_mode on a read-only server, unless a client could then commit a prepared XA transaction.
func letReadersIn(ctx context.Context, conn *sql.Conn, result FenceResult) (FenceResult, error) {
	var err error
	if result.PreparedXA, err = CountPreparedXA(ctx, conn); err != nil {
		// Without the count, offline_mode stays on and nothing is claimed: a commit could come in.
		return FenceResult{}, fmt.Errorf("look for prepared XA transactions: %w", err)
	}
	if result.PreparedXA == 0 {
		// Best effort: the fence holds either way, and the next fence lifts offline_mode.
		if _, err := conn.ExecContext(ctx, offlineOff); err == nil {
			result.ReadBack.OfflineMode = false
		}
		return result, nil
	}
	// A session that was cut may still be about to run XA COMMIT, and one with CONNECTION_ADMIN was not cut at all. Once no
	// session is left and none can come in, the set that is read back is final.
	for {
		left, err := killSessions(ctx, conn)
		if err != nil {
			return FenceResult{}, fmt.Errorf("kill sessions: %w", err)
		}
		if left == 0 {
			break
		}
		result.Stage = StageKillSessions
	}
	if result.ReadBack, err = readVariables(ctx, conn); err != nil {
		return FenceResult{}, fmt.Errorf("read back: %w", err)
	}
	if !result.ReadBack.fenced() || !result.ReadBack.OfflineMode {
		return FenceResult{}, errors.New("read back: the fence was lifted while sessions were cut")
	}
	return result, nil
}

// climb goes up the ladder until super_read_only=ON is read back.
func climb(ctx context.Context, conn *sql.Conn, opts FenceOptions) (FenceResult, error) {
	wait := opts.LockWait
	if wait <= 0 {
		wait = defaultLockWait
	}
	// lock_wait_timeout is the only bound that the server itself enforces: so a statement whose client has gone still ends.
	setWait := fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(math.Ceil(wait.Seconds())))
	if _, err := conn.ExecContext(ctx, setWait); err != nil {
		return FenceResult{}, fmt.Errorf("bound the lock wait: %w", err)
	}
	// If the server refuses offline_mode, the fence only takes longer: the proof is super_read_only alone.
	_, offlineErr := conn.ExecContext(ctx, offlineOn)
	stage := StageReadOnly
	for {
		_, err := conn.ExecContext(ctx, superReadOnlyOn)
		if err == nil {
			break
		}
		if number(err) != numberLockWaitTimeout {
			return FenceResult{}, errors.Join(fmt.Errorf("set super_read_only: %w", err), offlineErr)
		}
		stage = StageKillSessions
		if _, err := killSessions(ctx, conn); err != nil {
			return FenceResult{}, errors.Join(fmt.Errorf("kill sessions: %w", err), offlineErr)
		}
	}
	after, err := readVariables(ctx, conn)
	if err != nil {
		return FenceResult{}, fmt.Errorf("read back: %w", err)
	}
	if !after.fenced() {
		// Someone with the right to do so has lifted it at once.
		return FenceResult{}, fmt.Errorf("read back: super_read_only is %v, read_only is %v", after.SuperReadOnly, after.ReadOnly)
	}
	return FenceResult{Stage: stage, ReadBack: after}, nil
}

func (s Status) fenced() bool { return s.SuperReadOnly && s.ReadOnly }

// clientSessions are connections of clients, and of our accounts for backups, clones and the write probe: threads of the
// server itself have no connection type. A connection not logged in yet is none, and offline_mode lets it become none.
const clientSessions = `SELECT PROCESSLIST_ID FROM performance_schema.threads
 WHERE CONNECTION_TYPE IS NOT NULL AND PROCESSLIST_ID <> CONNECTION_ID()
 AND COALESCE(PROCESSLIST_USER, 'unauthenticated user') NOT IN ('unauthenticated user',
  '` + AccountOperator + `', '` + AccountSidecar + `', '` + AccountReplication + `')
 AND COALESCE(PROCESSLIST_COMMAND, '') NOT IN ('Binlog Dump', 'Binlog Dump GTID')`

// killSessions ends all clientSessions, and returns how many there were. If one is gone already or may not be killed, it
// still kills the others: the caller's next look shows whether that one mattered.
func killSessions(ctx context.Context, conn *sql.Conn) (int, error) {
	ids, err := queryNumbers(ctx, conn, clientSessions)
	if err != nil {
		return 0, fmt.Errorf("list sessions: %w", err)
	}
	for _, id := range ids {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err != nil && number(err) == 0 {
			return 0, fmt.Errorf("kill session %d: %w", id, err)
		}
	}
	return len(ids), nil
}

// CountPreparedXA counts the transactions that XA PREPARE has left to an XA COMMIT or XA ROLLBACK of somebody. It needs XA_RECOVER_ADMIN.
func CountPreparedXA(ctx context.Context, conn *sql.Conn) (n int, err error) {
	rows, err := conn.QueryContext(ctx, "XA RECOVER")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

func queryNumbers(ctx context.Context, conn *sql.Conn, query string) (ids []uint64, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id uint64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
