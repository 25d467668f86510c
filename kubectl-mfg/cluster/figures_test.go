// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// sidecars is an API server whose proxy leads to pods that answer in different ways, by the name of their site.
func sidecars(t *testing.T, answers map[string]http.HandlerFunc) *API {
	t.Helper()
	const all = "/api/v1/namespaces/shop/pods"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == all {
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
			for site := range answers {
				list.Items = append(list.Items, corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "mysql-orders-" + site, Namespace: "shop", Labels: map[string]string{v1alpha1.LabelSite: site}},
					Status:     corev1.PodStatus{Phase: corev1.PodRunning},
				})
			}
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pending", Labels: map[string]string{v1alpha1.LabelSite: "pending"}}})
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		for site, answer := range answers {
			if r.URL.Path == all+"/http:mysql-orders-"+site+":8090/proxy/metrics" {
				answer(w, r)
				return
			}
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &API{kube: kube, config: config}
}

// TestFigures: a pod that hangs, answers garbage, or does not stop costs its own figures and a bounded time, and no other pod's.
func TestFigures(t *testing.T) {
	a := sidecars(t, map[string]http.HandlerFunc{
		"good": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "sidecar_mysql_connections 42\nsidecar_mysql_max_connections 151\n")
		},
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>\x1b[2J") },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x 1\n", 1024)); err != nil {
					return
				}
			}
		},
		"refuses": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", http.StatusTooManyRequests) },
	})
	began := time.Now()
	got, err := a.Figures(t.Context(), "shop", "orders")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*figuresTimeout {
		t.Errorf("took %s", took)
	}
	if len(got) != 5 {
		t.Fatalf("%d readings: %+v", len(got), got)
	}
	for _, r := range got {
		if r.Site == "good" {
			if r.Error != "" || r.Connections != 42 || r.MaxConnections != 151 {
				t.Errorf("%+v", r)
			}
			continue
		}
		if r.Error == "" || !math.IsNaN(r.Connections) {
			t.Errorf("%s: %+v", r.Site, r)
		}
	}
	if slices.ContainsFunc(got, func(r gauge.Reading) bool { return r.Site == "pending" }) {
		t.Error("a pod that does not run was asked")
	}
}

// TestFiguresOfWhoMayOnlyForward: a user who may forward ports, and not use the proxy, is told what became of the forward, not that a
// right is missing.
func TestFiguresOfWhoMayOnlyForward(t *testing.T) {
	for code, want := range map[int]string{http.StatusInternalServerError: "does not answer", http.StatusForbidden: "you may neither"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/portforward") {
				http.Error(w, "no", code)
				return
			}
			http.Error(w, "no", http.StatusForbidden)
		}))
		defer server.Close()
		config := &rest.Config{Host: server.URL}
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mysql-orders-paris", Namespace: "shop", Labels: map[string]string{v1alpha1.LabelSite: "paris"}}}
		r := (&API{kube: kube, config: config}).figuresOf(t.Context(), pod)
		if !strings.Contains(r.Error, want) {
			t.Errorf("a forward that ends with %d: %q, want %q", code, r.Error, want)
		}
	}
}
