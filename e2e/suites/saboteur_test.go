// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// saboteur stands between the plugin and the API server, with an administrator's rights.
type saboteur struct {
	http.Handler
	url string
	// at is the kind of request with which the plugin is lost: it is not let through, or with done only its answer is
	// not, and nothing after it.
	at   string
	done bool
	// corrupt changes a keyring on its way to where it is stored.
	corrupt bool

	mu   sync.Mutex
	dead bool
	met  bool
}

// sabotage makes one. Its address is for --server.
func sabotage(t *testing.T) *saboteur {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", lab.Lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"} // exec changes the protocol, which HTTP/2 cannot
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &saboteur{Handler: &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// stepOf names a request as the specification's procedure would.
func stepOf(r *http.Request) string {
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/exec"):
		return "read pod"
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/secrets"):
		return "create Secret"
	case r.Method == http.MethodPatch && strings.Contains(path, "/secrets/"):
		return "patch Secret"
	case r.Method == http.MethodPatch && strings.HasSuffix(path, "/status"):
		return "patch status"
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/events"):
		return "create Event"
	}
	return ""
}

func (s *saboteur) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := stepOf(r)
	s.mu.Lock()
	here := kind != "" && kind == s.at && !s.dead
	lost := s.dead || here && !s.done
	s.dead, s.met = s.dead || here, s.met || here
	s.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	if s.corrupt && kind == "create Secret" {
		s.damage(r)
	}
	if here {
		s.Handler.ServeHTTP(httptest.NewRecorder(), r) // it is done, and nobody hears of it
		panic(http.ErrAbortHandler)
	}
	s.Handler.ServeHTTP(w, r)
}

// damage adds a byte to the keyring.
func (s *saboteur) damage(r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	secret, is := decoded.(*corev1.Secret)
	if err != nil || !is {
		panic(http.ErrAbortHandler)
	}
	secret.Data[v1alpha1.KeyringKey] = append(secret.Data[v1alpha1.KeyringKey], '\n')
	var body bytes.Buffer
	if err := scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion).Encode(secret, &body); err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Del("Content-Length")
}
