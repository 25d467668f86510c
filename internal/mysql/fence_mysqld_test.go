// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// Accounts of an application, and of an administrator whom offline_mode does not cut.
const (
	app   = "app"
	admin = "admin"
)

// writable starts a server, opens it as the sidecar does, and gives it a table app.t and the two accounts.
func writable(t *testing.T, opts mysqltest.Options) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Start(t, opts)
	if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	s.Exec(t,
		"CREATE DATABASE app", "CREATE TABLE app.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL)", "INSERT INTO app.t (v) VALUES (1), (2), (3)",
		"CREATE USER app IDENTIFIED BY 'app'", "GRANT ALL ON app.* TO app", "GRANT RELOAD, XA_RECOVER_ADMIN ON *.* TO app",
		"CREATE USER admin IDENTIFIED BY 'admin'", "GRANT ALL ON app.* TO admin", "GRANT RELOAD, CONNECTION_ADMIN ON *.* TO admin")
	return s
}

// session is one connection of a client that goes on until the test ends.
func session(t *testing.T, db *sql.DB, statements ...string) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return conn
}

// background runs a statement that the test does not wait for, once it is seen to run.
func background(t *testing.T, s *mysqltest.Server, conn *sql.Conn, statement string) <-chan error {
	t.Helper()
	var id uint64
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), statement)
		done <- err
	}()
	root := s.Root(t)
	mysqltest.Eventually(t, statement+" runs", func() bool {
		var running bool
		err := root.QueryRowContext(t.Context(), "SELECT COMMAND = 'Query' FROM performance_schema.processlist WHERE ID = ?", id).Scan(&running)
		return err == nil && running
	})
	return done
}

func serverNumber(err error) uint16 {
	if my, ok := errors.AsType[*driver.MySQLError](err); ok {
		return my.Number
	}
	return 0
}

// fence fences within two seconds more than the lock wait, as a site must, and checks what can be read afterwards.
func fence(t *testing.T, db *mysql.DB, want string) mysql.FenceResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	start := time.Now()
	got, err := db.Fence(ctx, mysql.FenceOptions{LockWait: time.Second})
	if err != nil {
		t.Fatalf("Fence: %v", err)
	}
	t.Logf("fenced in %s, stage %q", time.Since(start).Round(time.Millisecond), got.Stage)
	if got.Stage != want {
		t.Errorf("stage %q, want %q", got.Stage, want)
	}
	if rb := got.ReadBack; !rb.SuperReadOnly || !rb.ReadOnly || rb.OfflineMode || rb.ServerUUID == "" || rb.Executed.IsEmpty() {
		t.Errorf("read-back: %+v", rb)
	}
	st := status(t, db)
	if !st.SuperReadOnly || st.OfflineMode || !st.Executed.Equal(got.ReadBack.Executed) {
		t.Errorf("afterwards: %+v", st)
	}
	return got
}

