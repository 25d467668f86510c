// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/transport/websocket"
)

// upgraded ends what client-go leaves behind of a port-forward to a kubelet that hangs: it dials without a deadline, and the end of a
// forward waits for each stream that was never answered, and keeps its connection until then.
type upgraded struct {
	mu    sync.Mutex
	ended bool
	held  []websocket.ConnectionHolder
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
		closeHeld(h)
	}
	u.held = nil
}

func (u *upgraded) hold(h websocket.ConnectionHolder) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		closeHeld(h) // no one waits for it any more
		return
	}
	u.held = append(u.held, h)
}

func closeHeld(h websocket.ConnectionHolder) {
	if conn := h.Connection(); conn != nil {
		_ = conn.Close()
	}
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
		t.noted.hold(h)
	}
	return resp, err
}
