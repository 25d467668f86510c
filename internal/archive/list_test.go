// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Credentials may not delete, and then every segment of every log stays: an archive of years is listed all the same, in little memory, and a prune
// removes so much at a time.
func TestAnArchiveFromWhichNothingIsDeleted(t *testing.T) {
	const logs, segments = 80, 2880 // more than filesMax
	f := found{data: map[string]bucket.Item{}}
	s := sorter{f: &f}
	for log := range logs {
		m := LogManifest{Epoch: 1, Site: "a", ServerUUID: serverA, Log: fmt.Sprintf("binlog.%06d", log+1), Sealed: true}
		whole := m.folder() + "/" + m.file()
		last := log == logs-1
		if !last {
			s.take(bucket.Item{Key: whole + "-0123456789abcdef", Bytes: 1000})
		}
		m.Sealed = false
		for i := range segments {
			m.From = int64(i) * 10
			file := m.folder() + "/" + m.file()
			s.take(bucket.Item{Key: file + "-0123456789abcdef", Bytes: 10})
			s.take(bucket.Item{Key: file + manifestEnd, Bytes: 500})
		}
		if !last {
			s.take(bucket.Item{Key: whole + manifestEnd, Bytes: 500})
		}
	}
	s.flush()
	if len(f.manifests) != logs-1+segments || len(f.data) != logs-1+segments || f.replaced.Files != (logs-1)*segments || f.replaced.Bytes != (logs-1)*segments*10 {
		t.Errorf("%d manifests are read, %d objects of data are known, %d segments are replaced, with %d bytes", len(f.manifests), len(f.data), f.replaced.Files, f.replaced.Bytes)
	}
	if len(f.replaced.keys) != 2*replacedMost || len(f.replaced.logs) != logs-1 {
		t.Errorf("%d keys of %d logs are held", len(f.replaced.keys), len(f.replaced.logs))
	}
}

// However long manifests are, those of an archive do not fill the memory: too many bytes of them are refused before any is read. One that is too
// long is not read to its end.
func TestManifestsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	twoSegments(t, a, Recipients{})
	f, err := a.find(t.Context(), nil)
	if err != nil || f.bytes == 0 {
		t.Fatalf("%d bytes: %v", f.bytes, err)
	}
	a.bytesMost = f.bytes
	if l := listed(t, a); len(l.Logs) != 2 {
		t.Errorf("%d logs", len(l.Logs))
	}
	a.bytesMost--
	a.read = map[string]known{}
	if _, err := a.List(t.Context()); err == nil || len(a.read) != 0 {
		t.Errorf("%d manifests are held, one byte too many: %v", len(a.read), err)
	}
	a.bytesMost = f.bytes + ManifestMax
	long := filepath.Join(filepath.Dir(dir), binlogsFolder, "0000000001-a-"+serverA, "binlog.000009"+manifestEnd)
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 100*ManifestMax); err != nil {
		t.Fatal(err)
	}
	if l := listed(t, a); len(l.Logs) != 2 || len(l.Unreadable) != 1 {
		t.Errorf("%d logs, unreadable %v", len(l.Logs), l.Unreadable)
	}
	for limit, want := range map[int64]int64{192 << 20: 48 << 20, math.MaxInt64: bytesMax} {
		if got := bytesMost(limit); got != want {
			t.Errorf("with %d bytes of memory: %d", limit, got)
		}
	}
}

// What a sealed log has replaced is not read, and is needed again once the sealed log is of no use.
func TestReplacedSegments(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	m, first, second := twoSegments(t, a, Recipients{})
	whole := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: int64(len(m.raw))}, NewCounter(gtid.Set{}, false), Recipients{}))
	at := func(key string) string { return filepath.Join(filepath.Dir(dir), key) }
	spoil := func(key string) (undo func()) {
		t.Helper()
		raw, err := os.ReadFile(at(key))
		if err == nil {
			err = os.WriteFile(at(key), []byte("x"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { _ = os.WriteFile(at(key), raw, 0o600) }
	}
	fresh := func() Listing {
		t.Helper()
		b, err := Open(t.Context(), bucket.Config{Folder: filepath.Dir(filepath.Dir(filepath.Dir(dir))), Namespace: "shop", Group: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		return listed(t, b)
	}
	undo := spoil(first.key())
	if l := fresh(); len(l.Logs) != 1 || l.Replaced.Files != 2 || len(l.Unreadable) > 0 || l.Bytes != first.Object.Bytes+second.Object.Bytes+whole.Object.Bytes || l.Orphans != 0 {
		t.Errorf("%d logs, %d replaced, unreadable %v, %d bytes, %d orphans", len(l.Logs), l.Replaced.Files, l.Unreadable, l.Bytes, l.Orphans)
	}
	undo()
	for name, key := range map[string]string{"its manifest": whole.key(), "its data": whole.dataKey()} {
		undo := spoil(key)
		if l := fresh(); len(l.Logs) != 2 || l.Replaced.Files != 0 || len(l.Unreadable)+len(l.Missing) != 1 || len(History(l).Gaps) > 0 {
			t.Errorf("%s is spoilt: %d logs, %d replaced, unreadable %v, missing %d", name, len(l.Logs), l.Replaced.Files, l.Unreadable, len(l.Missing))
		}
		undo()
	}
	// A killed upload beside is no segment, and is swept like any other.
	if err := os.WriteFile(at(first.folder()+"/binlog.000001.000000000500-0123456789abcdef"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := fresh(); l.Orphans != 1 || l.Replaced.Files != 2 {
		t.Errorf("%d bytes of orphans, %d replaced", l.Orphans, l.Replaced.Files)
	}
	if removed, err := a.Prune(t.Context(), fresh(), Cutoff{}); err != nil || removed != 2 || count(t, dir) != 3 {
		t.Errorf("%d removed, %d left: %v", removed, count(t, dir), err)
	}
}

func TestWhichLogAnObjectIsOf(t *testing.T) {
	for key, want := range map[string][2]string{
		"f-1/binlog.000001-0123456789abcdef":              {"f-1/binlog.000001", "f-1/binlog.000001"},
		"f-1/binlog.000001.json":                          {"f-1/binlog.000001", "f-1/binlog.000001"},
		"f-1/binlog.000001.000000000500-0123456789abcdef": {"f-1/binlog.000001.000000000500", "f-1/binlog.000001"},
		"f-1/binlog.000001.000000000500.json":             {"f-1/binlog.000001.000000000500", "f-1/binlog.000001"},
		"f-1/binlog":                                      {"f-1/binlog", "f-1/binlog"},
	} {
		if file, log := fileOf(key); file != want[0] || log != want[1] {
			t.Errorf("%s: %s of %s", key, file, log)
		}
	}
}
