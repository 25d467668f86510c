// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"database/sql"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// prober is the write probe of a server, over the port of the clients.
func prober(t *testing.T, s *mysqltest.Server) *mysql.DB {
	t.Helper()
	target := s.Target(mysql.AccountProbe, mysql.ProbePassword(mysqltest.Passwords.Sidecar))
	target.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	return mysqltest.Open(t, target)
}

func probed(t *testing.T, db *mysql.DB) (mysql.ProbeFailure, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := db.ProbeWrite(ctx)
	if err == nil {
		return "", 0
	}
	t.Log(err)
	return mysql.ProbeFailureOf(err)
}

func text(t *testing.T, db *sql.DB, query string) (s string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

// The write probe of an open server leaves nothing: no transaction, no event in the binary log, no row.
func TestProbeLeavesNothing(t *testing.T) {
	for name, tls := range map[string]bool{"with TLS": true, "without TLS": false} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{TLS: tls})
			if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
				t.Fatal(err)
			}
			root, db := s.Root(t), prober(t, s)
			binlog := func() string {
				var file, pos, a, b, c string
				if err := root.QueryRowContext(t.Context(), "SHOW BINARY LOG STATUS").Scan(&file, &pos, &a, &b, &c); err != nil {
					t.Fatal(err)
				}
				return file + ":" + pos
			}
			executed, events := text(t, root, "SELECT @@GLOBAL.gtid_executed"), binlog()
			for range 5 {
				if f, n := probed(t, db); f != "" {
					t.Fatalf("an open server: %s (%d)", f, n)
				}
			}
			if now := text(t, root, "SELECT @@GLOBAL.gtid_executed"); now != executed {
				t.Errorf("gtid_executed grew from %q to %q", executed, now)
			}
			if now := binlog(); now != events {
				t.Errorf("the binary log grew from %s to %s", events, now)
			}
			if n := text(t, root, "SELECT COUNT(*) FROM sys.sys_config WHERE variable LIKE 'mfg%'"); n != "0" {
				t.Errorf("%s rows are left", n)
			}
		})
	}
}

// The probe is answered only once its change is on disk, as that of a client is: a disk that hangs is met.
func TestProbeWaitsForTheDisk(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Config: []string{"innodb_flush_method=fsync"}})
	if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	root, db := s.Root(t), prober(t, s)
	flushes := func() int {
		n, err := strconv.Atoi(text(t, root, "SELECT COUNT_MISC FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_log_file'"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const probes = 20
	before, began := flushes(), time.Now()
	for range probes {
		if f, n := probed(t, db); f != "" {
			t.Fatalf("an open server: %s (%d)", f, n)
		}
	}
	took := time.Since(began)
	t.Logf("%v for a probe, its connection included; %d flushes of %d probes", took/probes, flushes()-before, probes)
	if grown := flushes() - before; grown < probes {
		t.Errorf("%d flushes of the redo log for %d probes: a probe does not wait for its commit", grown, probes)
	}
}

// The probe meets what a client meets.
func TestProbeMeetsWhatClientsMeet(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	root, db := s.Root(t), prober(t, s)
	open := func() {
		t.Helper()
		if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		set  []string
		want mysql.ProbeFailure
		back []string
	}{
		{"offline_mode", []string{"SET GLOBAL offline_mode = ON"}, mysql.ProbeOffline, []string{"SET GLOBAL offline_mode = OFF"}},
		{"read_only", []string{"SET GLOBAL read_only = ON"}, mysql.ProbeReadOnly, []string{"SET GLOBAL read_only = OFF"}},
		{"super_read_only", []string{"SET GLOBAL super_read_only = ON"}, mysql.ProbeReadOnly, []string{"SET GLOBAL read_only = OFF"}},
		{"require_secure_transport", []string{"SET GLOBAL require_secure_transport = ON"}, mysql.ProbeSecureTransport, []string{"SET GLOBAL require_secure_transport = OFF"}},
		{"no rights", []string{"REVOKE SESSION_VARIABLES_ADMIN ON *.* FROM mfg_probe"}, mysql.ProbeUnable, []string{"GRANT SESSION_VARIABLES_ADMIN ON *.* TO mfg_probe"}},
		{"no right on the table", []string{"REVOKE INSERT ON sys.sys_config FROM mfg_probe"}, mysql.ProbeUnable, []string{"GRANT INSERT ON sys.sys_config TO mfg_probe"}},
		{"another password", []string{"ALTER USER mfg_probe IDENTIFIED BY 'x'"}, mysql.ProbeUnable, []string{"ALTER USER mfg_probe IDENTIFIED BY '" + mysql.ProbePassword(mysqltest.Passwords.Sidecar) + "'"}},
		{"no account", []string{"RENAME USER mfg_probe TO gone"}, mysql.ProbeUnable, []string{"RENAME USER gone TO mfg_probe"}},
	} {
		open()
		s.Exec(t, tc.set...)
		if f, n := probed(t, db); f != tc.want {
			t.Errorf("%s: %s (%d), want %s", tc.name, f, n, tc.want)
		}
		s.Exec(t, tc.back...)
		if f, n := probed(t, db); f != "" {
			t.Errorf("after %s: %s (%d)", tc.name, f, n)
		}
	}

	admin := session(t, root, "SET GLOBAL max_connections = 1") // its own takes it
	if f, n := probed(t, db); f != mysql.ProbeTooManyConnections {
		t.Errorf("all connections taken: %s (%d)", f, n)
	}
	if _, err := admin.ExecContext(t.Context(), "SET GLOBAL max_connections = 100"); err != nil {
		t.Fatal(err)
	}

	lock := session(t, root, "FLUSH TABLES WITH READ LOCK")
	if f, n := probed(t, db); f != mysql.ProbeLocked {
		t.Errorf("under a read lock of everything: %s (%d)", f, n)
	}
	if _, err := lock.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if f, n := probed(t, db); f != "" {
		t.Errorf("after the lock: %s (%d)", f, n)
	}
}

// A probe that hangs leaves its sessions in the server, but only so many, and does not hold a fence back.
func TestProbeThatHangs(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	db := prober(t, s)
	s.Signal(t, syscall.SIGSTOP)
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		began := time.Now()
		err := db.ProbeWrite(ctx)
		cancel()
		if f, n := mysql.ProbeFailureOf(err); err == nil || f != mysql.ProbeNoAnswer {
			t.Errorf("a stopped server: %s (%d), %v", f, n, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the probe took %v", took)
		}
	}
	s.Signal(t, syscall.SIGCONT)
	mysqltest.Eventually(t, "the probe writes again", func() bool { f, _ := probed(t, db); return f == "" })

	// Its session waits for a lock when the fence comes.
	held := session(t, s.Root(t), "LOCK TABLES sys.sys_config READ")
	defer func() { _ = held.Close() }()
	hung := make(chan error, 1)
	go func() { hung <- db.ProbeWrite(budget(t)) }()
	mysqltest.Eventually(t, "the probe waits", func() bool {
		return text(t, s.Root(t), "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_USER = 'mfg_probe' AND PROCESSLIST_INFO LIKE 'INSERT%'") == "1"
	})
	began := time.Now()
	if _, err := s.Sidecar(t).Fence(budget(t), mysql.FenceOptions{LockWait: time.Second}); err != nil {
		t.Errorf("fence beside a probe that hangs: %v", err)
	}
	t.Logf("fenced within %v", time.Since(began))
	if err := <-hung; err == nil {
		t.Error("the probe wrote to a fenced server")
	}
}
