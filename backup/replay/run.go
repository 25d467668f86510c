// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Errors that callers branch on.
var (
	// ErrApply says that the server could not apply a transaction.
	ErrApply = errors.New("a transaction of the archive cannot be applied")
	// ErrReceive says that the server does not receive.
	ErrReceive = errors.New("the server here does not receive the archive")
)

// channel is the one that the server receives through. It is gone afterwards.
const channel = "mfg_replay"

const (
	pollInterval = 250 * time.Millisecond
	askTimeout   = time.Minute
	// stopTimeout bounds the end of the channel: half a transaction is rolled back first.
	stopTimeout = 10 * time.Minute
)

// Replay is what is to be applied, onto which server.
type Replay struct {
	// Pool reaches the server with all rights. It has Args, the server's own version is Version.
	Pool    *sql.DB
	Version string
	// Logs hold what is wanted, in the order of the history.
	Logs []Log
	// Have is what the server has executed, and Target what it has afterwards: all of Have, and what is in the logs.
	Have, Target gtid.Set
	// Progress is told how many bytes of the archive are applied, of how many; it may be nil.
	Progress func(bytes, total int64)
	// Check is asked now and then, and ends the replay with its error; it may be nil.
	Check func() error
}

// Applied is what was applied.
type Applied struct {
	Transactions int64
	// Until is when the last of them was committed; the zero time without any.
	Until   time.Time
	Seconds float64
}

// Args are what mysqld needs beside its own settings, for a replay whose relay logs are in a directory. Its binary log is off: what is
// replayed is in the archive already, and the server's set of GTIDs is in a table. encrypted has the relay logs encrypted.
func Args(relayLogs string, workers int, encrypted bool) []string {
	encryption := "OFF"
	if encrypted {
		encryption = "ON"
	}
	return []string{
		"--skip-log-bin", "--log-replica-updates=OFF", fmt.Sprintf("--server-id=%d", uint32(ReplicaServerID)), "--relay-log=" + relayLogs, "--relay-log-index=" + relayLogs + ".index",
		fmt.Sprintf("--relay-log-space-limit=%d", RelayLogBytes), fmt.Sprintf("--max-relay-log-size=%d", RelayLogBytes/8), "--relay-log-purge=ON",
		"--relay-log-recovery=OFF", "--sync-relay-log=0", fmt.Sprintf("--replica-parallel-workers=%d", workers), "--replica-preserve-commit-order=ON",
		"--replica-net-timeout=86400", "--binlog-encryption=" + encryption, "--replica-exec-mode=STRICT", "--loose-rpl-semi-sync-replica-enabled=OFF",
		"--replica-max-allowed-packet=1073741824", fmt.Sprintf("--replica-pending-jobs-size-max=%d", queueBytes),
	}
}

// RelayLogs is how the names of relay logs begin, in the data directory.
const RelayLogs = "mfg-replay"

// queueBytes bounds the memory of what waits for a worker, but for an event that is larger.
const queueBytes = 64 << 20

// RelayLogBytes is how much of the archive is on the volume at a time, but for a transaction that is larger.
const RelayLogBytes = 512 << 20

// Run applies, and returns once the server has executed exactly the target. Nothing of the channel is left then.
func (r *Replay) Run(ctx context.Context) (Applied, error) {
	began := time.Now()
	want := r.Target.Subtract(r.Have)
	if want.IsEmpty() {
		return Applied{}, r.check(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{logs: r.Logs, want: want}
	s, err := listen(ctx, r.Version, func(c *conn) error { f.to = c; return f.send(ctx) })
	if err != nil {
		cancel()
		return Applied{}, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(ctx) })
	err = r.follow(ctx, s, f)
	cancel()
	serving.Wait()
	if err != nil {
		return Applied{}, err
	}
	out := Applied{Seconds: time.Since(began).Seconds()}
	out.Until, out.Transactions = f.marks.end()
	return out, nil
}

// follow has the server receive and apply until it has all, and takes the channel away.
func (r *Replay) follow(ctx context.Context, s *source, f *feed) error {
	for _, statement := range []string{
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = '%s', SOURCE_PASSWORD = '%s', "+
			"SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 0, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 3, SOURCE_HEARTBEAT_PERIOD = 0 "+
			"FOR CHANNEL '%s'", s.port(), sourceUser, s.password, channel),
		"START REPLICA FOR CHANNEL '" + channel + "'",
	} {
		if err := r.exec(ctx, askTimeout, statement); err != nil {
			return fmt.Errorf("%w: %w", ErrReceive, err)
		}
	}
	if err := r.wait(ctx, s, f); err != nil {
		return err
	}
	for _, statement := range []string{"STOP REPLICA FOR CHANNEL '" + channel + "'", "RESET REPLICA ALL FOR CHANNEL '" + channel + "'"} {
		if err := r.exec(ctx, stopTimeout, statement); err != nil {
			return fmt.Errorf("end the replay: %w", err)
		}
	}
	return r.check(ctx)
}

