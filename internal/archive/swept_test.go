// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// What a file holds is told by its manifest alone, to whoever reads it later; times are in UTC wherever the one is who writes them.
func TestWhatAManifestTells(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	m, first, second := twoSegments(t, a, Recipients{})
	abroad := noon.In(time.FixedZone("abroad", 7200))
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "a", ServerUUID: serverA, PromotedAt: abroad, GTIDExecuted: serverA + ":1-4"}); err != nil {
		t.Fatal(err)
	}
	if err := a.PutHeartbeat(t.Context(), Heartbeat{Epoch: 1, Site: "a", ServerUUID: serverA, At: abroad, GTIDExecuted: serverA + ":1-7"}); err != nil {
		t.Fatal(err)
	}
	fresh, err := Open(t.Context(), bucket.Config{Folder: filepath.Dir(filepath.Dir(filepath.Dir(dir))), Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := fresh.List(t.Context())
	if err != nil || len(l.Logs) != 2 || len(l.Epochs) != 1 || l.Heartbeat == nil {
		t.Fatalf("%v: %+v", err, l)
	}
	for i, want := range []Log{first, second} {
		got := l.Logs[i]
		if got.To != want.To || !got.Set.Equal(want.Set) || !got.Previous.Equal(want.Previous) || got.Transactions != int64(i+1) || !got.Checksums || got.Set.Count() != int64(i+1) {
			t.Errorf("%+v instead of %+v", got, want)
		}
	}
	if l.Logs[1].To != int64(len(m.raw)) || l.Logs[1].Previous.String() != serverA+":1-5" {
		t.Errorf("%+v", l.Logs[1])
	}
	if l.Epochs[0].PromotedAt.Location() != time.UTC || l.Heartbeat.At.Location() != time.UTC {
		t.Errorf("times are told as %s and %s", l.Epochs[0].PromotedAt, l.Heartbeat.At)
	}
	if err := fresh.Remove(t.Context(), l.Logs[1]); err != nil {
		t.Fatal(err)
	}
	m.transaction(8, 4_000_000, 10)
	_ = must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", From: first.To, To: int64(len(m.raw))}, NewCounter(first.Previous.Union(first.Set), true), Recipients{}))
	if l, err = fresh.List(t.Context()); err != nil || len(l.Logs) != 2 || l.Logs[1].Transactions != 3 {
		t.Errorf("a file that was removed and written again is told as it was: %v %+v", err, l.Logs)
	}
}

// Which epochs go with their files: those before the oldest that has one left; the newest stays.
func TestWhichEpochsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		gone []int // of the files
		left []int64
	}{
		{"nothing", nil, []int64{1, 2, 3}}, {"the first", []int{0}, []int64{2, 3}}, {"two", []int{0, 1}, []int64{3}}, {"not the first", []int{1}, []int64{1, 2, 3}}, {"all", []int{0, 1, 2}, []int64{1, 2, 3}},
	} {
		a, _ := openFolder(t)
		var logs []Log
		for n := int64(1); n <= 3; n++ {
			if err := a.PutEpoch(t.Context(), Epoch{Epoch: n, Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + ":1-4"}); err != nil {
				t.Fatal(err)
			}
			logs = append(logs, filed(n, "binlog.000001", "1-4", "5", 1, 1, 1))
		}
		l, err := a.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Logs = logs
		var gone []Log
		for _, i := range tc.gone {
			gone = append(gone, logs[i])
		}
		if err := a.pruneEpochs(t.Context(), l, gone); err != nil {
			t.Fatal(err)
		}
		if l, err = a.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left []int64
		for _, e := range l.Epochs {
			left = append(left, e.Epoch)
		}
		if !slices.Equal(left, tc.left) {
			t.Errorf("%s: left are %v, want %v", tc.name, left, tc.left)
		}
	}
}

