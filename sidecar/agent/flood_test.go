// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// elsewhere makes every 127.0.0.N that connects look like 10.0.0.N, because the machine's own address has no share.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return foreign{c}, nil
}

type foreign struct{ net.Conn }

func (f foreign) RemoteAddr() net.Addr {
	at := netip.MustParseAddrPort(f.Conn.RemoteAddr().String())
	ip := at.Addr().As4()
	ip[0] = 10
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(ip), at.Port()))
}

// dialFrom dials from 127.0.0.N.
func dialFrom(n byte) client.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, n)}}
		return d.DialContext(ctx, network, address)
	}
}

// TestThePushIsAnsweredBesideAFlood: strangers from six addresses hold every connection that they are given, and ask as fast as they
// can. The operator, a peer and the kubelet, who connect again, are answered within their patience.
func TestThePushIsAnsweredBesideAFlood(t *testing.T) {
	w := newWorld(t)
	w.operator = told(5, "a")
	w.boot()
	defer w.end()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := w.agent.Server("")
	ended := make(chan error, 1)
	go func() { ended <- w.agent.Serve(server, elsewhere{l}) }()
	defer func() { _ = server.Close(); <-ended }()
	addr := l.Addr().String()

	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer stop()
	for n := byte(66); n < 69; n++ {
		for range 60 {
			if c, err := dialFrom(n)(ctx, "tcp", addr); err == nil {
				defer func() { _ = c.Close() }()
			}
		}
		for i := range 3 {
			flood.Go(func() { pester(ctx, n+10, addr, i) })
		}
	}
	began := time.Now()
	for i := 0; i < 20 || !refusedAll(w) && time.Since(began) < 20*time.Second; i++ {
		operator := client.New(dialFrom(10))
		patience, done := context.WithTimeout(ctx, wire.ReportPatience)
		r, err := operator.PushActiveSite(patience, addr, wire.ActiveSite{Statement: sign(t, authority, told(5+int64(min(i/10, 1)), []string{"a", "b"}[min(i/10, 1)]))})
		done()
		operator.Close()
		if err != nil || i > 10 && !r.FencedUnder(6) || len(r.Vouched) > 1 {
			t.Fatalf("push %d: %v, %+v", i, err, r)
		}
		peer := client.New(dialFrom(11))
		if _, err := peer.PeerActiveSite(ctx, addr, client.ActiveSiteQuery{Namespace: "shop", Group: "orders", Site: "b"}); err != nil {
			t.Fatalf("peer %d: %v", i, err)
		}
		peer.Close()
	}
	if !refusedAll(w) {
		t.Error("not all that the strangers did was refused and counted")
	}
	if n := len(fence.Vouched(w.agent.now(), w.agent.Clock())); n > 2 {
		t.Errorf("%d names are remembered", n)
	}
}

// refusedAll is true once connections and names were refused.
func refusedAll(w *world) bool {
	_, metrics := w.request(http.MethodGet, wire.PathMetrics, nil)
	for _, reason := range []string{door.TooManyOfOne, wire.ReasonNotAPeer} {
		if !strings.Contains(string(metrics), fmt.Sprintf("sidecar_refused_requests_total{reason=%q}", reason)) {
			return false
		}
	}
	return true
}

// TestOneAddressAsksSoOften: the server asks the door before it reads a request.
func TestOneAddressAsksSoOften(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.boot()
		h := w.agent.Server("").Handler
		codes := map[int]int{}
		ask := func(remote string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, wire.PathLeave+"?wait=0s", http.NoBody)
			r.RemoteAddr = remote
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			codes[answer.Code]++
		}
		for range 500 {
			ask("10.0.0.66:1")
		}
		ask("10.0.0.1:1")
		if codes[http.StatusOK] != 401 || codes[http.StatusTooManyRequests] != 100 {
			t.Errorf("answers: %v", codes)
		}
		_, metrics := w.request(http.MethodGet, wire.PathMetrics, nil)
		if line := `sidecar_refused_requests_total{reason="TooManyRequests"} 100`; !strings.Contains(string(metrics), line) {
			t.Errorf("the metrics lack %s", line)
		}
	})
}

// pester asks what a stranger can ask.
func pester(ctx context.Context, n byte, addr string, i int) {
	c := http.Client{Transport: &http.Transport{DialContext: dialFrom(n)}, Timeout: time.Second}
	defer c.CloseIdleConnections()
	for ; ctx.Err() == nil; i++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+peerQuery(fmt.Sprint("stranger", i)), http.NoBody)
		if err != nil {
			return
		}
		if i%3 == 0 {
			req.Method, req.URL.Path = http.MethodPut, wire.PathActiveSite
		}
		if resp, err := c.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}
