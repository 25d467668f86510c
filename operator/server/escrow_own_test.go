// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The operator's own certificate is shown from memory, and no directory is looked for.
func TestEscrowShowsTheOperatorsOwnCertificate(t *testing.T) {
	v := newVault(t, testLimits())
	pair, err := tls.LoadX509KeyPair(filepath.Join(v.dir, "tls.crt"), filepath.Join(v.dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- EscrowRunnable{
			Escrow: NewEscrow(v.store, slog.New(slog.DiscardHandler)), Addr: addr, Dir: filepath.Join(os.TempDir(), "nowhere"),
			Own: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		}.Start(ctx)
	}()
	v.eventually("the listener to show it", func() bool {
		dialer := &net.Dialer{Timeout: time.Second}
		c, err := tls.DialWithDialer(dialer, "tcp", addr, &tls.Config{RootCAs: v.roots, ServerName: "mfg-auxiliary.mfg-system.svc", MinVersion: tls.VersionTLS12})
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName == "first"
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
