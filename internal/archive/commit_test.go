// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// oneFile is begun with one transaction in it.
func oneFile(t *testing.T, a *Archive, m *madeLog) (*File, Content) {
	t.Helper()
	f, err := a.Create(t.Context(), LogManifest{Epoch: 1, Site: "a", ServerUUID: serverA, Log: "binlog.000001"}, Recipients{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(m.raw); err != nil {
		t.Fatal(err)
	}
	held := m.content(t, 0, int64(len(m.raw)), NewCounter(gtid.Set{}, false))
	held.SeenAt = noon
	return f, held
}

// A file is committed with its manifest, last, or there is an error. What a manifest may name stays.
func TestACommitThatIsRefused(t *testing.T) {
	t.Parallel()
	m := newMadeLog(serverA + ":1-4")
	m.transaction(5, 1_000_000, 100)
	for name, tc := range map[string]struct {
		refused func(f *File) []string
		there   bool // a manifest of another attempt
		kind    bucket.Kind
		data    bool // stays
	}{
		"nothing":                            {func(*File) []string { return nil }, false, "", true},
		"the data":                           {func(f *File) []string { return []string{"PUT " + f.l.dataKey()} }, false, bucket.AccessDenied, false},
		"the manifest":                       {func(f *File) []string { return []string{"PUT " + f.l.key()} }, false, bucket.AccessDenied, true},
		"a manifest that is there, to read":  {func(f *File) []string { return []string{"GET " + f.l.key()} }, true, bucket.AccessDenied, true},
		"another attempt's data, to be gone": {func(f *File) []string { return []string{"DELETE " + f.l.dataKey()} }, true, bucket.NoDeleteRight, true},
	} {
		s, a, other := openStorage(t)
		f, held := oneFile(t, a, m)
		if tc.there {
			rival, held := oneFile(t, other, m)
			must(t)(rival.Commit(t.Context(), held))
		}
		s.refuse(tc.refused(f)...)
		l, err := f.Commit(t.Context(), held)
		if bucket.KindOf(err) != tc.kind || (err == nil) != (tc.kind == "") || (l.Log == "") != (err != nil) {
			t.Errorf("%s: %+v: %v", name, l, err)
		}
		keys := s.keys()
		if slices.Contains(keys, f.l.dataKey()) != tc.data || slices.Contains(keys, f.l.key()) != (tc.there || err == nil) {
			t.Errorf("%s: left are %q", name, keys)
		}
		if err != nil {
			continue
		}
		// How long it is was counted, and this process need not read what it wrote.
		if l.To != int64(len(m.raw)) || len(listed(t, a).Logs) != 1 || len(s.requests("GET ")) > 0 {
			t.Errorf("%s: it ends at %d of %d; asked for %q", name, l.To, len(m.raw), s.requests("GET "))
		}
	}
}

// The storage took the manifest, and its answer was lost: the next try finds it there, and it is this very file, whose data must stay.
func TestACommitWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	m := newMadeLog(serverA + ":1-4")
	m.transaction(5, 1_000_000, 100)
	s, a, fresh := openStorage(t)
	f, held := oneFile(t, a, m)
	once := true
	s.after = func(request string) bool {
		lost := once && request == "PUT "+f.l.key()
		once = once && !lost
		return lost
	}
	l, err := f.Commit(t.Context(), held)
	if err != nil || once || l.Object.Key != f.l.Object.Key || len(s.requests("PUT "+f.l.key())) != 2 {
		t.Fatalf("%+v: %v, asked for %q", l, err, s.requests("PUT "))
	}
	if got, err := readAll(t, fresh, listed(t, fresh).Logs[0], bucket.Identities{}); err != nil || string(got) != string(m.raw) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}

// The manifest goes first: while it cannot go, its data stays.
func TestARemovalThatIsRefused(t *testing.T) {
	t.Parallel()
	s, a, _ := openStorage(t)
	_, first, _ := twoSegments(t, a, Recipients{})
	for _, key := range []string{first.key(), first.dataKey()} {
		s.refuse("DELETE " + key)
		if err := a.Remove(t.Context(), first); bucket.KindOf(err) != bucket.NoDeleteRight {
			t.Errorf("%s: %v", key, err)
		}
		if keys := s.keys(); !slices.Contains(keys, first.dataKey()) || slices.Contains(keys, first.key()) != (key == first.key()) {
			t.Errorf("%s may not go: left are %q", key, keys)
		}
	}
}

// What is damaged in the folder of another site or epoch is left to whoever writes there.
func TestADamagedManifestOfAnotherFolderStays(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	_, first, second := twoSegments(t, a, Recipients{})
	s.objects[first.key()] = []byte("{")
	bad := listed(t, fresh).Unreadable
	if len(bad) != 1 {
		t.Fatalf("%+v", bad)
	}
	for _, other := range []LogManifest{{Epoch: 2, Site: "a", ServerUUID: serverA}, {Epoch: 1, Site: "b", ServerUUID: serverA}} {
		if removed, err := a.RemoveUnreadable(t.Context(), other, bad[0]); removed || err != nil || !slices.Contains(s.keys(), first.key()) {
			t.Errorf("a writer in %s removes %s: %t, %v", other.folder(), first.key(), removed, err)
		}
	}
	if bad[0].Log() != first.Log || !InTheWay(bad, first.LogManifest) || InTheWay(bad, second.LogManifest) {
		t.Errorf("%s is in the way of another file than that of %s", bad[0].Key, bad[0].Log())
	}
	s.refuse("DELETE " + first.key())
	if removed, err := a.RemoveUnreadable(t.Context(), first.LogManifest, bad[0]); removed || bucket.KindOf(err) != bucket.NoDeleteRight {
		t.Errorf("without the right to delete: %t, %v", removed, err)
	}
	s.refuse()
	if removed, err := a.RemoveUnreadable(t.Context(), first.LogManifest, bad[0]); !removed || err != nil || slices.Contains(s.keys(), first.key()) {
		t.Errorf("who writes there does not: %t, %v", removed, err)
	}
}

// A small object that is refused, or that nobody could read, is an error.
func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s, a, _ := openStorage(t)
	e := began(1, "1-4", 1)
	s.refuse("PUT " + e.key())
	if err := a.PutEpoch(t.Context(), e); bucket.KindOf(err) != bucket.AccessDenied || len(s.keys()) > 0 {
		t.Errorf("%v, %q", err, s.keys())
	}
	if err := a.putSmall(t.Context(), "archive/big", strings.Repeat("x", ManifestMax), false); err == nil || len(s.keys()) > 0 {
		t.Errorf("more is written than may be read: %v", err)
	}
	folder, dir := openFolder(t)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "binlogs"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, err := folder.Create(t.Context(), LogManifest{Epoch: 1, Site: "a", ServerUUID: serverA, Log: "binlog.000001"}, Recipients{}); err == nil || f != nil {
		t.Errorf("a file is begun where there is no folder: %v", err)
	}
}