// A whole log that stays keeps no segment of it; a segment that stays keeps the first one.
func TestBeginningsThatAreNeeded(t *testing.T) {
	whole := filed(1, "binlog.000001", "", "1-2", 1, 1, 1)
	first, rest := whole, whole
	first.Sealed, rest.Sealed, rest.From, rest.To = false, false, 1, 2
	if got := withoutBeginnings([]Log{first, whole}, []Log{first}); len(got) != 1 {
		t.Error("a segment that the whole log replaces is kept")
	}
	if got := withoutBeginnings([]Log{first, rest}, []Log{first}); len(got) != 0 {
		t.Error("I27: the beginning of a log goes of which something stays")
	}
	if got := withoutBeginnings([]Log{first, rest}, []Log{first, rest}); len(got) != 2 {
		t.Error("a log that goes as a whole is kept in part")
	}
}

// What belongs to a manifest is not swept, however old; nor is anything in a folder with a manifest that cannot be read.
func TestWhatIsNotSwept(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	_, first, _ := twoSegments(t, a, Recipients{})
	folder := filepath.Join(filepath.Dir(dir), first.folder())
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	later := time.Now().Add(time.Hour)
	// Another upload of the same file, whose manifest names what won; and one that has no such name at all.
	write(first.file() + "-ffffffffffffffff")
	write("binlog.000009-0123")
	write("binlog")
	if n, err := a.Sweep(t.Context(), later); n != 3 || err != nil {
		t.Errorf("%d swept: %v", n, err)
	}
	for _, name := range []string{first.Object.Key, filepath.Base(first.key())} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	orphan := write("binlog.000009-0123456789abcdef")
	write(strings.TrimSuffix(filepath.Base(first.key()), manifestEnd) + "9" + manifestEnd)
	if n, err := a.Sweep(t.Context(), later); n != 0 || err != nil {
		t.Errorf("%d swept beside a manifest that cannot be read: %v", n, err)
	}
	if _, err := os.Stat(orphan); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]string{"a/b-0123456789abcdef": "a/b" + manifestEnd, "a/b-0123": "", "b": "", "0123456789abcdef": "", "a/b-0123456789abcdef0": ""} {
		if got, is := manifestOf(key); got != want || is != (want != "") {
			t.Errorf("%s: %q %t", key, got, is)
		}
	}
}

// What is no log of a site is not begun, and an upload that is given up leaves nothing.
func TestWhatIsNotWritten(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	good := LogManifest{Epoch: 1, Site: "a", ServerUUID: serverA, Log: "binlog.000001"}
	for name, change := range map[string]func(*LogManifest){
		"site": func(l *LogManifest) { l.Site = "../b" }, "server": func(l *LogManifest) { l.ServerUUID = "x" }, "log": func(l *LogManifest) { l.Log = "../../x" },
	} {
		l := good
		if change(&l); l.folder() == good.folder() && l.Log == good.Log {
			t.Fatal(name)
		}
		if f, err := a.Create(t.Context(), l, Recipients{}); err == nil {
			f.Abort()
			t.Errorf("%s: it is begun", name)
		}
	}
	f, err := a.Create(t.Context(), good, Recipients{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil || f.Bytes() != 1<<20 {
		t.Fatal(err, f.Bytes())
	}
	f.Abort()
	if _, err := f.Commit(t.Context(), Content{SeenAt: noon}); err == nil || count(t, dir) != 0 {
		t.Errorf("an upload that was given up was committed: %v, %d objects", err, count(t, dir))
	}
	if f, err = a.Create(t.Context(), good, Recipients{}); err != nil {
		t.Fatal(err)
	}
	// A manifest that would not be read is not written, and its data goes.
	if _, err := f.Commit(t.Context(), Content{SeenAt: noon, Set: gtid.MustParse(serverA + ":1"), Transactions: -1}); err == nil || count(t, dir) != 0 {
		t.Errorf("%v, %d objects", err, count(t, dir))
	}
	if _, err := ParseRecipients([]string{"nobody"}); err == nil {
		t.Error("whoever it is, files are encrypted to him")
	}
	if err := a.putSmall(t.Context(), "big", strings.Repeat("x", ManifestMax), false); err == nil || count(t, dir) != 0 {
		t.Errorf("more is written than may be read: %v", err)
	}
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "../b", PromotedAt: noon}); err == nil {
		t.Error("an epoch that would not be read is written")
	}
	if err := a.PutHeartbeat(t.Context(), Heartbeat{Epoch: 1, Site: "../b", At: noon}); err == nil {
		t.Error("a heartbeat that would not be read is written")
	}
}
