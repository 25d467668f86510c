// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// startTimeout is how long a server may take to answer: a few seconds, and more than a minute on a machine that does much else.
const startTimeout = 4 * time.Minute

// Options are how a server differs from a site's defaults.
type Options struct {
	// TLS gives the server a certificate of CA, and accounts that require it.
	TLS bool
	// NoClonePlugin leaves the clone plugin out, as in an image that lacks it.
	NoClonePlugin bool
	// Keyring gives the server a keyring and the settings of Encrypted. Data made before its first start is not encrypted.
	Keyring bool
	// Config are more lines of my.cnf.
	Config []string
	// BeforeStart is called with the server's data directory each time before mysqld starts, as a supervisor may do.
	BeforeStart func(datadir string)
}

// Server is a running mysqld.
type Server struct {
	Port, AdminPort int
	// Dir is the server's folder on this machine; it holds data, mysqld.sock and mysqld.log.
	Dir  string
	root string
	opts Options

	cancel context.CancelFunc
	done   chan struct{}

	// down is held while mysqld must not be started again.
	down sync.Mutex

	mu    sync.Mutex
	cmd   *exec.Cmd
	exits []int
}

var lastServerID atomic.Int32

// Start runs a server until the test ends: read-only, with our accounts, without a transaction.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := newServer(t.Context(), opts)
	if err != nil {
		t.Fatalf("start mysqld: %v", err)
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "mysqld.log"))
			t.Logf("log of the server at port %d:\n%s", s.Port, tail(string(log)))
		}
		if err := os.RemoveAll(s.Dir); err != nil {
			t.Errorf("remove the server's folder: %v", err)
		}
	})
	// The server outlives the test's context, which ends before the test's cleanups run.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.cancel = cancel
	go s.supervise(ctx)
	s.WaitReady(t)
	return s
}

func newServer(ctx context.Context, opts Options) (*Server, error) {
	root, err := rootfs(ctx)
	if err != nil {
		return nil, err
	}
	from, err := template(ctx, root, opts.TLS)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	// Not t.TempDir: a socket's path has at most 107 bytes.
	dir, err := os.MkdirTemp("", "mfg-mysqld-")
	if err != nil {
		return nil, err
	}
	s := &Server{Port: ports[0], AdminPort: ports[1], Dir: dir, root: root, opts: opts, done: make(chan struct{})}
	if err := s.fill(ctx, from); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// fill makes the server's folder from an initialised one.
func (s *Server) fill(ctx context.Context, from string) error {
	if err := makeHome(s.Dir); err != nil {
		return err
	}
	cp := exec.CommandContext(ctx, "cp", "-a", "--sparse=always", filepath.Join(from, "data"), s.Dir)
	if out, err := cp.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data directory: %w\n%s", err, out)
	}
	if s.opts.TLS {
		if _, err := writeCertificate(s.Dir, authority()); err != nil {
			return err
		}
	}
	if s.opts.Keyring {
		if err := prepareKeyring(s.Dir, false); err != nil {
			return err
		}
	}
	return writeOwned(filepath.Join(s.Dir, "my.cnf"), config(int(lastServerID.Add(1)), s.Port, s.AdminPort, s.opts))
}

// freePorts finds ports that no process listens on now.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		addr, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, int(addr.Port()))
	}
	return ports, nil
}

// supervise restarts mysqld whenever it ends, whatever the reason, until the server is stopped.
func (s *Server) supervise(ctx context.Context) {
	defer close(s.done)
	runtime.LockOSThread() // see inRootfs
	for {
		log, err := os.OpenFile(filepath.Join(s.Dir, "mysqld.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		cmd := inRootfs(ctx, s.root, s.Dir, "mysqld", "--defaults-file="+home+"/my.cnf")
		cmd.Stdout, cmd.Stderr = log, log
		s.down.Lock()
		if s.opts.BeforeStart != nil {
			s.opts.BeforeStart(filepath.Join(s.Dir, "data"))
		}
		s.mu.Lock()
		err = cmd.Start()
		s.down.Unlock()
		if err != nil {
			s.mu.Unlock()
			_ = log.Close()
			return
		}
		s.cmd = cmd
		s.mu.Unlock()
		_ = cmd.Wait()
		_ = log.Close()
		s.mu.Lock()
		s.exits = append(s.exits, cmd.ProcessState.ExitCode())
		s.mu.Unlock()
	}
}

func (s *Server) stop() {
	s.cancel()
	<-s.done
}

// Exits are the exit codes with which mysqld has ended so far; -1 is a signal.
func (s *Server) Exits() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.exits...)
}

