// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// Client is one connection. Its methods are for one goroutine at a time.
type Client struct {
	conn    net.Conn
	reader  *bufio.Reader
	timeout time.Duration
	broken  error
}

// Dialer says how to connect.
type Dialer struct {
	// TLS encrypts the connection; nil: plain.
	TLS *tls.Config
	// Password for AUTH; empty: none.
	Password string
	// DialTimeout bounds the connection with handshake and AUTH, Timeout every command.
	DialTimeout, Timeout time.Duration
}

// Dial connects and logs in.
func (d Dialer) Dial(ctx context.Context, network, address string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, d.DialTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAlive: -1}
	var conn net.Conn
	var err error
	if d.TLS != nil {
		conn, err = (&tls.Dialer{NetDialer: &dialer, Config: d.TLS}).DialContext(ctx, network, address)
	} else {
		conn, err = dialer.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Client{conn: conn, reader: bufio.NewReaderSize(conn, 16<<10), timeout: d.Timeout}
	if d.Password == "" {
		return c, nil
	}
	if _, err := c.Do("AUTH", d.Password); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in: %w", err)
	}
	return c, nil
}

// Do sends a command and reads its reply. An Error is the server's word, after which the connection is still of use; after any other
// error nobody knows what became of the command, and the connection is of no more use.
func (c *Client) Do(args ...string) (Value, error) { return c.DoFor(c.timeout, args...) }

// DoFor is Do with a timeout of its own.
func (c *Client) DoFor(timeout time.Duration, args ...string) (Value, error) {
	if c.broken != nil {
		return Value{}, fmt.Errorf("the connection was given up: %w", c.broken)
	}
	v, err := c.exchange(timeout, args)
	if err != nil {
		c.broken = err
		return v, fmt.Errorf("%s: %w", strings.ToUpper(args[0]), err)
	}
	return v, v.Err()
}

func (c *Client) exchange(timeout time.Duration, args []string) (Value, error) {
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return Value{}, err
	}
	if _, err := c.conn.Write(AppendCommand(nil, args...)); err != nil {
		return Value{}, err
	}
	return Read(c.reader)
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Section parses the lines of INFO, "name:value", and leaves out everything else.
func Section(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}
