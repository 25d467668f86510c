// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package engine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const password = "correct-horse-battery"

// rootfs is a root file system with Valkey from the Debian archive, kept between runs. Processes that want it at once wait for each other.
func rootfs(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a real Valkey needs root: it runs in a root file system of its own")
	}
	cache := os.Getenv("MFG_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		check(t, err)
		cache = filepath.Join(home, ".cache", "mfg")
	}
	check(t, os.MkdirAll(cache, 0o750))
	dir := filepath.Join(cache, "valkey-rootfs")
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	check(t, err)
	defer func() { _ = lock.Close() }()
	check(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		check(t, err)
		return dir
	}
	check(t, os.RemoveAll(dir+".partial"))
	args := []string{`--aptopt=Acquire::Check-Valid-Until "false"`, "--variant=apt", "--include=valkey-server", "sid", dir + ".partial"}
	if archive := debianArchive(t); archive != "" {
		args = append(args, archive)
	}
	if out, err := exec.CommandContext(t.Context(), "mmdebstrap", args...).CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap (is the package of that name installed?): %v\n%s", err, out[max(0, len(out)-2000):])
	}
	check(t, os.Rename(dir+".partial", dir))
	return dir
}

// debianArchive is the archive that apt is set up with, if that is Debian's.
func debianArchive(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if address, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian|Debian|"); ok {
			return address
		}
	}
	return ""
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is a real Valkey.
type server struct {
	port int
	tls  *tls.Config
	cmd  *exec.Cmd
	args []string
	root string
	log  *os.File
}

// start runs a Valkey until the test ends.
func start(t *testing.T, secure bool, settings ...string) *server {
	t.Helper()
	s := &server{root: rootfs(t), port: freePort(t)}
	dir, err := os.MkdirTemp(filepath.Join(s.root, "tmp"), "valkey-") //nolint:usetesting // Valkey sees nothing outside of its root
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	inside := strings.TrimPrefix(dir, s.root)
	s.args = []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", inside, "--save", "", "--requirepass", password, "--masterauth", password,
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}
	if secure {
		s.tls = certificate(t, dir)
		s.args = append(s.args[:2], append([]string{"--port", "0", "--tls-port", strconv.Itoa(s.port), "--tls-replication", "yes", "--tls-auth-clients", "no",
			"--tls-cert-file", inside + "/tls.crt", "--tls-key-file", inside + "/tls.key", "--tls-ca-cert-file", inside + "/tls.crt"}, s.args[4:]...)...)
	}
	s.args = append(s.args, settings...)
	s.log, err = os.Create(filepath.Join(dir, "log"))
	check(t, err)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			text, _ := os.ReadFile(s.log.Name())
			t.Logf("log of the server at port %d:\n%s", s.port, text[max(0, len(text)-2000):])
		}
		_ = s.log.Close()
	})
	s.run(t)
	return s
}

func (s *server) run(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command("/usr/bin/valkey-server", s.args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = "/", s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.root, Pdeathsig: syscall.SIGKILL}
	check(t, s.cmd.Start())
	c := s.client(t)
	eventually(t, "the server answers", func() bool { _, err := c.Info(short(t)); return err == nil })
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	check(t, s.cmd.Process.Signal(sig))
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// client speaks to it as the loop does. All have one address here, so the port tells them apart.
func (s *server) client(t *testing.T, passwords ...string) *Client {
	t.Helper()
	if len(passwords) == 0 {
		passwords = []string{password}
	}
	c := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Hosts: []string{"127.0.0.1"}, Passwords: passwords, TLS: s.tls})
	t.Cleanup(c.Close)
	return c
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func short(t *testing.T) context.Context { return within(t, time.Second) }

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if yes() {
			return
		}
	}
	t.Fatalf("it does not come to it that %s", what)
}

// certificate writes one that signs itself, and returns how to trust it.
func certificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cache"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"cache.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	check(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return &tls.Config{RootCAs: roots, ServerName: "cache.test", MinVersion: tls.VersionTLS12}
}

// pair is a master with keys and a replica that has caught up.
func pair(t *testing.T, secure bool, settings ...string) (master, replica *server) {
	t.Helper()
	master = start(t, secure, settings...)
	replica = start(t, secure, settings...)
	if secure { // one authority for both
		replica.kill()
		for i, arg := range replica.args {
			if strings.HasPrefix(arg, "/tmp/valkey-") && strings.Contains(arg, "/tls.") {
				name := filepath.Base(arg)
				for _, other := range master.args {
					if strings.HasSuffix(other, name) {
						replica.args[i] = other
					}
				}
			}
		}
		replica.tls = master.tls
		replica.run(t)
	}
	write(t, master, 500)
	check(t, replica.client(t).Follow(short(t), "127.0.0.1", master.port))
	caughtUp(t, master, replica)
	return master, replica
}

func write(t *testing.T, s *server, keys int) {
	t.Helper()
	c := s.client(t)
	for i := range keys {
		_, err := c.do(short(t), "SET", fmt.Sprint("session-", i), strings.Repeat("x", 64))
		check(t, err)
	}
}

func caughtUp(t *testing.T, master, replica *server) {
	t.Helper()
	m, r := master.client(t), replica.client(t)
	eventually(t, "the replica has caught up", func() bool {
		of, err := m.Info(short(t))
		has, err2 := r.Info(short(t))
		return err == nil && err2 == nil && has.LinkUp && has.Offset == of.Offset && len(of.Replicas) == 1 && of.Replicas[0].Online
	})
}

func role(t *testing.T, s *server, want v1alpha1.CacheRole) Info {
	t.Helper()
	now, err := s.client(t).Info(short(t))
	check(t, err)
	if now.Role != want {
		t.Fatalf("the server at port %d is a %s, want %s", s.port, now.Role, want)
	}
	return now
}
