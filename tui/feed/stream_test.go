// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/server"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// to is a route to a server.
func to(server *httptest.Server) Route {
	return Direct("test", func(context.Context) (Address, error) { return Address{URL: server.URL + wire.PathWSStatus}, nil })
}

// followed runs a stream and hands out what it delivers.
func followed(t *testing.T, routes ...Route) <-chan Changes {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, done := make(chan Changes, 1000), make(chan struct{})
	s := &Stream{Routes: routes, Now: time.Now}
	go func() {
		defer close(done)
		s.Follow(ctx, func(c Changes) { out <- c })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return out
}

// until reads what is delivered until a condition holds.
func until(t *testing.T, what string, feed <-chan Changes, holds func(Changes) bool) Changes {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case c := <-feed:
			if holds(c) {
				return c
			}
		case <-end:
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func has(group, message string) func(Changes) bool {
	return func(c Changes) bool {
		for _, g := range c.Groups {
			if g.Status.Group == group && g.Status.Message == message {
				return true
			}
		}
		return false
	}
}

func says(group, message string) wire.GroupStatus {
	return wire.GroupStatus{Namespace: "shop", Group: group, Message: message, ObservedAt: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)}
}

// TestStream follows the operator's own server over a real connection: snapshot, deltas, a group that goes.
func TestStream(t *testing.T) {
	board := server.NewBoard()
	board.Publish(says("orders", "one"))
	board.Publish(says("carts", "one"))
	web := httptest.NewServer(server.New(server.Options{Source: board}))
	defer web.Close()
	feed := followed(t, to(web))
	first := until(t, "snapshot", feed, has("orders", "one"))
	if !first.Whole || first.Link == nil || !first.Link.Up || first.At.IsZero() || first.Clock.IsZero() || len(first.Groups) != 2 {
		t.Errorf("snapshot: %+v", first)
	}
	board.Publish(says("orders", "two"))
	if c := until(t, "delta", feed, has("orders", "two")); c.Whole || len(c.Groups) != 1 {
		t.Errorf("delta: %+v", c)
	}
	board.Remove("shop", "carts")
	until(t, "gone", feed, func(c Changes) bool { return len(c.Gone) == 1 && c.Gone[0] == "shop/carts" })
}

// TestStreamComesBack: a lost connection is told, and followed by a new snapshot.
func TestStreamComesBack(t *testing.T) {
	board := server.NewBoard()
	board.Publish(says("orders", "one"))
	web := httptest.NewServer(server.New(server.Options{Source: board}))
	defer web.Close()
	var conns sync.Map
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		inner, resp, err := websocket.DefaultDialer.DialContext(r.Context(), "ws"+strings.TrimPrefix(web.URL, "http")+r.URL.Path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		defer func() { _ = inner.Close() }()
		outer, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		conns.Store(outer, true)
		for {
			kind, body, err := inner.ReadMessage()
			if err != nil || outer.WriteMessage(kind, body) != nil {
				return
			}
		}
	}))
	defer proxy.Close()
	feed := followed(t, to(proxy))
	until(t, "snapshot", feed, has("orders", "one"))
	conns.Range(func(conn, _ any) bool {
		_ = conn.(*websocket.Conn).NetConn().Close()
		return true
	})
	lost := until(t, "loss told", feed, func(c Changes) bool { return c.Link != nil && !c.Link.Up })
	if lost.Link.Error == "" {
		t.Error("the loss has no reason")
	}
	board.Publish(says("orders", "two"))
	if c := until(t, "snapshot again", feed, has("orders", "two")); !c.Whole {
		t.Errorf("no snapshot: %+v", c)
	}
}

// scripted is a server that says the same to every client.
func scripted(t *testing.T, asked *atomic.Int32, messages ...wire.StreamMessage) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		up := websocket.Upgrader{}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		for _, m := range messages {
			_ = conn.WriteJSON(m)
		}
		_, _, _ = conn.ReadMessage()
	}))
	t.Cleanup(web.Close)
	return web
}

func message(kind wire.StreamType, seq int64, groups ...wire.GroupStatus) wire.StreamMessage {
	return wire.StreamMessage{APIVersion: wire.StreamVersion, Type: kind, Seq: seq, TS: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC), Groups: groups}
}

