// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// crowd is a listener to which the test brings connections.
type crowd struct {
	comes chan net.Conn
	over  chan struct{}
}

func newCrowd() *crowd { return &crowd{make(chan net.Conn), make(chan struct{})} }

func (c *crowd) Accept() (net.Conn, error) {
	select {
	case conn := <-c.comes:
		return conn, nil
	case <-c.over:
		return nil, net.ErrClosed
	}
}
func (c *crowd) Close() error   { close(c.over); return nil }
func (c *crowd) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address; closed tells whether the door or the server closed it.
type from struct {
	net.Conn
	addr   string
	mu     sync.Mutex
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return named(f.addr) }
func (f *from) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.Conn.Close()
}

func (f *from) cut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// hall is a door with what it let in, and what it refused.
type hall struct {
	door    *Door
	crowd   *crowd
	mu      sync.Mutex
	in      []net.Conn
	refused map[string]int
}

func open(t *testing.T, l Limits) *hall {
	t.Helper()
	h := &hall{crowd: newCrowd(), refused: map[string]int{}}
	h.door = New(l, func(reason string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused[reason]++
	})
	l2 := h.door.Listen(h.crowd)
	go func() {
		for {
			c, err := l2.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			h.mu.Lock()
			h.in = append(h.in, c)
			h.mu.Unlock()
		}
	}()
	return h
}

func (h *hall) come(addr string) *from {
	mine, theirs := net.Pipe()
	go func() { _, _ = theirs.Read(make([]byte, 1)); _ = theirs.Close() }()
	c := &from{Conn: mine, addr: addr}
	h.crowd.comes <- c
	synctest.Wait()
	return c
}

func (h *hall) close() {
	_ = h.crowd.Close()
	for _, c := range h.in {
		_ = c.Close()
	}
	synctest.Wait()
}

// TestOneAddressHasItsShare: a flood from one address takes nothing from another.
func TestOneAddressHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 8, PerAddress: 3})
		var flood []*from
		for i := range 300 {
			flood = append(flood, h.come(fmt.Sprint("10.0.0.1:", 1000+i)))
		}
		if flood[2].cut() || !flood[3].cut() || h.refused[TooManyOfOne] != 297 {
			t.Errorf("refused %v", h.refused)
		}
		if h.come("10.0.0.2:1").cut() || h.come("[2001:db8::1]:1").cut() {
			t.Error("others were refused")
		}
		_ = h.in[0].Close()
		_ = h.in[0].Close() // twice, as servers do
		if h.come("10.0.0.1:1").cut() || !h.come("10.0.0.1:2").cut() {
			t.Error("a place that was left is not free once")
		}
		h.close()
		if h.door.total != 0 || len(h.door.guests) != 0 {
			t.Errorf("%d places, %d addresses are remembered after all", h.door.total, len(h.door.guests))
		}
	})
}

// TestTheOneWithMostMakesRoom: when strangers from many addresses hold every place, the operator, a peer and the kubelet still get in.
func TestTheOneWithMostMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 6, PerAddress: 4})
		first := h.come("10.0.0.1:1")
		for i := range 3 {
			h.come(fmt.Sprint("10.0.0.1:", 2+i))
			h.come(fmt.Sprint("10.0.0.2:", 2+i)) // the last of these makes the first one go
		}
		if !first.cut() || h.refused[MadeRoom] != 1 {
			t.Errorf("cut %v, refused %v", first.cut(), h.refused)
		}
		kubelet, operator := h.come("10.0.0.3:1"), h.come("10.0.0.4:1")
		if kubelet.cut() || operator.cut() || h.refused[MadeRoom] != 3 || h.door.total != 6 {
			t.Errorf("newcomers: %v %v, %d places, refused %v", kubelet.cut(), operator.cut(), h.door.total, h.refused)
		}
		h.come("10.0.0.5:1")
		h.come("10.0.0.6:1")
		if last := h.come("10.0.0.7:1"); !last.cut() || h.refused[TooManyOfAll] != 1 {
			t.Errorf("nobody has more than one, and %v was let in: %v", last.addr, h.refused)
		}
		h.close()
	})
}

