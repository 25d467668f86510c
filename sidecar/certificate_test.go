// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// fakeCertificateServer counts how often it was told to take its files again.
type fakeCertificateServer struct {
	reloads int
	err     error
}

func (f *fakeCertificateServer) ReloadTLS(context.Context) error {
	f.reloads++
	return f.err
}

func (f *fakeCertificateServer) ServedCertificate(context.Context) (time.Time, time.Time, error) {
	return time.Unix(1000, 0), time.Unix(2000, 0), f.err
}

// lay puts the files of a certificate into a directory.
func lay(t *testing.T, dir string, ca []byte, leaf tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, caFile), string(ca), 0o600)
	write(t, filepath.Join(dir, certFile), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})), 0o600)
	write(t, filepath.Join(dir, keyFile), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), 0o600)
}

func TestMySQLIsToldOfARenewedCertificate(t *testing.T) {
	server, dir := &fakeCertificateServer{}, t.TempDir()
	c := &certificate{dir: dir, server: server, now: time.Now, log: slog.New(slog.DiscardHandler)}
	look := func(want int, problem string) {
		t.Helper()
		c.step(t.Context())
		if got := c.Report().Problem; server.reloads != want || (problem == "") != (got == "") || !strings.Contains(got, problem) {
			t.Errorf("%d reloads, want %d; problem %q, want %q", server.reloads, want, got, problem)
		}
	}
	ca, leaf := authorityOf(t)
	lay(t, dir, ca, leaf)
	look(0, "") // it may still change
	look(1, "") // what mysqld started with is not known
	look(1, "")
	ca, leaf = authorityOf(t)
	lay(t, dir, ca, leaf)
	look(1, "")
	look(2, "")
	if r := c.Report(); r.NotAfter == nil || !r.NotAfter.Equal(time.Unix(2000, 0)) || r.NotBefore == nil {
		t.Errorf("report %+v", r)
	}
}

func TestMySQLIsToldAgainUntilItTakesTheCertificate(t *testing.T) {
	server, dir := &fakeCertificateServer{err: errors.New("connection refused")}, t.TempDir()
	c := &certificate{dir: dir, server: server, now: time.Now, log: slog.New(slog.DiscardHandler)}
	ca, leaf := authorityOf(t)
	lay(t, dir, ca, leaf)
	for range 3 {
		c.step(t.Context())
	}
	if r := c.Report(); server.reloads != 2 || r.Problem != "" || r.NotAfter != nil {
		t.Errorf("a MySQL that does not answer: %d reloads, %+v", server.reloads, r)
	}
	server.err = fmt.Errorf("%w: bad key", mysql.ErrCertificate)
	c.step(t.Context())
	if r := c.Report(); !strings.Contains(r.Problem, "bad key") {
		t.Errorf("report %+v", r)
	}
	server.err = nil
	c.step(t.Context())
	c.step(t.Context())
	if r := c.Report(); server.reloads != 4 || r.Problem != "" || r.NotAfter == nil {
		t.Errorf("%d reloads, %+v", server.reloads, r)
	}
}

// TestWhatIsOfNoUseIsNotOffered: MySQL would take a certificate that nobody can verify.
func TestWhatIsOfNoUseIsNotOffered(t *testing.T) {
	ca, leaf := authorityOf(t)
	otherCA, otherLeaf := authorityOf(t)
	oldCA, oldLeaf := authorityUntil(t, time.Now().Add(-time.Hour))
	for name, tc := range map[string]struct {
		ca      []byte
		leaf    tls.Certificate
		problem string
	}{
		"of another authority":          {otherCA, leaf, "unknown authority"},
		"ended":                         {oldCA, oldLeaf, "is valid from"},
		"no authority":                  {[]byte("none"), leaf, "holds no certificate"},
		"a key that does not fit":       {ca, tls.Certificate{Certificate: leaf.Certificate, PrivateKey: otherLeaf.PrivateKey}, "does not match"},
		"one that is whole for a check": {ca, leaf, ""},
	} {
		server, dir, said := &fakeCertificateServer{}, t.TempDir(), &bytes.Buffer{}
		c := &certificate{dir: dir, server: server, now: time.Now, log: slog.New(slog.NewTextHandler(said, nil))}
		lay(t, dir, tc.ca, tc.leaf)
		for range 4 {
			c.step(t.Context())
		}
		if got := c.Report().Problem; !strings.Contains(got, tc.problem) || (server.reloads == 0) != (tc.problem != "") {
			t.Errorf("%s: %d reloads, problem %q, want %q", name, server.reloads, got, tc.problem)
		}
		if lines := strings.Count(said.String(), "\n"); lines != 1 {
			t.Errorf("%s: said %d times: %s", name, lines, said)
		}
	}
}
