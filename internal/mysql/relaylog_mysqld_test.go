// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// relayLogs are the paths of a replica's relay logs, oldest first.
func relayLogs(t *testing.T, s *mysqltest.Server) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(s.Dir, "data", "*relay-bin.0*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("relay logs: %v, %v", logs, err)
	}
	slices.Sort(logs)
	return logs
}

// backlog makes a replica whose last two relay logs hold twenty transactions each that it has not applied.
func backlog(t *testing.T) (source, replica *mysqltest.Server) {
	t.Helper()
	source, replica = pair(t, mysqltest.Options{})
	replica.Exec(t, "STOP REPLICA SQL_THREAD")
	for range 2 {
		replica.Exec(t, "FLUSH LOCAL RELAY LOGS")
		for range 20 {
			source.Exec(t, insert)
		}
		want := status(t, source.Operator(t)).Executed
		replicaStatus(t, replica.Operator(t), "all is received", func(st mysql.Status) bool { return st.Retrieved.Contains(want) })
	}
	return source, replica
}

// edit changes a file in place.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func cut(keep int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:min(keep, len(b))] }
}

// cutEvent ends a log in the middle of its last event.
func cutEvent(b []byte) []byte { return b[:len(b)-15] }

func spoil(b []byte) []byte {
	copy(b[len(b)/2:], bytes.Repeat([]byte{0xff}, 40))
	return b
}

// TestAChangeOfTheReceiverKeepsWhatIsNotAppliedI8: with the applier stopped too, a change of the receiver alone removes the relay logs.
func TestAChangeOfTheReceiverKeepsWhatIsNotAppliedI8(t *testing.T) {
	source, replica := backlog(t)
	db := replica.Operator(t)
	src := sourceOf(source)
	verified := src
	verified.TLS, verified.CA = true, mysqltest.CA
	before := relayLogs(t, replica)
	for name, change := range map[string]func() error{
		"GivePassword": func() error { return db.GivePassword(budget(t), src) },
		"VerifySource": func() error { return db.VerifySource(budget(t), verified) },
	} {
		if err := change(); !errors.Is(err, mysql.ErrNotFollowing) {
			t.Errorf("%s while the applier does not run: %v", name, err)
		}
	}
	if after := relayLogs(t, replica); !slices.Equal(after, before) {
		t.Errorf("I8: the relay logs were %v and are %v", before, after)
	}
	replicaStatus(t, db, "it receives as before", func(st mysql.Status) bool { return st.Replica.IORunning })
	replica.Exec(t, "START REPLICA SQL_THREAD")
	catchUp(t, source, replica)
	if err := db.GivePassword(budget(t), src); err != nil {
		t.Errorf("while the applier runs: %v", err)
	}
}

// TestOldSettingsAreNotBroughtBackWhileTheApplierIsStoppedI8: it stopped while the receiver tried the new ones.
func TestOldSettingsAreNotBroughtBackWhileTheApplierIsStoppedI8(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	replica.Exec(t, "SET GLOBAL relay_log_purge = OFF")
	verified := sourceOf(source)
	verified.TLS, verified.CA = true, mysqltest.CA
	before := relayLogs(t, replica)
	done := make(chan error, 1)
	go func() { done <- replica.Operator(t).VerifySource(t.Context(), verified) }()
	root := replica.Root(t)
	mysqltest.Eventually(t, "the receiver has the new settings", func() bool {
		var tries bool
		err := root.QueryRowContext(t.Context(), "SELECT SSL_VERIFY_SERVER_CERTIFICATE = 'YES' FROM performance_schema.replication_connection_configuration").Scan(&tries)
		return err == nil && tries
	})
	replica.Exec(t, "STOP REPLICA SQL_THREAD")
	if err := <-done; !errors.Is(err, mysql.ErrUnverified) {
		t.Errorf("a source without a certificate: %v", err)
	}
	if after := relayLogs(t, replica); !slices.Contains(after, before[len(before)-1]) {
		t.Errorf("I8: the relay logs were %v and are %v", before, after)
	}
}

// channelRow is the channel's whole configuration as mysqld has stored it, the password too.
func channelRow(t *testing.T, s *mysqltest.Server) string {
	t.Helper()
	var row string
	err := s.Root(t).QueryRowContext(t.Context(), `SELECT CONCAT_WS('|', HOST, USER_NAME, USER_PASSWORD, PORT, CONNECT_RETRY, ENABLED_SSL,
 SSL_VERIFY_SERVER_CERT, HEARTBEAT, RETRY_COUNT, ENABLED_AUTO_POSITION, GET_PUBLIC_KEY, GTID_ONLY, REQUIRE_ROW_FORMAT)
FROM mysql.slave_master_info JOIN mysql.slave_relay_log_info USING (CHANNEL_NAME)`).Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// TestFollowHealsTornRelayLog: a loss of power can take what was not synced of a relay log.
func TestFollowHealsTornRelayLog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		log    int // from the last one
		change func([]byte) []byte
		stops  string // what the applier says; nothing if mysqld repairs the log by itself at its start
	}{
		"cut in the last event":       {0, cutEvent, ""},
		"damaged in the middle":       {0, spoil, ""},
		"nothing left of the last":    {0, cut(0), unreadable},
		"cut in the header":           {0, cut(60), ""},
		"the last but one cut":        {1, cutEvent, unreadable},
		"damaged in the last but one": {1, spoil, unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			source, replica := backlog(t)
			config := channelRow(t, replica)
			replica.Kill(t, func() {
				logs := relayLogs(t, replica)
				edit(t, logs[len(logs)-1-test.log], test.change)
			})
			source.Exec(t, insert)
			heal(t, source, replica, test.stops)
			if got := channelRow(t, replica); got != config {
				t.Errorf("the configuration was %s and is %s", config, got)
			}
		})
	}
}

