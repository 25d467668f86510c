// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const (
	realListen = "127.0.0.1:18090"
	realAdmin  = "127.0.0.1:33062"
)

// pod is a folder that stands for a pod: volume, configuration, accounts and program, mounted at /srv of a root file
// system with a real mysqld. Everything in it runs as uid 999 in one process namespace.
type pod struct {
	t    *testing.T
	dir  string
	root string
	key  ed25519.PrivateKey
	// env is set in the pod besides.
	env []string
}

func newPod(t *testing.T) *pod {
	t.Helper()
	// The mysqld of the test before was killed with its namespace, and may take a moment to go.
	mysqltest.Eventually(t, "the admin port is free", func() bool {
		l, err := net.Listen("tcp", realAdmin)
		if err != nil {
			return false
		}
		return l.Close() == nil
	})
	// It also makes the root file system, if it is not there.
	if err := mysqltest.InitializeDatadir(t.Context(), filepath.Join(t.TempDir(), "warm"), []string{"DO 0"}); err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("MFG_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mfg")
	}
	p := &pod{t: t, dir: t.TempDir(), root: filepath.Join(cache, "mysql-rootfs"), key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	p.prepare()
	return p
}

func (p *pod) prepare() {
	p.t.Helper()
	for _, name := range []string{"operator", "replication", "clone", "sidecar", "root"} {
		write(p.t, filepath.Join(p.dir, "accounts", name), "it's "+name+"\\\n", 0o644)
	}
	write(p.t, filepath.Join(p.dir, "my.cnf"), strings.Join([]string{
		"[mysqld]", "datadir=/srv/data", "socket=/srv/mysqld.sock", "pid_file=/srv/mysqld.pid", "tmpdir=/tmp",
		"port=0", "skip_networking=OFF", "bind_address=127.0.0.1", "admin_port=33062", "create_admin_listener_thread=ON",
		"mysqlx=OFF", "secure_file_priv=NULL", "server_id=7", "gtid_mode=ON", "enforce_gtid_consistency=ON", "log_bin=binlog",
		"super_read_only=ON", "read_only=ON", "skip_replica_start=ON", "persisted_globals_load=OFF",
		"plugin-load-add=mysql_clone.so", "innodb_redo_log_capacity=8M", "innodb_buffer_pool_size=64M", "",
	}, "\n"), 0o644)
	build := exec.CommandContext(p.t.Context(), "go", "build", "-o", filepath.Join(p.dir, "sidecar"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range tree(p.t, p.dir) {
		if err := os.Chown(path, 999, 999); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, path := range []string{p.dir, filepath.Join(p.dir, "accounts")} {
		if err := os.Chmod(path, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

// sh runs a script inside the pod; the shell is process 1, as the pause container is.
func (p *pod) sh(script string) *exec.Cmd {
	const enter = `mount --rbind "$1" "$2/srv" && mount -t proc proc "$2/proc" && ` +
		`exec chroot "$2" setpriv --reuid=999 --regid=999 --clear-groups --pdeathsig=KILL sh -c "$3"`
	cmd := exec.CommandContext(p.t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", p.dir, p.root, script)
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID=0", "MFG_NAMESPACE=shop", "MFG_GROUP=orders", "MFG_SITE=a",
		"MFG_STATE_DIR=/srv/mfg", "MFG_DATADIR=/srv/data", "MFG_ACCOUNTS_DIR=/srv/accounts", "MFG_AUTHORITY_KEY="+wire.EncodeKey(p.key.Public().(ed25519.PublicKey)),
		"MFG_DEFAULTS_FILE=/srv/my.cnf", "MFG_RUN_DIR=/srv", "MFG_LISTEN="+realListen, "MFG_LEASE_TIMEOUT=6s", "MFG_PEER_CHECK_INTERVAL=500ms",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.Env = append(cmd.Env, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// The whole program as in a pod: bootstrap twice, mysqld, run; open, fence by push, end.
func TestRealPod(t *testing.T) {
	runtime.LockOSThread() // the children die with the thread that started them
	p := newPod(t)
	for _, want := range []string{"the data directory was initialised", "the data directory is initialised"} {
		began := time.Now()
		out, err := p.sh("/srv/sidecar bootstrap").CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "it's") {
			t.Fatalf("bootstrap: %v\n%s", err, out)
		}
		t.Logf("bootstrap took %v", time.Since(began).Round(time.Millisecond))
	}
	operator := p.operator(wire.Statement{
		Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 1, LeaseTimeoutMillis: 6000,
	})
	c, report := p.start(operator)
	if report.GTIDExecuted != "" || report.Epoch != 1 {
		t.Errorf("bootstrap left transactions: %+v", report)
	}
	began := time.Now()
	report, err := c.PushActiveSite(t.Context(), realListen, wire.ActiveSite{Statement: p.sign(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "b", Epoch: 2})})
	t.Logf("fenced after %v: %+v", time.Since(began).Round(time.Millisecond), report)
	if err != nil || !report.FencedUnder(2) {
		t.Errorf("%+v, %v", report, err)
	}
	for _, path := range []string{wire.PathHealthz, wire.PathReadyz, wire.PathMetrics} {
		if code := get(t, "http://"+realListen+path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	p.asRoot()
}

// start starts mysqld under its supervisor and the sidecar, and returns once the site is open.
func (p *pod) start(operator string) (*client.Client, wire.Answer) {
	p.t.Helper()
	cmd := p.sh("/srv/sidecar mysqld mysqld --defaults-file=/srv/my.cnf --admin-address=127.0.0.1 > /srv/mysqld.log 2>&1 & MFG_OPERATOR_URL=" + operator + " /srv/sidecar run; echo ended $? >&2; kill %1; wait")
	log := &safeBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	p.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; p.t.Logf("sidecar:\n%s", log) })
	c := client.New(nil)
	p.t.Cleanup(c.Close)
	began := time.Now()
	report := p.open(c)
	p.t.Logf("open after %v: %+v", time.Since(began).Round(time.Millisecond), report)
	return c, report
}

// open waits until the site is open.
func (p *pod) open(c *client.Client) wire.Answer {
	p.t.Helper()
	var report wire.Answer
	mysqltest.Eventually(p.t, "the site is open", func() bool {
		var err error
		report, err = c.PushActiveSite(p.t.Context(), realListen, wire.ActiveSite{})
		return err == nil && report.Writable
	})
	return report
}

// process finds a process of the pod by its command line, as this machine numbers it; 0 if there is none.
func (p *pod) process(command string) int {
	t := p.t
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !strings.HasPrefix(strings.ReplaceAll(string(raw), "\x00", " "), command+" ") {
			continue
		}
		// Other tests run servers beside this one: those of this pod see its folder mounted.
		if mounts, err := os.ReadFile(filepath.Join("/proc", e.Name(), "mountinfo")); err == nil && strings.Contains(string(mounts), p.dir+" ") {
			pid, _ := strconv.Atoi(e.Name())
			return pid
		}
	}
	return 0
}

// I4: each process that guards may stand still or die, and mysqld ends with the lease: 6 s, and 2 s for a fence.
func TestRealHungProcessesI4(t *testing.T) {
	runtime.LockOSThread() // the children die with the thread that started them
	const sidecar, supervisor, mysqld = "/srv/sidecar run", "/srv/sidecar mysqld", "mysqld --defaults-file=/srv/my.cnf"
	p := newPod(t)
	if out, err := p.sh("/srv/sidecar bootstrap").CombinedOutput(); err != nil {
		t.Fatalf("bootstrap: %v\n%s", err, out)
	}
	operator := p.operator(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 1, LeaseTimeoutMillis: 6000})
	c, _ := p.start(operator)
	signal := func(pid int, s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil || pid == 0 {
			t.Fatalf("signal %v to %d: %v", s, pid, err)
		}
	}
	// ends waits until the very mysqld that was open has ended.
	ends := func(pid int) time.Duration {
		t.Helper()
		began := time.Now()
		mysqltest.Eventually(t, "mysqld ends", func() bool { return p.process(mysqld) != pid })
		return time.Since(began)
	}
	t.Run("the sidecar stands still", func(t *testing.T) {
		pid := p.process(mysqld)
		signal(p.process(sidecar), syscall.SIGSTOP)
		took := ends(pid)
		t.Logf("mysqld ended %v after its sidecar stood still", took.Round(10*time.Millisecond))
		// The promotion gate passes 9 s after the last answer, which came before the sidecar stood still.
		if most := 9 * time.Second; took > most {
			t.Errorf("%v, want at most %v", took, most)
		}
		mysqltest.Eventually(t, "another mysqld runs", func() bool { return p.process(mysqld) != 0 })
		again := p.process(mysqld)
		time.Sleep(time.Second) // the deadline has passed: the new one started read-only, and is left alone
		if now := p.process(mysqld); now != again {
			mysqldLog, _ := os.ReadFile(filepath.Join(p.dir, "mysqld.log"))
			t.Errorf("it was ended too: %d, then %d\n%s", again, now, mysqldLog)
		}
		p.asRoot()
		signal(p.process(sidecar), syscall.SIGCONT)
		p.open(c)
	})
	t.Run("the supervisor stands still, then dies", func(t *testing.T) {
		pid, boss := p.process(mysqld), p.process(supervisor)
		signal(boss, syscall.SIGSTOP)
		mysqltest.Eventually(t, "the kubelet is told", func() bool {
			return get(t, "http://"+realListen+wire.PathMysqldHealthz) == http.StatusServiceUnavailable
		})
		if code := get(t, "http://"+realListen+wire.PathHealthz); code != http.StatusOK || p.process(mysqld) != pid {
			t.Errorf("the sidecar, which is well, says %d; mysqld is %d, was %d", code, p.process(mysqld), pid)
		}
		signal(boss, syscall.SIGKILL)
		if took := ends(pid); took > time.Second {
			t.Errorf("mysqld outlived its supervisor for %v", took)
		}
	})
}

// asRoot waits until mysqld answers, and shows that root's password is what the Secret says and that the server is closed.
func (p *pod) asRoot() {
	p.t.Helper()
	db, err := mysql.Open(mysql.Target{Addr: filepath.Join(p.dir, "mysqld.sock"), User: "root", Password: "it's root\\"})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var st mysql.Status
	mysqltest.Eventually(p.t, "mysqld answers", func() bool {
		st, err = db.Status(p.t.Context())
		return err == nil
	})
	if !st.SuperReadOnly {
		p.t.Errorf("%+v", st)
	}
}

func (p *pod) sign(s wire.Statement) wire.Signed {
	p.t.Helper()
	signed, err := wire.Sign(p.key, s)
	if err != nil {
		p.t.Fatal(err)
	}
	return signed
}

// operator answers GET /active-site.
func (p *pod) operator(s wire.Statement) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := s
		answer.Nonce = r.URL.Query().Get(wire.ParamNonce)
		_ = json.NewEncoder(w).Encode(wire.ActiveSite{Statement: p.sign(answer)})
	}))
	p.t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return map[bool]int{true: resp.StatusCode}[err == nil || errors.Is(err, context.Canceled)]
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
