// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package measure

import (
	"context"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// A real server has every number that a series is made of, the sidecar's account may read them, and a scrape beside one that is stopped
// is answered at once.
func TestARealServerHasEverySeries(t *testing.T) {
	server := mysqltest.Start(t, mysqltest.Options{})
	db := server.Sidecar(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	values, err := db.Measures(ctx, names())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range serverSeries {
		if _, known := s.value(values); !known {
			t.Errorf("mysqld has no %s", s.from)
		}
	}
	const rounds = 50
	began := time.Now()
	for range rounds {
		if _, err := db.Measures(ctx, names()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v for the numbers of mysqld", time.Since(began)/rounds)
	a := &Agent{
		MySQL: db, Volume: func() (Use, error) { return Look(filepath.Join(server.Dir, "data")) },
		Answers: func() bool { return true }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	go a.Run(ctx)
	for deadline := time.Now().Add(10 * time.Second); scrape(t, a)["sidecar_mysql_measured"] != 1 || scrape(t, a)["sidecar_binlog_files"] < 1; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server is not measured: %v", scrape(t, a))
		}
	}
	got := scrape(t, a)
	t.Log(got)
	if got["sidecar_mysql_connections"] < 1 || got["sidecar_mysql_max_connections"] < 10 || got["sidecar_mysql_innodb_buffer_pool_size_bytes"] < 5<<20 {
		t.Errorf("%v", got)
	}
	server.Signal(t, syscall.SIGSTOP)
	defer server.Signal(t, syscall.SIGCONT)
	began = time.Now()
	a.askServer(ctx)
	if took := time.Since(began); took > timeout+500*time.Millisecond {
		t.Errorf("reading a stopped server took %v", took)
	}
	began = time.Now()
	scrape(t, a)
	if took := time.Since(began); took > 200*time.Millisecond {
		t.Errorf("a scrape beside a stopped server took %v", took)
	}
}

// TestALargeOpenChangeIsSeen: one that a session holds open counts, and neither one that is committed nor a prepared XA transaction, which a
// fence does not roll back.
func TestALargeOpenChangeIsSeen(t *testing.T) {
	server := mysqltest.Start(t, mysqltest.Options{})
	db := server.Sidecar(t)
	if err := db.OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		time.Sleep(200 * time.Millisecond) // InnoDB answers from a copy that it renews after a tenth of a second
		values, err := db.Measures(t.Context(), names())
		if err != nil {
			t.Fatal(err)
		}
		return int(values[mysql.MeasureOpenChange])
	}
	server.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.c (id INT PRIMARY KEY)")
	conn, err := server.Root(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exec := func(statement string) {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("BEGIN")
	exec("INSERT INTO app.c VALUES (1), (2), (3)")
	if n := open(); n != 3 {
		t.Errorf("3 rows are changed and not committed, and %d are seen", n)
	}
	exec("COMMIT")
	if n := open(); n != 0 {
		t.Errorf("all is committed, and %d rows are seen", n)
	}
	exec("XA START 'x'")
	exec("INSERT INTO app.c VALUES (4), (5)")
	exec("XA END 'x'")
	exec("XA PREPARE 'x'")
	if n := open(); n != 0 {
		t.Errorf("%d rows of a prepared XA transaction are seen", n)
	}
	exec("XA ROLLBACK 'x'")
}
