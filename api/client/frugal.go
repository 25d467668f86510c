// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxHeaderBytes bounds the head of an answer.
	maxHeaderBytes = 16 << 10
	// idleMost is for how long a connection is kept that nobody uses, give or take as much again, idleEach how many of one address.
	idleMost = 30 * time.Second
	idleEach = 2
)

// NewFrugal returns a client for an operator that speaks to thousands of sites, each every two seconds. It behaves as that of New
// does, and keeps nothing of a connection that is not in use but its socket: http.Transport keeps two goroutines and two buffers
// for each, with a thousand groups of three sites some 50 MiB. A request on a kept connection that the other side has closed
// meanwhile is sent again on another one, so it is for requests that may come twice, as all of this package may.
func NewFrugal(dial DialFunc) *Client {
	c := New(dial)
	plain, _ := c.HTTP.Transport.(*http.Transport)
	c.HTTP.Transport = &frugal{dial: plain.DialContext, idle: map[string][]idleConn{}}
	return c
}

// frugal is an http.RoundTripper for plain HTTP/1.1.
type frugal struct {
	dial DialFunc

	mu    sync.Mutex
	idle  map[string][]idleConn
	swept time.Time
}

type idleConn struct {
	net.Conn
	since time.Time
}

var (
	readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}
)

// RoundTrip sends a request and returns the answer, whose body must be read to its end or closed.
func (f *frugal) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" {
		return nil, fmt.Errorf("unsupported scheme %q", req.URL.Scheme)
	}
	for {
		conn, used, err := f.conn(req.Context(), req.URL.Host)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		resp, err := f.exchange(conn, req)
		if err == nil {
			return resp, nil
		}
		if ended := req.Context().Err(); ended != nil {
			return nil, ended
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, context.DeadlineExceeded // the socket's clock was a moment faster than that of the context
		}
		whole := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
		if !used || !whole || !errors.Is(err, errUnanswered) {
			return nil, err
		}
		// The other side closed it while it was idle, so nobody has seen the request, or will see the same once more.
		again := *req
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, fmt.Errorf("send again: %w", err)
			}
		}
		req = &again
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// errUnanswered is wrapped if not one byte came back.
var errUnanswered = errors.New("no answer")

// exchange sends the request and reads the head of the answer. The connection is closed if it fails.
func (f *frugal) exchange(conn net.Conn, req *http.Request) (_ *http.Response, err error) {
	ctx := req.Context()
	until, _ := ctx.Deadline() // zero is none
	if err = errors.Join(ctx.Err(), conn.SetDeadline(until)); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	// Only now, or the deadline could be taken back. A caller that sees the end of ctx may not use the connection again: it would
	// end the next request.
	release := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	in, _ := readers.Get().(*bufio.Reader)
	head := &io.LimitedReader{R: conn, N: maxHeaderBytes}
	in.Reset(head)
	defer func() {
		if err != nil {
			release()
			_ = conn.Close()
			putReader(in)
		}
	}()
	if err = send(conn, req); err != nil {
		return nil, fmt.Errorf("send: %w: %w", errUnanswered, err)
	}
	if _, err = in.Peek(1); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode < http.StatusOK {
		err = fmt.Errorf("answer %d is none, and nobody asked for it", resp.StatusCode)
		return nil, err
	}
	head.N = math.MaxInt64
	resp.Body = &frugalBody{from: resp.Body, done: func(whole bool) {
		if release() && whole && !resp.Close && in.Buffered() == 0 {
			f.keep(req.URL.Host, conn)
		} else {
			_ = conn.Close()
		}
		putReader(in)
	}}
	return resp, nil
}

func send(conn net.Conn, req *http.Request) error {
	out, _ := writers.Get().(*bufio.Writer)
	out.Reset(conn)
	err := req.Write(out)
	if err == nil {
		err = out.Flush()
	}
	out.Reset(nil)
	writers.Put(out)
	return err
}

func putReader(in *bufio.Reader) {
	in.Reset(nil)
	readers.Put(in)
}

// conn returns a kept connection, or else a new one.
func (f *frugal) conn(ctx context.Context, addr string) (conn net.Conn, used bool, err error) {
	f.mu.Lock()
	if of := f.idle[addr]; len(of) > 0 {
		last := of[len(of)-1]
		f.idle[addr] = of[:len(of)-1]
		f.mu.Unlock()
		return last.Conn, true, nil
	}
	f.mu.Unlock()
	if conn, err = f.dial(ctx, "tcp", addr); err != nil {
		return nil, false, err
	}
	return conn, false, nil
}

// keep keeps a connection for the next request to the same address.
func (f *frugal) keep(addr string, conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if len(f.idle[addr]) >= idleEach {
		_ = conn.Close()
	} else {
		f.idle[addr] = append(f.idle[addr], idleConn{Conn: conn, since: now})
	}
	if now.Sub(f.swept) < idleMost {
		return
	}
	f.swept = now
	for addr, of := range f.idle {
		for len(of) > 0 && now.Sub(of[0].since) > idleMost {
			_ = of[0].Close()
			of = of[1:]
		}
		if f.idle[addr] = of; len(of) == 0 {
			delete(f.idle, addr)
		}
	}
}

// CloseIdleConnections closes what is kept.
func (f *frugal) CloseIdleConnections() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.idle {
		for _, conn := range of {
			_ = conn.Close()
		}
	}
	clear(f.idle)
}

// frugalBody gives the connection back when the body was read to its end.
type frugalBody struct {
	from io.ReadCloser
	done func(whole bool)
}

func (b *frugalBody) Read(p []byte) (int, error) {
	if b.done == nil {
		return 0, io.EOF
	}
	n, err := b.from.Read(p)
	if err != nil {
		b.finish(errors.Is(err, io.EOF))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	return n, err
}

func (b *frugalBody) Close() error {
	b.finish(false)
	return nil
}

func (b *frugalBody) finish(whole bool) {
	if b.done != nil {
		b.done(whole)
		b.done = nil
	}
}
