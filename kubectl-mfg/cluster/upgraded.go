// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// upgraded ends what client-go leaves behind of a port-forward to a kubelet that hangs: it dials without a deadline, and the end of a
// forward waits for each stream that was never answered, and keeps its connection until then.
type upgraded struct {
	mu    sync.Mutex
	ended bool
	held  []io.Closer
}

// noting returns a configuration whose requests end with the context as long as they are not answered, and leave their connection
// behind. It looks below all wrappers, where the connection is.
func (u *upgraded) noting(ctx context.Context, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	within := func(req *http.Request) *http.Request { return req.WithContext(ctx) }
	config.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper {
		return upgradingTrip{next: next, within: within, noted: u}
	}, config.WrapTransport)
	return config
}

// end closes the connections. What was not sent by then is lost, which is why it comes after the last answer.
func (u *upgraded) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for _, h := range u.held {
		_ = h.Close()
	}
	u.held = nil
}

func (u *upgraded) hold(h io.Closer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		_ = h.Close() // no one waits for it any more
		return
	}
	u.held = append(u.held, h)
}

// holder closes the connection that a transport of client-go has by then.
type holder struct{ websocket.ConnectionHolder }

func (h holder) Close() error {
	if conn := h.Connection(); conn != nil {
		return conn.Close()
	}
	return nil
}

type upgradingTrip struct {
	next   http.RoundTripper
	within func(*http.Request) *http.Request
	noted  *upgraded
}

// RoundTrip upgrades a connection.
func (t upgradingTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(t.within(req))
	if h, ok := t.next.(websocket.ConnectionHolder); ok && err == nil {
		t.noted.hold(holder{h})
	}
	return resp, err
}

// pingEvery is how often a forward over SPDY shows load balancers that it is in use.
const pingEvery = 5 * time.Second

// overSPDY returns a transport that upgrades connections to SPDY, below the wrappers of a configuration, and its upgrader.
func (u *upgraded) overSPDY(config *rest.Config) (http.RoundTripper, httpstream.UpgradeRoundTripper, error) {
	secrets, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	dials, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{TLS: secrets, Proxier: proxy})
	if err != nil {
		return nil, nil, err
	}
	trip := &spdyTrip{dials: dials, noted: u}
	wrapped, err := rest.HTTPWrappersForConfig(config, trip)
	return wrapped, trip, err
}

// spdyTrip is one upgrade to SPDY. That of client-go shows nobody its connection, and waits for an answer for as long as it takes.
type spdyTrip struct {
	dials *spdy.SpdyRoundTripper
	noted *upgraded
	conn  net.Conn
}

// RoundTrip asks for the upgrade. The end of noted ends it too.
func (t *spdyTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := req.Clone(req.Context())
	asked.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	asked.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	conn, err := t.dials.Dial(asked)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	t.noted.hold(conn)
	resp, err := http.ReadResponse(bufio.NewReader(conn), asked)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the answer: %w", err), conn.Close())
	}
	t.conn = conn
	return resp, nil
}

// NewConnection goes on with the connection that was upgraded.
func (t *spdyTrip) NewConnection(resp *http.Response) (httpstream.Connection, error) {
	said := resp.Header.Get(httpstream.HeaderUpgrade)
	if resp.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(said, spdy.HeaderSpdy31) {
		return t.dials.NewConnection(resp) // it says why not
	}
	return spdy.NewClientConnectionWithPings(t.conn, pingEvery)
}
