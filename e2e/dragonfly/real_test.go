// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package main

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
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
)

// valkey makes the proxy find a real Valkey of Debian's packages, unpacked into the cache.
func valkey(t *testing.T) {
	t.Helper()
	cache := os.Getenv("MFG_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mfg")
	}
	// The same tree that other tests with a real Valkey take.
	root := filepath.Join(cache, "valkey-rootfs")
	unpack(t, root)
	loaders, err := filepath.Glob(root + "/usr/lib/*/ld-linux-*.so.*")
	if err != nil || len(loaders) != 1 {
		t.Fatalf("no loader in %s: %v, %v", root, loaders, err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --library-path %s %s/usr/bin/valkey-server \"$@\"\n", loaders[0], filepath.Dir(loaders[0]), root)
	wrapper := filepath.Join(t.TempDir(), "valkey-server")
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(serverVariable, wrapper)
}

// unpack makes the tree unless it is there. Processes that want it at once wait for each other.
func unpack(t *testing.T, root string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(root), 0o750); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(root+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err == nil {
		return
	}
	args := []string{`--aptopt=Acquire::Check-Valid-Until "false"`, "--variant=apt", "--include=valkey-server", "sid", root + ".partial"}
	out, _ := exec.CommandContext(t.Context(), "apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages").Output()
	for line := range strings.Lines(string(out)) {
		if address, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian|Debian|"); ok {
			args = append(args, address)
			break
		}
	}
	if err := os.RemoveAll(root + ".partial"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mmdebstrap", args...).CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	if err := os.Rename(root+".partial", root); err != nil {
		t.Fatal(err)
	}
}

// trustedOnly is TLS without a flag for authorities.
const trustedOnly = "TLS by SSL_CERT_FILE"

// instance is one proxy that runs in this process.
type instance struct {
	port  string
	dial  resp.Dialer
	ended chan error
	stop  context.CancelFunc
}