func (r *Replay) exec(ctx context.Context, bound time.Duration, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	_, err := r.Pool.ExecContext(ctx, statement)
	return err
}

// wait waits until all is executed, or cannot be.
func (r *Replay) wait(ctx context.Context, s *source, f *feed) error {
	var total int64
	for _, log := range r.Logs {
		total += log.Bytes
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if err := s.failed(); err != nil {
			return err
		}
		executed, err := r.executed(ctx)
		if err != nil {
			return err
		}
		if executed.Contains(r.Target) {
			return nil
		}
		if r.Progress != nil {
			r.Progress(f.marks.done(executed), total)
		}
		if err := r.trouble(ctx, executed); err != nil {
			// What kept the archive from being read is the reason why the receiver stopped.
			return cmp.Or(s.failed(), err)
		}
	}
}

func (r *Replay) executed(ctx context.Context) (gtid.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var text string
	if err := r.Pool.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		return gtid.Set{}, fmt.Errorf("ask the server here: %w", err)
	}
	return gtid.Parse(text)
}

// check compares what the server has executed with the target.
func (r *Replay) check(ctx context.Context) error {
	executed, err := r.executed(ctx)
	if err != nil {
		return err
	}
	if !executed.Equal(r.Target) {
		return fmt.Errorf("%w: it has executed %.200q beyond the target, and lacks %.200q", ErrApply,
			executed.Subtract(r.Target).String(), r.Target.Subtract(executed).String())
	}
	return nil
}

// trouble asks why nothing goes on any more. What the server says of a row holds data of users, so only its number is told.
func (r *Replay) trouble(ctx context.Context, executed gtid.Set) error {
	if r.Check != nil {
		if err := r.Check(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var applier, number int
	var id string
	err := r.Pool.QueryRowContext(ctx, "SELECT LAST_ERROR_NUMBER, APPLYING_TRANSACTION FROM performance_schema.replication_applier_status_by_worker "+
		"WHERE CHANNEL_NAME = '"+channel+"' AND LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1").Scan(&number, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = r.Pool.QueryRowContext(ctx, "SELECT LAST_ERROR_NUMBER, '' FROM performance_schema.replication_applier_status_by_coordinator "+
			"WHERE CHANNEL_NAME = '"+channel+"' AND LAST_ERROR_NUMBER <> 0").Scan(&number, &id)
	}
	switch {
	case err == nil:
		return fmt.Errorf("%w: error %d at transaction %s, after %.200s (its text is withheld: it may hold data)", ErrApply, number, id, executed)
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("ask the server here: %w", err)
	}
	var receiver string
	err = r.Pool.QueryRowContext(ctx, "SELECT c.LAST_ERROR_NUMBER, c.SERVICE_STATE, a.SERVICE_STATE = 'ON' FROM performance_schema.replication_connection_status c JOIN "+
		"performance_schema.replication_applier_status a USING (CHANNEL_NAME) WHERE CHANNEL_NAME = '"+channel+"'").Scan(&number, &receiver, &applier)
	switch {
	case err != nil:
		return fmt.Errorf("ask the server here: %w", err)
	case receiver == "OFF":
		return fmt.Errorf("%w: error %d", ErrReceive, number)
	case applier == 0:
		return fmt.Errorf("%w: its applier has stopped", ErrApply)
	}
	return nil
}
