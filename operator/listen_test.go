// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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