// What mysqld's log says of an applier that stops at its relay log.
const (
	unreadable    = "[MY-013121] [Repl] Replica SQL for channel '': Relay log read failure"
	notOpened     = "[MY-013117] [Repl] Replica SQL for channel '': Could not open log file"
	uninitialized = "[MY-013124] [Repl] Replica SQL for channel '': Replica failed to initialize applier metadata"
)

// heal asks to follow until all is applied, as the operator does at each poll, and looks what had stopped the applier.
func heal(t *testing.T, source, replica *mysqltest.Server, stops string) {
	t.Helper()
	db, want, start := replica.Operator(t), status(t, source.Operator(t)).Executed, time.Now()
	mysqltest.Eventually(t, "the replica heals", func() bool {
		err := db.Follow(budget(t), sourceOf(source))
		if err != nil && stops != uninitialized {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
		return status(t, db).Executed.Contains(want)
	})
	t.Logf("healed after %s", time.Since(start).Round(time.Millisecond))
	log, err := os.ReadFile(filepath.Join(replica.Dir, "mysqld.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{unreadable, notOpened, uninitialized} {
		if said := strings.Contains(string(log), text); said != (text == stops) {
			t.Errorf("the test rests on %q, and mysqld said %q: %v", stops, text, said)
		}
	}
}

func TestFollowHealsRelayLogOfRunningServer(t *testing.T) {
	t.Run("damaged", func(t *testing.T) {
		source, replica := backlog(t)
		replica.Exec(t, "STOP REPLICA")
		logs := relayLogs(t, replica)
		edit(t, logs[len(logs)-2], spoil)
		heal(t, source, replica, unreadable)
	})
	t.Run("gone", func(t *testing.T) {
		source, replica := backlog(t)
		replica.Exec(t, "STOP REPLICA")
		logs := relayLogs(t, replica)
		// This is where the applier stands.
		remove(t, logs[len(logs)-3])
		heal(t, source, replica, notOpened)
	})
}

func TestFollowHealsRelayIndex(t *testing.T) {
	source, replica := backlog(t)
	config := channelRow(t, replica)
	replica.Kill(t, func() {
		logs, err := filepath.Glob(filepath.Join(replica.Dir, "data", "*relay-bin.index"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("index of the relay logs: %v, %v", logs, err)
		}
		edit(t, logs[0], func(b []byte) []byte { return b[:len(b)-4] })
	})
	heal(t, source, replica, uninitialized)
	if got := channelRow(t, replica); got != config {
		t.Errorf("the configuration was %s and is %s", config, got)
	}
}

// TestFollowKeepsRelayLog shows I8: what can still be applied, or fetched from nobody, is not thrown away.
func TestFollowKeepsRelayLog(t *testing.T) {
	t.Parallel()
	t.Run("a transaction that fails", func(t *testing.T) {
		source, replica := pair(t, mysqltest.Options{})
		db := replica.Operator(t)
		replica.Exec(t, "SET SESSION sql_log_bin = 0", "SET GLOBAL super_read_only = OFF", "INSERT INTO app.t (id, v) VALUES (77, 0)", "SET GLOBAL super_read_only = ON")
		source.Exec(t, "INSERT INTO app.t (id, v) VALUES (77, 1)", insert)
		keeps(t, replica, db, sourceOf(source), func(st mysql.Status) bool { return st.Replica.SQLErrno == 1062 && !st.Replica.SQLRunning })
	})
	for name, test := range map[string]struct {
		damage func(t *testing.T, logs []string)
		errno  int
		stops  string
	}{
		"the source is dead and a log damaged": {func(t *testing.T, logs []string) { edit(t, logs[len(logs)-1], spoil) }, 13121, unreadable},
		"the source is dead and a log gone":    {func(t *testing.T, logs []string) { remove(t, logs[len(logs)-3]) }, 13117, notOpened},
	} {
		t.Run(name, func(t *testing.T) {
			source, replica := backlog(t)
			db := replica.Operator(t)
			replica.Exec(t, "STOP REPLICA")
			test.damage(t, relayLogs(t, replica))
			source.Kill(t, func() {
				keeps(t, replica, db, sourceOf(source), func(st mysql.Status) bool {
					return st.Replica.SQLErrno == test.errno && !st.Replica.SQLRunning && !st.Replica.IORunning
				})
			})
			heal(t, source, replica, test.stops)
		})
	}
}

// keeps asks to follow, several times, and looks that what was retrieved is still there.
func keeps(t *testing.T, replica *mysqltest.Server, db *mysql.DB, src mysql.Source, stopped func(mysql.Status) bool) {
	t.Helper()
	var before mysql.Status
	var oldest []byte
	for i := range 6 {
		if err := db.Follow(budget(t), src); err != nil {
			t.Fatal(err)
		}
		st := replicaStatus(t, db, "the applier has stopped", stopped)
		log, err := os.ReadFile(relayLogs(t, replica)[0])
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before, oldest = st, log
			continue
		}
		if !st.Retrieved.Contains(before.Retrieved) || before.Retrieved.IsEmpty() || !bytes.HasPrefix(log, oldest) {
			t.Errorf("I8: the relay log is gone: %s, before %s", st.Retrieved, before.Retrieved)
		}
	}
}
