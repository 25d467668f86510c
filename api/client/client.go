// SPDX-License-Identifier: Apache-2.0

// Package client is the typed HTTP client for the endpoints of api/wire: one set of timeouts, limits and error
// mappings. It verifies no signature: a Signed is returned as it came, and the caller holds the key.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// maxStatusBytes bounds the answer to GET /status, the only body that grows with the number of groups.
const maxStatusBytes = 16 << 20

// Errors of an answer that came and cannot be used.
var (
	// ErrTooLarge is returned for an answer beyond the limit of its endpoint.
	ErrTooLarge = errors.New("answer is too large")
	// ErrUnreadable is returned for a success whose body is not the document of its endpoint.
	ErrUnreadable = errors.New("answer cannot be read")
)

// StatusError is an answer that is not a success.
type StatusError struct {
	// Code is the HTTP status code.
	Code int
	// Reason and Message come from the body; both are empty when it was not a wire.Error.
	Reason  string
	Message string
}

// Error names the code, the reason and the message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("answer %d", e.Code)
	if e.Reason != "" {
		text += " " + e.Reason
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Client speaks to operators and sidecars. The zero value works.
type Client struct {
	// HTTP carries the requests; nil stands for New().HTTP. Deadlines come from the caller's context.
	HTTP *http.Client
}

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// shared serves every zero Client.
var shared = New(nil)

// New returns a client that dials with the given function; nil stands for a plain dialer with a short timeout.
//
// It uses no proxy (the addresses are inside the cluster, and a proxy could answer for a site that is cut off) and
// follows no redirect (an answer counts only if the one that was asked gave it).
func New(dial DialFunc) *Client {
	if dial == nil {
		dial = (&net.Dialer{Timeout: time.Second, KeepAlive: 5 * time.Second}).DialContext
	}
	return &Client{HTTP: &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            dial,
			MaxIdleConns:           0, // as many as there are sites: a push that must dial first costs twice as much
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        30 * time.Second,
			ResponseHeaderTimeout:  15 * time.Second,
			TLSHandshakeTimeout:    2 * time.Second,
			MaxResponseHeaderBytes: 16 << 10,
			// A statement and a report fit in these, and with thousands of sites each connection's buffers count.
			ReadBufferSize: 2 << 10, WriteBufferSize: 2 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http().CloseIdleConnections() }

func (c *Client) http() *http.Client {
	if c == nil || c.HTTP == nil {
		return shared.HTTP
	}
	return c.HTTP
}

// ActiveSiteQuery is what is asked of GET /active-site and GET /peer/active-site.
type ActiveSiteQuery struct {
	Namespace string
	Group     string
	// Site names the one who asks, so that the other side remembers whom it answered and when.
	Site string
	// Pod is the UID of the asking sidecar's pod.
	Pod string
	// Nonce is repeated inside the operator's signed answer. A peer relays what it has and ignores it.
	Nonce string
}

func (q ActiveSiteQuery) encode() string {
	values := url.Values{}
	for _, p := range []struct{ name, value string }{
		{wire.ParamNamespace, q.Namespace}, {wire.ParamGroup, q.Group},
		{wire.ParamSite, q.Site}, {wire.ParamPod, q.Pod}, {wire.ParamNonce, q.Nonce},
	} {
		if p.value != "" {
			values.Set(p.name, p.value)
		}
	}
	return values.Encode()
}

// OperatorActiveSite asks an operator (base URL such as http://mfg-auxiliary.mfg-system.svc:8082) for the statement.
func (c *Client) OperatorActiveSite(ctx context.Context, baseURL string, q ActiveSiteQuery) (wire.Signed, error) {
	return c.activeSite(ctx, join(baseURL, wire.PathActiveSite), q)
}

// PeerActiveSite asks the sidecar at host:port for the statement that it relays.
func (c *Client) PeerActiveSite(ctx context.Context, addr string, q ActiveSiteQuery) (wire.Signed, error) {
	return c.activeSite(ctx, "http://"+addr+wire.PathPeerActiveSite, q)
}

func (c *Client) activeSite(ctx context.Context, target string, q ActiveSiteQuery) (wire.Signed, error) {
	var answer wire.ActiveSite
	err := c.do(ctx, request{method: http.MethodGet, target: target + "?" + q.encode(), limit: wire.MaxBodyBytes}, &answer)
	if err != nil {
		return "", err
	}
	if answer.Statement == "" {
		return "", errors.New("answer holds no statement")
	}
	return answer.Statement, nil
}

// PushActiveSite gives a statement to the sidecar at host:port and returns what it answers: the report of its site or, to a push with a
// challenge, the authenticated one, which the caller opens.
func (c *Client) PushActiveSite(ctx context.Context, addr string, push wire.ActiveSite) (wire.Answer, error) {
	body, err := json.Marshal(push)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("encode statement: %w", err)
	}
	var answer wire.Answer
	err = c.do(ctx, request{
		method: http.MethodPut, target: "http://" + addr + wire.PathActiveSite, body: body, limit: wire.MaxAnswerBytes,
	}, &answer)
	return answer, err
}

// Status asks an operator for all groups.
func (c *Client) Status(ctx context.Context, baseURL string) (wire.StatusList, error) {
	var list wire.StatusList
	err := c.do(ctx, request{method: http.MethodGet, target: join(baseURL, wire.PathStatus), limit: maxStatusBytes}, &list)
	return list, err
}

// join tolerates a base URL with a slash at its end.
func join(baseURL, path string) string { return strings.TrimRight(baseURL, "/") + path }

type request struct {
	method string
	target string
	body   []byte
	limit  int64
}

// do sends a request and decodes a success into out.
func (c *Client) do(ctx context.Context, r request, out any) error {
	req, err := http.NewRequestWithContext(ctx, r.method, r.target, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, withoutQuery(r.target), unwrapURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := readLimited(resp.Body, resp.ContentLength, r.limit)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %w", r.method, withoutQuery(r.target), statusError(resp.StatusCode, body))
	}
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", withoutQuery(r.target), err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode answer of %s: %w: %w", withoutQuery(r.target), ErrUnreadable, err)
	}
	return nil
}

// readLimited reads a whole body of at most limit bytes, for which it makes room at once if its length was announced.
func readLimited(from io.Reader, length, limit int64) ([]byte, error) {
	var room bytes.Buffer
	if length > 0 && length <= limit {
		room.Grow(int(length) + bytes.MinRead)
	}
	_, err := room.ReadFrom(io.LimitReader(from, limit+1))
	body := room.Bytes()
	if err != nil {
		return body, err
	}
	if int64(len(body)) > limit {
		return body[:limit], ErrTooLarge
	}
	return body, nil
}

// statusError keeps what the body says, if it is one of ours.
func statusError(code int, body []byte) *StatusError {
	var told wire.Error
	if err := json.Unmarshal(body, &told); err != nil {
		return &StatusError{Code: code}
	}
	return &StatusError{Code: code, Reason: told.Reason, Message: told.Error}
}

// unwrapURL drops the wrapper of net/http, whose text repeats the URL with its nonce: each would be a new log line.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func withoutQuery(target string) string {
	base, _, _ := strings.Cut(target, "?")
	return base
}
