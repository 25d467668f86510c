// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"
)

// Bounds of every connection. A transfer may take hours, but each read or write ends within ioTimeout, or the connection is given up.
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

// boundedConn gives every read and write ioTimeout: if a server stops, or the network drops packets, that ends in an error.
type boundedConn struct{ net.Conn }

func (c *boundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
