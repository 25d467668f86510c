// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hook runs the hook against a sidecar that answers so, and tells how long it took.
func hook(t *testing.T, timeout time.Duration, sidecar http.HandlerFunc) (time.Duration, error) {
	t.Helper()
	server := httptest.NewServer(sidecar)
	defer server.Close()
	began := time.Now()
	err := leave(t.Context(), settings{listen: server.Listener.Addr().String(), leaveTimeout: timeout}, slog.New(slog.DiscardHandler))
	return time.Since(began), err
}

func TestTheHookAsksUntilTheSiteHasLeft(t *testing.T) {
	var asked atomic.Int32
	_, err := hook(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/leave?wait=500ms" {
			t.Errorf("asked for %s", r.URL)
		}
		if asked.Add(1) < 3 {
			_, _ = w.Write([]byte(`{"left":false,"reason":"StillOpen"}`))
			return
		}
		_, _ = w.Write([]byte(`{"left":true}`))
	})
	if err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

func TestTheHookEndsInTime(t *testing.T) {
	took, err := hook(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		_, _ = w.Write([]byte(`{"left":false}`))
	})
	if err != nil || took < 250*time.Millisecond {
		t.Errorf("took %v, %v", took, err)
	}
}

// I4: beside a sidecar that is dead or hangs nothing keeps the lease, so mysqld must end. A hook that waited for the whole
// time would not end before the test does.
func TestTheHookDoesNotWaitForADeadSidecarI4(t *testing.T) {
	for name, sidecar := range map[string]http.HandlerFunc{
		"hangs":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"babble": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) },
	} {
		if took, err := hook(t, time.Hour, sidecar); err == nil {
			t.Errorf("%s: no error after %v", name, took)
		}
	}
	// What a sidecar answers that refuses is no word about the site.
	var asked atomic.Int32
	_, err := hook(t, time.Hour, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"left":%t,"error":"it ends"}`, asked.Add(1) > 1)
	})
	if err == nil || asked.Load() != 1 {
		t.Errorf("refused: asked %d times, %v", asked.Load(), err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	err = leave(t.Context(), settings{listen: closed, leaveTimeout: time.Hour}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody there: %v", err)
	}
}
