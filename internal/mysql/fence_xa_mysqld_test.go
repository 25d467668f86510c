// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"syscall"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// super_read_only does not refuse XA COMMIT: this is seen first, then that the fence keeps it out all the same.
func TestFenceKeepsPreparedXAOut(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	session(t, s.Client(t, app, app), "XA START 'x'", "INSERT INTO app.t (v) VALUES (9)", "XA END 'x'", "XA PREPARE 'x'")
	session(t, s.Client(t, app, app), "XA START 'y'", "INSERT INTO app.t (v) VALUES (9)", "XA END 'y'", "XA PREPARE 'y'")
	s.Exec(t, "SET GLOBAL super_read_only = ON")
	before := status(t, db).Executed
	if _, err := s.Client(t, app, app).ExecContext(t.Context(), "XA COMMIT 'x'"); err != nil {
		t.Errorf("MySQL refuses XA COMMIT under super_read_only now (%v): offline_mode need not stay on any more", err)
	}
	if status(t, db).Executed.Equal(before) {
		t.Error("MySQL gives XA COMMIT no GTID any more")
	}
	if err := db.OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}

	survivor := session(t, s.Client(t, admin, admin), "SELECT 1")
	got, err := db.Fence(budget(t), mysql.FenceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.PreparedXA != 1 || !got.ReadBack.OfflineMode || !got.ReadBack.SuperReadOnly || got.Stage != mysql.StageKillSessions {
		t.Errorf("with a prepared transaction the server must stay offline: %+v", got)
	}
	if _, err := survivor.ExecContext(t.Context(), "XA COMMIT 'y'"); err == nil {
		t.Error("a session that offline_mode spares must be cut before it can commit")
	}
	if _, err := s.Client(t, app, app).ExecContext(t.Context(), "XA COMMIT 'y'"); serverNumber(err) != 3032 {
		t.Errorf("an application must not get in (3032), got %v", err)
	}
	if after := status(t, db).Executed; !after.Equal(got.ReadBack.Executed) {
		t.Errorf("the set grew under the fence: %s", after.Subtract(got.ReadBack.Executed))
	}
	s.Exec(t, "XA ROLLBACK 'y'")
	if got := fence(t, db, mysql.StageNone); got.PreparedXA != 0 {
		t.Errorf("nothing is prepared any more: %+v", got)
	}
}

// TestRestartWithPreparedXA: a prepared transaction outlives mysqld. One that starts offline keeps it shut until a fence
// has looked; without a prepared one the same fence lets readers in.
func TestRestartWithPreparedXA(t *testing.T) {
	s := writable(t, mysqltest.Options{Config: []string{"offline_mode=ON"}})
	db := s.Sidecar(t)
	session(t, s.Client(t, app, app), "XA START 'x'", "INSERT INTO app.t (v) VALUES (9)", "XA END 'x'", "XA PREPARE 'x'")
	for _, prepared := range []int{1, 0} {
		exits := len(s.Exits())
		s.Signal(t, syscall.SIGKILL)
		backAfter(t, s, exits)
		if st := status(t, db); !st.SuperReadOnly || !st.OfflineMode {
			t.Errorf("after the restart: %+v", st)
		}
		got, err := db.Fence(budget(t), mysql.FenceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.PreparedXA != prepared || got.ReadBack.OfflineMode != (prepared > 0) {
			t.Errorf("with %d prepared: %+v", prepared, got)
		}
		if prepared > 0 {
			s.Exec(t, "XA ROLLBACK 'x'")
		}
	}
}

// TestWhatPassesSuperReadOnly shows which other statements of ordinary accounts leave a transaction on a fenced server.
func TestWhatPassesSuperReadOnly(t *testing.T) {
	s := writable(t, mysqltest.Options{})
	db := s.Sidecar(t)
	fence(t, db, mysql.StageReadOnly)
	tests := map[string]struct{ refused, grows bool }{
		"INSERT INTO app.t (v) VALUES (7)":       {refused: true},
		"CREATE TABLE app.u (i INT)":             {refused: true},
		"ANALYZE TABLE app.t":                    {refused: true},
		"OPTIMIZE TABLE app.t":                   {refused: true},
		"CREATE TEMPORARY TABLE app.tmp (i INT)": {},
		"FLUSH LOCAL TABLES":                     {},
		"FLUSH TABLES":                           {grows: true},
		"FLUSH STATUS":                           {grows: true},
	}
	for statement, want := range tests {
		conn := session(t, s.Client(t, app, app))
		before := status(t, db).Executed
		_, err := conn.ExecContext(t.Context(), statement)
		added := status(t, db).Executed.Subtract(before)
		if refused := serverNumber(err) == 1290; refused != want.refused || added.IsEmpty() == want.grows {
			t.Errorf("%s: error %v, adds %d transactions", statement, err, added.Count())
		}
	}
}