// Signal sends a signal to mysqld itself. After SIGSTOP it waits until every thread has stopped: on a busy machine some go on for a while, and
// answer.
func (s *Server) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := childOf(s.cmd.Process.Pid)
	if err != nil {
		t.Fatalf("find mysqld: %v", err)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal mysqld: %v", err)
	}
	if sig == syscall.SIGSTOP {
		Eventually(t, "all threads of mysqld are stopped", func() bool { return isStopped(t, pid) })
	}
}

// isStopped is true if every thread of a process is stopped by a signal.
func isStopped(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads of process %d: %v", pid, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil || !strings.Contains(string(text), "\nState:\tT (stopped)") {
			return false
		}
	}
	return true
}

// Kill ends mysqld with SIGKILL, calls meanwhile while it is down, and waits until it is back.
func (s *Server) Kill(t testing.TB, meanwhile func()) {
	t.Helper()
	func() {
		s.down.Lock()
		defer s.down.Unlock()
		before := len(s.Exits())
		s.Signal(t, syscall.SIGKILL)
		Eventually(t, "mysqld is gone", func() bool { return len(s.Exits()) > before })
		meanwhile()
	}()
	s.WaitReady(t)
}

// WaitReady waits until the server answers SQL.
func (s *Server) WaitReady(t testing.TB) {
	t.Helper()
	root := s.Root(t)
	Eventually(t, "mysqld answers", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return root.PingContext(ctx) == nil
	})
}

// Eventually asks until the answer is yes, for at most startTimeout.
func Eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if yes() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", startTimeout, what)
		}
	}
}

// Root is root's access through the socket. The pool closes with the test.
func (s *Server) Root(t testing.TB) *sql.DB {
	t.Helper()
	return s.open(t, "unix", filepath.Join(s.Dir, "mysqld.sock"), "root", Passwords.Root)
}

// Client is an ordinary client's access through the main port.
func (s *Server) Client(t testing.TB, user, password string) *sql.DB {
	t.Helper()
	return s.open(t, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), user, password)
}

func (s *Server) open(t testing.TB, network, addr, user, password string) *sql.DB {
	t.Helper()
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.Logger = network, addr, user, password, &driver.NopLogger{}
	if s.opts.TLS && network == "tcp" {
		c.TLS = ClientTLS()
	}
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatalf("open %s: %v", addr, err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Target is one of our accounts on the admin interface.
func (s *Server) Target(user, password string) mysql.Target {
	t := mysql.Target{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.AdminPort)), User: user, Password: password,
		DialTimeout: 2 * time.Second, QueryTimeout: 5 * time.Second, Program: "mysqltest",
	}
	if s.opts.TLS {
		t.TLS = ClientTLS()
	}
	return t
}

// Operator and Sidecar are the accounts that the programs use.
func (s *Server) Operator(t testing.TB) *mysql.DB {
	return Open(t, s.Target(mysql.AccountOperator, Passwords.Operator))
}

// Sidecar is the sidecar's access.
func (s *Server) Sidecar(t testing.TB) *mysql.DB {
	return Open(t, s.Target(mysql.AccountSidecar, Passwords.Sidecar))
}

// Open is mysql.Open for the length of a test.
func Open(t testing.TB, target mysql.Target) *mysql.DB {
	t.Helper()
	db, err := mysql.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs statements as root, in order, on one connection.
func (s *Server) Exec(t testing.TB, statements ...string) {
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

// ClientTLS verifies servers that Start made with TLS.
func ClientTLS() *tls.Config {
	return &tls.Config{RootCAs: authority().pool, MinVersion: tls.VersionTLS12}
}
