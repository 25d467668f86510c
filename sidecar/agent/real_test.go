// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package agent

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// site is an agent beside a real mysqld; the operator and the peers are those of the fake world.
type site struct {
	*world
	server *mysqltest.Server
	store  Store
	procs  Procfs
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := mysqltest.Start(t, mysqltest.Options{})
	// Processes of this server see its folder mounted; other servers may run on this machine.
	ours := func(pid int) bool {
		mounts, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")
		return err == nil && strings.Contains(string(mounts), server.Dir+" ")
	}
	server.Exec(t, "SET GLOBAL super_read_only = OFF", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT)",
		"CREATE TABLE shop.locked (id INT PRIMARY KEY)", "CREATE USER 'app'@'%' IDENTIFIED BY 'app'", "GRANT ALL ON shop.* TO 'app'@'%'", "SET GLOBAL super_read_only = ON")
	return &site{
		world: newWorld(t), server: server, store: Store{Dir: t.TempDir()},
		procs: Procfs{Root: "/proc", Datadir: filepath.Join(server.Dir, "data"), Only: ours},
	}
}

func (s *site) boot() {
	s.t.Helper()
	clock, err := NewClock()
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := New(Config{
		Site:  fence.Site{Namespace: "shop", Group: "orders", Name: "a"},
		Lease: 5 * time.Second, PeerCheck: 500 * time.Millisecond, FenceTimeout: 2 * time.Second,
		MySQL: s.server.Sidecar(s.t), Changer: s.server.Sidecar(s.t), Network: s.world, Processes: s.procs, Volume: s.store,
		Prepared: s.server.Sidecar(s.t).PreparedXA,
		Verify:   verify, Watchdog: &s.dog, Clock: clock, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.agent = a
	a.Start(ctx)
	s.t.Cleanup(func() {
		cancel()
		a.Stop()
	})
}

// within waits until MySQL accepts commits of clients, or not, and returns how long that took.
func (s *site) within(limit time.Duration, writable bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for !s.tryWrite() == writable {
		if time.Since(began) > limit {
			s.t.Fatalf("after %v: writable is still %v", limit, !writable)
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	s.t.Logf("writable=%v after %v", writable, took.Round(time.Millisecond))
	return took
}

func (s *site) tryWrite() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	db := s.server.Client(s.t, "app", "app")
	_, err := db.ExecContext(ctx, "INSERT INTO shop.orders VALUES ()")
	_ = db.Close()
	return err == nil
}

// hold keeps a session of a client busy with statements.
func (s *site) hold(statements ...string) *sql.Conn {
	s.t.Helper()
	conn, err := s.server.Client(s.t, "app", "app").Conn(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	for _, statement := range statements {
		if _, err := conn.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
	return conn
}

// I3: beside an open mysqld the sidecar fences first, and opens on the operator's answer.
func TestRealStartupI3(t *testing.T) {
	s := newSite(t)
	s.server.Exec(t, "SET GLOBAL read_only = OFF")
	if !s.tryWrite() {
		t.Fatal("the test's server is not open")
	}
	s.boot()
	s.within(time.Second, false)
	if last := s.agent.now().Last(); last.Cause != wire.FenceStartup || last.Stage != wire.FenceReadOnly {
		t.Errorf("got %+v", last)
	}
	time.Sleep(2 * time.Second)
	if s.tryWrite() {
		t.Fatal("opened without the operator")
	}
	s.do(func() { s.operator = told(5, "a") })
	s.within(2*time.Second, true)
}

// I1, I2: the push fences although clients hold locks and have transactions open, and the answer is proof.
func TestRealMismatchI1I2(t *testing.T) {
	s := newSite(t)
	s.operator = told(5, "a")
	s.boot()
	s.within(3*time.Second, true)
	if m, err := s.procs.Look(); err != nil || !m.Running() || !s.procs.Locked() {
		t.Fatalf("mysqld is not seen: %+v, %v, locked %v", m, err, s.procs.Locked())
	}
	open := s.hold("BEGIN", "INSERT INTO shop.orders VALUES ()")
	s.hold("LOCK TABLES shop.locked WRITE")
	s.do(func() { s.operator = told(6, "b") })
	began := time.Now()
	r := s.push(told(6, "b"))
	t.Logf("fenced and reported after %v: %+v", time.Since(began).Round(time.Millisecond), r)
	if !r.FencedUnder(6) || r.GTIDExecuted == "" || r.FenceCause != wire.FenceMismatch || r.OfflineMode {
		t.Errorf("got %+v", r)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := open.ExecContext(t.Context(), "COMMIT"); err == nil {
		t.Error("a commit under the old epoch was accepted")
	}
	if s.tryWrite() {
		t.Error("a write was accepted")
	}
	// It is named again: a push and the operator's own answer open it, within one exchange.
	s.do(func() { s.operator = told(7, "a") })
	began = time.Now()
	if r := s.push(told(7, "a")); !r.Writable {
		t.Errorf("got %+v", r)
	}
	t.Logf("open and reported after %v", time.Since(began).Round(time.Millisecond))
}

// I4: cut off from everybody, MySQL is fenced within leaseTimeout and fenceTimeout.
func TestRealIsolationI4(t *testing.T) {
	s := newSite(t)
	s.operator = told(5, "a")
	s.boot()
	s.within(3*time.Second, true)
	s.hold("LOCK TABLES shop.locked WRITE")
	s.do(func() { s.operator = wire.Statement{} })
	took := s.within(8*time.Second, false)
	if took < 3*time.Second || took > 6*time.Second {
		t.Errorf("fenced after %v with a lease of 5 s", took)
	}
	s.do(func() { s.operator = told(5, "a") })
	s.within(3*time.Second, true)
}

// I4: a mysqld that does not react is killed, and comes back fenced.
func TestRealSIGKILLI4(t *testing.T) {
	s := newSite(t)
	s.operator = told(5, "a")
	s.boot()
	s.within(3*time.Second, true)
	before, _ := s.procs.Look()
	s.server.Signal(t, syscall.SIGSTOP)
	s.do(func() { s.operator = told(6, "b") })
	began := time.Now()
	r := s.push(told(6, "b"))
	t.Logf("killed and reported after %v: %+v", time.Since(began).Round(time.Millisecond), r)
	if r.FenceStage != wire.FenceKillServer || r.Writable || time.Since(began) > 4*time.Second {
		t.Errorf("got %+v", r)
	}
	mysqltest.Eventually(t, "mysqld is back, fenced", func() bool {
		seen := s.agent.now().Seen()
		return seen.Answered && seen.SuperReadOnly && seen.Process != before.ID
	})
	if s.tryWrite() {
		t.Error("a write was accepted")
	}
	if r := s.push(told(6, "b")); !r.FencedUnder(6) {
		t.Errorf("got %+v", r)
	}
}

// A mysqld that crashed is opened again as soon as it answers.
func TestRealRestart(t *testing.T) {
	s := newSite(t)
	s.operator = told(5, "a")
	s.boot()
	s.within(3*time.Second, true)
	s.server.Signal(t, syscall.SIGKILL)
	s.within(time.Second, false)
	s.within(30*time.Second, true)
	// Somebody lifts a fence by hand, where it must stay.
	s.do(func() { s.operator = told(6, "b") })
	s.within(3*time.Second, false)
	mysqltest.Eventually(t, "it is fenced", func() bool { return s.agent.now().Seen().SuperReadOnly })
	s.server.Exec(t, "SET GLOBAL read_only = OFF")
	s.within(2*time.Second, false)
	mysqltest.Eventually(t, "it is fenced again", func() bool { return s.agent.now().Seen().SuperReadOnly })
}

// I1: how long a prepared XA transaction can be committed on a replica: until the door is shut.
func TestRealPreparedXAI1(t *testing.T) {
	s := newSite(t)
	source := mysqltest.Start(t, mysqltest.Options{})
	if err := source.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.Exec(t, "CREATE TABLE mysql.x (id INT PRIMARY KEY AUTO_INCREMENT)")
	from := mysql.Source{Host: "127.0.0.1", Port: source.Port, User: mysql.AccountReplication, Password: mysqltest.Passwords.Replication}
	if err := s.server.Operator(t).Follow(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	s.operator = told(5, "b")
	s.boot()
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
		rounds = n
	}
	readers := s.server.Client(t, "app", "app")
	for i := range rounds {
		// The sidecar's last look alone does not tell: in the second round it may be older than the door, which shuts at once.
		var reader *sql.Conn
		mysqltest.Eventually(t, "readers get in", func() bool {
			if seen := s.agent.now().Seen(); !seen.SuperReadOnly || seen.Offline {
				return false
			}
			conn, err := readers.Conn(t.Context())
			if err != nil {
				return false
			}
			t.Cleanup(func() { _ = conn.Close() })
			reader = conn
			return conn.PingContext(t.Context()) == nil
		})
		// Held from before: as MySQL goes offline it ends logins that are not finished, root's too.
		person, err := s.server.Root(t).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		xid := "'x" + strconv.Itoa(i) + "'"
		source.Exec(t, "XA START "+xid, "INSERT INTO mysql.x VALUES ()", "XA END "+xid, "XA PREPARE "+xid)
		began := time.Now()
		for {
			// A transaction that does not exist: how one that does would end must not matter to the test.
			_, err := reader.ExecContext(t.Context(), "XA COMMIT 'nobody'")
			if e, is := errors.AsType[*driver.MySQLError](err); !is || e.Number != 1397 {
				break
			}
			if time.Since(began) > time.Second {
				t.Fatal("a prepared transaction could be committed for more than a second")
			}
		}
		t.Logf("the door is shut %v after XA PREPARE was acknowledged on the source", time.Since(began).Round(time.Millisecond))
		if _, err := person.ExecContext(t.Context(), "XA RECOVER"); err != nil {
			t.Errorf("a person may see it all the time: %v", err)
		}
		_ = person.Close() // it was asked
		source.Exec(t, "XA ROLLBACK "+xid)
	}
}
