// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package engine

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// renewed replaces the files of a server's certificate, has the server's client trust both, and returns the new certificate.
func (s *server) renewed(t *testing.T) []byte {
	t.Helper()
	files := filepath.Dir(s.log.Name())
	before, err := os.ReadFile(filepath.Join(files, "tls.crt"))
	check(t, err)
	config := certificate(t, files)
	config.RootCAs.AppendCertsFromPEM(before)
	s.tls = config
	after, err := os.ReadFile(filepath.Join(files, "tls.crt"))
	check(t, err)
	block, _ := pem.Decode(after)
	return block.Bytes
}

// shows is the certificate that a new connection gets.
func (s *server) shows(t *testing.T) []byte {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr(), s.tls)
	check(t, err)
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].Raw
}

func (s *server) renewer(t *testing.T, der []byte) *Client {
	t.Helper()
	c := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Passwords: []string{password}, TLS: s.tls, Certificate: der})
	t.Cleanup(c.Close)
	return c
}

// A certificate that was renewed is shown to connections made after the engine was told, those made before stay, and replication goes on.
func TestARenewedCertificate(t *testing.T) {
	master, replica := pair(t, true)
	der := master.renewed(t)
	app, err := tls.Dial("tcp", master.addr(), master.tls)
	check(t, err)
	defer func() { _ = app.Close() }()
	if bytes.Equal(master.shows(t), der) {
		t.Fatal("it shows the new one without having been told, and this test shows nothing")
	}
	c := master.renewer(t, der)
	_, err = c.Info(short(t))
	check(t, err)
	if !c.Stale() {
		t.Error("it does not count as stale")
	}
	check(t, c.Renew(short(t)))
	if !bytes.Equal(master.shows(t), der) {
		t.Error("a new connection gets the old certificate")
	}
	_, err = c.Info(short(t))
	check(t, err)
	if c.Stale() {
		t.Error("it counts as stale still")
	}
	_, err = app.Write([]byte("AUTH " + password + "\r\nPING\r\n"))
	check(t, err)
	check(t, app.SetReadDeadline(time.Now().Add(2*time.Second)))
	if n, err := app.Read(make([]byte, 64)); err != nil || n == 0 {
		t.Errorf("a connection made before is cut: %v", err)
	}
	replica.tls = master.tls
	write(t, master, 600)
	if now, err := replica.client(t).Info(short(t)); err != nil || !now.LinkUp {
		t.Errorf("the replica: %+v %v", now, err)
	}
}

// Files that do not fit leave the old certificate in its place; it is tried again after a while, and not with every look.
func TestACertificateWhoseKeyIsAnother(t *testing.T) {
	s := start(t, true)
	files := filepath.Dir(s.log.Name())
	key, err := os.ReadFile(filepath.Join(files, "tls.key"))
	check(t, err)
	before := s.shows(t)
	der := s.renewed(t)
	right, err := os.ReadFile(filepath.Join(files, "tls.key"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(files, "tls.key"), key, 0o600))
	c := s.renewer(t, der)
	_, err = c.Info(short(t))
	check(t, err)
	if err := c.Renew(short(t)); err == nil {
		t.Error("a key that does not fit was taken")
	}
	if !bytes.Equal(s.shows(t), before) {
		t.Error("the old certificate is gone")
	}
	check(t, os.WriteFile(filepath.Join(files, "tls.key"), right, 0o600))
	_, err = c.Info(short(t))
	check(t, err)
	check(t, c.Renew(short(t)))
	if !bytes.Equal(s.shows(t), before) {
		t.Error("it was told again at once")
	}
	c.renewedAt = time.Now().Add(-renewEvery - time.Second)
	check(t, c.Renew(short(t)))
	if !bytes.Equal(s.shows(t), der) {
		t.Error("it does not show the new one")
	}
	if _, err := x509.ParseCertificate(s.shows(t)); err != nil {
		t.Error(err)
	}
}

// Without TLS there is nothing to renew.
func TestNoCertificate(t *testing.T) {
	s := start(t, false)
	c := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Passwords: []string{password}, Certificate: []byte("x")})
	defer c.Close()
	_, err := c.Info(short(t))
	check(t, err)
	if c.Stale() {
		t.Error("a server without TLS counts as stale")
	}
	check(t, c.Renew(short(t)))
}
