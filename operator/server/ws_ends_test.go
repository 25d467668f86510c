// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestStreamSilentClient: a client that does not answer pings is let go.
func TestStreamSilentClient(t *testing.T) {
	l := quick()
	l.ping, l.pong = 20*time.Millisecond, 100*time.Millisecond
	addr, s, _ := served(t, NewBoard(), l)
	conn := dial(t, addr, "", nil)
	conn.SetPingHandler(func(string) error { return nil })
	go func() { // reads, but never answers
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	await(t, "the slot is free again", func() bool { return len(s.slots) == 0 })
}

// TestStreamSlowClient: a client that does not read is cut off, and another client does not notice.
func TestStreamSlowClient(t *testing.T) {
	l := quick()
	l.streamWrite = 500 * time.Millisecond
	b := NewBoard()
	addr, s, _ := served(t, b, l)
	slow, good := dial(t, addr, "", nil), dial(t, addr, "", nil)
	if tcp, ok := slow.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	read(t, good)
	await(t, "both are connected", func() bool { return len(s.slots) == 2 })

	long := strings.Repeat("x", 100<<10)
	for n := 0; len(s.slots) == 2; n++ {
		if n > 2000 {
			t.Fatal("the slow client was never cut off")
		}
		b.Publish(group("orders", fmt.Sprintf("%d %s", n, long)))
		if m := read(t, good); m.Type != wire.StreamDelta {
			t.Fatalf("message = %s", m.Type)
		}
	}
	b.Publish(group("orders", "still there"))
	if m := read(t, good); cmp.Diff([]string{"orders=still there"}, messages(m.Groups)) != "" {
		t.Errorf("good client got %v", messages(m.Groups))
	}
}

// TestPublishWaitsForNoClient: one that never reads, and that nobody cuts off, holds up nothing.
func TestPublishWaitsForNoClient(t *testing.T) {
	l := quick()
	l.streamWrite = time.Hour
	b := NewBoard()
	addr, s, _ := served(t, b, l)
	slow := dial(t, addr, "", nil)
	if tcp, ok := slow.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	await(t, "it is connected", func() bool { return len(s.slots) == 1 })
	done, long := make(chan struct{}), strings.Repeat("x", 100<<10)
	go func() {
		defer close(done)
		for n := range 400 { // far more than any buffer on the way holds
			b.Publish(group("orders", fmt.Sprintf("%d %s", n, long)))
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("Publish waits for a client")
	}
	if len(s.slots) != 1 {
		t.Error("the client that does not read was cut off: nothing was tested")
	}
}

// TestStreamBehind: a client whose feed has lost changes is told to come again.
func TestStreamBehind(t *testing.T) {
	l := quick()
	l.gap = time.Second
	b := NewBoard()
	addr, _, _ := served(t, b, l)
	conn := dial(t, addr, "", nil)
	read(t, conn)
	b.Publish(group("orders", "first"))
	read(t, conn)
	for n := range boardLog + 1 { // within the gap
		b.Publish(group("orders", fmt.Sprint(n)))
	}
	_, _, err := conn.ReadMessage()
	if !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
		t.Errorf("read: %v, want close %d", err, websocket.CloseTryAgainLater)
	}
}

// TestServeIdleClient: a client that connects and says nothing, or half of a request, holds nothing for long.
func TestServeIdleClient(t *testing.T) {
	l := quick()
	l.readHeader, l.idle = 50*time.Millisecond, 50*time.Millisecond
	addr, _, _ := served(t, NewBoard(), l)
	for _, said := range []string{"", "GET /status HTTP/1.1\r\nHost: x\r\n", "GET /status HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(said))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("after %q: %v, want the connection closed", said, err)
		}
		_ = conn.Close()
	}
}

// TestServeEnds: clients are told, nothing is left running (see TestMain).
func TestServeEnds(t *testing.T) {
	addr, s, stop := served(t, NewBoard(), quick())
	conn := dial(t, addr, "", nil)
	read(t, conn)
	stop()
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("read: %v, want close %d", err, websocket.CloseGoingAway)
	}
	if err := (Runnable{Server: s, Addr: "256.0.0.1:bad"}).Start(t.Context()); err == nil {
		t.Error("listened on an address that is none")
	}
	if (Runnable{}).NeedLeaderElection() {
		t.Error("who does not lead must be able to say so")
	}
}
