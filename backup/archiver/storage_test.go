// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// storage is as much of a server of S3 as an archiver needs, with its objects in memory. Keys are those of the group's place.
type storage struct {
	mu      sync.Mutex
	objects map[string][]byte
	// changes are the requests that change something, as PUT or DELETE with a key.
	changes []string
	// keeps is true if nothing may be deleted.
	keeps bool
}

const place = "shop/orders/"

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/backups"), "/")
	key = strings.TrimPrefix(key, place)
	there, is := s.objects[key]
	if r.Method == http.MethodPut || r.Method == http.MethodDelete {
		s.changes = append(s.changes, r.Method+" "+key)
	}
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	}
	switch {
	case r.URL.Query().Has("uploads"):
		_, _ = io.WriteString(w, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
	case key == "":
		s.list(w, strings.TrimPrefix(r.URL.Query().Get("prefix"), place))
	case r.Method == http.MethodPut && is && r.Header.Get("If-None-Match") == "*":
		refuse(http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		s.objects[key] = body
	case r.Method == http.MethodDelete && s.keeps:
		refuse(http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !is:
		refuse(http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"0"`)
		http.ServeContent(w, r, "", began, bytes.NewReader(there))
	}
}

func (s *storage) list(w io.Writer, prefix string) {
	_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
	for _, key := range s.sorted() {
		if strings.HasPrefix(key, prefix) {
			_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><ETag>\"0\"</ETag><LastModified>%s</LastModified></Contents>", place+key, len(s.objects[key]),
				began.Format(time.RFC3339))
		}
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

func (s *storage) sorted() (keys []string) {
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *storage) put(key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = []byte(text)
}

// changed are the changes since it was asked last.
func (s *storage) changed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.changes
	s.changes = nil
	return out
}

// openStorage is an archive in such a storage.
func openStorage(t *testing.T) (*storage, *archive.Archive) {
	t.Helper()
	s := &storage{objects: map[string][]byte{}}
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
	a, err := archive.OpenWith(t.Context(), bucket.Config{
		S3:        &bucket.S3{Bucket: "backups", Region: "us-east-1", Endpoint: server.URL},
		Namespace: "shop", Group: "orders", CredentialsDir: dir, CAFile: filepath.Join(dir, "ca.crt"),
	}, bucket.Patience{RequestPauseMax: time.Millisecond, CallPause: time.Millisecond, AbortTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return s, a
}

// began is when the epochs of these tests began.
var began = time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)

// always answers whose turn it is.
type always wire.ArchiverTurn

func (a always) ArchiverTurn(context.Context, string) (wire.ArchiverTurn, error) {
	return wire.ArchiverTurn(a), nil
}

// programOf is one for site a, whose turn it is in the epoch: its server is as st says, and what it had executed before a log as heads say. The epochs began
// with these sets, the first one first.
func programOf(t *testing.T, a *archive.Archive, st *serverState, heads map[string]archive.Content, epochs ...wire.CutoffEpoch) *Program {
	t.Helper()
	c, err := ParseConfig([]byte(good(t).Text()))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(epochs)
	p := New(c, slog.New(slog.DiscardHandler))
	p.archive, p.ask = a, always{Epoch: epochs[0].Epoch, Site: "a", Active: true}
	p.stateOf = func(context.Context) (serverState, error) { return *st, nil }
	p.headOf = func(_ context.Context, log string) (archive.Content, error) { return heads[log], nil }
	p.operator = func(context.Context) (wire.Cutoff, error) {
		return wire.Cutoff{Namespace: "shop", Group: "orders", Epoch: epochs[0].Epoch, Site: "a", Epochs: epochs}, nil
	}
	return p
}

// opened is what an epoch began with.
func opened(epoch int64, site, server, executed string) wire.CutoffEpoch {
	return wire.CutoffEpoch{Epoch: epoch, Site: site, ServerUUID: server, PromotedAt: began, Kind: "Planned", GTIDExecuted: executed}
}

// workOf is the work in the newest epoch of a program, with what is in the archive now, and a janitor that waits to be called.
func workOf(t *testing.T, p *Program, epoch int64) *work {
	t.Helper()
	w := &work{p: p, archive: p.archive, epoch: epoch, uuid: serverOurs}
	w.ledger = newLedger(listing(t, p.archive), w.folder())
	w.janitor = &janitor{w: w, nudged: make(chan struct{}, 1), cancel: func() {}}
	return w
}

// Failures make the pauses longer, but a password that was replaced is tried soon.
func TestThePausesAfterFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		before time.Duration
		err    error
		want   time.Duration
	}{
		"the first":               {0, errors.New("x"), pauseMin},
		"another":                 {8 * time.Second, errors.New("x"), 16 * time.Second},
		"many":                    {pauseMax, errors.New("x"), pauseMax},
		"refused":                 {pauseMin, failf(ServerRefuses, "log in: %w", errors.New("x")), 2 * time.Second},
		"refused after many":      {pauseMax, failf(ServerRefuses, "log in: %w", errors.New("x")), refusedPauseMax},
		"the server does not run": {pauseMax, failf(ServerUnreachable, "x"), pauseMax},
	} {
		if got := pauseAfter(tc.before, tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
