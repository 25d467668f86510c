// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// on runs statements on one connection, which goes then: what it prepared stays.
func on(t *testing.T, s *mysqltest.Server, statements ...string) {
	t.Helper()
	conn, err := s.Root(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// The rows of a prepared XA transaction are in no dump, and the GTID of its XA PREPARE is: no dump is made then. A copy holds it as it is.
func TestABackupBesideAPreparedXATransaction(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
	on(t, s, "XA START 'x'", "INSERT INTO d.t VALUES (2)", "XA END 'x'", "XA PREPARE 'x'")
	j := newJob(t, false).from(s)
	if res := j.fails("make", terms.SourceBusy, terms.ExitSource); !strings.Contains(res.Message, "XA COMMIT") {
		t.Errorf("it does not say what to do: %s", res.Message)
	}
	if names, others := j.backups(); len(names)+others > 0 {
		t.Errorf("left: %v and %d objects", names, others)
	}

	j.config.Method, j.config.Backup = bucket.Physical, "copy"
	j.must("make")
	j.site(false)
	j.must("load")
	db := j.opened("/srv/volume/data.restored", false)
	if _, err := db.ExecContext(t.Context(), "XA COMMIT 'x'"); err != nil {
		t.Fatalf("the copy does not hold what is prepared: %v", err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM d.t").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}

	s.Exec(t, "XA COMMIT 'x'")
	j.config.Method, j.config.Backup = bucket.Logical, "dump"
	if res := j.must("make"); res.Rows != 2 || len(res.Warnings) > 0 {
		t.Errorf("%+v", res)
	}
}

// Short XA transactions come and go while a dump begins. The dumps that are made hold all of what their GTID set says.
func TestADumpAmongShortXATransactions(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY)")
	ctx, stop := context.WithCancel(t.Context())
	conn, err := s.Root(t).Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			for _, statement := range []string{"XA START 'x'", "INSERT INTO d.t () VALUES ()", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'", "DO SLEEP(0.02)"} {
				_, _ = conn.ExecContext(context.WithoutCancel(ctx), statement)
			}
		}
	})
	defer writer.Wait()
	defer stop()
	j := newJob(t, false).from(s)
	for range 5 {
		if res, code := j.run("make"); code != 0 && (code != terms.ExitSource || res.Reason != terms.SourceBusy) {
			t.Fatalf("code %d: %+v", code, res)
		} else if code == 0 {
			t.Error("an XA transaction ended every 20 ms, and the dump saw none: its look is too early or too late")
		}
	}
}

// An account of an earlier version cannot see XA transactions. It makes backups until its site restarts, and they say so.
func TestAnAccountThatDoesNotSeeXATransactions(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "REVOKE XA_RECOVER_ADMIN ON *.* FROM mfg_backup")
	if res := newJob(t, false).from(s).must("make"); len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "XA_RECOVER_ADMIN") {
		t.Errorf("%+v", res)
	}
}

// What the look after the snapshot rests on: a replica counts the XA COMMIT and XA ROLLBACK of its applier as those of clients are counted.
func TestAnApplierCountsTheEndsOfXATransactions(t *testing.T) {
	t.Parallel()
	active, replica := origin(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{TLS: true})
	replica.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1",
			active.Port, mysql.AccountReplication, strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(mysqltest.Passwords.Replication)), "START REPLICA")
	active.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
	for i, end := range []string{"XA COMMIT 'x'", "XA ROLLBACK 'x'"} {
		on(t, active, "XA START 'x'", fmt.Sprintf("INSERT INTO d.t VALUES (%d)", i), "XA END 'x'", "XA PREPARE 'x'", end)
	}
	mysqltest.Eventually(t, "the replica has it", func() bool { return executed(t, replica.Root(t)) == executed(t, active.Root(t)) })
	for _, counter := range []string{"Com_xa_commit", "Com_xa_rollback"} {
		var name string
		var n int
		if err := replica.Root(t).QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+counter+"'").Scan(&name, &n); err != nil || n != 1 {
			t.Errorf("%s is %d on the replica: %v", counter, n, err)
		}
	}
}
