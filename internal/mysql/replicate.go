// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// MySQL's limits; it silently cuts what is longer.
const (
	maxSourcePassword = 32
	maxSourceHost     = 255
)

// Source is the server to follow.
type Source struct {
	Host           string
	Port           int
	User, Password string
	// Serial numbers the password, for a caller that keeps track of which one it gave; no server sees it.
	Serial int64
	// TLS asks for a verified connection: the source's certificate must be signed by CA and name Host. Without it the
	// connection is encrypted with whatever certificate the source shows.
	TLS bool
	// CA is the path of the authority's certificate on the replica; if it is empty, nothing is verified.
	CA string
}

// String never shows the password.
func (s Source) String() string { return fmt.Sprintf("%s@%s:%d", s.User, s.Host, s.Port) }

// GoString never shows the password.
func (s Source) GoString() string { return s.String() }

// StopReceiver ends the receiver thread: from then on the retrieved set does not grow any more. It takes two seconds if the
// receiver hangs while it connects to a source that does not answer (MySQL signals it once, waits that long, and signals
// again), else no time. If the client goes away, the server still stops it. Before that it ends a delay, while that keeps the relay logs.
func (db *DB) StopReceiver(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		have, err := readChannel(ctx, conn)
		if err != nil {
			return fmt.Errorf("read channel: %w", err)
		}
		if have.delay > 0 && have.receiver != "OFF" {
			if err := endDelay(ctx, conn); err != nil {
				return err
			}
		}
		return execAll(ctx, conn, "STOP REPLICA IO_THREAD")
	})
	if err != nil {
		return fmt.Errorf("stop the receiver on %s: %w", db.target, err)
	}
	return nil
}

// endDelay takes SOURCE_DELAY away: a replica that is an hour behind on purpose could not take over. The receiver must run meanwhile: with
// both threads stopped, CHANGE REPLICATION SOURCE removes the relay logs, which may be the only copy of a transaction (I8).
func endDelay(ctx context.Context, conn *sql.Conn) error {
	if err := boundWaits(ctx, conn); err != nil {
		return err
	}
	if err := execAll(ctx, conn, "START REPLICA IO_THREAD", "STOP REPLICA SQL_THREAD"); err != nil {
		return err
	}
	have, err := readChannel(ctx, conn)
	if err == nil && have.receiver != "OFF" {
		err = execAll(ctx, conn, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0")
	} else if err == nil {
		err = fmt.Errorf("%w: the receiver has stopped, so the delay stays: to change it now would remove the relay logs", ErrRefused)
	}
	return errors.Join(err, execAll(ctx, conn, "START REPLICA SQL_THREAD"))
}

// StartApplier starts the applier threads if they do not run.
func (db *DB) StartApplier(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	const statement = "START REPLICA SQL_THREAD"
	if _, err := db.pool.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s on %s: %w", statement, db.target, err)
	}
	return nil
}

// WaitApplied waits until the whole set is executed, and reports whether that happened within timeout. It does not notice
// that an applier has stopped; it just times out.
func (db *DB) WaitApplied(ctx context.Context, set gtid.Set, timeout time.Duration) (bool, error) {
	if set.IsEmpty() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+db.target.QueryTimeout)
	defer cancel()
	var timedOut bool
	row := db.pool.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", set.String(), max(timeout, time.Millisecond).Seconds())
	if err := row.Scan(&timedOut); err != nil {
		return false, fmt.Errorf("wait for %d transactions on %s: %w", set.Count(), db.target, err)
	}
	return !timedOut, nil
}

// StopReplication stops the threads of every channel and keeps the relay logs. The applier first finishes the transaction that it is
// applying, which may take a minute. Without a channel it does nothing.
func (db *DB) StopReplication(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	if err := db.onFresh(ctx, func(conn *sql.Conn) error { return db.stopReplication(ctx, conn) }); err != nil {
		return fmt.Errorf("stop replication on %s: %w", db.target, err)
	}
	return nil
}

// DropReplication stops replication and removes every channel, with everything in the relay logs that is not applied: drain
// them first. It verifies that no channel is left. Without a channel it does nothing.
func (db *DB) DropReplication(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		var channels int
		if err := conn.QueryRowContext(ctx, countChannels).Scan(&channels); err != nil {
			return fmt.Errorf("count replication channels: %w", err)
		}
		if channels == 0 {
			return nil
		}
		if err := db.stopReplication(ctx, conn); err != nil {
			return err
		}
		if err := execAll(ctx, conn, "RESET REPLICA ALL"); err != nil {
			return err
		}
		if err := conn.QueryRowContext(ctx, countChannels).Scan(&channels); err != nil {
			return fmt.Errorf("count replication channels: %w", err)
		}
		if channels > 0 {
			return fmt.Errorf("%w still: %d", ErrReplicaConfigured, channels)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop replication on %s: %w", db.target, err)
	}
	return nil
}

