// SPDX-License-Identifier: Apache-2.0

// Package bounded limits how much a server may answer to one statement. The driver reads whatever a server sends, and one process asks
// the servers of many: without a limit one server that sends a gigabyte would take the memory of all.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Most is how many bytes an answer may have, with TLS's own. Lists of sessions, prepared transactions and binary logs stay far below it, even
// those of ten thousand; three GTID sets of fifty thousand gaps each would just fit, and a server hardly works with such sets.
const Most = 4 << 20

// statementMin is the shortest write that counts as the next statement, in bytes. A server can have TLS send a message of 27 bytes as often
// as it likes (KeyUpdate), and would otherwise never reach the limit. The answer to a statement as short as that counts with the one before.
const statementMin = 32

// ErrTooLong says that a server has answered a statement with more than Most bytes. The connection is closed.
var ErrTooLong = errors.New("the server's answer is too long")

// keepAlive finds a cut connection in about five seconds even if no context ends it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

// Dial connects to a server, whose answers may have any length.
func Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, network, addr)
}

// Answers knows whether a connection of one server was closed because of its answer. The zero value is ready. It is safe for concurrent use.
type Answers struct{ cut atomic.Bool }

// Dial connects to the server, whose answers are bounded from now on.
func (a *Answers) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return a.Conn(raw), nil
}

// Conn is the connection, with bounded answers.
func (a *Answers) Conn(raw net.Conn) *Conn { return &Conn{Conn: raw, answers: a, left: Most} }

// Explain adds ErrTooLong to an error if an answer was cut since the last call: the driver says only that a connection is invalid.
func (a *Answers) Explain(err error) error {
	if err == nil || !a.cut.Swap(false) {
		return err
	}
	return fmt.Errorf("%w: more than %d bytes: %w", ErrTooLong, Most, err)
}

// Conn is a connection on which answers are bounded. One goroutine at a time may read or write, as the protocol has it.
type Conn struct {
	net.Conn
	answers *Answers
	left    int64
	lifted  bool
}

// Lift ends the limit, for a reader that has its own.
func (c *Conn) Lift() { c.lifted = true }

// SyscallConn is what the driver needs to see, before it uses an idle connection, that the server has closed it.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	raw, is := c.Conn.(syscall.Conn)
	if !is {
		return nil, errors.ErrUnsupported
	}
	return raw.SyscallConn()
}

// Read fails, and closes the connection, once the answer is too long.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lifted {
		return n, err
	}
	if c.left -= int64(n); c.left < 0 {
		c.answers.cut.Store(true)
		return 0, errors.Join(ErrTooLong, c.Close())
	}
	return n, err
}

// Write begins the next answer.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) >= statementMin {
		c.left = Most
	}
	return c.Conn.Write(p)
}
