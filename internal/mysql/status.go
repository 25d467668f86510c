// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/lag"
)

// Status is what one server says of itself in one answer.
type Status struct {
	ServerUUID, Version                  string
	ReadOnly, SuperReadOnly, OfflineMode bool
	// Executed and Purged are gtid_executed and gtid_purged. Retrieved is what the default channel has in its relay logs or
	// has applied from them since they began; it is empty without a channel.
	Executed, Purged, Retrieved gtid.Set
	// Channels counts the configured replication channels, named ones too.
	Channels int
	// Replica is nil if the default channel is not configured.
	Replica *ReplicaStatus
	// Cloning is true while this server receives a clone.
	Cloning bool
	// HalfCloned is true if the last clone that it received has begun and is not known to have succeeded: it may have part of
	// the donor's data and none of its own. It is also true while Cloning is.
	HalfCloned bool
	// NoClone is true if the server has no clone plugin: then it is not known what it received before.
	NoClone bool
	// ClockAhead is how many seconds the server's clock is ahead of this program's; nil if that is not known.
	ClockAhead *float64
	// HasDatabases is true if there is a database that MySQL did not make itself.
	HasDatabases bool
	// Filtered is true if a replication filter is set: the applier skips transactions and counts them as executed all the same.
	Filtered bool
}

// Writable reports whether ordinary accounts could commit.
func (s Status) Writable() bool { return !s.SuperReadOnly && !s.ReadOnly }

// ReplicaStatus is the state of the default replication channel.
type ReplicaStatus struct {
	SourceHost string
	SourcePort int
	// SourceUUID is empty until the source was reached once.
	SourceUUID string
	// IORunning is true while the receiver is connected, IOConnecting while it tries to.
	IORunning, IOConnecting bool
	SQLRunning              bool
	IOErrno, SQLErrno       int
	IOError, SQLError       string
	// LastHeartbeat is zero if there was none. A busy source sends none, so it alone does not measure health.
	LastHeartbeat time.Time
	// LagSeconds is the age, by its original commit, of the oldest transaction that this replica knows of and has not
	// applied; 0 if it has applied everything and has just heard from an idle source; nil if it cannot be known: the
	// receiver is not connected or has heard nothing for three heartbeat periods, or the applier has stopped before a
	// backlog. It is never 0 on a replica that may be stale. It compares clocks of two servers (LagBeside corrects that).
	// It is good to display and to say "not yet"; only the sets show whether a replica holds a transaction.
	LagSeconds *float64
	lag        *lag.Lag
	// Delay is how many seconds the applier waits on purpose before it applies a transaction (SOURCE_DELAY).
	Delay int
}

// Status asks for everything in one statement, so that one round trip gives one consistent picture.
func (db *DB) Status(ctx context.Context) (Status, error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	asked := time.Now()
	st, now, err := db.readStatus(ctx, db.pool)
	if err != nil {
		return Status{}, fmt.Errorf("read status of %s: %w", db.target, db.answers.Explain(err))
	}
	st.ClockAhead = lag.Ahead(now, asked, time.Since(asked))
	return st, nil
}

// variablesQuery needs no table at all, so nothing that is locked, evicted or stuck on disk can hold it up: read-backs
// rely on it.
const variablesQuery = `SELECT @@GLOBAL.server_uuid, @@GLOBAL.version,
 @@GLOBAL.read_only, @@GLOBAL.super_read_only, @@GLOBAL.offline_mode, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged`

// readVariables reads the part of the status that comes from the server's variables.
func readVariables(ctx context.Context, q querier) (Status, error) {
	var st Status
	var executed, purged string
	err := q.QueryRowContext(ctx, variablesQuery).Scan(&st.ServerUUID, &st.Version,
		&st.ReadOnly, &st.SuperReadOnly, &st.OfflineMode, &executed, &purged)
	if err != nil {
		return Status{}, err
	}
	if st.Executed, err = gtid.Parse(executed); err != nil {
		return Status{}, fmt.Errorf("parse gtid_executed: %w", err)
	}
	if st.Purged, err = gtid.Parse(purged); err != nil {
		return Status{}, fmt.Errorf("parse gtid_purged: %w", err)
	}
	return st, nil
}

