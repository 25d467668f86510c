// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestHungForwardEnds: a port-forward to a kubelet that hangs leaves no connection behind, whether the API server does not answer, or
// answers and then nothing comes through.
func TestHungForwardEnds(t *testing.T) {
	const patience = 500 * time.Millisecond
	for name, hang := range map[string]func(http.ResponseWriter, *http.Request){
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
			case <-time.After(10 * patience):
				t.Error("the connection is still there")
			}
		})
	}
}