// Follow makes the server replicate from a source, and from nothing else, by GTID positions. It changes nothing if the server
// does so already. It starts threads that have stopped; it sets the account again if the source refuses it, since it cannot
// compare the password in use; it fetches a relay log again that cannot be read (see refetch). It works under super_read_only.
func (db *DB) Follow(ctx context.Context, src Source) error {
	if err := src.validate(); err != nil {
		return fmt.Errorf("follow %s: %w", src, err)
	}
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error { return db.follow(ctx, conn, src) })
	if err != nil {
		return fmt.Errorf("let %s follow %s: %w", db.target, src, err)
	}
	return nil
}

// GivePassword gives a replica the password with which its receiver has to connect from now on, and makes it connect again, which
// takes a moment; the applier continues meanwhile. It changes nothing on a server that does not receive from that source now, or whose
// applier does not run, and returns ErrNotFollowing: they were stopped for a reason.
func (db *DB) GivePassword(ctx context.Context, src Source) error {
	if err := src.validate(); err != nil {
		return fmt.Errorf("give the password of %s: %w", src, err)
	}
	ctx, cancel := long(ctx)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		have, err := readChannel(ctx, conn)
		switch {
		case err != nil:
			return fmt.Errorf("read channel: %w", err)
		case have.config.host != src.Host || have.config.port != src.Port || have.config.user != src.User || have.receiver == "OFF" || have.applier != "ON":
			return ErrNotFollowing
		}
		// The receiver starts again even if the change fails: the old password may still work.
		return withoutSecret(changeReceiver(ctx, conn, "SOURCE_PASSWORD = ?", src.Password), src.Password)
	})
	if err != nil {
		return fmt.Errorf("give %s the password of %s: %w", db.target, src, err)
	}
	return nil
}

// changeReceiver stops the receiver, changes it and starts it again, even if the change fails. It refuses with ErrNotFollowing unless the
// applier runs meanwhile: with both threads stopped, the change removes the relay logs (I8), as endDelay says.
func changeReceiver(ctx context.Context, conn *sql.Conn, options string, args ...any) error {
	if err := execAll(ctx, conn, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	have, err := readChannel(ctx, conn)
	if err == nil && have.applier != "ON" {
		err = ErrNotFollowing
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "CHANGE REPLICATION SOURCE TO "+options, args...)
	}
	return errors.Join(err, execAll(ctx, conn, "START REPLICA IO_THREAD"))
}

func (s Source) validate() error {
	if s.Host == "" || len(s.Host) > maxSourceHost || s.Port <= 0 || s.User == "" {
		return fmt.Errorf("%w: host, port and user must be given and have a sensible length", ErrRefused)
	}
	if len(s.Password) > maxSourcePassword {
		return fmt.Errorf("%w: the password has more than %d characters", ErrRefused, maxSourcePassword)
	}
	return nil
}

func (db *DB) follow(ctx context.Context, conn *sql.Conn, src Source) error {
	var fenced bool
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.super_read_only").Scan(&fenced); err != nil {
		return fmt.Errorf("read super_read_only: %w", err)
	}
	if !fenced {
		// The caller decided on an old look: a server that accepts writes must never get a source.
		return ErrWritable
	}
	have, err := readChannel(ctx, conn)
	if err != nil {
		return fmt.Errorf("read channel: %w", err)
	}
	if have.config == channelOf(src) && !have.refused() {
		if have.delay > 0 {
			return endDelay(ctx, conn)
		}
		if have.receiver != "OFF" && have.applier == "ON" {
			return nil
		}
		if have.unreadable() {
			return refetch(ctx, conn, have)
		}
		return execAll(ctx, conn, "START REPLICA")
	}
	// MySQL changes AUTO_POSITION and GTID_ONLY only while both threads are stopped.
	if have.configured {
		if err := db.stopReplication(ctx, conn); err != nil {
			return err
		}
	}
	statement, args := changeSource(src)
	if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("change replication source: %w", withoutSecret(err, src.Password))
	}
	return execAll(ctx, conn, "START REPLICA")
}

