// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// stored is an archive in a folder with these files.
func stored(t *testing.T, files ...archive.LogManifest) (*archive.Archive, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := archive.Open(t.Context(), bucket.Config{Folder: dir, Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	store(t, a, files...)
	return a, filepath.Join(dir, "shop", "orders", "archive", "binlogs")
}

// store puts files into an archive, each with one byte, and with the transactions that it names.
func store(t *testing.T, a *archive.Archive, files ...archive.LogManifest) {
	t.Helper()
	for _, m := range files {
		f, err := a.Create(t.Context(), m, archive.Recipients{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		held := archive.Content{SeenAt: time.Now(), Set: gtid.MustParse(m.GTIDs), Previous: gtid.MustParse(m.PreviousGTIDs)}
		if held.Transactions = held.Set.Count(); held.Transactions > 0 {
			held.FirstCommit, held.LastCommit = began.UnixMicro(), began.UnixMicro()
		}
		if _, err := f.Commit(t.Context(), held); err != nil {
			t.Fatal(err)
		}
	}
}

// holding is a file that holds transactions of our server, after others.
func holding(m archive.LogManifest, previous, set string) archive.LogManifest {
	m.PreviousGTIDs, m.GTIDs = numbered(previous), numbered(set)
	return m
}

// numbered are transactions of our server.
func numbered(set string) string {
	if set == "" {
		return ""
	}
	return serverOurs + ":" + set
}

func listing(t *testing.T, a *archive.Archive) archive.Listing {
	t.Helper()
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sealedLog(epoch int64, name string) archive.LogManifest {
	return archive.LogManifest{Epoch: epoch, Site: "a", ServerUUID: serverOurs, Log: name, Sealed: true}
}

// Of what is missing in the storage, the archiver makes room for what its server still has, and only in its own folder; the rest stays told as missing.
func TestWhatIsMissingCanBeArchivedAgain(t *testing.T) {
	files := []archive.LogManifest{sealedLog(1, "binlog.000001"), sealedLog(2, "binlog.000001"), sealedLog(2, "binlog.000002"), sealedLog(2, "binlog.000003")}
	a, dir := stored(t, files...)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".json") && !strings.Contains(path, "binlog.000003") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &work{p: &Program{config: Config{}, log: slog.New(slog.DiscardHandler)}, archive: a, epoch: 2, uuid: serverOurs}
	w.p.config.Site = "a"
	l, removed, err := w.clearMissing(t.Context(), listing(t, a), serverState{Logs: []string{"binlog.000002", "binlog.000003"}})
	if err != nil || removed != 1 || len(l.Missing) != 2 || l.Missing[0].Epoch != 1 || l.Missing[1].Log != "binlog.000001" || w.missed != 3 {
		t.Errorf("%v: %d removed, missing %+v of %d", err, removed, l.Missing, w.missed)
	}
	if again := listing(t, a); len(again.Missing) != 2 || len(again.Logs) != 1 {
		t.Errorf("left are %d files, and %d missing", len(again.Logs), len(again.Missing))
	}
	// It is not archived over and over while its manifest is there, and it is told as missing.
	d := newLedger(l, w.folder())
	if told := d.listing(); !d.held("binlog.000001").Sealed || d.held("binlog.000002").Sealed || len(told.Missing) != 2 {
		t.Errorf("missing %+v", told.Missing)
	}
}

// folderKey is the key of an object in the folder of our server.
func folderKey(epoch int64, name string) string {
	return fmt.Sprintf("archive/binlogs/%010d-a-%s/%s", epoch, serverOurs, name)
}

// A manifest that cannot be read, and that credentials may not delete, keeps nothing but itself from being archived.
func TestAnUnreadableManifestThatStays(t *testing.T) {
	s, a := openStorage(t)
	st := &serverState{UUID: serverOurs, Log: "binlog.000002", Logs: []string{"binlog.000001", "binlog.000002"}, Bytes: []int64{9, 9}, Executed: gtid.MustParse(numbered("1-9"))}
	heads := map[string]archive.Content{"binlog.000002": {Previous: gtid.MustParse(numbered("1-6"))}}
	p := programOf(t, a, st, heads, opened(1, "a", serverOurs, ""))
	s.keeps = true
	s.put(folderKey(1, "binlog.000001.json"), "{")
	w, err := p.takeOver(t.Context(), 1)
	if err != nil {
		t.Fatalf("nothing is archived in this epoch: %v", err)
	}
	w.end()
	if w.next != "binlog.000001" {
		t.Errorf("it goes on from %s, and the manifest of the log before cannot be read", w.next)
	}
}

// Where a manifest is in the way, a sealed log goes up as the other one: whole, or as a segment. An open log has no other one, and says so.
func TestWhatGoesUpBesideAnUnreadableManifest(t *testing.T) {
	const whole, beginning, rest = "binlog.000001.json", "binlog.000001.000000000000.json", "binlog.000001.000000000100.json"
	for name, tc := range map[string]struct {
		to     int64
		bad    []string
		sealed bool
		from   int64
		free   bool
	}{
		"nothing is there":               {0, nil, true, 0, true},
		"of a segment":                   {0, []string{beginning}, true, 0, true},
		"of the whole log":               {0, []string{whole}, false, 0, true},
		"of both":                        {0, []string{whole, beginning}, false, 0, false},
		"the rest":                       {100, nil, false, 100, true},
		"the rest, beside the whole log": {100, []string{whole}, false, 100, true},
		"of the rest":                    {100, []string{rest}, true, 0, true},
		"of the rest and the whole log":  {100, []string{rest, whole}, true, 0, false},
	} {
		w := &work{p: &Program{}, epoch: 1, uuid: serverOurs}
		w.p.config.Site = "a"
		l := archive.Listing{}
		for _, bad := range tc.bad {
			l.Unreadable = append(l.Unreadable, archive.Unreadable{Key: folderKey(1, bad)})
		}
		w.ledger = newLedger(l, w.folder())
		m, free := w.fileFor("binlog.000001", tc.to)
		if free != tc.free || free && (m.Sealed != tc.sealed || m.From != tc.from) {
			t.Errorf("%s: sealed %t from %d, free %t", name, m.Sealed, m.From, free)
		}
		segment := w.part("binlog.000001", 0)
		segment.To = 100
		w.ledger.add(archive.Log{LogManifest: segment})
		if again := w.ledger.unsealed("binlog.000002"); (len(again) > 0) == slices.Contains(tc.bad, whole) {
			t.Errorf("%s: of %v one file is to be made", name, again)
		}
		st := serverState{Log: "binlog.000001", Logs: []string{"binlog.000001"}, Bytes: []int64{200}, Position: 200}
		w.next = st.Log
		if slices.Contains(tc.bad, rest) {
			if _, err := w.catchUp(t.Context(), st, began); reasonOf(err) != string(bucket.NoDeleteRight) {
				t.Errorf("%s: the open log: %v", name, err)
			}
		}
	}
}

// While the manifest is there of a log that the server does not have any more, the data that it named is not swept.
func TestWhichUnreadableManifestsGo(t *testing.T) {
	s, a := openStorage(t)
	p := programOf(t, a, &serverState{}, nil, opened(2, "a", serverOurs, ""))
	w := workOf(t, p, 2)
	for _, key := range []string{folderKey(1, "binlog.000002.json"), folderKey(2, "binlog.000001.json"), folderKey(2, "binlog.000002.json"), folderKey(2, "binlog.000002.000000000100.json")} {
		s.put(key, "{")
	}
	st := serverState{Logs: []string{"binlog.000002", "binlog.000003"}}
	said := &bytes.Buffer{}
	p.log = slog.New(slog.NewTextHandler(said, nil))
	for _, keeps := range []bool{true, false} {
		s.keeps = keeps
		said.Reset()
		l, removed, err := w.clear(t.Context(), listing(t, a), st)
		want := map[bool]int{true: 4, false: 2}[keeps]
		if err != nil || removed != 4-want || len(l.Unreadable) != want {
			t.Errorf("nothing may go: %t: %d removed, %d are left: %v", keeps, removed, len(l.Unreadable), err)
		}
		if text := said.String(); strings.Count(text, "first="+folderKey(1, "binlog.000002.json")) != 1 {
			t.Errorf("nobody is told which manifest stays: %s", text)
		}
	}
	said.Reset()
	if _, _, err := w.clear(t.Context(), listing(t, a), st); err != nil || said.Len() > 0 {
		t.Errorf("%v; it is told again: %s", err, said)
	}
}

// What somebody removed with its manifest, or whose manifest was damaged, is archived once more, and that is begun once. What we pruned is not missed.
func TestWhatIsGoneWithItsManifest(t *testing.T) {
	names := []string{"binlog.000001", "binlog.000002", "binlog.000003", "binlog.000004"}
	heads := map[string]archive.Content{}
	for i, before := range []string{"", "1-3", "1-6", "1-9"} {
		heads[names[i]] = archive.Content{Previous: gtid.MustParse(numbered(before))}
	}
	st := &serverState{UUID: serverOurs, Log: names[3], Logs: names, Bytes: []int64{1, 1, 1, 1}, Executed: gtid.MustParse(numbered("1-9"))}
	for name, tc := range map[string]struct {
		spoil func(path string) error
		prune bool
		again bool
	}{
		"nothing is gone":     {func(string) error { return nil }, false, false},
		"we pruned":           {func(string) error { return nil }, true, false},
		"a file is gone":      {os.Remove, false, true},
		"a file, and a prune": {os.Remove, true, true},
		"its manifest is damaged": {func(path string) error {
			if !strings.HasSuffix(path, ".json") {
				return nil
			}
			return os.WriteFile(path, []byte("{"), 0o600)
		}, false, true},
	} {
		a, dir := stored(t, holding(sealedLog(1, names[0]), "", "1-3"), holding(sealedLog(1, names[1]), "1-3", "4-6"), holding(sealedLog(1, names[2]), "1-6", "7-9"))
		p := programOf(t, a, st, heads, opened(1, "a", serverOurs, ""))
		if tc.prune {
			said, _ := p.operator(t.Context())
			at := began.Add(time.Hour)
			said.Cutoff, said.Backup, said.GTIDExecuted = &at, "monday", numbered("1-3")
			p.operator = func(context.Context) (wire.Cutoff, error) { return said, nil }
		}
		w := workOf(t, p, 1)
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.Contains(path, names[1]) {
				return tc.spoil(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{tc.again, false} {
			if err := w.janitor.prune(t.Context()); err != nil || w.stale.Load() != again || (len(p.nudged) > 0) != again {
				t.Errorf("%s: taken over once more: %t: %v", name, w.stale.Load(), err)
			}
			w.stale.Store(false)
			p.nudged = make(chan struct{}, 1)
		}
		if left := len(listing(t, a).Logs); tc.prune && left+1 != len(names)-1-map[bool]int{true: 1}[tc.again] {
			t.Errorf("%s: %d files are left", name, left)
		}
		next, err := p.takeOver(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		next.end()
		if want := map[bool]string{true: names[1], false: names[3]}[tc.again]; next.next != want {
			t.Errorf("%s: it goes on from %s, want %s", name, next.next, want)
		}
	}
}

// A part of a sealed log that another attempt of ours wrote meanwhile may end before the log does: the archive goes past the log only once it has all of it.
func TestAPartThatAnotherAttemptWrote(t *testing.T) {
	part := func(from int64, previous, set string) archive.LogManifest {
		m := holding(sealedLog(1, "binlog.000001"), previous, set)
		m.Sealed, m.From = false, from
		return m
	}
	a, _ := stored(t, part(0, "", "1"))
	st := serverState{UUID: serverOurs, Log: "binlog.000002", Logs: []string{"binlog.000001", "binlog.000002"}, Bytes: []int64{4, 0}, Executed: gtid.MustParse(numbered("1-3"))}
	p := programOf(t, a, &st, nil, opened(1, "a", serverOurs, ""))
	p.readOf = func(_ context.Context, r reading) (read, error) {
		_, err := r.out.Write(make([]byte, 4-r.from))
		return read{to: 4, ended: true, at: began}, err
	}
	w := workOf(t, p, 1)
	w.next = "binlog.000001"
	store(t, a, part(1, "1", "2")) // its answer came after the listing
	if _, err := w.catchUp(t.Context(), st, began); err == nil || w.next != "binlog.000001" {
		t.Errorf("it goes on to %s, and the archive has %d of 4 bytes: %v", w.next, w.ledger.held("binlog.000001").To, err)
	}
	if _, err := w.catchUp(t.Context(), st, began); err != nil || w.next != "binlog.000002" || w.ledger.held("binlog.000001").To != 4 {
		t.Errorf("then it goes on to %s, and the archive has %d of 4 bytes: %v", w.next, w.ledger.held("binlog.000001").To, err)
	}
}
