// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// sourceOf is how a replica follows a server.
func sourceOf(s *mysqltest.Server) mysql.Source {
	return mysql.Source{Host: "127.0.0.1", Port: s.Port, User: mysql.AccountReplication, Password: mysqltest.Passwords.Replication}
}

// pair starts a writable source with a replica that has caught up.
func pair(t *testing.T, opts mysqltest.Options) (source, replica *mysqltest.Server) {
	t.Helper()
	source, replica = writable(t, opts), mysqltest.Start(t, opts)
	src := sourceOf(source)
	if opts.TLS {
		src.TLS, src.CA = true, mysqltest.CA
	}
	if err := replica.Operator(t).Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	return source, replica
}

// catchUp waits until the replica has applied what the source has executed.
func catchUp(t *testing.T, source, replica *mysqltest.Server) {
	t.Helper()
	set := status(t, source.Operator(t)).Executed
	applied, err := replica.Operator(t).WaitApplied(budget(t), set, 10*time.Second)
	if err != nil || !applied {
		t.Fatalf("the replica has not applied %s: %v, %+v", set, err, status(t, replica.Operator(t)).Replica)
	}
}

// replicaStatus waits until the replica's status is as asked.
func replicaStatus(t *testing.T, db *mysql.DB, what string, as func(mysql.Status) bool) mysql.Status {
	t.Helper()
	var st mysql.Status
	mysqltest.Eventually(t, what, func() bool {
		st = status(t, db)
		return st.Replica != nil && as(st)
	})
	return st
}

const insert = "INSERT INTO app.t (v) VALUES (4)"

func TestFollowAndPromote(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	st := replicaStatus(t, db, "an idle source is known to be held completely", func(st mysql.Status) bool {
		return st.Replica.LagSeconds != nil && *st.Replica.LagSeconds == 0
	})
	if r := st.Replica; r.SourceHost != "127.0.0.1" || r.SourcePort != source.Port || !r.IORunning || !r.SQLRunning ||
		r.SourceUUID != status(t, source.Operator(t)).ServerUUID || time.Since(r.LastHeartbeat) > 5*time.Second {
		t.Errorf("status of a running replica: %+v", r)
	}
	if st.Channels != 1 || !st.Retrieved.Equal(st.Executed) || !st.HasDatabases {
		t.Errorf("status of a running replica: %+v", st)
	}

	receiver := threadOf(t, replica)
	if err := db.Follow(budget(t), sourceOf(source)); err != nil {
		t.Fatal(err)
	}
	if threadOf(t, replica) != receiver {
		t.Error("following whom it follows already must change nothing")
	}
	if err := replica.Sidecar(t).OpenWrites(budget(t)); !errors.Is(err, mysql.ErrReplicaConfigured) {
		t.Errorf("a replica must not be opened, got %v", err)
	}
	if st := status(t, db); st.Writable() || st.OfflineMode {
		t.Errorf("a refusal must change nothing: %+v", st)
	}

	if err := db.StopReceiver(budget(t)); err != nil {
		t.Fatal(err)
	}
	source.Exec(t, insert)
	st = status(t, db)
	if st.Replica.IORunning || st.Replica.LagSeconds != nil || !st.Replica.SQLRunning {
		t.Errorf("with its receiver stopped, a replica cannot know its lag: %+v", st.Replica)
	}
	applied, err := db.WaitApplied(budget(t), status(t, source.Operator(t)).Executed, 300*time.Millisecond)
	if applied || err != nil {
		t.Errorf("what was never received cannot be applied: %v, %v", applied, err)
	}
	if err := db.DropReplication(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.DropReplication(budget(t)); err != nil {
		t.Errorf("dropping twice: %v", err)
	}
	if st := status(t, db); st.Replica != nil || st.Channels != 0 || !st.Retrieved.IsEmpty() {
		t.Errorf("without replication: %+v", st)
	}
	if err := replica.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Error(err)
	}
}