// TestOwnContainersAreBoundedByTheSumAlone: a port-forward brings everybody from one address.
func TestOwnContainersAreBoundedByTheSumAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 6, PerAddress: 2, Rate: 1, Burst: 1})
		for i := range 6 {
			if h.come(fmt.Sprint("127.0.0.1:", i)).cut() || !h.door.May("127.0.0.1:1") {
				t.Error("refused")
			}
		}
		if h.come("10.0.0.1:1").cut() {
			t.Error("they must make room as others do")
		}
		if !h.door.May("127.0.0.6:1") || h.door.May("127.0.0.6:1") {
			t.Error("what a mesh brings from one address asks as often as it likes")
		}
		h.close()
	})
}

// TestOneAddressAsksSoOften: who asks more often is refused unread, others are not, and a pause makes good.
func TestOneAddressAsksSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered, refused := 0, 0
		d := New(Limits{Connections: 4, PerAddress: 4, Rate: 10, Burst: 20}, func(reason string) {
			if reason == TooOften {
				refused++
			}
		})
		h := d.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered++ }))
		ask := func(remote string) int {
			r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = remote
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		for range 500 {
			ask("10.0.0.1:1")
		}
		if answered != 20 || refused != 480 {
			t.Errorf("%d answered, %d refused", answered, refused)
		}
		if code := ask("10.0.0.2:1"); code != http.StatusOK {
			t.Errorf("another address got %d", code)
		}
		time.Sleep(time.Second)
		for range 50 {
			ask("10.0.0.1:2")
		}
		if answered != 31 {
			t.Errorf("%d answered after a pause", answered)
		}
		for i := range 1000 {
			ask(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250))
		}
		if len(d.guests) > 8 {
			t.Errorf("%d addresses are remembered", len(d.guests))
		}
	})
}

// TestNobodyElseMakesRoom: not who has a few, as long as somebody has more.
func TestNobodyElseMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 15, PerAddress: 6})
		var few []*from
		for i := range 5 {
			h.come(fmt.Sprint("10.0.0.1:", i))
			for j := range 2 {
				few = append(few, h.come(fmt.Sprintf("10.0.1.%d:%d", i, j)))
			}
		}
		for i := range 3 {
			if h.come(fmt.Sprintf("10.0.2.%d:1", i)).cut() {
				t.Error("a newcomer is refused, and somebody has more")
			}
		}
		for _, c := range few {
			if c.cut() {
				t.Errorf("%s makes room, and another has more", c.addr)
			}
		}
		h.close()
	})
}

// TestTheOneWhoLeftIsForgotten, and not another of its address: that one would keep its place uncounted, and could not make room.
func TestTheOneWhoLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 2, PerAddress: 2})
		oldest := h.come("10.0.0.1:1")
		h.come("10.0.0.1:2")
		_ = h.in[1].Close()
		newest := h.come("10.0.0.1:3")
		if h.come("10.0.0.2:1").cut() || !oldest.cut() || newest.cut() {
			t.Errorf("the oldest is cut: %t, the newest: %t", oldest.cut(), newest.cut())
		}
		h.close()
	})
}