// querier is the pool or one connection.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readStatus leaves the clone's state out on a server without the clone plugin, whose table does not exist: a missing
// plugin must not blind the failover.
func (db *DB) readStatus(ctx context.Context, q querier) (st Status, now float64, err error) {
	if !db.noClone.Load() {
		st, now, err := scanStatus(q.QueryRowContext(ctx, statusQuery))
		if number(err) != numberNoSuchTable {
			return st, now, err
		}
		db.noClone.Store(true)
	}
	st, now, err = scanStatus(q.QueryRowContext(ctx, statusQueryNoClone))
	st.NoClone = true
	return st, now, err
}

const cloneColumns = "EXISTS (SELECT * FROM performance_schema.clone_status WHERE STATE IN ('Not Started', 'In Progress') AND (PID > 0 OR ERROR_NO = 0)) AS cl," +
	" EXISTS (SELECT * FROM performance_schema.clone_status WHERE STATE <> 'Completed') AS hc"

var statusQueryNoClone = strings.Replace(statusQuery, cloneColumns, "0 AS cl, 0 AS hc", 1)

// statusQuery reads only variables, small tables in memory and of the list of databases no more than it needs: a server may have
// a hundred thousand, and one that answers late counts as dead. Expressions have short names, or every answer would repeat
// their text. Times are seconds since 1970 on the server's clock, so time zones do not matter. Zero timestamps become 0.
const statusQuery = variablesQuery + `,
 (SELECT COUNT(*) FROM performance_schema.replication_connection_configuration) AS ch,
 ` + cloneColumns + `,
 EXISTS (SELECT * FROM information_schema.SCHEMATA
   WHERE SCHEMA_NAME NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')) AS ud,
 EXISTS (SELECT * FROM performance_schema.replication_applier_global_filters WHERE FILTER_RULE <> '')
   OR EXISTS (SELECT * FROM performance_schema.replication_applier_filters WHERE FILTER_RULE <> '') AS fi,
 @@SESSION.timestamp,
 c.HOST, c.PORT, c.HEARTBEAT_INTERVAL,
 s.SOURCE_UUID, s.SERVICE_STATE, s.RECEIVED_TRANSACTION_SET, s.LAST_ERROR_NUMBER, s.LAST_ERROR_MESSAGE,
 UNIX_TIMESTAMP(s.LAST_HEARTBEAT_TIMESTAMP) AS hb,
 UNIX_TIMESTAMP(s.LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS lo,
 UNIX_TIMESTAMP(s.LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP) AS lq,
 UNIX_TIMESTAMP(s.QUEUEING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS qo,
 a.SERVICE_STATE, d.DESIRED_DELAY,
 o.LAST_ERROR_NUMBER, o.LAST_ERROR_MESSAGE, UNIX_TIMESTAMP(o.PROCESSING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS po,
 w.LAST_ERROR_NUMBER, w.LAST_ERROR_MESSAGE,
 (SELECT MIN(NULLIF(UNIX_TIMESTAMP(APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP), 0))
   FROM performance_schema.replication_applier_status_by_worker WHERE CHANNEL_NAME = '') AS ao
FROM (SELECT 1) one
LEFT JOIN performance_schema.replication_connection_configuration c ON c.CHANNEL_NAME = ''
LEFT JOIN performance_schema.replication_connection_status s ON s.CHANNEL_NAME = ''
LEFT JOIN performance_schema.replication_applier_status a ON a.CHANNEL_NAME = ''
LEFT JOIN performance_schema.replication_applier_configuration d ON d.CHANNEL_NAME = ''
LEFT JOIN performance_schema.replication_applier_status_by_coordinator o ON o.CHANNEL_NAME = ''
LEFT JOIN (SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker
   WHERE CHANNEL_NAME = '' AND LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1) w ON TRUE`

