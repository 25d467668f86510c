// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

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
