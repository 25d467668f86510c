// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// greeting is what a server of version v says first.
func greeting(capabilities byte) []byte {
	body := append([]byte{protocolOf41}, "9.7.0\x00"...)
	body = append(body, 1, 0, 0, 0)                    // thread
	body = append(body, "12345678\x00"...)             // salt
	body = append(body, 0xff, capabilities, 255, 2, 0) // capabilities, character set, status
	return packet(body)
}

func packet(body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), 0, 0}, body...)
}

// serve says something to whoever comes, and then speaks TLS if it has a certificate.
func serve(t *testing.T, first []byte, certificate *tls.Certificate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write(first); err != nil || certificate == nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		if asked, err := readPacket(conn); err != nil || len(asked) != 32 {
			return
		}
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
		_ = secured.HandshakeContext(context.Background())
	}()
	return l.Addr().String()
}

// TestWhatMySQLShows: nobody logs in for it, and what is no MySQL is said to be none.
func TestWhatMySQLShows(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	own := s.TLS.Certificates[0]
	for name, tc := range map[string]struct {
		first []byte
		fails string
	}{
		"a server with TLS":           {greeting(0xff), ""},
		"one without":                 {greeting(0xff &^ (clientSSL >> 8)), "does not speak TLS"},
		"one that refuses":            {packet([]byte{errorPacket, 16, 4, 'n', 'o'}), "takes no connection"},
		"another program":             {packet([]byte("SSH-2.0-x")), "protocol 83"},
		"one that says little":        {packet([]byte{protocolOf41, '9', 0, 1}), "does not speak TLS"},
		"one that never ends to talk": {[]byte{0xff, 0xff, 0xff, 0}, "no greeting"},
		"one that says nothing":       {[]byte{0, 0, 0, 0}, "no greeting"},
		"one that breaks off":         {[]byte{9, 0}, "read MySQL's greeting"},
	} {
		chain, err := MySQLChain(t.Context(), serve(t, tc.first, &own))
		switch {
		case tc.fails == "" && (err != nil || len(chain) != 1 || !chain[0].Equal(s.Certificate())):
			t.Errorf("%s: %v, %v", name, chain, err)
		case tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)):
			t.Errorf("%s: %v, want %q", name, err, tc.fails)
		}
	}
}
