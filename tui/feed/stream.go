// SPDX-License-Identifier: Apache-2.0

// Package feed is what the dashboard hears: the operator's stream over a WebSocket, which only this package knows, and the custom
// resources as the plugin watches them.
package feed

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Address is where the operator's endpoints are, and how to get there.
type Address struct {
	// URL of GET /ws/status, with http or https.
	URL   string
	TLS   *tls.Config
	Proxy func(*http.Request) (*url.URL, error)
	// Wrap adds the user's credentials to a request; nil if none are needed.
	Wrap func(http.RoundTripper) (http.RoundTripper, error)
	// Close takes down what leads there, such as a forwarded port; nil if nothing does.
	Close func()
}

// Route leads to the operator.
type Route struct {
	// Name says it in a word, such as "service proxy".
	Name string
	// Ways finds where the route leads. The most promising way comes first: only one of several pods answers.
	Ways func(context.Context) ([]Way, error)
}

// Way opens a route to one process of the operator.
type Way func(context.Context) (Address, error)

// Direct is a route with one way.
func Direct(name string, way Way) Route {
	return Route{Name: name, Ways: func(context.Context) ([]Way, error) { return []Way{way}, nil }}
}

// Share is a context with the share of one among so many of the time that is left. One that hangs leaves the others theirs.
func Share(ctx context.Context, among int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(among))
}

// limits of the stream.
const (
	handshakeTimeout = 5 * time.Second
	// silenceTimeout is how long without a message it takes until the connection counts as lost: the operator sends one at
	// least every 10 s.
	silenceTimeout = 25 * time.Second
	// DeliverEvery is the least time between two deliveries to the dashboard: no one could read faster changes.
	DeliverEvery = 250 * time.Millisecond
	backoffLeast = 500 * time.Millisecond
	backoffMost  = 8 * time.Second
)

var (
	errGap     = errors.New("a message of the stream is missing")
	errVersion = errors.New("the operator speaks another version of the stream")
)

// Stream follows GET /ws/status over the first route that works, and connects again after each loss.
type Stream struct {
	Routes []Route
	Now    func() time.Time
	box    mailbox
}

// Follow delivers what it hears until the context ends. It reads the connection at full speed, even if its receiver is
// slow: the operator cuts off a client that falls behind.
func (s *Stream) Follow(ctx context.Context, deliver func(Changes)) {
	s.box.wake = make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.box.deliver(ctx, deliver)
	}()
	for failures := 0; ctx.Err() == nil; {
		began := s.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			break
		}
		s.box.put(Changes{Link: &Link{Error: reasonOf(err), Denied: errors.Is(err, ErrDenied)}})
		if failures++; s.Now().Sub(began) > silenceTimeout {
			failures = 1
		}
		pause(ctx, backoff(failures))
	}
	<-done
}

