// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// lostNode is an API server that gets no log from one pod.
type lostNode struct {
	pods  map[string][]corev1.Pod
	asked []string
}

func (l *lostNode) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked = append(l.asked, r.URL.Path)
	var body []byte
	switch {
	case strings.HasSuffix(r.URL.Path, "/pods/lost/log"):
		<-r.Context().Done()
		return nil, r.Context().Err()
	case strings.HasSuffix(r.URL.Path, "/log"):
		body = []byte("ready for connections")
	case strings.HasSuffix(r.URL.Path, "/pods"):
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: l.pods[r.URL.Path]}
		var err error
		if body, err = json.Marshal(list); err != nil {
			return nil, err
		}
	default:
		body = []byte(`{"kind":"List","apiVersion":"v1","items":[]}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, nil
}

// TestLogsOfALostNode: a node that does not answer costs its own logs, in little time, and nothing else.
func TestLogsOfALostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(ns, name string, ready corev1.ConditionStatus) corev1.Pod {
			return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", RestartCount: 1}, {Name: "sidecar"}}}}
		}
		l := &lostNode{pods: map[string][]corev1.Pod{
			"/api/v1/namespaces/shop/pods":       {pod("shop", "lost", corev1.ConditionFalse), pod("shop", "well", corev1.ConditionTrue)},
			"/api/v1/namespaces/mfg-system/pods": {pod("mfg-system", "operator", corev1.ConditionTrue)},
		}}
		kube, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: l, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
		began := time.Now()
		b := Collect(t.Context(), Options{Group: g, Kube: kube, OperatorNamespace: "mfg-system", OperatorSelector: "app=mfg", Lines: 10})
		if took := time.Since(began); took > 3*logTimeout || b.Cut {
			t.Errorf("took %s, cut: %t", took, b.Cut)
		}
		if string(b.files["pods/shop/well/mysql.log"]) == "" || string(b.files["pods/mfg-system/operator/mysql.log"]) == "" {
			t.Errorf("there is only %v", b.Names())
		}
		const missing = "pods/shop/lost/sidecar.log: not read within 5s; does node node-1 answer?"
		if !slices.Contains(b.Missing, missing) {
			t.Errorf("missing: %q", b.Missing)
		}
		first := slices.Index(l.asked, "/api/v1/namespaces/shop/pods/lost/log")
		for _, before := range []string{"/api/v1/nodes", "/api/v1/namespaces/shop/events", "/api/v1/namespaces/mfg-system/pods/operator/log", "/api/v1/namespaces/shop/pods/well/log"} {
			if at := slices.Index(l.asked, before); at < 0 || at > first {
				t.Errorf("%s is read after the logs of the lost node: %d, %d", before, at, first)
			}
		}
	})
}
