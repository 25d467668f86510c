// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher/metrics"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
)

func TestEscrowSpeaksTLSOnly(t *testing.T) {
	v := newVault(t, testLimits())
	c, err := net.Dial("tcp", v.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, request(v.tokens["paris"], bodyOf(t, keyring, nil))); err != nil {
		t.Fatal(err)
	}
	if got := v.read(c); got.code != 400 || !strings.Contains(got.body, "HTTP request to an HTTPS server") {
		t.Errorf("plaintext is answered %d %s", got.code, got.body)
	}
	if c, err := v.dial(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }); err == nil {
		t.Errorf("TLS 1.1 is spoken: %x", c.ConnectionState().Version)
		_ = c.Close()
	}
	if stored := v.stored(); len(stored) != 0 {
		t.Errorf("stored %v", stored)
	}
	v.keepsSecrets("the log", v.log.String())
}

// A certificate that is renewed, missing or broken needs no restart.
func TestEscrowReadsItsCertificateAgain(t *testing.T) {
	v := newVault(t, testLimits())
	served := func() string {
		c, err := v.dial(nil)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Fatalf("served %q", got)
	}
	first := v.ends.Load()
	v.certify("second")
	v.eventually("the renewed certificate", func() bool { return served() == "second" })
	v.eventually("its end is told", func() bool { second := v.ends.Load(); return first != nil && second != first })
	failures := func() float64 { return testutil.ToFloat64(metrics.ReadCertificateErrors) }
	before := failures()
	if err := os.WriteFile(filepath.Join(v.dir, "tls.crt"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.eventually("a look at the broken file", func() bool { return failures() > before })
	if got := served(); got != "second" {
		t.Errorf("a broken file replaced a good certificate: %q", got)
	}
}

// The listener starts without a certificate: failover must not depend on it.
func TestEscrowWaitsForItsCertificate(t *testing.T) {
	v := newVault(t, testLimits())
	v.dir = t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- v.escrow.Serve(ctx, l, v.dir, func(c *x509.Certificate) { v.ends.Store(&c.NotAfter) })
	}()
	if c, err := v.dial(nil); err == nil {
		t.Error("a handshake without a certificate")
		_ = c.Close()
	}
	v.eventually("the log says so", func() bool { return strings.Contains(v.log.String(), "read certificate") })
	v.certify("late")
	v.eventually("the certificate", func() bool {
		c, err := v.dial(nil)
		if err == nil {
			err = c.Close()
		}
		return err == nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// One address cannot take every place, and all together cannot take more than there are.
func TestEscrowIsBounded(t *testing.T) {
	e := newEscrow(nil, nil, escrowLimits{requests: 3, strangers: 3, perAddress: 2})
	var places []*place
	for _, step := range []struct {
		from string
		want bool
	}{{"10.0.0.1:1", true}, {"10.0.0.1:2", true}, {"10.0.0.1:3", false}, {"[fd00::1]:1", true}, {"10.0.0.2:1", false}} {
		for _, in := range places {
			in.stranger, in.proven = false, true // whose token is good stays
		}
		in, ok := e.enter(step.from, escrow.NewToken(), func() { t.Error("somebody had to make room") })
		if ok != step.want {
			t.Errorf("%s: %v", step.from, ok)
		}
		if ok {
			places = append(places, in)
		}
	}
	for _, in := range places {
		in.leave()
	}
	if len(e.places) != 0 || len(e.from) != 0 {
		t.Errorf("left behind: %d %v", len(e.places), e.from)
	}
}

// A few strangers who send slowly, without any token that is good, keep no site out.
func TestSlowStrangersMakeRoom(t *testing.T) {
	e := newEscrow(failing{nil}, nil, escrowLimits{requests: 4, strangers: 4, turns: 1, perAddress: 2, put: time.Second})
	var ended []int
	var places []*place
	for i, from := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1", "10.0.0.2:2"} {
		p, ok := e.enter(from, escrow.NewToken(), func() { ended = append(ended, i) })
		if places = append(places, p); !ok {
			t.Fatal(from, "is refused")
		}
	}
	places[0].stranger, places[0].proven = false, true
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(bodyOf(t, keyring, nil)))
	r.Header.Set("Authorization", "Bearer "+escrow.NewToken())
	r.RemoteAddr = "10.0.0.3:1"
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("the site is refused: %d %s", w.Code, w.Body)
	}
	if !slices.Equal(ended, []int{1}) {
		t.Errorf("%v had to make room, and not the oldest whose token is not known to be good", ended)
	}
	if places[1].stays() || !places[2].stays() {
		t.Error("who made room goes on, or who did not ends")
	}
	for _, p := range places {
		p.leave()
	}
	if len(e.places) != 0 || len(e.from) != 0 {
		t.Errorf("left behind: %d %v", len(e.places), e.from)
	}
}

// Who has to make room is told so at once: its body is read no further.
func TestWhoMakesRoomIsAnswered(t *testing.T) {
	l := testLimits()
	l.requests, l.perAddress = 2, 2
	v := newVault(t, l)
	raw := request(v.tokens["paris"], bodyOf(t, keyring, nil))
	var slow []net.Conn
	for range 2 {
		c, err := v.dial(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, raw[:len(raw)-1]); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
		v.eventually("a place is taken", func() bool {
			v.escrow.mu.Lock()
			defer v.escrow.mu.Unlock()
			return len(v.escrow.places) == len(slow)
		})
	}
	if err := slow[0].SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, ok := v.escrow.enter("10.0.0.1:1", escrow.NewToken(), nil); !ok {
		t.Fatal("the site is refused")
	}
	if got := v.read(slow[0]); got.code != 503 || got.reason != wire.ReasonTooManyClients || time.Since(began) > l.read {
		t.Errorf("after %s: %d %s", time.Since(began), got.code, got.body)
	}
}

func TestEscrowIsBusy(t *testing.T) {
	l := testLimits()
	l.perAddress = 1
	v := newVault(t, l)
	slow, err := v.dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	raw := request(v.tokens["paris"], bodyOf(t, keyring, nil))
	if _, err := io.WriteString(slow, raw[:len(raw)-1]); err != nil {
		t.Fatal(err)
	}
	v.eventually("a place is taken", func() bool {
		v.escrow.mu.Lock()
		defer v.escrow.mu.Unlock()
		return len(v.escrow.places) == 1
	})
	got := v.send(raw, false)
	if got.code != 503 || got.reason != wire.ReasonTooManyClients || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if _, err := io.WriteString(slow, raw[len(raw)-1:]); err != nil {
		t.Fatal(err)
	}
	if got := v.read(slow); got.code != 200 {
		t.Errorf("the one that had the place: %d %s", got.code, got.body)
	}
}

// A client that says nothing, or one byte now and then, does not hold its place for long.
func TestEscrowWaitsForNobody(t *testing.T) {
	l := testLimits()
	l.readHeader, l.read = 500*time.Millisecond, time.Second
	v := newVault(t, l)
	raw := request(v.tokens["paris"], bodyOf(t, keyring, nil))
	t.Run("drip", func(t *testing.T) {
		c, err := v.dial(nil)
		if err != nil {
			t.Fatal(err)
		}
		var dripping sync.WaitGroup
		defer dripping.Wait()
		defer func() { _ = c.Close() }()
		dripping.Go(func() {
			for i := range raw {
				if _, err := io.WriteString(c, raw[i:i+1]); err != nil {
					return
				}
				if i > 200 {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		if got := v.read(c); got.code != 408 || got.reason != wire.ReasonSlow {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	for name, said := range map[string]string{"silent": "", "half a header": raw[:40]} {
		t.Run(name, func(t *testing.T) {
			c, err := v.dial(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, said); err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
				t.Errorf("read %q: %v", rest, err)
			}
		})
	}
	t.Run("no handshake", func(t *testing.T) {
		c, err := net.Dial("tcp", v.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the connection is held: %v", err)
		}
	})
	if stored := v.stored(); len(stored) != 0 {
		t.Errorf("stored %v", stored)
	}
}

// Strangers who hold every place are made to give one up for a site that comes. The test's own address is not bounded but by the sum.
func TestEscrowBoundsConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := newEscrow(nil, nil, escrowLimits{connections: 1, held: 1}).door.Listen(l)
	defer func() { _ = listener.Close() }()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := dial(), dial()
	defer func() { _, _ = first.Close(), second.Close() }()
	in, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepting := make(chan struct{})
	go func() { defer close(accepting); _, _ = listener.Accept() }()
	if err := second.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("two connections have the one place: %v", err)
	}
	_ = in.Close()
	third := dial()
	defer func() { _ = third.Close() }()
	<-accepting
}