// channel is the part of the default channel's configuration that Follow sets and can read back.
type channel struct {
	host       string
	port       int
	user       string
	auto       bool
	ssl        bool
	ca         string
	verify     bool
	retry      int
	retryCount int64
	heartbeat  float64
	gtidOnly   bool
	publicKey  bool
	rowFormat  bool
}

func channelOf(src Source) channel {
	verified := src.TLS && src.CA != ""
	c := channel{
		host: src.Host, port: src.Port, user: src.User, auto: true, ssl: true, verify: verified, retry: 1, heartbeat: 1,
		gtidOnly: true, publicKey: !src.TLS, rowFormat: true,
	}
	if verified {
		c.ca = src.CA
	}
	return c
}

type channelState struct {
	configured        bool
	config            channel
	receiver, applier string
	receiverErrno     int
	applierErrno      int
	applierError      string
	delay             int // seconds
}

// authErrors are refusals of the source that a new password, or key, can cure: access denied (1045), a full
// authentication that needs a secure connection (2061), a locked account (3118) or a refused client (1862).
var authErrors = []int{1045, 1862, 2061, 3118}

func (s channelState) refused() bool {
	return s.receiver != "ON" && slices.Contains(authErrors, s.receiverErrno)
}

// channelQuery takes the applier's error from the thread that reads the relay log: the coordinator, or without one
// worker 0. Workers that only apply have other errors.
const channelQuery = `SELECT c.HOST, c.PORT, c.USER, c.AUTO_POSITION = '1', c.SSL_ALLOWED = 'YES', c.SSL_CA_FILE,
 c.SSL_VERIFY_SERVER_CERTIFICATE = 'YES', c.CONNECTION_RETRY_INTERVAL, c.CONNECTION_RETRY_COUNT, c.HEARTBEAT_INTERVAL,
 c.GTID_ONLY = '1', c.GET_PUBLIC_KEY = 'YES', f.REQUIRE_ROW_FORMAT = 'YES', f.DESIRED_DELAY,
 s.SERVICE_STATE, a.SERVICE_STATE, s.LAST_ERROR_NUMBER,
 COALESCE(o.LAST_ERROR_NUMBER, w.LAST_ERROR_NUMBER, 0), COALESCE(o.LAST_ERROR_MESSAGE, w.LAST_ERROR_MESSAGE, '')
FROM performance_schema.replication_connection_configuration c
JOIN performance_schema.replication_applier_configuration f USING (CHANNEL_NAME)
JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME)
JOIN performance_schema.replication_applier_status a USING (CHANNEL_NAME)
LEFT JOIN performance_schema.replication_applier_status_by_coordinator o USING (CHANNEL_NAME)
LEFT JOIN performance_schema.replication_applier_status_by_worker w ON w.CHANNEL_NAME = c.CHANNEL_NAME AND w.WORKER_ID = 0
WHERE c.CHANNEL_NAME = ''`

func readChannel(ctx context.Context, conn *sql.Conn) (channelState, error) {
	s := channelState{configured: true}
	c := &s.config
	err := conn.QueryRowContext(ctx, channelQuery).Scan(&c.host, &c.port, &c.user, &c.auto, &c.ssl, &c.ca,
		&c.verify, &c.retry, &c.retryCount, &c.heartbeat, &c.gtidOnly, &c.publicKey, &c.rowFormat, &s.delay,
		&s.receiver, &s.applier, &s.receiverErrno, &s.applierErrno, &s.applierError)
	if errors.Is(err, sql.ErrNoRows) {
		return channelState{}, nil
	}
	return s, err
}

// changeSource names every option, because MySQL keeps those that are not given. A retry count of 0 means for ever.
func changeSource(src Source) (string, []any) {
	want := channelOf(src)
	return `CHANGE REPLICATION SOURCE TO SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = ?, SOURCE_PASSWORD = ?,
 SOURCE_AUTO_POSITION = 1, GTID_ONLY = 1, REQUIRE_ROW_FORMAT = 1, SOURCE_SSL = 1, SOURCE_SSL_CA = ?,
 SOURCE_SSL_VERIFY_SERVER_CERT = ?, GET_SOURCE_PUBLIC_KEY = ?, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0,
 SOURCE_HEARTBEAT_PERIOD = 1, SOURCE_DELAY = 0`, []any{src.Host, src.Port, src.User, src.Password, want.ca, bit(want.verify), bit(want.publicKey)}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
