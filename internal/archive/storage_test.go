// SPDX-License-Identifier: Apache-2.0

package archive

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
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// storage is as much of a server of S3 as an archive needs, with its objects in memory. Keys are those of the group's place.
type storage struct {
	mu      sync.Mutex
	objects map[string][]byte
	// asked are the requests: LIST and UPLOADS, or a method with a key.
	asked []string
	// refused are requests to which it answers that they are not allowed.
	refused []string
	// after is called after each request that it served. It may change the objects, and says whether the answer is lost.
	after func(request string) (lost bool)
}

// refuse makes the storage refuse these requests from now on, and forget what it was asked.
func (s *storage) refuse(requests ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.asked = requests, nil
}

// requests are those with the given beginning since refuse.
func (s *storage) requests(beginning string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(r string) bool { return !strings.HasPrefix(r, beginning) })
}

func (s *storage) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/backups"), "/")
	request := r.Method + " " + strings.TrimPrefix(key, place)
	switch {
	case r.URL.Query().Has("uploads"):
		request = "UPLOADS"
	case key == "":
		request = "LIST"
	}
	s.asked = append(s.asked, request)
	answer := httptest.NewRecorder()
	if err != nil || slices.Contains(s.refused, request) {
		answer.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(answer, "<Error><Code>AccessDenied</Code></Error>")
	} else {
		s.serve(answer, r, request, strings.TrimPrefix(key, place), body)
		if s.after != nil && s.after(request) {
			answer = httptest.NewRecorder()
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

const place = "shop/orders/"

func (s *storage) serve(w http.ResponseWriter, r *http.Request, request, key string, body []byte) {
	there, is := s.objects[key]
	switch {
	case request == "UPLOADS":
		_, _ = io.WriteString(w, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
	case request == "LIST":
		s.list(w, strings.TrimPrefix(r.URL.Query().Get("prefix"), place))
	case r.Method == http.MethodPut && is && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
	case r.Method == http.MethodPut:
		s.objects[key] = body
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
		_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><ETag>\"0\"</ETag><LastModified>%s</LastModified></Contents>",
			place+key, len(s.objects[key]), noon.Format(time.RFC3339))
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

// openStorage is an archive in a storage that can be made to fail, and another one there, which has read nothing yet.
func openStorage(t *testing.T) (s *storage, a, fresh *Archive) {
	t.Helper()
	s = &storage{objects: map[string][]byte{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"ca.crt":      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"accessKeyID": []byte("AKIATEST12345"), "secretAccessKey": []byte("a-secret-key-of-the-test"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Archive {
		a, err := OpenWith(t.Context(), bucket.Config{
			S3:        &bucket.S3{Bucket: "backups", Region: "us-east-1", Endpoint: server.URL},
			Namespace: "shop", Group: "orders", CredentialsDir: dir, CAFile: filepath.Join(dir, "ca.crt"),
		}, bucket.Patience{RequestPauseMax: time.Millisecond, CallPause: time.Millisecond, AbortTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		return a
	}
	return s, open(), open()
}
