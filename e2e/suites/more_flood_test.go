// SPDX-License-Identifier: Apache-2.0

//go:build lab && more

package suites

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// What strangers do to each sidecar, and for how long. Real ones have processors of their own; these share those of the sites, so
// they ask often, but not as often as they can: that would measure how many processors this machine has. `make bench-flood` floods all listeners.
const (
	floodTime  = 30 * time.Second
	floodAsks  = 40                     // who ask at a time
	floodPace  = 200 * time.Millisecond // between two questions of one of them: 200 a second together
	floodHeld  = 400                    // connections held open
	floodPlace = 2 * time.Second        // until one that was refused a place tries again
)

// Strangers who hold connections open and ask for reports all the time hinder no failover, and no container restarts.
func TestAFloodOfStrangersHindersNoFailover(t *testing.T) {
	g, _ := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	before := restartsOfAll(t, g)
	ctx, stop := context.WithTimeout(t.Context(), floodTime)
	defer stop()
	var flood sync.WaitGroup
	var asked, held atomic.Int64
	for _, addr := range sidecars(t, g) {
		for range floodAsks {
			flood.Go(func() { hammer(ctx, addr, &asked) })
		}
		for range floodHeld {
			flood.Go(func() { holdOpen(ctx, addr, &held) })
		}
	}
	sleep(t, 3*time.Second)
	began := time.Now()
	moveRole(t, g)
	t.Logf("the role moved within %v beside %d questions and %d held connections", time.Since(began), asked.Load(), held.Load())
	if ctx.Err() != nil {
		t.Error("the role moved only when the flood was over")
	}
	flood.Wait()
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "Requested")
	for site, addr := range sidecars(t, g) {
		body, err := get(t.Context(), "http://"+addr+wire.PathMetrics)
		if err != nil || !strings.Contains(body, "sidecar_refused_requests_total{") {
			t.Errorf("%s counted no refusal: %v", site, err)
		}
	}
	if after := restartsOfAll(t, g); after != before {
		t.Errorf("containers were restarted: %d before, %d after", before, after)
	}
}

func restartsOfAll(t *testing.T, g *stage.Group) (sum int32) {
	t.Helper()
	for _, site := range stage.Sites {
		for _, container := range []string{"mysql", "sidecar"} {
			n, err := restarts(t.Context(), g, site, container)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// hammer asks for reports, and as a stranger.
func hammer(ctx context.Context, addr string, asked *atomic.Int64) {
	for ctx.Err() == nil {
		for _, q := range []struct{ method, path, body string }{
			{http.MethodPut, wire.PathActiveSite, `{}`},
			{http.MethodGet, wire.PathPeerActiveSite + "?site=" + strconv.FormatInt(asked.Load(), 10), ""},
		} {
			req, err := http.NewRequestWithContext(ctx, q.method, "http://"+addr+q.path, strings.NewReader(q.body))
			if err != nil {
				return
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			asked.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(floodPace):
			}
		}
	}
}

// holdOpen opens a connection, says half a line, and waits until it is cut.
func holdOpen(ctx context.Context, addr string, held *atomic.Int64) {
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			held.Add(1)
			over := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_, _ = conn.Write([]byte("GET /healthz HT"))
			_, _ = conn.Read(make([]byte, 1))
			over()
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(floodPlace):
		}
	}
}
