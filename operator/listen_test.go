// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// added is a manager that keeps what it is given.
type added []manager.Runnable

func (a *added) Add(r manager.Runnable) error { *a = append(*a, r); return nil }

// TestMetricsAndProbesAreServed: by listeners of our own, from before the caches are full, whoever leads.
func TestMetricsAndProbesAreServed(t *testing.T) {
	var servers added
	if err := addPlain(&servers, settings{metricsAddr: "127.0.0.1:0", probeAddr: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	if len(servers) != 2 {
		t.Fatalf("%d listeners", len(servers))
	}
	ctx, stop := context.WithCancel(t.Context())
	for i, paths := range [][]string{{"/metrics"}, {"/healthz", "/readyz"}} {
		s, is := servers[i].(*manager.Server) // the manager starts this kind first
		if !is || s.NeedLeaderElection() {
			t.Fatalf("%T", servers[i])
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Start(ctx) }()
		defer func() {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		for _, path := range append(paths, "/debug/pprof/") {
			resp, err := http.Get("http://" + s.Listener.Addr().String() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				t.Error(err)
			}
			known := path != "/debug/pprof/"
			if (resp.StatusCode == http.StatusOK) != known || path == "/metrics" && !strings.Contains(string(body), "go_goroutines") {
				t.Errorf("%s: %s %.200s", path, resp.Status, body)
			}
		}
	}
	stop()
	var none added
	if err := addPlain(&none, settings{metricsAddr: "0", probeAddr: "0"}); err != nil || len(none) != 0 {
		t.Errorf("switched off: %d listeners, %v", len(none), err)
	}
}

// TestStrangersAtTheKubeletsAddressDoNotEndTheOperator: neither by what they ask, nor by the connections that they hold.
func TestStrangersAtTheKubeletsAddressDoNotEndTheOperator(t *testing.T) {
	var servers added
	if err := addPlain(&servers, settings{metricsAddr: "127.0.0.1:0", probeAddr: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	s := servers[1].(*manager.Server)
	synctest.Test(t, func(t *testing.T) { // all within one moment
		ask := func(path string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.RemoteAddr = "10.0.0.66:1"
			w := httptest.NewRecorder()
			s.Server.Handler.ServeHTTP(w, r)
			return w.Code
		}
		for range 200 {
			ask("/")
			if code := ask("/healthz") + ask("/readyz"); code != 2*http.StatusOK {
				t.Fatalf("probes: %d", code)
			}
		}
		if code := ask("/"); code != http.StatusTooManyRequests {
			t.Errorf("what is no probe: %d", code)
		}
	})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	defer func() { stop(); <-ended }()
	// No container of the pod asks from this address.
	dial := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}).DialContext
	for range 16 {
		c, err := dial(ctx, "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	kubelet := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := kubelet.Get("http://" + s.Listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s, %v", resp.Status, err)
	}
}
