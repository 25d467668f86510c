// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/api/wire"
)

func refusedDial(t *testing.T, addr string, header http.Header) (int, wire.Error) {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+addr+"/ws/status", header)
	if err == nil {
		_ = conn.Close()
		t.Fatal("was let in")
	}
	if !errors.Is(err, websocket.ErrBadHandshake) {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body wire.Error
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Errorf("body: %v", err)
	}
	return resp.StatusCode, body
}

func TestStreamCap(t *testing.T) {
	l := quick()
	l.streams = 2
	addr, s, _ := served(t, NewBoard(), l)
	first, second := dial(t, addr, "", nil), dial(t, addr, "", nil)
	read(t, first)
	read(t, second)
	if code, body := refusedDial(t, addr, nil); code != 503 || body.Reason != wire.ReasonTooManyClients {
		t.Errorf("third client: %d %+v", code, body)
	}
	_ = first.Close()
	await(t, "the slot is free again", func() bool { return len(s.slots) == 1 })
	read(t, dial(t, addr, "", nil))
}

// An address that holds all the streams it may have gets no more, and other addresses still get theirs.
func TestStreamsOfOneAddressLeaveRoom(t *testing.T) {
	l := quick()
	l.streams, l.streamsOfOne = 3, 2
	addr, s, _ := served(t, NewBoard(), l)
	refused := func() float64 {
		return testutil.ToFloat64(Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyClients))
	}
	before := refused()
	first := dial(t, addr, "", nil)
	read(t, first)
	read(t, dial(t, addr, "", nil))
	if code, body := refusedDial(t, addr, nil); code != 503 || body.Reason != wire.ReasonTooManyClients || refused() != before+1 {
		t.Errorf("a third stream of one address: %d %+v, %v refusals are counted", code, body, refused()-before)
	}
	elsewhere := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	other, resp, err := elsewhere.DialContext(t.Context(), "ws://"+addr+"/ws/status", nil)
	if err != nil {
		t.Fatalf("another address finds no room: %v", err)
	}
	_ = resp.Body.Close()
	defer func() { _ = other.Close() }()
	read(t, other)
	_, _ = first.Close(), other.Close()
	await(t, "the slots are free again", func() bool { return len(s.slots) == 1 })
	read(t, dial(t, addr, "", nil))
}

// When two addresses hold all streams, the one with most of them loses its oldest to a third. One that has as many as any other gets none so.
func TestStreamsOfAFewAddressesMakeRoom(t *testing.T) {
	l := quick()
	l.streams, l.streamsOfOne = 4, 3
	s := newServer(Options{Authority: &authority{}, Source: NewBoard()}, l)
	var ended []int
	var leave []func()
	for i, host := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"} {
		out, ok := s.watch(host, func() { ended = append(ended, i) })
		if leave = append(leave, out); !ok {
			t.Fatalf("stream %d of %s is refused", i, host)
		}
	}
	for i, step := range []struct {
		host string
		want bool
	}{{"10.0.0.3", true}, {"10.0.0.2", false}, {"10.0.0.4", true}, {"10.0.0.5", false}} {
		out, ok := s.watch(step.host, nil)
		if ok != step.want {
			t.Errorf("step %d, %s: let in %t; ended so far: %v", i, step.host, ok, ended)
		}
		if ok {
			leave = append(leave, out)
		}
	}
	if !slices.Equal(ended, []int{0, 1}) || len(s.slots) != 4 {
		t.Errorf("%v had to make room, and %d slots are taken", ended, len(s.slots))
	}
	for _, out := range leave {
		out()
	}
	if len(s.slots) != 0 || len(s.watching) != 0 {
		t.Errorf("left behind: %d slots, %v", len(s.slots), s.watching)
	}
}

// The share of one address is enough for dashboards behind one proxy, and leaves room for those of another address.
func TestStreamShare(t *testing.T) {
	if l := defaultLimits(); l.streamsOfOne < 16 || l.streams-l.streamsOfOne < 16 {
		t.Errorf("%d of %d streams for one address", l.streamsOfOne, l.streams)
	}
}

func TestStreamOrigin(t *testing.T) {
	addr, _, _ := served(t, NewBoard(), quick())
	if code, body := refusedDial(t, addr, http.Header{"Origin": {"https://evil.example"}}); code != 403 || body.Reason != wire.ReasonOtherOrigin {
		t.Errorf("other origin: %d %+v", code, body)
	}
	read(t, dial(t, addr, "", http.Header{"Origin": {"http://" + addr}}))
}

func TestStreamNeedsUpgrade(t *testing.T) {
	w := get(New(Options{Authority: &authority{}, Source: NewBoard()}), http.MethodGet, "/ws/status")
	if body := decode[wire.Error](t, w); w.Code != 400 || body.Reason != wire.ReasonBadRequest {
		t.Errorf("%d %+v", w.Code, body)
	}
}
