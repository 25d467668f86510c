// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// TestHungForwardEnds: a port-forward to a kubelet that hangs leaves no connection behind, whether the API server does not answer, or
// answers and then nothing comes through.
func TestHungForwardEnds(t *testing.T) {
	const patience = 500 * time.Millisecond
	for name, hang := range map[string]http.HandlerFunc{
		"over SPDY, before the answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"over SPDY, after the answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Stream-Protocol-Version", "portforward.k8s.io")
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", spdy.HeaderSpdy31)
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_ = buffered.Flush()
			_, _ = io.Copy(io.Discard, conn) // it takes everything and says nothing
			_ = conn.Close()
		},
		"before the answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"after the answer": func(w http.ResponseWriter, r *http.Request) {
			up := websocket.Upgrader{Subprotocols: websocket.Subprotocols(r)}
			conn, err := up.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			for err == nil { // it takes everything and says nothing
				_, _, err = conn.ReadMessage()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, gone := make(chan struct{}, 8), make(chan struct{}, 8)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(name, "over SPDY") && websocket.IsWebSocketUpgrade(r) {
					http.Error(w, "no WebSockets here", http.StatusBadRequest)
					return
				}
				asked <- struct{}{}
				hang(w, r)
				gone <- struct{}{}
			}))
			defer server.Close()
			defer server.CloseClientConnections()
			config := &rest.Config{Host: server.URL}
			kube, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			a := &API{kube: kube, config: config}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-paris"}}
			port, end, err := a.forwardTo(ctx, pod, 8090)
			if err == nil {
				req, failed := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
				if failed != nil {
					t.Fatal(failed)
				}
				if resp, failed := http.DefaultClient.Do(req); failed == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					t.Error("a kubelet that hangs has answered")
				}
				end()
			}
			<-asked
			select {
			case <-gone:
			case <-time.After(time.Minute):
				t.Error("the connection is still there")
			}
		})
	}
}
