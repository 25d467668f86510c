// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// conn is a connection that has a place.
type conn struct {
	net.Conn
	door *Door
	from netip.Addr
	once sync.Once
	// waiting is the turn since which the connection waits for its client: for a request, or for the rest of one. It is 0 while a request
	// is under way, after a change to another protocol, and of a server that the door does not watch. door.mu guards it.
	waiting uint64
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.door.mu.Lock()
		defer c.door.mu.Unlock()
		c.door.remove(c)
	})
	return c.Conn.Close()
}

// wait notes that the connection waits for its client from now on. There is none if a server has another listener too.
func (c *conn) wait() {
	if c == nil {
		return
	}
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.turn++
	c.waiting = c.door.turn
}

// work notes that the connection has a request under way.
func (c *conn) work() {
	if c == nil {
		return
	}
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.waiting = 0
}

type connKey struct{}

// connOf is nil if the server of the request is not watched.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// Watch has a server tell which connections wait for their clients; its Handler must be the door's. Without it no connection makes room
// for another of its address.
func (d *Door) Watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, in net.Conn) context.Context {
		c, _ := in.(*conn)
		c.wait()
		return context.WithValue(ctx, connKey{}, c)
	}
	s.ConnState = func(in net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			c, _ := in.(*conn)
			c.wait()
		}
	}
}

// Spare lets the connection of a request make room although the request is under way, because nobody misses the answer.
func Spare(r *http.Request) { connOf(r).wait() }

// underWay keeps the connection of a request once the request has come whole: a client that does not send the body that it has
// announced keeps no place with it.
func underWay(r *http.Request) *http.Request {
	c := connOf(r)
	if r.ContentLength == 0 {
		c.work()
		return r
	}
	whole := *r
	whole.Body = coming{r.Body, c}
	return &whole
}

// coming is the body of a request.
type coming struct {
	io.ReadCloser
	conn *conn
}

// Read implements io.Reader.
func (b coming) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.conn.work()
	}
	return n, err
}
