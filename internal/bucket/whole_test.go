// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// storage is as much of a server of S3 as a bucket needs, with its objects in memory.
type storage struct {
	mu      sync.Mutex
	objects map[string][]byte
	// loses is the end of a key: once it was stored the server is away, and nobody hears that it was.
	loses string
	away  bool
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/backups"), "/")
	there, is := s.objects[key]
	switch {
	case err != nil || s.away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Query().Has("uploads"):
		_, _ = io.WriteString(w, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
	case key == "":
		s.list(w, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut && is && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
	case r.Method == http.MethodPut:
		s.objects[key] = body
		if s.away = s.loses != "" && strings.HasSuffix(key, s.loses); s.away {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !is:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("ETag", `"0"`)
		http.ServeContent(w, r, "", noon, bytes.NewReader(there))
	}
}

func (s *storage) list(w io.Writer, prefix string) {
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
	for _, key := range keys {
		_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><ETag>\"0\"</ETag><LastModified>%s</LastModified></Contents>", key, len(s.objects[key]), noon.Format(time.RFC3339))
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

// served is the place of the group orders in a storage, without long pauses.
func served(t *testing.T, s http.Handler) *Bucket {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"ca.crt":      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"accessKeyID": []byte("AKIATEST12345"), "secretAccessKey": []byte(testSecret),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	b, err := OpenWith(t.Context(), Config{
		S3:        &S3{Bucket: "backups", Region: "us-east-1", Endpoint: server.URL},
		Namespace: "shop", Group: "orders", CredentialsDir: dir, CAFile: filepath.Join(dir, "ca.crt"),
	}, Patience{RequestPauseMax: time.Millisecond, CallPause: time.Millisecond, AbortTimeout: time.Second})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// I23: the storage took the manifest, and its answer was lost: giving the attempt up must not remove what the manifest names. The next attempt finds it, and
// takes it for a backup.
func TestWhatAManifestMayNameStaysI23(t *testing.T) {
	s := &storage{objects: map[string][]byte{}}
	b := served(t, s)
	w := create(t, b, "monday")
	fill(t, w, "data", []byte("all of it"))
	s.loses = manifestName
	_, err := w.Commit(t.Context(), manifestOf(noon))
	wantKind(t, err, Unreachable)
	s.mu.Lock()
	s.away = false
	s.mu.Unlock()
	must(t, w.Abort(t.Context()))
	if _, err := b.ReadManifest(t.Context(), "monday"); err != nil {
		t.Fatalf("the test is none: %v", err)
	}
	if got, err := readPart(b, "monday", "data", Identities{}); err != nil || string(got) != "all of it" {
		t.Errorf("I23: there is a manifest, and of what it names there is %q: %v", got, err)
	}
}

// I23: what went since it was stored is missed before there is a manifest.
func TestWhatWentSinceIsMissedI23(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove, "cut off": func(path string) error { return os.Truncate(path, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b, dir := place(t)
			w := create(t, b, "monday")
			fill(t, w, "data", noise(350<<10))
			must(t, harm(filepath.Join(dir, b.key("backups", "monday", objectKey(w.attempt, "data", 1)))))
			_, err := w.Commit(t.Context(), manifestOf(noon))
			wantKind(t, err, Other)
			_, err = b.ReadManifest(t.Context(), "monday")
			wantKind(t, err, NotFound)
			must(t, w.Abort(t.Context()))
			if left := files(t, filepath.Join(dir, b.config.root())); len(left) != 1 { // the owner
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A manifest that the storage surely did not take keeps nothing.
func TestWhatWasRefusedLeavesNothing(t *testing.T) {
	b, dir := place(t)
	first, second := create(t, b, "monday"), create(t, b, "monday")
	fill(t, first, "data", []byte("first"))
	fill(t, second, "data", []byte("second"))
	commit(t, second, noon)
	_, err := first.Commit(t.Context(), manifestOf(noon))
	wantKind(t, err, Exists)
	must(t, first.Abort(t.Context()))
	for _, path := range files(t, dir) {
		if strings.Contains(path, first.attempt) {
			t.Errorf("%s is left", path)
		}
	}
}

// Data and a token of a session go to nobody but the server that was named.
func TestNoRedirectElsewhere(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusFound} {
		b := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		if err := b.put(t.Context(), "shop/orders/x", []byte("data"), false); err == nil {
			t.Errorf("%d: it is stored somewhere", status)
		}
		if _, err := b.get(t.Context(), "shop/orders/x", 10); err == nil {
			t.Errorf("%d: it is read from somewhere", status)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
