// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// served runs a server on a real listener until the test ends, and checks that it ends in order.
func served(t *testing.T, b *Board, l limits) (addr string, s *Server, stop func()) {
	t.Helper()
	s = newServer(Options{Authority: &authority{}, Source: b}, l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not end")
		}
	}
	t.Cleanup(stop)
	return listener.Addr().String(), s, stop
}

func dial(t *testing.T, addr, query string, header http.Header) *websocket.Conn {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+addr+"/ws/status"+query, header)
	if err != nil {
		t.Fatalf("dial: %v (%v)", err, resp)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func read(t *testing.T, conn *websocket.Conn) wire.StreamMessage {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var m wire.StreamMessage
	if err := conn.ReadJSON(&m); err != nil {
		t.Fatalf("read: %v", err)
	}
	if m.APIVersion != wire.StreamVersion || m.TS.IsZero() {
		t.Errorf("message = %+v", m)
	}
	return m
}

func quick() limits {
	l := defaultLimits()
	l.gap = time.Millisecond
	return l
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func TestStreamSnapshotThenDeltas(t *testing.T) {
	b := NewBoard()
	b.Publish(group("orders", "1"))
	addr, _, _ := served(t, b, quick())
	conn := dial(t, addr, "", nil)

	m := read(t, conn)
	if m.Type != wire.StreamSnapshot || m.Seq != 1 {
		t.Fatalf("first message: %s %d", m.Type, m.Seq)
	}
	if diff := cmp.Diff([]string{"orders=1"}, messages(m.Groups)); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	// Nothing but the time changed: the next message must be the one after it.
	same := group("orders", "1")
	same.ObservedAt = same.ObservedAt.Add(time.Second)
	b.Publish(same)
	b.Publish(group("orders", "2"))
	if m = read(t, conn); m.Type != wire.StreamDelta || m.Seq != 2 {
		t.Fatalf("second message: %s %d", m.Type, m.Seq)
	}
	if diff := cmp.Diff([]string{"orders=2"}, messages(m.Groups)); diff != "" {
		t.Errorf("delta (-want +got):\n%s", diff)
	}
	b.Remove("shop", "orders")
	if m = read(t, conn); m.Seq != 3 || len(m.Groups) > 0 || cmp.Diff([]string{"shop/orders"}, m.Gone) != "" {
		t.Errorf("third message: %+v", m)
	}
}

// TestStreamSeqHasNoGap: under load every message counts one up and the last state arrives.
func TestStreamSeqHasNoGap(t *testing.T) {
	b := NewBoard()
	addr, _, _ := served(t, b, quick())
	conn := dial(t, addr, "", nil)
	read(t, conn)
	const last = 999
	go func() {
		for n := range last + 1 {
			b.Publish(group(fmt.Sprintf("g%d", n%7), fmt.Sprint(n)))
			if n%50 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}()
	for seq := int64(2); ; seq++ {
		m := read(t, conn)
		if m.Seq != seq {
			t.Fatalf("seq = %d, want %d", m.Seq, seq)
		}
		for _, g := range m.Groups {
			if g.Message == fmt.Sprint(last) {
				return
			}
		}
	}
}

func TestStreamFilter(t *testing.T) {
	b := NewBoard()
	b.Publish(group("orders", "1"))
	b.Publish(group("accounts", "1"))
	addr, _, _ := served(t, b, quick())
	conn := dial(t, addr, "?namespace=shop&group=orders", nil)
	if m := read(t, conn); len(m.Groups) != 1 {
		t.Errorf("snapshot: %v", messages(m.Groups))
	}
	b.Publish(group("accounts", "2"))
	b.Remove("shop", "accounts")
	b.Publish(group("orders", "2"))
	if m := read(t, conn); m.Seq != 2 || len(m.Gone) > 0 || cmp.Diff([]string{"orders=2"}, messages(m.Groups)) != "" {
		t.Errorf("delta: %+v", m)
	}
}

// TestStreamPing: a client that answers stays, and is told that the stream lives.
func TestStreamPing(t *testing.T) {
	l := quick()
	l.ping, l.pong = 100*time.Millisecond, time.Second
	l.read, l.write = 500*time.Millisecond, 500*time.Millisecond // of plain requests: a stream outlives them
	addr, _, _ := served(t, NewBoard(), l)
	conn := dial(t, addr, "", nil)
	read(t, conn)
	for seq := int64(2); seq < 20; seq++ { // almost twice the deadline for a sign of life
		if m := read(t, conn); m.Type != wire.StreamPing || m.Seq != seq {
			t.Fatalf("message = %+v, want ping %d", m, seq)
		}
	}
}

// TestStreamBusyFeed: a feed that always has changes at hand does not keep the client from being pinged.
func TestStreamBusyFeed(t *testing.T) {
	if c, err := nextUntil(t.Context(), busyFeed{}, time.Now().Add(time.Hour)); err != nil || len(c.Gone) != 1 {
		t.Errorf("before a ping is due: %+v, %v", c, err)
	}
	if c, err := nextUntil(t.Context(), busyFeed{}, time.Now().Add(-time.Second)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a ping is due: %+v, %v", c, err)
	}
}

type busyFeed struct{}

func (busyFeed) Next(context.Context) (Changes, error) {
	return Changes{Gone: []string{"shop/orders"}}, nil
}

// TestStreamDeltaAfterPing: once it has pinged the client, the stream goes on to tell of changes.
func TestStreamDeltaAfterPing(t *testing.T) {
	l := quick()
	l.ping = 50 * time.Millisecond
	b := NewBoard()
	addr, _, _ := served(t, b, l)
	conn := dial(t, addr, "", nil)
	read(t, conn)
	if m := read(t, conn); m.Type != wire.StreamPing {
		t.Fatalf("message = %+v, want a ping", m)
	}
	b.Publish(group("orders", "1"))
	for end := time.Now().Add(patience); ; {
		m := read(t, conn)
		if m.Type == wire.StreamDelta {
			return
		}
		if m.Type != wire.StreamPing || time.Now().After(end) {
			t.Fatalf("no delta but %+v", m)
		}
	}
}

// TestStreamGreatMessage: a client cannot make the server hold what it sends.
func TestStreamGreatMessage(t *testing.T) {
	addr, s, _ := served(t, NewBoard(), quick())
	conn := dial(t, addr, "", nil)
	read(t, conn)
	// Messages are read in order: who is answered after a small one was not cut off for it.
	answered, lost := make(chan struct{}), make(chan struct{})
	conn.SetPongHandler(func(string) error { close(answered); return nil })
	go func() {
		defer close(lost)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	if err := errors.Join(conn.WriteMessage(websocket.TextMessage, []byte("{}")),
		conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	select {
	case <-answered:
	case <-lost:
		t.Fatal("a small message is dropped, not punished")
	}
	_ = conn.WriteMessage(websocket.TextMessage, make([]byte, 1<<20))
	await(t, "the client is cut off", func() bool { return len(s.slots) == 0 })
}

// TestStreamTellsHowOldALookIs: the stream sends nothing of a group that does not change, whether its loop looks or stands still. The
// ages in the pings tell, also where the wall clock was set back meanwhile.
func TestStreamTellsHowOldALookIs(t *testing.T) {
	l := quick()
	l.ping, l.pong = 50*time.Millisecond, time.Minute
	b := NewBoard()
	for _, g := range []wire.GroupStatus{{Namespace: "shop", Group: "stands"}, {Namespace: "shop", Group: "looks"}, {Namespace: "other", Group: "stands"}} {
		b.Publish(g)
	}
	b.looked["shop/stands"] = clocktest.Suspended(time.Now().Add(-30*time.Second), time.Hour)
	addr, _, _ := served(t, b, l)
	conn := dial(t, addr, "?namespace=shop", nil)
	for _, kind := range []wire.StreamType{wire.StreamSnapshot, wire.StreamPing} {
		m := read(t, conn)
		stands, looks := m.Ages["shop/stands"], m.Ages["shop/looks"]
		if m.Type != kind || len(m.Ages) != 2 || stands < 30 || stands > 3000 || looks > patience.Seconds() {
			t.Errorf("%s: %+v", kind, m)
		}
	}
	b.Publish(wire.GroupStatus{Namespace: "shop", Group: "stands"})
	await(t, "the new age", func() bool { age, said := read(t, conn).Ages["shop/stands"]; return said && age < patience.Seconds() })
}