// TestStreamGap: what does not follow is not believed; only a new snapshot tells what was missed.
func TestStreamGap(t *testing.T) {
	other := message(wire.StreamSnapshot, 1)
	other.APIVersion = "mysql-mfg.io/status/v9"
	for name, c := range map[string]struct {
		messages []wire.StreamMessage
		want     error
	}{
		"a number is left out":         {[]wire.StreamMessage{message(wire.StreamSnapshot, 1), message(wire.StreamDelta, 3, says("orders", "not believed"))}, errGap},
		"a number comes twice":         {[]wire.StreamMessage{message(wire.StreamSnapshot, 4), message(wire.StreamDelta, 4, says("orders", "not believed"))}, errGap},
		"the first one is no snapshot": {[]wire.StreamMessage{message(wire.StreamDelta, 1, says("orders", "not believed"))}, errGap},
		"another version":              {[]wire.StreamMessage{other}, errVersion},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			feed := followed(t, to(scripted(t, &asked, c.messages...)))
			lost := until(t, "loss told", feed, func(d Changes) bool {
				if has("orders", "not believed")(d) {
					t.Error("it was believed")
				}
				return d.Link != nil && !d.Link.Up
			})
			if !strings.Contains(lost.Link.Error, c.want.Error()) {
				t.Errorf("said %q", lost.Link.Error)
			}
			until(t, "another try", feed, func(Changes) bool { return asked.Load() > 1 })
		})
	}
}

// TestStreamTakesNumbersFromAnywhere: a snapshot may have any number, and a message of a kind that is not known counts.
func TestStreamTakesNumbersFromAnywhere(t *testing.T) {
	var asked atomic.Int32
	feed := followed(t, to(scripted(t, &asked, message(wire.StreamSnapshot, 7), message("news", 8), message(wire.StreamPing, 9), message(wire.StreamDelta, 10, says("orders", "ten")))))
	until(t, "delta", feed, has("orders", "ten"))
	if asked.Load() != 1 {
		t.Errorf("connected %d times", asked.Load())
	}
}