// TestOnlyWhoOwesNothingIsForgotten: who comes again has the share that is left to him, however often he goes, and whoever else comes.
func TestOnlyWhoOwesNothingIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 4, PerAddress: 2, Rate: 1, Burst: 2})
		h.come("10.0.0.1:1")
		for h.door.May("10.0.0.1:1") {
			h.door.mu.Lock() // each request is counted once
			if left := h.door.guests[addrOf("10.0.0.1:1")].tokens; left < 0 {
				t.Errorf("%v requests are left", left)
			}
			h.door.mu.Unlock()
		}
		h.come("10.0.0.1:2")
		_ = h.in[0].Close()
		if h.come("10.0.0.1:3").cut() || !h.come("10.0.0.1:4").cut() {
			t.Error("who left one of two places has another share than one place")
		}
		_ = h.in[1].Close()
		_ = h.in[2].Close()
		if h.door.May("10.0.0.1:1") {
			t.Error("who goes is forgiven what he asked")
		}
		h.come("10.0.0.2:1")
		for i := range 100 {
			h.door.May(fmt.Sprintf("10.1.0.%d:1", i))
		}
		if h.come("10.0.0.2:2").cut() || !h.come("10.0.0.2:3").cut() {
			t.Error("a flood of others makes him forgotten who is there")
		}
		time.Sleep(time.Minute)
		h.close()
		if h.door.total != 0 {
			t.Errorf("%d places are taken", h.door.total)
		}
	})
}

// TestWhoIsRefusedIsForgotten, and who made room leaves no place twice.
func TestWhoIsRefusedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Limits{Connections: 2, PerAddress: 2})
		h.come("10.0.0.1:1")
		first := h.in[0]
		h.come("10.0.0.1:2")
		for _, newcomer := range []string{"10.0.0.2:1", "10.0.0.3:1"} {
			h.come(newcomer) // the first has the oldest of two go, the second finds nobody with more
		}
		if len(h.door.guests) != 2 || h.refused[MadeRoom] != 1 || h.refused[TooManyOfAll] != 1 {
			t.Errorf("%d addresses are known, refused %v", len(h.door.guests), h.refused)
		}
		if len(h.in) != 3 {
			t.Errorf("the server behind the door was given %d connections, and 3 were let in", len(h.in))
		}
		if h.refused[""] != 0 {
			t.Error("who was let in is counted as refused")
		}
		for range 3 {
			if !h.door.May("10.0.0.1:1") {
				t.Error("without a rate nobody asks too often")
			}
		}
		_ = h.in[1].Close()
		_ = first.Close() // its address has no other connection by now
		if h.door.total != 1 || len(h.door.guests) != 1 {
			t.Errorf("%d places are taken by %d addresses", h.door.total, len(h.door.guests))
		}
		h.close()
	})
}

// TestTheDoorSaysWhatToDo to who asks too often.
func TestTheDoorSaysWhatToDo(t *testing.T) {
	d := New(Limits{Connections: 4, PerAddress: 4, Rate: 1, Burst: 1}, func(string) {})
	h := d.Handler(http.NotFoundHandler())
	var w *httptest.ResponseRecorder
	for range 3 {
		w = httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = "no address"
		h.ServeHTTP(w, r)
	}
	want := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "Retry-After": "1", "Connection": "close"}
	for name, value := range want {
		if got := w.Header().Get(name); w.Code != http.StatusTooManyRequests || got != value {
			t.Errorf("%d with %s %q", w.Code, name, got)
		}
	}
	var e wire.Error
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Reason != wire.ReasonTooManyRequests {
		t.Errorf("says %q", w.Body)
	}
	for remote, want := range map[string]string{"[::ffff:10.0.0.1]:1": "10.0.0.1", "[fe80::1%eth0]:1": "fe80::1", "10.0.0.1": "invalid IP"} {
		if got := addrOf(remote); got.String() != want {
			t.Errorf("%s is %s", remote, got)
		}
	}
}

// Of the loopback addresses only those of the pod's own containers and of a port-forward count as its own, however they are written.
func TestWhoIsOfTheSamePod(t *testing.T) {
	for from, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"127.0.0.6": false, "::ffff:127.0.0.6": false, "10.0.0.1": false, "::": false, "::2": false, "0.0.0.0": false,
	} {
		if got := OwnPod(netip.MustParseAddr(from)); got != want {
			t.Errorf("%s: %t", from, got)
		}
	}
	if OwnPod(netip.Addr{}) {
		t.Error("who has no address is none of ours")
	}
}
