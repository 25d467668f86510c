// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// fails is a storage that answers every request of a method for keys with that end with an error, once it is on. With stores the request is
// done all the same.
type fails struct {
	*storage
	method, end string
	status      int
	code        string
	stores      bool
	on          atomic.Bool
}

func (f *fails) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.on.Load() || r.Method != f.method || !strings.HasSuffix(r.URL.Path, f.end) {
		f.storage.ServeHTTP(w, r)
		return
	}
	if f.stores {
		f.storage.ServeHTTP(discard{http.Header{}}, r)
	}
	w.WriteHeader(f.status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", f.code)
}

// discard is an answer that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
func (f *fails) under(attempt string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.objects {
		if strings.Contains(key, attempt) {
			n++
		}
	}
	return n
}

// I23: nothing is begun under a name that is none, to recipients that are none, or where it cannot be seen whether a backup is there.
func TestWhatIsNotBegunI23(t *testing.T) {
	for name, n := range map[string]NewBackup{
		"no name": {UID: "u1", Now: noon}, "above the place": {Name: "..", UID: "u1", Now: noon}, "a folder": {Name: "a/b", UID: "u1", Now: noon},
		"no recipient": {Name: "monday", UID: "u1", Recipients: []string{"age1nothing"}, Now: noon},
		"no group":     {Name: "monday", Now: noon},
	} {
		b, dir := place(t)
		if w, err := b.Create(t.Context(), n); err == nil || w != nil {
			t.Errorf("I23: %s: %v", name, err)
		}
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("I23: %s: the place is claimed: %v", name, left)
		}
	}
	s := &fails{storage: &storage{objects: map[string][]byte{}}, method: http.MethodGet, end: manifestName, status: http.StatusForbidden, code: "AccessDenied"}
	s.on.Store(true)
	w, err := served(t, s).Create(t.Context(), NewBackup{Name: "monday", UID: "u1", Now: noon})
	if wantKind(t, err, AccessDenied); w != nil {
		t.Error("I23: it is begun where nobody knows what is there")
	}
}

// A part has a name that leads nowhere else, a keyring goes into encrypted backups alone, and a part whose envelope cannot be made is none.
func TestWhichPartsBegin(t *testing.T) {
	recipient, ids := keys(t)
	b, dir := place(t)
	w := create(t, b, "monday", recipient)
	for _, name := range []string{"", "Data", "../data", "a/b", "9rows", strings.Repeat("x", 33)} {
		if p, err := w.Part(t.Context(), name); err == nil || p != nil {
			t.Errorf("part %q: %v", name, err)
			p.Abort()
		}
	}
	fill(t, w, PartKeyring, []byte("the keyring"))
	commit(t, w, noon)
	if got, err := readPart(b, "monday", PartKeyring, ids); err != nil || string(got) != "the keyring" {
		t.Errorf("read %q: %v", got, err)
	}
	w = create(t, b, "tuesday", recipient)
	w.recipients = []age.Recipient{unwrapped{}}
	p, err := w.Part(t.Context(), "data")
	if wantKind(t, err, Other); p != nil || w.open != nil {
		t.Errorf("a part without an envelope is open: %v", w.open)
	}
	for _, path := range files(t, dir) {
		if strings.Contains(path, w.attempt) {
			t.Errorf("%s is left", path)
		}
	}
}

// unwrapped is a recipient for whom nothing can be encrypted.
type unwrapped struct{}

func (unwrapped) Wrap([]byte) ([]*age.Stanza, error) { return nil, errors.New("no key") }

// breaks is a storage that takes no byte of an object, and counts those that were given up.
type breaks struct {
	driver.Bucket
	ended atomic.Int64
}

func (b *breaks) NewTypedWriter(context.Context, string, string, *driver.WriterOptions) (driver.Writer, error) {
	return b, nil
}
func (b *breaks) Write([]byte) (int, error)          { return 0, errors.New("no byte") }
func (b *breaks) Close() error                       { b.ended.Add(1); return nil }
func (b *breaks) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }
func (b *breaks) ErrorAs(error, any) bool            { return false }

// An upload that was begun for a part that did not begin is given up.
func TestAPartThatDoesNotBeginEndsItsUpload(t *testing.T) {
	recipient, _ := keys(t)
	b, _ := place(t)
	w := create(t, b, "monday", recipient)
	broken, working := &breaks{}, b.objects
	b.objects = blob.NewBucket(broken)
	p, err := w.Part(t.Context(), "data")
	if wantKind(t, err, Other); p != nil || broken.ended.Load() != 1 {
		t.Errorf("%d uploads were given up, not 1", broken.ended.Load())
	}
	must(t, b.objects.Close())
	b.objects = working
}

