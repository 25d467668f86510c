// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// sidecars are the addresses of the sidecars.
func sidecars(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	addrs := map[string]string{}
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		addrs[site] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))
	}
	return addrs
}

// Nine questions with long names to each sidecar once took a group down for good: all reports were too long for the operator.
func TestLongAskersDoNotStopAGroup(t *testing.T) {
	g, _ := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	for site, addr := range sidecars(t, g) {
		for i := range 9 {
			q := url.Values{"namespace": {g.Namespace}, "group": {g.Name}, "site": {fmt.Sprint(i, strings.Repeat("<", 900))}}
			askAs(t, site, "http://"+addr+wire.PathPeerActiveSite+"?"+q.Encode())
			q.Set("site", fmt.Sprint(i, strings.Repeat("<", 100)))
			askAs(t, site, "http://"+addr+wire.PathPeerActiveSite+"?"+q.Encode())
		}
	}
	moveRole(t, g)
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "Requested")
}

func askAs(t *testing.T, site, address string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		t.Errorf("%s answered a stranger with %s", site, resp.Status)
	}
}

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
		t.Errorf("containers were started anew: %d before, %d after", before, after)
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