// statusRow holds the columns of statusQuery that may be NULL without a channel, and the sets and the time.
type statusRow struct {
	executed, purged                                    string
	host, sourceUUID, ioState, retrieved, ioMessage     sql.NullString
	sqlState, coordinatorMessage, workerMessage         sql.NullString
	port, ioErrno, coordinatorErrno, workerErrno, delay sql.NullInt64
	now                                                 float64
	interval, heartbeat, queued, queuedAt, queueing     sql.NullFloat64
	coordinatorProcessing, oldestApplyingTransaction    sql.NullFloat64
}

// scanStatus also returns the time on the server's clock.
func scanStatus(row *sql.Row) (Status, float64, error) {
	var st Status
	var r statusRow
	err := row.Scan(&st.ServerUUID, &st.Version, &st.ReadOnly, &st.SuperReadOnly, &st.OfflineMode,
		&r.executed, &r.purged, &st.Channels, &st.Cloning, &st.HalfCloned, &st.HasDatabases, &st.Filtered, &r.now,
		&r.host, &r.port, &r.interval,
		&r.sourceUUID, &r.ioState, &r.retrieved, &r.ioErrno, &r.ioMessage,
		&r.heartbeat, &r.queued, &r.queuedAt, &r.queueing,
		&r.sqlState, &r.delay, &r.coordinatorErrno, &r.coordinatorMessage, &r.coordinatorProcessing,
		&r.workerErrno, &r.workerMessage, &r.oldestApplyingTransaction)
	if err != nil {
		return Status{}, 0, err
	}
	for _, set := range []struct {
		name string
		text string
		into *gtid.Set
	}{
		{"gtid_executed", r.executed, &st.Executed}, {"gtid_purged", r.purged, &st.Purged},
		{"received set", r.retrieved.String, &st.Retrieved},
	} {
		if *set.into, err = gtid.Parse(set.text); err != nil {
			return Status{}, 0, fmt.Errorf("parse %s: %w", set.name, err)
		}
	}
	st.Replica = r.replica(st.Executed, st.Retrieved)
	return st, r.now, nil
}

func (r statusRow) replica(executed, retrieved gtid.Set) *ReplicaStatus {
	if !r.host.Valid {
		return nil
	}
	rep := &ReplicaStatus{
		SourceHost: r.host.String, SourcePort: int(r.port.Int64), SourceUUID: r.sourceUUID.String,
		IORunning: r.ioState.String == "ON", IOConnecting: r.ioState.String == "CONNECTING",
		SQLRunning: r.sqlState.String == "ON", Delay: int(r.delay.Int64),
		IOErrno: int(r.ioErrno.Int64), IOError: r.ioMessage.String,
		SQLErrno: int(r.coordinatorErrno.Int64), SQLError: r.coordinatorMessage.String,
	}
	// The coordinator only says that some worker failed; the worker says why.
	if r.workerErrno.Int64 != 0 {
		rep.SQLErrno, rep.SQLError = int(r.workerErrno.Int64), r.workerMessage.String
	}
	if hb := r.heartbeat.Float64; hb > 0 {
		rep.LastHeartbeat = time.UnixMicro(int64(hb * 1e6)).UTC()
	}
	rep.lag = lag.Facts{
		Now: r.now, Interval: r.interval.Float64,
		Connected: rep.IORunning, Applying: rep.SQLRunning, CaughtUp: executed.Contains(retrieved),
		Heartbeat: r.heartbeat.Float64, Queued: r.queued.Float64, QueuedAt: r.queuedAt.Float64,
		Pending: []float64{r.queueing.Float64, r.coordinatorProcessing.Float64, r.oldestApplyingTransaction.Float64},
	}.Of()
	rep.LagSeconds = rep.lag.With(0)
	return rep
}

// LagBeside is LagSeconds for a replica whose clock is so many seconds ahead of its source's.
func (r ReplicaStatus) LagBeside(ahead float64) *float64 { return r.lag.With(ahead) }

// ReplicaBehind is a replica that is so many seconds behind by the clocks of two servers.
func ReplicaBehind(seconds float64) *ReplicaStatus {
	l := lag.ByClocks(seconds)
	return &ReplicaStatus{lag: l, LagSeconds: l.With(0)}
}