func threadOf(t *testing.T, s *mysqltest.Server) (id uint64) {
	t.Helper()
	err := s.Root(t).QueryRowContext(t.Context(), "SELECT THREAD_ID FROM performance_schema.replication_connection_status").Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReplicaOfFencedSource shows that the last transactions before a fence arrive: the dump thread is not cut.
func TestReplicaOfFencedSource(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	dump := func() (id uint64) {
		err := source.Root(t).QueryRowContext(t.Context(), "SELECT ID FROM performance_schema.processlist WHERE COMMAND = 'Binlog Dump GTID'").Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	before := dump()
	// An administrator's lock brings the ladder to its second rung, where sessions are killed one by one.
	source.Exec(t, insert)
	session(t, source.Client(t, admin, admin), "LOCK TABLES app.t WRITE")
	got := fence(t, source.Sidecar(t), mysql.StageKillSessions)
	if dump() != before {
		t.Error("the fence has cut the dump thread")
	}
	applied, err := replica.Operator(t).WaitApplied(budget(t), got.ReadBack.Executed, 5*time.Second)
	if err != nil || !applied {
		t.Errorf("the replica must get what was committed before the fence: %v, %v", applied, err)
	}
}

func TestLagOfBacklog(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	replica.Exec(t, "STOP REPLICA SQL_THREAD")
	source.Exec(t, insert)
	st := replicaStatus(t, db, "the transaction is received", func(st mysql.Status) bool { return !st.Executed.Contains(st.Retrieved) })
	if st.Replica.SQLRunning || !st.Replica.IORunning || st.Replica.LagSeconds != nil {
		t.Errorf("nobody applies, so the lag is unknown: %+v", st.Replica)
	}
	// A lock of root's on the replica holds the applier up, as a slow transaction would.
	lock := session(t, replica.Root(t), "LOCK TABLES app.t READ")
	if err := db.StartApplier(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.StartApplier(budget(t)); err != nil {
		t.Errorf("starting twice: %v", err)
	}
	replicaStatus(t, db, "the lag grows", func(st mysql.Status) bool {
		return st.Replica.LagSeconds != nil && *st.Replica.LagSeconds > 1.5
	})
	if _, err := lock.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	replicaStatus(t, db, "the lag is gone", func(st mysql.Status) bool {
		return st.Replica.LagSeconds != nil && *st.Replica.LagSeconds < 1
	})
}

func TestLagOfSilentSource(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	source.Signal(t, syscall.SIGSTOP)
	defer source.Signal(t, syscall.SIGCONT)
	start := time.Now()
	st := replicaStatus(t, db, "the lag is unknown", func(st mysql.Status) bool { return st.Replica.LagSeconds == nil })
	t.Logf("unknown after %s, IORunning %v", time.Since(start).Round(time.Millisecond), st.Replica.IORunning)
	if time.Since(start) > 5*time.Second {
		t.Error("a source that is silent for three heartbeats must not count as fresh")
	}
	replicaStatus(t, db, "the receiver notices", func(st mysql.Status) bool { return !st.Replica.IORunning && st.Replica.IOConnecting })
	t.Logf("receiver noticed after %s", time.Since(start).Round(time.Millisecond))
	// Draining the replica of a dead source must not wait for the network.
	start = time.Now()
	if err := db.StopReceiver(budget(t)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > stopLimit {
		t.Errorf("stopping a receiver that reconnects took %s", took)
	}
}

// stopLimit is MySQL's own two seconds between its signals to a receiver that hangs in a connect, and some.
const stopLimit = 2500 * time.Millisecond

func TestApplierError(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	replica.Exec(t, "SET SESSION sql_log_bin = 0", "SET GLOBAL super_read_only = OFF", "INSERT INTO app.t (id, v) VALUES (77, 0)", "SET GLOBAL super_read_only = ON")
	source.Exec(t, "INSERT INTO app.t (id, v) VALUES (77, 1)")
	st := replicaStatus(t, db, "the applier stops", func(st mysql.Status) bool { return !st.Replica.SQLRunning })
	if st.Replica.SQLErrno != 1062 || !strings.Contains(st.Replica.SQLError, "Duplicate entry") || st.Replica.LagSeconds != nil {
		t.Errorf("status of a failed applier: %+v", st.Replica)
	}
	replica.Exec(t, "SET SESSION sql_log_bin = 0", "SET GLOBAL super_read_only = OFF", "DELETE FROM app.t WHERE id = 77", "SET GLOBAL super_read_only = ON")
	if err := db.Follow(budget(t), sourceOf(source)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
}

func TestFollowCorrects(t *testing.T) {
	source, replica := writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{})
	db := replica.Operator(t)
	wrong := sourceOf(source)
	wrong.Password = "geheim'nis"
	if err := db.Follow(budget(t), wrong); err != nil {
		t.Fatal(err)
	}
	st := replicaStatus(t, db, "the source refuses", func(st mysql.Status) bool { return st.Replica.IOErrno == 1045 })
	if strings.Contains(st.Replica.IOError, wrong.Password) {
		t.Errorf("the password is in the status: %s", st.Replica.IOError)
	}
	if err := db.Follow(budget(t), sourceOf(source)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	replica.Exec(t, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_HEARTBEAT_PERIOD = 30, SOURCE_CONNECT_RETRY = 60")
	source.Exec(t, insert)
	if err := db.Follow(budget(t), sourceOf(source)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	var heartbeat float64
	row := replica.Root(t).QueryRowContext(t.Context(), "SELECT HEARTBEAT_INTERVAL FROM performance_schema.replication_connection_configuration")
	if err := row.Scan(&heartbeat); err != nil || heartbeat != 1 {
		t.Errorf("heartbeat %v, %v: settings that somebody changed must be put right", heartbeat, err)
	}
	other := writable(t, mysqltest.Options{})
	if err := db.Follow(budget(t), sourceOf(other)); err != nil {
		t.Fatal(err)
	}
	if st := status(t, db); st.Replica.SourcePort != other.Port {
		t.Errorf("repointed, but it follows %+v", st.Replica)
	}
}

func TestStopReceiverThatHangsInConnect(t *testing.T) {
	// A listener that never answers: the kernel accepts, the handshake never comes.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	db := mysqltest.Start(t, mysqltest.Options{}).Operator(t)
	src := mysql.Source{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "x", Password: "y"}
	if err := db.Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	for name, stop := range map[string]func(context.Context) error{"StopReceiver": db.StopReceiver, "DropReplication": db.DropReplication} {
		start := time.Now()
		if err := stop(budget(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s took %s", name, time.Since(start).Round(time.Millisecond))
		if took := time.Since(start); took > stopLimit {
			t.Errorf("%s took %s", name, took)
		}
		if err := db.Follow(budget(t), src); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func TestFollowOverTLS(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{TLS: true})
	catchUp(t, source, replica)
	db := replica.Operator(t)
	// Any authority but the source's own: the certificate that mysqld made for itself.
	src := sourceOf(source)
	src.TLS, src.CA = true, "/srv/data/ca.pem"
	replica.Exec(t, "STOP REPLICA")
	if err := db.Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	st := replicaStatus(t, db, "a foreign certificate is refused", func(st mysql.Status) bool { return st.Replica.IOErrno != 0 })
	if st.Replica.IORunning {
		t.Errorf("a source must be verified: %+v", st.Replica)
	}
	t.Logf("refused: %d %s", st.Replica.IOErrno, st.Replica.IOError)
}

func TestTaggedTransactions(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	source.Exec(t, "SET SESSION gtid_next = 'AUTOMATIC:Mfg_1'", insert, insert, "SET SESSION gtid_next = 'AUTOMATIC'", insert)
	catchUp(t, source, replica)
	st := status(t, replica.Operator(t))
	want := gtid.MustParse(st.Replica.SourceUUID + ":mfg_1:1-2")
	if !st.Executed.Contains(want) || !st.Retrieved.Contains(want) {
		t.Errorf("%s and %s must hold %s", st.Executed, st.Retrieved, want)
	}
}

// TestKeepOutFreesTheApplier: an idle read transaction on a replica keeps an ALTER of its source waiting in the applier for as long
// as it likes, and with it a failover to this replica.
func TestKeepOutFreesTheApplier(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	for name, account := range map[string]string{"an application": app, "an administrator": admin} {
		t.Run(name, func(t *testing.T) {
			idle := session(t, replica.Client(t, account, account), "START TRANSACTION", "SELECT COUNT(*) FROM app.t")
			source.Exec(t, "ALTER TABLE app.t ADD COLUMN w"+account+" INT")
			set := status(t, source.Operator(t)).Executed
			if applied, err := replica.Operator(t).WaitApplied(budget(t), set, time.Second); err != nil || applied {
				t.Fatalf("the applier does not wait for the reader: %v, %v", applied, err)
			}
			if err := replica.Sidecar(t).KeepOut(budget(t), true); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			catchUp(t, source, replica)
			t.Logf("applied %v after the readers were kept out", time.Since(began).Round(time.Millisecond))
			if _, err := idle.ExecContext(t.Context(), "SELECT 1"); err == nil {
				t.Error("the session that held the lock goes on")
			}
			if _, err := replica.Client(t, app, app).ExecContext(t.Context(), "SELECT 1"); serverNumber(err) != 3032 {
				t.Errorf("an application gets in: %v", err)
			}
			fence(t, replica.Sidecar(t), mysql.StageNone)
		})
	}
}

// TestCutSessionsFreesTheApplier: the operator does as much by itself beside a sidecar that does not keep clients out yet.
func TestCutSessionsFreesTheApplier(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	session(t, replica.Client(t, app, app), "START TRANSACTION", "SELECT COUNT(*) FROM app.t")
	source.Exec(t, "ALTER TABLE app.t ADD COLUMN w INT")
	if err := replica.Operator(t).CutSessions(budget(t)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	if st := status(t, replica.Operator(t)); st.OfflineMode {
		t.Error("it keeps clients out, which only the sidecar may")
	}
}
