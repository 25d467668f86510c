// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// doorman accepts connections and ends each at once, after it has written something.
func doorman(t *testing.T, words string, read bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if read {
				_, _ = conn.Read(make([]byte, 1<<10))
			}
			_, _ = io.WriteString(conn, words)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// An engine that is full says so in words or, with TLS, by the end of the connection; nothing else that ends a connection counts as that.
func TestAnEngineThatTakesNoMoreClients(t *testing.T) {
	const words = "-ERR max number of clients reached\r\n"
	secure := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "cache.test", MinVersion: tls.VersionTLS12}
	for name, tc := range map[string]struct {
		words string
		read  bool
		tls   *tls.Config
		want  error
	}{
		"Valkey":                             {words, false, nil, ErrFull},
		"in a cluster":                       {"-ERR max number of clients + cluster connections reached\r\n", false, nil, ErrFull},
		"after it has read":                  {words, true, nil, ErrFull},
		"Valkey with TLS":                    {"", false, secure, ErrDropped},
		"Valkey with TLS, after it has read": {"", true, secure, ErrDropped},
		"Dragonfly with TLS":                 {words, true, secure, ErrFull},
		"it ends without a word":             {"", true, nil, nil},
		"it says something else":             {"-ERR no\r\n", true, nil, nil},
		"it says something else to TLS":      {"HTTP/1.1 400 Bad Request\r\n", true, secure, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Target{Engine: v1alpha1.CacheValkey, Addr: doorman(t, tc.words, tc.read), Passwords: []string{"correct-horse", "battery"}, TLS: tc.tls})
			defer c.Close()
			for range 2 { // the second look must not meet what the library keeps of the first
				_, err := c.Info(timeout(t, 5*time.Second))
				if err == nil || errors.Is(err, ErrFull) != errors.Is(tc.want, ErrFull) || errors.Is(err, ErrDropped) != errors.Is(tc.want, ErrDropped) {
					t.Fatalf("%v, want %v", err, tc.want)
				}
				if tc.want != nil && err.Error() != c.target.Addr+": "+tc.want.Error() {
					t.Errorf("it says what changes with each look: %v", err)
				}
			}
		})
	}
}

// What an engine answers later is no refusal, whatever it says.
func TestOnlyTheFirstWordsRefuse(t *testing.T) {
	n := 0
	s := speak(t, func(string) string {
		if n++; n == 1 {
			return bulk("role:master\r\n")
		}
		return "-ERR max number of clients reached\r\n"
	})
	c := s.client(t, v1alpha1.CacheValkey)
	if _, err := c.Info(timeout(t, time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Info(timeout(t, time.Second)); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
}

func TestWhoHasNoPlaceLeft(t *testing.T) {
	for text, want := range map[string]bool{
		"maxclients:3\nconnected_clients:2\nconnected_slaves:1\n":   true,
		"maxclients:4\nconnected_clients:2\nconnected_slaves:1\n":   false,
		"maxclients:3\nconnected_clients:3\n":                       true,
		"max_clients:3\nconnected_clients:4\n":                      true,
		"max_clients:3\nconnected_clients:2\n":                      false,
		"connected_clients:9\n":                                     false,
		"maxclients:0\nconnected_clients:9\n":                       false,
		"maxclients:10000\nconnected_clients:0\nmax_clients:none\n": false,
	} {
		if got := parse("role:master\n" + text).Full; got != want {
			t.Errorf("%q: full %t", text, got)
		}
	}
}
