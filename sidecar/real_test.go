// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
}

func newPod(t *testing.T) *pod {
	t.Helper()
	if l, err := net.Listen("tcp", realAdmin); err != nil {
		t.Fatalf("the admin port is taken: %v", err)
	} else {
		_ = l.Close()
	}
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
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		p.t.Fatal(err)
	}
	write(p.t, filepath.Join(p.dir, "authority.pub"), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), 0o644)
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
	const enter = `mount --bind "$1" "$2/srv" && mount -t proc proc "$2/proc" && ` +
		`exec chroot "$2" setpriv --reuid=999 --regid=999 --clear-groups --pdeathsig=KILL sh -c "$3"`
	cmd := exec.CommandContext(p.t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", p.dir, p.root, script)
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID=0", "MFG_NAMESPACE=shop", "MFG_GROUP=orders", "MFG_SITE=a",
		"MFG_STATE_DIR=/srv/mfg", "MFG_DATADIR=/srv/data", "MFG_ACCOUNTS_DIR=/srv/accounts", "MFG_AUTHORITY_FILE=/srv/authority.pub",
		"MFG_DEFAULTS_FILE=/srv/my.cnf", "MFG_LISTEN="+realListen, "MFG_LEASE_TIMEOUT=6s", "MFG_PEER_CHECK_INTERVAL=500ms",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin")
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
	cmd := p.sh("MFG_RUN_DIR=/srv /srv/sidecar mysqld mysqld --defaults-file=/srv/my.cnf --admin-address=127.0.0.1 > /srv/mysqld.log 2>&1 & MFG_OPERATOR_URL=" + operator + " /srv/sidecar run; echo ended $? >&2; kill %1; wait")
	log := &safeBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; t.Logf("sidecar:\n%s", log) })

	c := client.New(nil)
	defer c.Close()
	began := time.Now()
	var report wire.Answer
	mysqltest.Eventually(t, "the site is open", func() bool {
		var err error
		report, err = c.PushActiveSite(t.Context(), realListen, wire.ActiveSite{})
		return err == nil && report.Writable
	})
	t.Logf("open after %v: %+v", time.Since(began).Round(time.Millisecond), report)
	if report.GTIDExecuted != "" || report.Epoch != 1 {
		t.Errorf("bootstrap left transactions: %+v", report)
	}
	began = time.Now()
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

// asRoot shows that root's password is what the Secret says.
func (p *pod) asRoot() {
	p.t.Helper()
	db, err := mysql.Open(mysql.Target{Addr: filepath.Join(p.dir, "mysqld.sock"), User: "root", Password: "it's root\\"})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if st, err := db.Status(p.t.Context()); err != nil || !st.SuperReadOnly {
		p.t.Errorf("%+v, %v", st, err)
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
