// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func selfSigned(t *testing.T, roots *x509.CertPool) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"cache.test"},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// shower is an engine over TLS that shows a certificate, and another one once it is told so.
type shower struct {
	*speaker
	shown atomic.Pointer[tls.Certificate]
}

// show has an engine speak over TLS. tell is called with each CONFIG command, and answers it.
func show(t *testing.T, first *tls.Certificate, tell func(s *shower, command string) string) *shower {
	t.Helper()
	s := &shower{}
	s.shown.Store(first)
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.shown.Load(), nil }}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.speaker = &speaker{addr: l.Addr().String(), answer: func(command string) string {
		if strings.HasPrefix(command, "CONFIG") {
			return tell(s, command)
		}
		return bulk("role:master\r\n")
	}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *shower) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.said), func(command string) bool { return !strings.HasPrefix(command, "CONFIG") })
}

// An engine that shows another certificate than it should is told to read its files again, each in its own words, and not with every look.
func TestHowEnginesAreToldOfACertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		engine v1alpha1.CacheEngine
		files  string
		told   []string
		fails  bool
	}{
		"Valkey": {v1alpha1.CacheValkey, "*6\r\n" + bulk("tls-cert-file") + bulk("/a") + bulk("tls-key-file") + bulk("/b") + bulk("tls-ca-cert-file") + bulk("/c"),
			[]string{"CONFIG GET tls-cert-file tls-key-file tls-ca-cert-file", "CONFIG SET tls-cert-file /a tls-key-file /b tls-ca-cert-file /c"}, false},
		"without an authority": {v1alpha1.CacheValkey, "*6\r\n" + bulk("tls-cert-file") + bulk("/a") + bulk("tls-key-file") + bulk("/b") + bulk("tls-ca-cert-file") + bulk(""),
			[]string{"CONFIG GET tls-cert-file tls-key-file tls-ca-cert-file", "CONFIG SET tls-cert-file /a tls-key-file /b"}, false},
		"one that names no file": {v1alpha1.CacheValkey, "*0\r\n", []string{"CONFIG GET tls-cert-file tls-key-file tls-ca-cert-file"}, true},
		"one that refuses":       {v1alpha1.CacheValkey, "-ERR unknown command\r\n", []string{"CONFIG GET tls-cert-file tls-key-file tls-ca-cert-file"}, true},
		"Dragonfly":              {v1alpha1.CacheDragonfly, "", []string{"CONFIG SET tls true"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			old, next := selfSigned(t, roots), selfSigned(t, roots)
			s := show(t, old, func(s *shower, command string) string {
				if strings.HasPrefix(command, "CONFIG GET") {
					return tc.files
				}
				s.shown.Store(next)
				return "+OK\r\n"
			})
			c := New(Target{Engine: tc.engine, Addr: s.addr, Passwords: []string{"correct-horse"}, Certificate: next.Certificate[0],
				TLS: &tls.Config{RootCAs: roots, ServerName: "cache.test", MinVersion: tls.VersionTLS12}})
			t.Cleanup(c.Close)
			if c.Stale() {
				t.Error("before the first connection it counts as stale")
			}
			look := func() {
				t.Helper()
				if _, err := c.Info(timeout(t, 2*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			look()
			if !c.Stale() {
				t.Error("it does not count as stale")
			}
			if err := c.Renew(timeout(t, 2*time.Second)); (err != nil) != tc.fails {
				t.Errorf("%v", err)
			}
			look()
			if c.Stale() != tc.fails {
				t.Errorf("stale afterwards: %t", c.Stale())
			}
			if err := c.Renew(timeout(t, 2*time.Second)); err != nil {
				t.Errorf("a moment later: %v", err)
			}
			if got := s.told(); !slices.Equal(got, tc.told) {
				t.Errorf("it was told %q", got)
			}
			if !tc.fails {
				return
			}
			c.renewedAt = time.Now().Add(-renewEvery)
			if err := c.Renew(timeout(t, 2*time.Second)); err == nil || len(s.told()) != 2*len(tc.told) {
				t.Errorf("after a while it was told %q, %v", s.told(), err)
			}
		})
	}
	c := New(Target{Certificate: []byte("x")})
	c.shown = []byte("y")
	if !c.Stale() {
		t.Error("another certificate is not told from the right one")
	}
	c.target.Certificate = nil
	if c.Stale() {
		t.Error("with nothing to compare, it counts as stale")
	}
}