// backoff doubles, and half of it is random: a hundred dashboards must not come back to a new operator at once.
func backoff(failures int) time.Duration {
	most := min(backoffMost, backoffLeast<<min(failures-1, 10))
	return most/2 + rand.N(most/2+1) //nolint:gosec // a guess only tells when a screen refreshes
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// once connects and listens until the connection ends.
func (s *Stream) once(ctx context.Context) error {
	var failures []error
	for _, r := range s.Routes {
		err := s.over(ctx, r)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var lost lostError
		if errors.As(err, &lost) {
			return lost.error // this route works
		}
		failures = append(failures, fmt.Errorf("%s: %w", r.Name, err))
	}
	return joined(failures)
}

// lostError ends a connection that was up.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// over tries the ways of a route until one works.
func (s *Stream) over(ctx context.Context, r Route) error {
	opening, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	ways, err := r.Ways(opening)
	if err != nil {
		return err
	}
	var failures []error
	for i, way := range ways {
		err := s.along(ctx, opening, way, r.Name, len(ways)-i)
		var lost lostError
		if errors.As(err, &lost) || ctx.Err() != nil {
			return err
		}
		failures = append(failures, err)
	}
	return joined(failures)
}

// along listens over one way. It has its share of the time for opening.
func (s *Stream) along(ctx, opening context.Context, way Way, route string, among int) error {
	opening, cancel := Share(opening, among)
	defer cancel()
	a, err := way(opening)
	if err != nil {
		return err
	}
	if a.Close != nil {
		defer a.Close()
	}
	conn, err := connect(opening, a)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return lostError{s.listen(conn, route)}
}

// connect asks for the WebSocket, with the user's credentials added.
func connect(ctx context.Context, a Address) (*websocket.Conn, error) {
	up := &upgrade{dialer: websocket.Dialer{Proxy: a.Proxy, TLSClientConfig: a.TLS, HandshakeTimeout: handshakeTimeout, ReadBufferSize: 32 << 10}}
	var through http.RoundTripper = up
	if a.Wrap != nil {
		var err error
		if through, err = a.Wrap(up); err != nil {
			return nil, fmt.Errorf("prepare request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if up.conn == nil {
		return nil, refusal(resp)
	}
	return up.conn, nil
}

// upgrade is a RoundTripper whose round trip ends in a WebSocket. client-go has one too, but it refuses a server that
// chooses no subprotocol, and ours has none to choose.
type upgrade struct {
	dialer websocket.Dialer
	conn   *websocket.Conn
}

func (u *upgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	to := *req.URL
	switch to.Scheme {
	case "http":
		to.Scheme = "ws"
	case "https":
		to.Scheme = "wss"
	default:
		return nil, fmt.Errorf("connect: unknown scheme %q", to.Scheme)
	}
	conn, resp, err := u.dialer.DialContext(req.Context(), to.String(), req.Header)
	if errors.Is(err, websocket.ErrBadHandshake) && resp != nil {
		return resp, nil // an ordinary answer: a wrapper may want to log in again on a 401
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	u.conn = conn
	return resp, nil
}

// refusal is what the operator, or the API server before it, answered instead.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxBodyBytes))
	if err != nil {
		return fmt.Errorf("refused: %s", resp.Status)
	}
	var said struct{ Error, Reason, Message string }
	if json.Unmarshal(body, &said) != nil {
		said.Message = string(body)
	}
	words := strings.TrimSpace(said.Error + said.Message)
	if words == "" {
		words = resp.Status
	}
	if resp.StatusCode == http.StatusForbidden {
		return fmt.Errorf("%w: %s", ErrDenied, words)
	}
	return fmt.Errorf("refused: %s", words)
}

// ErrDenied means that this user may not ask the operator. It says nothing about the operator.
var ErrDenied = errors.New("refused")

// joined is ErrDenied only if every failure is: a way that was open to this user, and did not lead to the operator, says something about it.
func joined(failures []error) error {
	err := errors.Join(failures...)
	for _, f := range failures {
		if !errors.Is(f, ErrDenied) {
			return errors.New(err.Error())
		}
	}
	return err
}

// listen reads messages until there are no more. A gap in the numbers ends the connection: only a new snapshot tells
// what was missed.
func (s *Stream) listen(conn *websocket.Conn, route string) error {
	conn.SetReadLimit(wire.MaxStatusBytes)
	var last wire.StreamMessage
	for {
		if err := conn.SetReadDeadline(s.Now().Add(silenceTimeout)); err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		var m wire.StreamMessage
		if err := conn.ReadJSON(&m); err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		if err := follows(last, m); err != nil {
			return err
		}
		last = wire.StreamMessage{Type: m.Type, Seq: m.Seq}
		s.box.put(s.changes(m, route))
	}
}

// follows checks that a message is the next one; before the first one, last is empty.
func follows(last, m wire.StreamMessage) error {
	switch {
	case m.APIVersion != wire.StreamVersion:
		return fmt.Errorf("%w: %s, not %s", errVersion, m.APIVersion, wire.StreamVersion)
	case last.Type == "" && m.Type != wire.StreamSnapshot:
		return fmt.Errorf("%w: the first one is a %s", errGap, m.Type)
	case last.Type != "" && m.Seq != last.Seq+1:
		return fmt.Errorf("%w: %d follows %d", errGap, m.Seq, last.Seq)
	}
	return nil
}

func (s *Stream) changes(m wire.StreamMessage, route string) Changes {
	now := s.Now()
	c := Changes{At: now, Clock: m.TS, Gone: m.Gone, Whole: m.Type == wire.StreamSnapshot, Link: &Link{Up: true, Route: route}}
	for i := range m.Groups {
		c.Groups = append(c.Groups, Told{Status: m.Groups[i], Clock: m.TS})
	}
	if len(m.Ages) > 0 {
		c.Ages = make(map[string]time.Duration, len(m.Ages))
		for name, seconds := range m.Ages {
			c.Ages[name] = time.Duration(min(seconds, mostSeconds) * float64(time.Second))
		}
	}
	return c
}

// mostSeconds is more than any loop stands still, and fits a time.Duration.
const mostSeconds = 1e9

// reasonOf says why a connection ended, in one line.
func reasonOf(err error) string {
	var closed *websocket.CloseError
	switch {
	case err == nil:
		return "closed"
	case errors.As(err, &closed) && closed.Code == websocket.CloseGoingAway:
		return "the operator ended"
	case errors.As(err, &closed) && closed.Code == websocket.CloseTryAgainLater:
		return "this dashboard did not keep up"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// mailbox holds news that is not delivered yet. Of several changes of a group it keeps the last.
type mailbox struct {
	mu      sync.Mutex
	pending Changes
	any     bool
	wake    chan struct{}
}

func (b *mailbox) put(c Changes) {
	b.mu.Lock()
	b.pending.add(c)
	b.any = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // already woken
	}
}

func (b *mailbox) deliver(ctx context.Context, deliver func(Changes)) {
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		c, any := b.pending, b.any
		b.pending, b.any = Changes{}, false
		b.mu.Unlock()
		if any {
			deliver(c)
			pause(ctx, DeliverEvery)
		}
	}
}
