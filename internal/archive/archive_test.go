// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func openFolder(t *testing.T) (*Archive, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := Open(t.Context(), bucket.Config{Folder: dir, Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	return a, filepath.Join(dir, "shop", "orders", "archive")
}

// put archives a part of a made log.
func put(t *testing.T, a *Archive, m *madeLog, l LogManifest, c *Counter, r Recipients) (Log, error) {
	t.Helper()
	l.Site, l.ServerUUID = "a", serverA
	f, err := a.Create(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if _, err := f.Write(m.raw[l.From:l.To]); err != nil {
		t.Fatal(err)
	}
	content := m.content(t, l.From, l.To, c)
	content.SeenAt = noon
	return f.Commit(t.Context(), content)
}

func must(t *testing.T) func(Log, error) Log {
	return func(l Log, err error) Log {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func readAll(t *testing.T, a *Archive, l Log, ids bucket.Identities) ([]byte, error) {
	t.Helper()
	r, err := a.Read(t.Context(), l, ids)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

// twoSegments is a log with three transactions, archived in two segments.
func twoSegments(t *testing.T, a *Archive, r Recipients) (*madeLog, Log, Log) {
	t.Helper()
	m := newMadeLog(serverA + ":1-4")
	m.transaction(5, 1_000_000, 100)
	half := int64(len(m.raw))
	m.transaction(6, 2_000_000, 200)
	m.transaction(7, 3_000_000, 10)
	first := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", To: half}, NewCounter(gtid.Set{}, false), r))
	next := NewCounter(first.Previous.Union(first.Set), first.Checksums)
	second := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", From: half, To: int64(len(m.raw))}, next, r))
	return m, first, second
}

// encryptedTo makes a recipient and its identity.
func encryptedTo(t *testing.T) (Recipients, bucket.Identities) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRecipients([]string{identity.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := bucket.ParseIdentities(strings.NewReader(identity.String()))
	if err != nil {
		t.Fatal(err)
	}
	return r, ids
}

func TestWhatIsPutIsListedAndRead(t *testing.T) {
	t.Parallel()
	a, _ := openFolder(t)
	r, ids := encryptedTo(t)
	m, first, second := twoSegments(t, a, r)
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + ":1-4"}); err != nil {
		t.Fatal(err)
	}
	// What was told first counts.
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "b", PromotedAt: noon}); err != nil {
		t.Fatal(err)
	}
	if err := a.PutHeartbeat(t.Context(), Heartbeat{Epoch: 1, Site: "a", ServerUUID: serverA, At: noon.Add(time.Minute), GTIDExecuted: serverA + ":1-7"}); err != nil {
		t.Fatal(err)
	}
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Logs) != 2 || l.Logs[0].key() != first.key() || l.Logs[1].key() != second.key() || len(l.Epochs) != 1 || l.Epochs[0].Site != "a" ||
		l.Orphans != 0 || l.Bytes != first.Object.Bytes+second.Object.Bytes {
		t.Fatalf("%+v", l)
	}
	one, err1 := readAll(t, a, l.Logs[0], ids)
	two, err2 := readAll(t, a, l.Logs[1], ids)
	if err1 != nil || err2 != nil || !bytes.Equal(slices.Concat(one, two), m.raw) {
		t.Errorf("%v, %v: %d and %d bytes instead of %d", err1, err2, len(one), len(two), len(m.raw))
	}
	if _, err := readAll(t, a, l.Logs[0], bucket.Identities{}); bucket.KindOf(err) != bucket.WrongIdentity {
		t.Errorf("without an identity: %v", err)
	}
	p := History(l)
	if p.Archived.String() != serverA+":5-7" || p.Base.String() != serverA+":1-4" || !p.Latest.Equal(noon.Add(time.Minute)) || p.Earliest.UnixMicro() != 1_000_000 {
		t.Errorf("%+v", p)
	}
	var seen []string
	for _, f := range l.Logs {
		in, err := a.Read(t.Context(), f, ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := Transactions(in, f, func(x Transaction) error {
			if x.To <= x.From || x.Committed.UnixMicro() != int64(len(seen)+1)*1_000_000 {
				t.Errorf("%+v", x)
			}
			seen = append(seen, x.GTID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, m.ids) {
		t.Errorf("%v instead of %v", seen, m.ids)
	}
}

// A route that stops at a time or in the middle of a file is made exact.
func TestResolve(t *testing.T) {
	t.Parallel()
	a, _ := openFolder(t)
	twoSegments(t, a, Recipients{})
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, have := History(l), gtid.MustParse(serverA+":1-4")
	at := func(us int64) Target { return Target{Time: time.UnixMicro(us)} }
	for name, tc := range map[string]struct {
		target  Target
		reaches string
		stop    string
		steps   int
	}{
		"all":                          {Target{Latest: true}, ":1-7", "", 2},
		"a time":                       {at(2_500_000), ":1-6", ":7", 2},
		"exactly a time":               {at(2_000_000), ":1-6", ":7", 2},
		"a moment before":              {at(1_999_999), ":1-5", "", 1},
		"before all":                   {at(999_999), ":1-4", "", 0},
		"after all":                    {at(3_000_000), ":1-7", "", 2},
		"a transaction":                {Target{GTID: serverA + ":6"}, ":1-6", ":6", 2},
		"before one":                   {Target{BeforeGTID: serverA + ":7"}, ":1-6", ":7", 2},
		"before the last file's first": {Target{BeforeGTID: serverA + ":6"}, ":1-5", "", 1},
	} {
		r, err := Plan(p, have, tc.target)
		if err == nil {
			r, err = a.Resolve(t.Context(), r, bucket.Identities{})
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		done := have
		for _, s := range r.Steps {
			done = done.Union(s.Apply)
		}
		stop := ""
		if tc.stop != "" {
			stop = serverA + tc.stop
		}
		if r.Reaches.String() != serverA+tc.reaches || !done.Equal(r.Reaches) || r.Stop.GTID != stop || len(r.Steps) != tc.steps {
			t.Errorf("%s: reaches %s, applies %s, stop %+v, %d steps", name, r.Reaches, done, r.Stop, len(r.Steps))
		}
	}
}

// What is there is never written over, and what another attempt wrote is found.
func TestAFileIsNeverWrittenOver(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	m, first, _ := twoSegments(t, a, Recipients{})
	_, err := put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", To: first.To}, NewCounter(gtid.Set{}, false), Recipients{})
	if !errors.Is(err, ErrThere) {
		t.Errorf("%v", err)
	}
	if n := count(t, dir); n != 4 {
		t.Errorf("%d objects, of which 2 are data", n)
	}
	sealed := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: int64(len(m.raw))}, NewCounter(gtid.Set{}, false), Recipients{}))
	l, err := a.List(t.Context())
	if err != nil || len(l.Logs) != 1 || l.Logs[0].key() != sealed.key() || l.Replaced.Files != 2 {
		t.Fatalf("%v: %+v", err, l)
	}
	if removed, err := a.Prune(t.Context(), l, Cutoff{}); err != nil || removed != 2 || count(t, dir) != 2 {
		t.Errorf("%d removed, %d left: %v", removed, count(t, dir), err)
	}
}

func count(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// I27: what is removed is told before it goes, and is no gap afterwards; what a backup needs stays.
func TestPrune(t *testing.T) {
	t.Parallel()
	a, _ := openFolder(t)
	one, two := newMadeLog(serverA+":1-4"), newMadeLog(serverA+":1-5")
	one.transaction(5, 1_000_000, 100)
	two.transaction(6, 2_000_000, 200)
	_ = must(t)(put(t, a, one, LogManifest{Epoch: 1, Log: "binlog.000001", To: int64(len(one.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{}))
	second := must(t)(put(t, a, two, LogManifest{Epoch: 1, Log: "binlog.000002", To: int64(len(two.raw))}, NewCounter(gtid.Set{}, false), Recipients{}))
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Cutoff{
		"no backup": {}, "a backup without a set": {At: noon}, "an older backup": {At: noon, Set: gtid.MustParse(serverA + ":1-4")},
		"a backup of before the commit": {At: time.UnixMicro(1_000_000), Set: gtid.MustParse(serverA + ":1-5")},
	} {
		if removed, err := a.Prune(t.Context(), l, c); err != nil || removed != 0 {
			t.Errorf("I27: %s: %d removed: %v", name, removed, err)
		}
	}
	if removed, err := a.Prune(t.Context(), l, Cutoff{Backup: "monday", At: noon, Set: gtid.MustParse(serverA + ":1-5")}); err != nil || removed != 1 {
		t.Fatalf("%d removed: %v", removed, err)
	}
	l, err = a.List(t.Context())
	if err != nil || len(l.Logs) != 1 || l.Logs[0].key() != second.key() || l.Pruned == nil {
		t.Fatalf("%v: %+v", err, l)
	}
	if p := History(l); len(p.Gaps) > 0 || p.Base.String() != serverA+":1-5" {
		t.Errorf("%+v", p)
	}
}

// What a killed upload left is swept once it is old enough, and nothing else is.
func TestSweep(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	_, first, _ := twoSegments(t, a, Recipients{})
	orphan := filepath.Join(filepath.Dir(dir), first.folder(), "binlog.000009-0123456789abcdef")
	if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Sweep(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d swept that may be under way: %v", n, err)
	}
	if n, err := a.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d swept: %v", n, err)
	}
	if l, err := a.List(t.Context()); err != nil || len(l.Logs) != 2 || l.Orphans != 0 {
		t.Errorf("%v: %+v", err, l)
	}
}

// A manifest that is damaged, of another place or of a later version is told, and what it names is missing; it never passes for another.
func TestManifestsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, dir := openFolder(t)
	a, err := Open(t.Context(), bucket.Config{Folder: filepath.Dir(filepath.Dir(filepath.Dir(dir))), Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	_, first, second := twoSegments(t, a, Recipients{})
	path := func(l Log) string { return filepath.Join(filepath.Dir(dir), l.key()) }
	good, err := os.ReadFile(path(first))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text string
		kind bucket.Kind
	}{
		"garbage": {"\x00", bucket.Damaged}, "of a later version": {`{"version":2}`, bucket.TooNew}, "without one": {`{}`, bucket.Damaged},
		"unknown fields":  {strings.Replace(string(good), "{", `{"x":1,`, 1), bucket.Damaged},
		"another's":       {strings.Replace(string(good), `"site":"a"`, `"site":"b"`, 1), bucket.Damaged},
		"another file's":  {strings.ReplaceAll(string(good), "binlog.000001", "binlog.000002"), bucket.Damaged},
		"a set":           {strings.Replace(string(good), `"gtids":"`, `"gtids":"x`, 1), bucket.Damaged},
		"a key elsewhere": {strings.Replace(string(good), `"key":"`, `"key":"../`, 1), bucket.Damaged},
		"two":             {string(good) + string(good), bucket.Damaged},
		"a time too late": {strings.Replace(string(good), `"seenAt":`, `"lastCommit":9223372036854775807,"seenAt":`, 1), bucket.Damaged},
	} {
		if err := os.WriteFile(path(first), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		fresh, err := Open(t.Context(), bucket.Config{Folder: filepath.Dir(filepath.Dir(filepath.Dir(dir))), Namespace: "shop", Group: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		l, err := fresh.List(t.Context())
		if err != nil || len(l.Logs) != 1 || len(l.Unreadable) != 1 || bucket.KindOf(l.Unreadable[0].Err) != tc.kind {
			t.Errorf("%s: %v: %+v", name, err, l.Unreadable)
			continue
		}
		_, err = fresh.RemoveUnreadable(t.Context(), second.LogManifest, l.Unreadable[0])
		_, gone := os.Stat(path(first))
		if err != nil || os.IsNotExist(gone) != (tc.kind == bucket.Damaged) {
			t.Errorf("%s: removed: %v, %v", name, gone, err)
		}
	}
}

// Data that was changed in the storage is refused.
func TestDamagedData(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	_, first, _ := twoSegments(t, a, Recipients{})
	path := filepath.Join(filepath.Dir(dir), first.folder(), first.Object.Key)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, a, first, bucket.Identities{}); bucket.KindOf(err) != bucket.Damaged {
		t.Errorf("%v", err)
	}
}

// Two groups on one place are refused, and nothing of an upload that was given up counts.
func TestAnotherGroupAndAnEndedUpload(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	if err := a.Claim(t.Context(), "uid", noon); err != nil {
		t.Fatal(err)
	}
	if err := a.Claim(t.Context(), "another", noon); bucket.KindOf(err) != bucket.Foreign {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f, err := a.Create(ctx, LogManifest{Epoch: 1, Site: "a", ServerUUID: serverA, Log: "binlog.000001"}, Recipients{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.Commit(ctx, Content{SeenAt: noon}); err == nil {
		t.Error("an ended upload was committed")
	}
	if n := count(t, dir); n != 0 {
		t.Errorf("%d objects", n)
	}
}
