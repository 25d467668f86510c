// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const ticking = "CREATE EVENT app.ticking ON SCHEDULE EVERY 1 SECOND DO INSERT INTO app.t (v) VALUES (9)"

// ticks is an active site on which an event of root runs, and then is fenced.
func ticks(t *testing.T, event string) (*mysqltest.Server, *mysql.DB) {
	t.Helper()
	s := writable(t, mysqltest.Options{})
	s.Exec(t, event)
	waitFor(t, s, "the event runs", "SELECT (SELECT COUNT(*) FROM app.t) > 3 OR EXISTS (SELECT * FROM performance_schema.threads WHERE NAME = 'thread/sql/event_worker')")
	db := s.Operator(t)
	fenced(t, db)
	return s, db
}

// waitFor asks on one connection until the answer is yes.
func waitFor(t *testing.T, s *mysqltest.Server, what, query string, args ...any) {
	t.Helper()
	root := s.Root(t)
	mysqltest.Eventually(t, what, func() bool {
		var yes bool
		err := root.QueryRowContext(t.Context(), query, args...).Scan(&yes)
		return err == nil && yes
	})
}

func fenced(t *testing.T, db *mysql.DB) {
	t.Helper()
	if err := fences(budget(t), db); err != nil {
		t.Fatal(err)
	}
}

func threads(t *testing.T, s *mysqltest.Server, name string) (n int) {
	t.Helper()
	const query = "SELECT COUNT(*) FROM performance_schema.threads WHERE NAME = ?"
	if err := s.Root(t).QueryRowContext(t.Context(), query, "thread/sql/"+name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func scheduler(t *testing.T, s *mysqltest.Server) (state string) {
	t.Helper()
	if err := s.Root(t).QueryRowContext(t.Context(), "SELECT @@GLOBAL.event_scheduler").Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// I1: a site that is not active commits nothing of its own in a window, although it was active and has events.
func TestI1NoEventRunsInAWindow(t *testing.T) {
	s, db := ticks(t, ticking)
	before := status(t, db)
	window(t, db)
	time.Sleep(2 * time.Second) // in which the event would be due
	if after := status(t, db); !after.Executed.Equal(before.Executed) || threads(t, s, "event_scheduler") != 0 {
		t.Errorf("executed %s, before the window %s", after.Executed, before.Executed)
	}
	if err := db.EndWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if state := scheduler(t, s); state != "ON" {
		t.Errorf("after the window event_scheduler is %s", state)
	}
}

// I1: an event that has run since before the fence does not come to its commit in a window.
func TestI1RunningEventEndsBeforeAWindow(t *testing.T) {
	s, db := ticks(t, "CREATE EVENT app.slow ON SCHEDULE AT CURRENT_TIMESTAMP DO BEGIN DO SLEEP(600); INSERT INTO app.t (v) VALUES (9); END")
	if threads(t, s, "event_worker") == 0 {
		t.Fatal("the event does not run")
	}
	window(t, db)
	if n := threads(t, s, "event_worker"); n != 0 {
		t.Errorf("%d events run in the window", n)
	}
}

// A window that nobody ended leaves no active site without its events.
func TestOpeningResumesEvents(t *testing.T) {
	s, db := ticks(t, ticking)
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	sidecar := s.Sidecar(t)
	fenced(t, sidecar)
	if err := sidecar.OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, "the event runs", "SELECT COUNT(*) > ? FROM app.t", count(t, s))
}

// Who has switched the scheduler off keeps it off.
func TestEventsOfAUserStayOff(t *testing.T) {
	s, db := ticks(t, ticking)
	s.Exec(t, "SET GLOBAL event_scheduler = OFF")
	window(t, db)
	if err := db.EndWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
		t.Fatal(err)
	}
	if state := scheduler(t, s); state != "OFF" {
		t.Errorf("event_scheduler is %s", state)
	}
}
