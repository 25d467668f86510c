// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
)

// newUpgrader accepts WebSocket clients. It refuses a page of another origin: no stranger's page may make a browser on
// the cluster's network read the state of databases for it.
func newUpgrader(l limits) websocket.Upgrader {
	return websocket.Upgrader{
		HandshakeTimeout: l.streamWrite,
		ReadBufferSize:   1 << 10,
		WriteBufferSize:  16 << 10,
		// CheckOrigin stays nil, which accepts requests without an Origin or with that of the requested host.
		Error: func(w http.ResponseWriter, _ *http.Request, code int, cause error) {
			reason := wire.ReasonBadRequest
			switch code {
			case http.StatusForbidden:
				reason = wire.ReasonOtherOrigin
			case http.StatusInternalServerError:
				reason = wire.ReasonInternal
			}
			refuse(w, code, reason, cause.Error())
		},
	}
}

// statusStream answers GET /ws/status: a snapshot, then deltas. The publisher never waits for a client; one that cannot
// keep up is cut off and may connect again for a new snapshot.
func (s *Server) statusStream(w http.ResponseWriter, r *http.Request) {
	f, ok := s.admit(w, r)
	if !ok {
		return
	}
	ctx, cancel := s.streamContext(r.Context())
	defer cancel()
	leave, ok := s.watch(hostOf(r.RemoteAddr), cancel)
	if !ok {
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyClients).Inc()
		refuse(w, http.StatusServiceUnavailable, wire.ReasonTooManyClients, "too many clients watch the status, in all or from this address")
		return
	}
	defer leave()
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	st := stream{conn: conn, filter: f, limits: s.limits}
	//nolint:contextcheck // running is when the server ends; no request's context can say so.
	defer context.AfterFunc(s.running, cancel)()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		st.listen()
	}()
	st.say(ctx, s.options.Source)
	cancel()
	_ = conn.Close()
	<-gone
}

// watcher is one stream of an address; end ends it.
type watcher struct{ end func() }

// watch takes a slot for a stream, unless the address has its share of them. If all are taken, the oldest stream of the address with most of them
// makes room for an address that has fewer: so a few addresses keep nobody out. A port-forward counts too: all of them come from one address.
func (s *Server) watch(host string, end func()) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watching[host]) >= s.limits.streamsOfOne {
		return nil, false
	}
	select {
	case s.slots <- struct{}{}:
	default:
		most := s.mostWatching(len(s.watching[host]) + 1)
		if most == "" {
			return nil, false
		}
		out := s.watching[most][0]
		s.forget(most, out) // its slot is the newcomer's now
		Refused.WithLabelValues(ListenerAuxiliary, door.MadeRoom).Inc()
		out.end()
	}
	w := &watcher{end: end}
	s.watching[host] = append(s.watching[host], w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.forget(host, w) {
			<-s.slots
		}
	}, true
}

// mostWatching is the address with most streams, if it has more than that many; else empty.
func (s *Server) mostWatching(than int) (most string) {
	for host, of := range s.watching {
		if len(of) > than {
			most, than = host, len(of)
		}
	}
	return most
}

// forget returns false for a stream that had to make room. It expects the lock to be held.
func (s *Server) forget(host string, w *watcher) bool {
	i := slices.Index(s.watching[host], w)
	if i < 0 {
		return false
	}
	s.watching[host] = slices.Delete(s.watching[host], i, i+1)
	if len(s.watching[host]) == 0 {
		delete(s.watching, host)
	}
	return true
}

// streamContext ends a stream whose client had to prove what it may read: by then the right may be gone, and the client can connect again.
func (s *Server) streamContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Authorize == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, streamFor)
}

// stream is one WebSocket connection. say is its only writer, listen its only reader.
type stream struct {
	conn   *websocket.Conn
	filter filter
	limits limits
	seq    int64
}

// listen reads until the client is gone or silent for too long. It drops what a client says: a newer client may ask for
// more than this version offers.
func (st *stream) listen() {
	st.conn.SetReadLimit(st.limits.streamRead)
	alive := func(string) error { return st.conn.SetReadDeadline(time.Now().Add(st.limits.pong)) }
	st.conn.SetPongHandler(alive)
	if alive("") != nil {
		return
	}
	for {
		if _, _, err := st.conn.ReadMessage(); err != nil {
			return
		}
	}
}

// say writes until the context ends or the client does not keep up.
func (st *stream) say(ctx context.Context, source Source) {
	groups, feed := source.Subscribe()
	if st.send(wire.StreamSnapshot, Changes{Groups: st.filter.groups(groups)}, st.filter.ages(source)) != nil {
		return
	}
	nextPing := time.Now().Add(st.limits.ping)
	for {
		changes, err := nextUntil(ctx, feed, nextPing)
		switch {
		case ctx.Err() != nil:
			st.bye(websocket.CloseGoingAway, "")
			return
		case errors.Is(err, ErrBehind):
			st.bye(websocket.CloseTryAgainLater, ErrBehind.Error())
			return
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			st.bye(websocket.CloseInternalServerErr, "")
			return
		case err == nil:
			err = st.delta(ctx, st.filter.changes(changes))
		default:
			err = st.ping(source)
			nextPing = time.Now().Add(st.limits.ping)
		}
		if err != nil {
			return
		}
	}
}

func nextUntil(ctx context.Context, feed Feed, deadline time.Time) (Changes, error) {
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	// A feed that has changes does not look at its context; without this check a busy client would get no ping.
	if err := bounded.Err(); err != nil {
		return Changes{}, err
	}
	return feed.Next(bounded)
}

// delta sends changes, then waits a moment so that the next message holds more of them.
func (st *stream) delta(ctx context.Context, c Changes) error {
	if len(c.Groups) == 0 && len(c.Gone) == 0 {
		return nil
	}
	if err := st.send(wire.StreamDelta, c, nil); err != nil {
		return err
	}
	wait := time.NewTimer(st.limits.gap)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return nil
}

// ping asks the client for a sign of life, and gives it one with the age of each group: a screen can tell how old its data is.
func (st *stream) ping(source Source) error {
	if err := st.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(st.limits.streamWrite)); err != nil {
		return err
	}
	return st.send(wire.StreamPing, Changes{}, st.filter.ages(source))
}

func (st *stream) send(kind wire.StreamType, c Changes, ages map[string]float64) error {
	st.seq++
	if err := st.conn.SetWriteDeadline(time.Now().Add(st.limits.streamWrite)); err != nil {
		return err
	}
	return st.conn.WriteJSON(wire.StreamMessage{
		APIVersion: wire.StreamVersion,
		Type:       kind,
		Seq:        st.seq,
		TS:         time.Now().UTC(),
		Groups:     c.Groups,
		Gone:       c.Gone,
		Ages:       ages,
	})
}

// bye tells why the connection ends, if the client still reads.
func (st *stream) bye(code int, text string) {
	_ = st.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text),
		time.Now().Add(st.limits.streamWrite))
}
