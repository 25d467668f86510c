// SPDX-License-Identifier: Apache-2.0

// Package engine speaks to the cache engines: Valkey (and Redis from 7 on) and Dragonfly. It decides nothing: it does what the caller
// asks, or says why it did not. Each operation has one deadline, that of its context; an answer is bounded; a connection on which anything
// failed is not used again. No error text holds a password or more than a line of what the other side wrote.
package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Errors that a caller tells apart.
var (
	// ErrPassword means that the engine takes none of the passwords.
	ErrPassword = errors.New("the engine refuses the password")
	// ErrFull means that the engine has as many clients as it may have, and refused this connection in its own words. It lives.
	ErrFull = errors.New("it has as many clients as it may have, and takes no more")
	// ErrDropped means that the connection was made and ended before TLS began, as Valkey does when it is full. Something between here and the
	// engine may do that too.
	ErrDropped = errors.New("it ends new connections before TLS begins, as an engine does that has as many clients as it may have")
	// ErrUnsupported means that the engine has no such command.
	ErrUnsupported = errors.New("the engine does not have the command")
	// ErrNotOnline means that the target is no replica of the master that is online.
	ErrNotOnline = errors.New("the target is not online at the master")
	// ErrNotTaken means that the target did not take over in time. The old master stays the master.
	ErrNotTaken = errors.New("the target did not take over in time")
	// ErrHung means that the old master has let go and the target does not take over. No engine takes writes.
	ErrHung = errors.New("the old master has let go, and the target does not take over")
	// ErrRole means that the engine obeyed, but then does not have the role that it should have.
	ErrRole = errors.New("the engine has not changed its role")
)

// longest bounds each step of an operation whatever its context allows.
const longest = 30 * time.Second

// keptFor is how long an unused connection is kept.
const keptFor = 30 * time.Second

// Target is the engine in one pod.
type Target struct {
	Engine v1alpha1.CacheEngine
	// Addr is its address, host and port.
	Addr string
	// Hosts are the names and addresses under which the other engines know it.
	Hosts []string
	// Passwords are those that it may take, first the one that it should take.
	Passwords []string
	TLS       *tls.Config
	// Certificate (DER) is the one that it must show; nil without TLS, or if that is not known.
	Certificate []byte
}

// String never shows a password.
func (t Target) String() string { return string(t.Engine) + " at " + t.Addr }

// GoString never shows a password.
func (t Target) GoString() string { return t.String() }

// Client speaks to one engine. It may be used by several goroutines.
type Client struct {
	target Target

	mu sync.Mutex
	// at is the index of the password that the engine took last.
	at  int
	rdb *redis.Client
	// last is the newest connection of rdb.
	last *bounded
	// shown is the certificate of the last connection, renewedAt when the engine last had to read its certificate again.
	shown     []byte
	renewedAt time.Time
}

// New makes a Client; it connects when it is used.
func New(t Target) *Client { return &Client{target: t} }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Errors say what fails; the library would write addresses and answers to stderr beside the log.
func init() { redis.SetLogger(silence{}) } //nolint:gochecknoinits // the library's logger is global

// Close ends its connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

func (c *Client) drop() {
	if c.rdb != nil {
		_ = c.rdb.Close()
		c.rdb = nil
	}
}

// Outdated is true if the engine takes an older password than the first.
func (c *Client) Outdated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at > 0
}

// conn returns the connections to send with, and the index of the password that they use.
func (c *Client) conn() (*redis.Client, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rdb == nil {
		options := c.target.options(c.at)
		options.Dialer = c.dial
		c.rdb = redis.NewClient(options)
	}
	return c.rdb, c.at
}

func (t Target) options(at int) *redis.Options {
	o := &redis.Options{
		Addr: t.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		PoolSize:                 2, MaxIdleConns: 1, ConnMaxIdleTime: keptFor,
		DialTimeout: longest, ReadTimeout: longest, WriteTimeout: longest, PoolTimeout: longest,
		ReadBufferSize: 16 << 10, WriteBufferSize: 4 << 10,
	}
	if at < len(t.Passwords) {
		o.Password = t.Passwords[at]
	}
	return o
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if c.target.TLS != nil {
		secure := tls.Client(conn, c.target.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, whyEnded(err)
		}
		c.show(secure.ConnectionState().PeerCertificates)
		conn = secure
	}
	b := &bounded{Conn: conn}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = b
	return b, nil
}

// Listens is true if the port takes connections, whether or not the engine answers on them.
func (c *Client) Listens(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.target.Addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// do sends one command that is answered with a text.
func (c *Client) do(ctx context.Context, args ...any) (string, error) {
	answer, err := c.ask(ctx, args...)
	return text(answer), err
}

// ask sends one command. If the password is refused, the next one is tried.
func (c *Client) ask(ctx context.Context, args ...any) (any, error) {
	for range max(len(c.target.Passwords), 1) {
		rdb, at := c.conn()
		answer, err := rdb.Do(ctx, args...).Result()
		if err == nil {
			return answer, nil
		}
		if !refusesPassword(err) {
			c.failed(rdb, err)
			return nil, c.clean(err)
		}
		c.next(rdb, at)
	}
	return nil, ErrPassword
}

// failed drops the connections, unless the engine itself refused.
func (c *Client) failed(rdb *redis.Client, err error) {
	if !answered(err) {
		c.forget(rdb)
	}
}

// next moves on to the next password.
func (c *Client) next(rdb *redis.Client, at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rdb != rdb {
		return // another goroutine has done so already
	}
	c.drop()
	c.at = (at + 1) % max(len(c.target.Passwords), 1)
}

func refusesPassword(err error) bool {
	for _, word := range []string{"WRONGPASS", "NOAUTH", "ERR invalid password", "ERR AUTH "} {
		if strings.HasPrefix(err.Error(), word) {
			return true
		}
	}
	return false
}

// clean returns the error without a password and without a page of text.
func (c *Client) clean(err error) error {
	for _, refused := range []error{ErrFull, ErrDropped} {
		if errors.Is(err, refused) {
			return &Error{c.target.Addr, refused.Error(), err}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{c.target.Addr, "no answer in time", err}
	}
	text := err.Error()
	if op, is := errors.AsType[*net.OpError](err); is && op.Source != nil && op.Err != nil {
		// Each connection has another local port. A text with it would be news at each look, and be written to status each time.
		text = strings.ReplaceAll(text, op.Error(), op.Err.Error())
	}
	for _, p := range c.target.Passwords {
		if p != "" {
			text = strings.ReplaceAll(text, p, "***")
		}
	}
	text = strings.ToValidUTF8(strings.Map(printable, text), "?")
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") + "..."
	}
	return &Error{c.target.Addr, text, err}
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// Error is what an engine answered, or what failed on the way to it.
type Error struct {
	Addr, Text string
	cause      error
}

func (e *Error) Error() string { return e.Addr + ": " + e.Text }

// Is keeps the cause comparable without letting its text out.
func (e *Error) Is(target error) bool { return errors.Is(e.cause, target) }

// says is true if the engine answered with these words.
func says(err error, words ...string) bool {
	e, is := errors.AsType[*Error](err)
	return is && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(e.Text), w) })
}

func text(answer any) string {
	s, _ := answer.(string)
	return s
}