func start(t *testing.T, certs string) *instance {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	dir := t.TempDir()
	flags := "--requirepass=secret-pass\n--masterauth=secret-pass\n"
	i := &instance{port: port, ended: make(chan error, 1)}
	i.dial = resp.Dialer{Password: "secret-pass", DialTimeout: 5 * time.Second, Timeout: 10 * time.Second}
	if certs != "" {
		flags += fmt.Sprintf("--tls\n--tls_replication\n--tls_cert_file=%s/tls.crt\n--tls_key_file=%s/tls.key\n", certs, certs)
		i.dial.TLS = clientTLS(t, certs)
		if strings.HasSuffix(t.Name(), strings.ReplaceAll(trustedOnly, " ", "_")) {
			// As the operator renders it: nobody asks clients for certificates, and replicas go by the variable.
			i.dial.TLS.Certificates = nil
		} else {
			flags += "--tls_ca_cert_file=" + certs + "/ca.crt\n"
		}
	}
	if err := os.WriteFile(dir+"/flags", []byte(flags), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.stop = cancel
	go func() {
		i.ended <- run(ctx, []string{"--flagfile=" + dir + "/flags", "--port=" + port, "--bind=127.0.0.1", "--dir=" + dir, "--dbfilename="}, nil)
		close(i.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-i.ended
	})
	return i
}

func (i *instance) client(t *testing.T) *resp.Client {
	t.Helper()
	var last error
	for range 200 {
		c, err := i.dial.Dial(t.Context(), "tcp", "127.0.0.1:"+i.port)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		last = err
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(last)
	return nil
}

func do(t *testing.T, c *resp.Client, args ...string) resp.Value {
	t.Helper()
	v, err := c.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func await(t *testing.T, c *resp.Client, name, want string) {
	t.Helper()
	var f map[string]string
	for range 200 {
		if f = resp.Section(do(t, c, "INFO", "replication").Text); strings.HasPrefix(f[name], want) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is %q and not %q: %v", name, f[name], want, f)
}

func TestTakeOverKeepsEveryKey(t *testing.T) {
	valkey(t)
	trusted := makeCertificates(t)
	t.Setenv("SSL_CERT_FILE", trusted+"/ca.crt")
	for name, certs := range map[string]string{"plain": "", "TLS of both sides": makeCertificates(t), trustedOnly: trusted} {
		t.Run(name, func(t *testing.T) {
			old, next := start(t, certs), start(t, certs)
			a, b := old.client(t), next.client(t)
			do(t, b, "REPLICAOF", "127.0.0.1", old.port)
			await(t, b, "master_link_status", "up")
			await(t, a, "slave0", "ip=127.0.0.1,port="+next.port+",state=online,lag=")
			var acked atomic.Int64
			written := make(chan struct{})
			writer := old.client(t)
			go func() {
				defer close(written)
				for {
					if _, err := writer.DoFor(2*time.Second, "SET", fmt.Sprint("k", acked.Load()), "v"); err != nil {
						return // the old master has ended
					}
					acked.Add(1)
				}
			}()
			for acked.Load() < 200 {
				time.Sleep(time.Millisecond)
			}
			do(t, b, "REPLTAKEOVER", "5")
			<-written
			if err := <-old.ended; err != nil {
				t.Errorf("the old master ended with %v", err)
			}
			await(t, b, "role", "master")
			if got := do(t, b, "DBSIZE").Int; got < acked.Load() {
				t.Errorf("%d keys are left of %d that were acknowledged", got, acked.Load())
			}
			do(t, b, "SET", "after", "1")
			do(t, b, "REPLTAKEOVER", "5") // of a master: it is one
		})
	}
}

func TestTakeOverThatCannotBeIsRefusedAndTheOldMasterGoesOn(t *testing.T) {
	valkey(t)
	old, next := start(t, ""), start(t, "")
	a, b := old.client(t), next.client(t)
	do(t, a, "SET", "k", "1")
	do(t, b, "REPLICAOF", "127.0.0.1", "1") // nobody there
	var told resp.Error
	if _, err := b.Do("REPLTAKEOVER", "1"); !errors.As(err, &told) || !strings.Contains(string(told), "Full sync not done") {
		t.Errorf("a replica that never was in step took over: %v", err)
	}
	// One that asks and does not come back: the writes go on.
	if v := do(t, a, "DFLY", "TAKEOVER", "100"); v.Kind != ':' {
		t.Errorf("DFLY TAKEOVER answers %+v", v)
	}
	do(t, a, "SET", "k", "2")
	if _, err := a.Do("DFLY", "TAKEN"); !errors.As(err, &told) {
		t.Errorf("a take-over whose time was up ended the master: %v", err)
	}
}

func TestOtherCommandsAreDragonflys(t *testing.T) {
	valkey(t)
	i := start(t, "")
	c := i.client(t)
	if v := do(t, c, "COMMAND", "INFO", "REPLTAKEOVER"); len(v.Items) != 1 || v.Items[0].Null || v.Items[0].Items[0].Text != "REPLTAKEOVER" {
		t.Errorf("COMMAND INFO REPLTAKEOVER = %+v", v)
	}
	if v := do(t, c, "ROLE"); len(v.Items) != 2 || v.Items[0].Text != "master" {
		t.Errorf("ROLE = %+v", v)
	}
	if info := do(t, c, "INFO").Text; !strings.Contains(info, "dragonfly_version:"+version) || strings.Contains(info, "valkey_version") {
		t.Errorf("INFO = %s", info)
	}
	for _, args := range [][]string{
		{"FAILOVER", "ABORT"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CONFIG", "SET", "save", "1 1"}, {"REPLTAKEOVER", "-1"}, {"REPLTAKEOVER", "x"},
	} {
		var told resp.Error
		if v, err := c.Do(args...); !errors.As(err, &told) {
			t.Errorf("%v answers %+v, %v", args, v, err)
		}
	}
	stranger := resp.Dialer{DialTimeout: time.Second, Timeout: time.Second}
	s, err := stranger.Dial(t.Context(), "tcp", "127.0.0.1:"+i.port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, args := range [][]string{{"REPLTAKEOVER", "1"}, {"DFLY", "TAKEN"}, {"DFLY", "TAKEOVER", "1"}, {"INFO"}} {
		var told resp.Error
		if v, err := s.Do(args...); !errors.As(err, &told) || told.Code() != "NOAUTH" {
			t.Errorf("a stranger's %v answers %+v, %v", args, v, err)
		}
	}
	// Clients are cut by their numbers, and notice at once.
	victim := i.client(t)
	id := do(t, victim, "CLIENT", "ID").Int
	if list := do(t, c, "CLIENT", "LIST").Text; strings.Contains(list, "flags=") || !strings.Contains(list, fmt.Sprintf("id=%d ", id)) {
		t.Errorf("CLIENT LIST = %s", list)
	}
	do(t, c, "CLIENT", "KILL", "ID", fmt.Sprint(id))
	if v, err := victim.DoFor(time.Second, "PING"); err == nil {
		t.Errorf("a client that was cut is answered %+v", v)
	}
	do(t, c, "CONFIG", "SET", "requirepass", "other-pass")
	i.dial.Password = "other-pass"
	do(t, i.client(t), "PING")
}

// Certificates are read when it starts, and when it is told by CONFIG SET tls: then new connections get the new one.
func TestCertificatesAreReadWhenTLSIsSet(t *testing.T) {
	valkey(t)
	certs := makeCertificates(t)
	i := start(t, certs)
	before := i.client(t)
	shown := func(trusting string) error {
		dial := i.dial
		dial.TLS = clientTLS(t, trusting)
		c, err := dial.Dial(t.Context(), "tcp", "127.0.0.1:"+i.port)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_, err = c.Do("PING")
		return err
	}
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(certs)); err != nil {
		t.Fatal(err)
	}
	next := makeCertificates(t)
	for _, file := range []string{"tls.crt", "tls.key"} {
		raw, err := os.ReadFile(filepath.Join(next, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(certs, file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shown(old); err != nil {
		t.Errorf("before it is told, the old certificate is not shown any more: %v", err)
	}
	do(t, before, "CONFIG", "SET", "tls", "true")
	config := clientTLS(t, old)
	config.RootCAs = clientTLS(t, next).RootCAs
	conn, err := tls.Dial("tcp", "127.0.0.1:"+i.port, config)
	if err != nil {
		t.Fatalf("the new certificate is not shown: %v", err)
	}
	_ = conn.Close()
	do(t, before, "PING")
	if err := os.WriteFile(filepath.Join(certs, "tls.key"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told resp.Error
	if v, err := before.Do("CONFIG", "SET", "tls", "true"); !errors.As(err, &told) {
		t.Errorf("files that are none are taken: %+v %v", v, err)
	}
}

func makeCertificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cache"}, DNSNames: []string{"cache"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{
		"tls.crt": cert, "ca.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func clientTLS(t *testing.T, certs string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certs+"/tls.crt", certs+"/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(certs + "/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: "cache", MinVersion: tls.VersionTLS12}
}