// TestStreamSilence: a connection over which nothing comes is lost, although nobody closed it.
func TestStreamSilence(t *testing.T) {
	var asked atomic.Int32
	web := scripted(t, &asked, message(wire.StreamSnapshot, 1, says("orders", "one")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Its clock is so late that the time of silence is over in a moment.
	s := &Stream{Routes: []Route{to(web)}, Now: func() time.Time { return time.Now().Add(time.Second - silenceTimeout) }}
	out, done := make(chan Changes, 1000), make(chan struct{})
	go func() {
		defer close(done)
		s.Follow(ctx, func(c Changes) { out <- c })
	}()
	until(t, "loss told", out, func(c Changes) bool { return c.Link != nil && !c.Link.Up })
	until(t, "another try", out, func(Changes) bool { return asked.Load() > 1 })
	cancel()
	<-done
}

// TestStreamGreatMessage: a server cannot make the dashboard hold what it sends.
func TestStreamGreatMessage(t *testing.T) {
	var asked atomic.Int32
	great := message(wire.StreamSnapshot, 1, says("orders", strings.Repeat("x", wire.MaxStatusBytes)))
	feed := followed(t, to(scripted(t, &asked, great)))
	lost := until(t, "loss told", feed, func(c Changes) bool {
		if len(c.Groups) > 0 {
			t.Error("it was taken in")
		}
		return c.Link != nil && !c.Link.Up
	})
	if !strings.Contains(lost.Link.Error, websocket.ErrReadLimit.Error()) {
		t.Errorf("said %q", lost.Link.Error)
	}
}

// TestRoutes: the second way is taken where the first is closed, what closes it is told, and what leads there is taken down.
func TestRoutes(t *testing.T) {
	board := server.NewBoard()
	board.Publish(says("orders", "one"))
	web := httptest.NewServer(server.New(server.Options{Source: board}))
	defer web.Close()
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"services \"mfg-auxiliary:8082\" is forbidden"}`))
	}))
	defer forbidden.Close()
	t.Run("second", func(t *testing.T) {
		closed := make(chan struct{})
		second := Direct("second", func(context.Context) (Address, error) {
			return Address{URL: web.URL + wire.PathWSStatus, Close: func() { close(closed) }}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		s := &Stream{Routes: []Route{to(forbidden), second}, Now: time.Now}
		s.Follow(ctx, func(c Changes) {
			if c.Link.Up && c.Link.Route != "second" {
				t.Errorf("over %s", c.Link.Route)
			}
			if has("orders", "one")(c) {
				cancel()
			}
		})
		<-closed
	})
	t.Run("none", func(t *testing.T) {
		none := Route{Name: "none", Ways: func(context.Context) ([]Way, error) { return nil, errors.New("no pod of the operator runs") }}
		feed := followed(t, to(forbidden), none)
		lost := until(t, "both reasons told", feed, func(c Changes) bool { return !c.Link.Up })
		for _, want := range []string{"is forbidden", "no pod of the operator runs"} {
			if !strings.Contains(lost.Link.Error, want) {
				t.Errorf("%q lacks %q", lost.Link.Error, want)
			}
		}
		if lost.Link.Denied {
			t.Error("this user had one open way, but is told that rights are missing")
		}
	})
	t.Run("denied", func(t *testing.T) {
		feed := followed(t, to(forbidden), to(forbidden))
		if lost := until(t, "loss told", feed, func(c Changes) bool { return !c.Link.Up }); !lost.Link.Denied {
			t.Errorf("%+v", lost.Link)
		}
	})
}

// TestCredentials: what wraps the request adds to the one that becomes a WebSocket, and sees the answer.
func TestCredentials(t *testing.T) {
	board := server.NewBoard()
	inner := server.New(server.Options{Source: board})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer web.Close()
	var seen []int
	a := Address{URL: web.URL + wire.PathWSStatus, Wrap: func(rt http.RoundTripper) (http.RoundTripper, error) {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "Bearer old")
			resp, err := rt.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusUnauthorized {
				seen = append(seen, resp.StatusCode)
				_ = resp.Body.Close()
				r.Header.Set("Authorization", "Bearer fresh")
				return rt.RoundTrip(r)
			}
			return resp, err
		}), nil
	}}
	conn, err := connect(t.Context(), a)
	if err != nil || len(seen) != 1 {
		t.Fatalf("%v, answers seen: %v", err, seen)
	}
	_ = conn.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSlowScreen: however slowly the dashboard takes things in, the connection is read, and the newest state arrives.
func TestSlowScreen(t *testing.T) {
	board := server.NewBoard()
	board.Publish(says("orders", "0"))
	web := httptest.NewServer(server.New(server.Options{Source: board}))
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &Stream{Routes: []Route{to(web)}, Now: time.Now}
	go func() {
		for n := range 6000 { // more than the operator's log holds
			board.Publish(says("orders", strings.Repeat("x", n%7)))
			if n%100 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		board.Publish(says("orders", "last"))
	}()
	s.Follow(ctx, func(c Changes) {
		if !c.Link.Up {
			t.Errorf("cut off: %s", c.Link.Error)
			cancel()
		}
		if has("orders", "last")(c) {
			cancel()
		}
		time.Sleep(300 * time.Millisecond)
	})
}

func TestBackoff(t *testing.T) {
	for failures := 1; failures < 70; failures++ {
		if d := backoff(failures); d < backoffLeast/2 || d > backoffMost {
			t.Errorf("after %d failures: %s", failures, d)
		}
	}
}

// TestAdd: changes that were not delivered become one that says the same.
func TestAdd(t *testing.T) {
	var c Changes
	c.add(Changes{Groups: []Told{{Status: says("orders", "1")}, {Status: says("carts", "1")}}})
	c.add(Changes{Groups: []Told{{Status: says("orders", "2")}}, Gone: []string{"shop/carts"}})
	if len(c.Groups) != 1 || c.Groups[0].Status.Message != "2" || len(c.Gone) != 1 || c.Whole {
		t.Errorf("%+v", c)
	}
	c.add(Changes{Groups: []Told{{Status: says("carts", "3")}}})
	if len(c.Groups) != 2 || len(c.Gone) != 0 {
		t.Errorf("one that came back is gone: %+v", c)
	}
	c.add(Changes{Whole: true, Groups: []Told{{Status: says("users", "4")}}, Link: &Link{Up: true}})
	if len(c.Groups) != 1 || !c.Whole || c.Groups[0].Status.Group != "users" {
		t.Errorf("a snapshot does not replace what was before: %+v", c)
	}
}