func TestFenceAgainstBlockers(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	const longUpdate = "UPDATE app.t SET v = v + SLEEP(20)"
	tests := []struct {
		name, user string
		before     []string
		running    string
		stage      string
	}{
		{name: "nobody", user: app, stage: mysql.StageReadOnly},
		{name: "idle transaction", user: app, before: []string{"BEGIN", "INSERT INTO app.t (v) VALUES (9)"}, stage: mysql.StageReadOnly},
		{name: "LOCK TABLES", user: app, before: []string{"LOCK TABLES app.t WRITE"}, stage: mysql.StageReadOnly},
		{name: "FLUSH TABLES WITH READ LOCK", user: app, before: []string{"FLUSH TABLES WITH READ LOCK"}, stage: mysql.StageReadOnly},
		{name: "long UPDATE", user: app, running: longUpdate, stage: mysql.StageReadOnly},
		{name: "administrator's LOCK TABLES", user: admin, before: []string{"LOCK TABLES app.t WRITE"}, stage: mysql.StageKillSessions},
		{name: "administrator's long UPDATE", user: admin, running: longUpdate, stage: mysql.StageKillSessions},
		{name: "root's LOCK TABLES", user: "root", before: []string{"LOCK TABLES app.t WRITE"}, stage: mysql.StageKillSessions},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			clients := s.Root(t)
			if tc.user != "root" {
				clients = s.Client(t, tc.user, tc.user)
			}
			conn := session(t, clients, tc.before...)
			var running <-chan error
			if tc.running != "" {
				running = background(t, s, conn, tc.running)
			}
			fence(t, db, tc.stage)
			if running != nil {
				if err := <-running; err == nil {
					t.Error("a statement that ran during the fence must not have been committed")
				}
			}
			if _, err := conn.ExecContext(t.Context(), "COMMIT"); err == nil {
				t.Error("a session from before the fence must be cut")
			}
			if _, err := clients.ExecContext(t.Context(), "INSERT INTO app.t (v) VALUES (7)"); serverNumber(err) != 1290 {
				t.Errorf("a new session must be refused with 1290, got %v", err)
			}
			var n int
			if err := clients.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM app.t").Scan(&n); err != nil || n != 3 {
				t.Errorf("reads must go on and see what was committed: %d rows, %v", n, err)
			}
			fence(t, db, mysql.StageNone)
			if err := db.OpenWrites(budget(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFenceRefusesCommitOfUncutSession(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	conn := session(t, s.Client(t, admin, admin), "BEGIN", "INSERT INTO app.t (v) VALUES (9)")
	fence(t, s.Sidecar(t), mysql.StageReadOnly)
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); serverNumber(err) != 1290 {
		t.Errorf("the commit of a session that outlives offline_mode must be refused with 1290, got %v", err)
	}
}

func TestFenceAtMaxConnections(t *testing.T) {
	s := writable(t, mysqltest.Options{Config: []string{"max_connections=5"}})
	// Before all connections are taken: the one that MySQL keeps for administrators may be held by the set-up of the server.
	session(t, s.Client(t, admin, admin), "LOCK TABLES app.t WRITE")
	clients := s.Client(t, app, app)
	for i := 0; ; i++ {
		conn, err := clients.Conn(t.Context())
		if serverNumber(err) == 1040 {
			t.Logf("%d clients connected, then: %v", i, err)
			break
		}
		if err != nil || i > 10 {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	fence(t, s.Sidecar(t), mysql.StageKillSessions)
}

func TestFenceEndsWithItsContext(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	tests := map[string]struct {
		reason         string
		arrange, after func(t *testing.T)
	}{
		"frozen": {
			reason:  "a stopped mysqld accepts connections in the kernel and never answers",
			arrange: func(t *testing.T) { s.Signal(t, syscall.SIGSTOP) },
			after:   func(t *testing.T) { s.Signal(t, syscall.SIGCONT) },
		},
		"blocked": {
			reason: "a lock that nobody may break: our own accounts are never killed",
			arrange: func(t *testing.T) {
				s.Exec(t, "GRANT LOCK TABLES, SELECT ON app.* TO mfg_operator")
				session(t, s.Client(t, mysql.AccountOperator, mysqltest.Passwords.Operator), "LOCK TABLES app.t WRITE")
			},
			after: func(*testing.T) {},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.arrange(t)
			const limit = 1500 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			got, err := db.Fence(ctx, mysql.FenceOptions{})
			took := time.Since(start)
			tc.after(t)
			if !errors.Is(err, mysql.ErrNotFenced) || got.ReadBack.SuperReadOnly {
				t.Errorf("%s: want ErrNotFenced, got %+v, %v", tc.reason, got, err)
			}
			if took > limit+300*time.Millisecond {
				t.Errorf("%s: took %s", tc.reason, took)
			}
		})
	}
}

func TestOpenWritesCutsSessions(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	fence(t, db, mysql.StageReadOnly)
	conn := session(t, s.Client(t, app, app), "SELECT 1")
	if err := db.OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	if st := status(t, db); !st.Writable() || st.OfflineMode {
		t.Errorf("opened, but %+v", st)
	}
	if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err == nil {
		t.Error("a session from before the promotion must be cut")
	}
	if _, err := s.Client(t, app, app).ExecContext(t.Context(), "INSERT INTO app.t (v) VALUES (7)"); err != nil {
		t.Errorf("a new session must be able to write: %v", err)
	}
}

// I14: the statement of a clone may still be on its way when its sender has died and somebody has opened the server since.
func TestAnOpenedServerIsClonedFromNobody(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	fence(t, s.Sidecar(t), mysql.StageReadOnly)
	s.Exec(t, "SET GLOBAL clone_valid_donor_list = '127.0.0.1:3306'")
	if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	var donors sql.NullString
	if err := s.Root(t).QueryRowContext(budget(t), "SELECT @@GLOBAL.clone_valid_donor_list").Scan(&donors); err != nil || donors.Valid {
		t.Errorf("I14: it may still be cloned from %q (%v)", donors.String, err)
	}
}

func TestWindow(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Operator(t)
	fence(t, db, mysql.StageReadOnly)
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if st := status(t, db); st.SuperReadOnly || !st.ReadOnly || !st.OfflineMode {
		t.Errorf("inside the window: %+v", st)
	}
	if err := s.Client(t, app, app).PingContext(t.Context()); serverNumber(err) != 3032 {
		t.Errorf("an application must not get in (3032), got %v", err)
	}
	if err := db.EndWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if st := status(t, db); !st.SuperReadOnly || st.OfflineMode {
		t.Errorf("after the window: %+v", st)
	}
}

func TestSetOfflineMode(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	for _, on := range []bool{true, false} {
		if err := db.SetOfflineMode(budget(t), on); err != nil {
			t.Fatal(err)
		}
		if st := status(t, db); st.OfflineMode != on {
			t.Errorf("offline_mode = %v, want %v", st.OfflineMode, on)
		}
	}
}

// TestConnectionsAreClosed: calls come every two seconds for months.
func TestConnectionsAreClosed(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Operator(t)
	for range 5 {
		status(t, db)
		fence(t, s.Sidecar(t), mysql.StageReadOnly)
		fence(t, db, mysql.StageNone)
		if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
			t.Fatal(err)
		}
	}
	mysqltest.Eventually(t, "all but the pool's one connection are closed", func() bool {
		var n int
		row := s.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'mfg_operator'")
		return row.Scan(&n) == nil && n <= 1
	})
}

// TestFenceUnderLoad fences while clients commit as fast as they can, and compares what they were told with what is there.
func TestFenceUnderLoad(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	const writers = 4
	acknowledged := make(chan int, writers)
	for w := range writers {
		clients := s.Client(t, app, app)
		go func() {
			n := 0
			defer func() { acknowledged <- n }()
			for {
				if _, err := clients.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO app.t (v) VALUES (%d)", 1000+w)); err != nil {
					return
				}
				n++
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	got := fence(t, s.Sidecar(t), mysql.StageReadOnly)
	total := 0
	for range writers {
		total += <-acknowledged
	}
	var rows int
	if err := s.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM app.t WHERE v >= 1000").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	// A client that was cut may not have heard of its last commit.
	if rows < total || rows > total+writers || total == 0 {
		t.Errorf("%d commits acknowledged, %d rows", total, rows)
	}
	if after := status(t, s.Sidecar(t)).Executed; !after.Equal(got.ReadBack.Executed) {
		t.Errorf("the set grew after the fence was proven: %s", after.Subtract(got.ReadBack.Executed))
	}
}
