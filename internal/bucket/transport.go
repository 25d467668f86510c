// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Bounds of every connection. A transfer may take hours, but if no byte moves for ioTimeout, the connection is given up.
const (
	dialTimeout = 10 * time.Second
	ioTimeout   = 60 * time.Second
	// connections are more than one upload uses.
	connections = 16
)

// client is the HTTP client for a place: only its certificate authorities if there are any, TLS 1.2 or later, no redirects to elsewhere.
func (c Config) client() (*http.Client, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, &Error{Kind: UntrustedTLS, Op: "open", Detail: "the file of the certificate authority cannot be read"}
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &Error{Kind: UntrustedTLS, Op: "open", Detail: "ca.crt holds no certificate in PEM"}
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &boundedConn{Conn: conn}, nil
		},
		TLSClientConfig:       t,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: ioTimeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   connections,
		MaxConnsPerHost:       connections,
		IdleConnTimeout:       ioTimeout,
		ForceAttemptHTTP2:     true,
	}}, nil
}

// redirectsMax is how often one server may redirect a request to itself.
const redirectsMax = 3

// stay follows no redirect to another server, nor to one without TLS: data, and a session's token, would go where they must not.
func stay(next *http.Request, before []*http.Request) error {
	if first := before[0].URL; len(before) > redirectsMax || next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// boundedConn lives as long as bytes move in either direction: the answer to an upload comes only after its last byte, however slow the network
// is. If nothing moves, because a server stops or the network drops packets, each read and write ends in an error, after twice ioTimeout at
// the latest.
type boundedConn struct {
	net.Conn
	// moved counts the bytes of both directions, writing the writes under way.
	moved, writing atomic.Int64
}

// Read leaves it to a write under way to find out that nothing moves: only that knows how much has left.
func (c *boundedConn) Read(p []byte) (int, error) {
	for {
		before := c.moved.Load()
		if err := c.SetReadDeadline(time.Now().Add(ioTimeout)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		c.moved.Add(int64(n))
		if n > 0 || !timedOut(err) || c.moved.Load() == before && c.writing.Load() == 0 {
			return n, err
		}
	}
}

// Write goes on as long as some bytes leave, or some come.
func (c *boundedConn) Write(p []byte) (int, error) {
	c.writing.Add(1)
	defer c.writing.Add(-1)
	for written := 0; ; {
		before := c.moved.Load()
		if err := c.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		c.moved.Add(int64(n))
		if !timedOut(err) || c.moved.Load() == before {
			return written, err
		}
	}
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