// Times are those of UTC, wherever the program runs: manifests are compared and sorted by people as text.
func TestTimesOfAManifestAreUTC(t *testing.T) {
	b, _ := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", nil)
	commit(t, w, noon.In(time.FixedZone("elsewhere", 3600)))
	raw, err := b.get(t.Context(), b.key("backups", "monday", manifestName), manifestMax)
	must(t, err)
	for _, want := range []string{`"startedAt": "2026-11-24T12:00:00Z"`, `"finishedAt": "2026-11-24T12:01:00Z"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
}

// I23: a manifest that nobody may read is not written.
func TestAManifestThatIsTooLargeI23(t *testing.T) {
	b, _ := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", nil)
	m := manifestOf(noon)
	// A control character takes six bytes in JSON: so texts within their bounds are too much together.
	m.GTIDExecuted = strings.Repeat("\x01", gtidMax)
	for _, text := range []*string{&m.GroupUID, &m.Profile, &m.Site, &m.ServerUUID, &m.MySQLVersion, &m.Tool, &m.Operator} {
		*text = strings.Repeat("\x01", textMax)
	}
	part := w.parts[0].Objects[0]
	for i := 1; len(w.parts[0].Objects) < objectsMax; i++ {
		part.Key = objectKey(w.attempt, "data", i)
		w.parts[0].Objects = append(w.parts[0].Objects, part)
	}
	if _, err := w.Commit(t.Context(), m); err == nil || !strings.Contains(err.Error(), "more than may be read") {
		t.Errorf("I23: %v", err)
	}
	_, err := b.ReadManifest(t.Context(), "monday")
	wantKind(t, err, NotFound)
}

// I23: without its manifest in the storage a backup is none. An attempt whose manifest was surely refused leaves nothing; what may have been
// taken, or may yet be, keeps all that it names.
func TestWhatTheStorageSaysToAManifestI23(t *testing.T) {
	for code, tc := range map[string]struct {
		status int
		want   Kind
		stores bool
		stays  bool
	}{
		"AccessDenied":         {status: 403, want: AccessDenied},
		"NoSuchBucket":         {status: 404, want: NoSuchBucket},
		"QuotaExceeded":        {status: 403, want: Full},
		"RequestTimeTooSkewed": {status: 403, want: ClockSkew},
		"SomethingElse":        {status: 400, want: Other, stays: true},
		"NoSuchKey":            {status: 404, want: NotFound, stays: true},
		"ServiceUnavailable":   {status: 503, want: Unreachable, stays: true},
		"Unheard":              {status: 400, want: Other, stores: true, stays: true},
	} {
		t.Run(code, func(t *testing.T) {
			s := &fails{storage: &storage{objects: map[string][]byte{}}, method: http.MethodPut, end: manifestName, status: tc.status, code: code, stores: tc.stores}
			b := served(t, s)
			w := create(t, b, "monday")
			fill(t, w, "data", []byte("all of it"))
			s.on.Store(true)
			m, err := w.Commit(t.Context(), manifestOf(noon))
			if wantKind(t, err, tc.want); m != nil {
				t.Errorf("I23: it is a backup: %+v", m)
			}
			must(t, w.Abort(t.Context()))
			if left := s.under(w.attempt + "/"); left > 0 != tc.stays {
				t.Errorf("I23: %d objects are left", left)
			}
		})
	}
	for kind, want := range map[Kind]bool{
		AccessDenied: true, NoSuchBucket: true, UntrustedTLS: true, Full: true, ClockSkew: true,
		Unreachable: false, NotFound: false, Exists: false, Interrupted: false, Other: false, Damaged: false, "": false,
	} {
		if refused(kind) != want {
			t.Errorf("I23: %q is refused: %t", kind, !want)
		}
	}
}

// I23: the manifest was written and cannot be read back: whether it is the attempt's own is not known, and what it may name stays.
func TestAManifestThatIsNotReadBackI23(t *testing.T) {
	s := &fails{storage: &storage{objects: map[string][]byte{}}, method: http.MethodGet, end: manifestName, status: http.StatusForbidden, code: "AccessDenied"}
	b := served(t, s)
	w := create(t, b, "monday")
	fill(t, w, "data", []byte("all of it"))
	s.on.Store(true)
	m, err := w.Commit(t.Context(), manifestOf(noon))
	if wantKind(t, err, AccessDenied); m != nil {
		t.Errorf("I23: it is a backup: %+v", m)
	}
	must(t, w.Abort(t.Context()))
	s.on.Store(false)
	if got, err := readPart(b, "monday", "data", Identities{}); err != nil || string(got) != "all of it" {
		t.Errorf("I23: of what the manifest names there is %q: %v", got, err)
	}
}

// I23: a backup that is complete loses nothing to an Abort.
func TestAbortAfterACommitI23(t *testing.T) {
	b, _ := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", []byte("all of it"))
	commit(t, w, noon)
	must(t, w.Abort(t.Context()))
	if got, err := readPart(b, "monday", "data", Identities{}); err != nil || string(got) != "all of it" {
		t.Errorf("I23: read %q: %v", got, err)
	}
}

// An attempt that is given up in the middle of a part ends it first, and leaves nothing.
func TestAbortInAPart(t *testing.T) {
	b, dir := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", noise(10))
	p, err := w.Part(context.WithoutCancel(t.Context()), "rows")
	must(t, err)
	_, err = io.Copy(p, strings.NewReader(strings.Repeat("rows ", 100)))
	must(t, err)
	must(t, w.Abort(t.Context()))
	if _, err := p.Write([]byte("x")); !errors.Is(err, errEnded) {
		t.Errorf("the part goes on: %v", err)
	}
	if err := p.Close(); !errors.Is(err, errEnded) || w.open != nil {
		t.Errorf("the part is ended again: %v", err)
	}
	if left := files(t, filepath.Join(dir, b.config.root())); len(left) != 1 { // the owner
		t.Errorf("left: %v", left)
	}
}
