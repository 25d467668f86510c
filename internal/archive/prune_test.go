// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// twoEpochs are two sealed logs of one server in epochs of their own, of which the first one goes with a backup of 1-5, and the replaced segment of a third.
func twoEpochs(t *testing.T, a *Archive) (first, second, replaced Log) {
	t.Helper()
	for n, executed := range []string{":1-4", ":1-5"} {
		if err := a.PutEpoch(t.Context(), Epoch{Epoch: int64(n + 1), Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + executed}); err != nil {
			t.Fatal(err)
		}
	}
	one, two := newMadeLog(serverA+":1-4"), newMadeLog(serverA+":1-5")
	one.transaction(5, 1_000_000, 100)
	two.transaction(6, 2_000_000, 200)
	first = must(t)(put(t, a, one, LogManifest{Epoch: 1, Log: "binlog.000001", To: int64(len(one.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{}))
	replaced = must(t)(put(t, a, two, LogManifest{Epoch: 2, Log: "binlog.000002", To: int64(len(two.raw))}, NewCounter(gtid.Set{}, false), Recipients{}))
	second = must(t)(put(t, a, two, LogManifest{Epoch: 2, Log: "binlog.000002", To: int64(len(two.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{}))
	return first, second, replaced
}

// I27: what is removed goes in an order in which nothing that stays is of no use, and with the first thing that the storage refuses it ends, with the error.
func TestPruneEndsWithWhatIsRefusedI27(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused func(first, replaced Log) string
		kind    bucket.Kind
		removed int // files
		deletes int // that were asked for
	}{
		"nothing":                        {func(Log, Log) string { return "" }, "", 2, 5},
		"a replaced segment":             {func(_, replaced Log) string { return "DELETE " + replaced.key() }, bucket.NoDeleteRight, 0, 1},
		"what is pruned cannot be told":  {func(Log, Log) string { return "PUT " + prunedKey }, bucket.AccessDenied, 1, 2},
		"the manifest of a file":         {func(first, _ Log) string { return "DELETE " + first.key() }, bucket.NoDeleteRight, 1, 3},
		"its data, which Sweep may take": {func(first, _ Log) string { return "DELETE " + first.dataKey() }, bucket.NoDeleteRight, 1, 4},
		"an epoch":                       {func(Log, Log) string { return "DELETE " + Epoch{Epoch: 1}.key() }, bucket.NoDeleteRight, 2, 5},
	} {
		s, a, _ := openStorage(t)
		first, second, replaced := twoEpochs(t, a)
		l := listed(t, a)
		before := s.keys()
		s.refuse(tc.refused(first, replaced))
		removed, err := a.Prune(t.Context(), l, Cutoff{Backup: "monday", At: noon, Set: own("1-5")})
		if bucket.KindOf(err) != tc.kind || (err == nil) != (tc.kind == "") || removed != tc.removed {
			t.Errorf("I27: %s: %d removed: %v", name, removed, err)
		}
		if asked := s.requests("DELETE "); len(asked) != tc.deletes {
			t.Errorf("I27: %s: asked for %q", name, asked)
		}
		want := []string{replaced.key(), replaced.dataKey(), first.key(), first.dataKey(), Epoch{Epoch: 1}.key()}[:tc.deletes]
		if tc.kind == bucket.NoDeleteRight {
			want = want[:tc.deletes-1]
		}
		for _, key := range before {
			if stays := slices.Contains(s.keys(), key); stays == slices.Contains(want, key) {
				t.Errorf("I27: %s: %s stays: %t", name, key, stays)
			}
		}
		if keys := s.keys(); !slices.Contains(keys, second.key()) || !slices.Contains(keys, second.dataKey()) {
			t.Errorf("I27: %s: what no backup holds is gone", name)
		}
	}
}

// Of the log that is still written no segment goes, although a backup holds it: the archiver would upload once more all that comes behind the hole.
func TestThePrunedArchiveGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	a, _ := openFolder(t)
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + ":1-4"}); err != nil {
		t.Fatal(err)
	}
	old := newMadeLog(serverA + ":1-3")
	old.transaction(4, 1_000_000, 10)
	must(t)(put(t, a, old, LogManifest{Epoch: 1, Log: "binlog.000001", To: int64(len(old.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{}))
	m, from, counter := newMadeLog(serverA+":1-4"), int64(0), NewCounter(gtid.Set{}, false)
	var last Log
	for n := int64(5); n <= 8; n++ {
		m.transaction(n, n*aSecond, 10)
		last = must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000002", From: from, To: int64(len(m.raw))}, counter, Recipients{}))
		from, counter = last.To, NewCounter(last.Previous.Union(last.Set), last.Checksums)
	}
	removed, err := a.Prune(t.Context(), listed(t, a), Cutoff{Backup: "monday", At: noon, Set: own("1-7")})
	if h := HeldOf(listed(t, a), last.LogManifest, last.Log); err != nil || removed != 1 || h.To != last.To || !h.Set.Equal(own("5-8")) {
		t.Errorf("%d removed, held to %d of %d, %s: %v", removed, h.To, last.To, h.Set, err)
	}
}

// What would not be read is not written: without it, what was pruned would look like a gap.
func TestWhatIsNotToldAsPruned(t *testing.T) {
	t.Parallel()
	s, a, _ := openStorage(t)
	if err := a.PutPruned(t.Context(), Pruned{Version: FormatVersion}); err == nil || len(s.keys()) > 0 {
		t.Errorf("%v, %v", err, s.keys())
	}
}

// The newest epoch stays even if files of a later one are there already, and an empty archive has none.
func TestTheNewestEpochStays(t *testing.T) {
	t.Parallel()
	s, a, _ := openStorage(t)
	e := began(1, "", 1)
	if err := a.PutEpoch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	l := NewListing([]Epoch{e}, []Log{filed(2, "binlog.000001", "1-4", "5", 1, 1, 1)})
	if err := a.pruneEpochs(t.Context(), l, nil); err != nil || !slices.Equal(s.keys(), []string{e.key()}) {
		t.Errorf("%v, %v", err, s.keys())
	}
	if p := NextPruned(NewListing(nil, nil), Cutoff{Backup: "monday", At: noon, Set: own("1-5")}); p.Epoch != 0 || p.GTIDExecuted != own("1-5").String() || p.check() != nil {
		t.Errorf("%+v", p)
	}
}

// Nothing is swept of which it is not known that no manifest names it.
func TestSweepTakesNothingThatItCannotTell(t *testing.T) {
	t.Parallel()
	const orphan = "-0123456789abcdef"
	for name, tc := range map[string]struct {
		refused func(left, first string) string
		kind    bucket.Kind
		swept   int
	}{
		"nothing is refused":              {func(string, string) string { return "" }, "", 1},
		"the listing":                     {func(string, string) string { return "LIST" }, bucket.AccessDenied, 0},
		"a manifest of the listing":       {func(_, first string) string { return "GET " + first }, bucket.AccessDenied, 0},
		"the manifest that would name it": {func(left, _ string) string { return "GET " + left + manifestEnd }, "", 0},
		"the removal":                     {func(left, _ string) string { return "DELETE " + left + orphan }, bucket.NoDeleteRight, 0},
		"the uploads":                     {func(string, string) string { return "UPLOADS" }, bucket.AccessDenied, 1},
	} {
		s, a, fresh := openStorage(t)
		_, first, _ := twoSegments(t, a, Recipients{})
		left := first.folder() + "/binlog.000009"
		s.objects[left+orphan] = []byte("x")
		before := s.keys()
		s.refuse(tc.refused(left, first.key()))
		n, err := fresh.Sweep(t.Context(), noon.Add(time.Hour))
		if n != tc.swept || bucket.KindOf(err) != tc.kind || (err == nil) != (tc.kind == "") {
			t.Errorf("%s: %d swept: %v", name, n, err)
		}
		want := slices.DeleteFunc(before, func(key string) bool { return tc.swept == 1 && key == left+orphan })
		if got := s.keys(); !slices.Equal(got, want) {
			t.Errorf("%s: %q are left, want %q", name, got, want)
		}
	}
}

// What was completed since the listing is not swept, and of two uploads of one file only the one that lost is.
func TestSweepLooksAgain(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	_, first, second := twoSegments(t, a, Recipients{})
	told := s.objects[first.key()]
	delete(s.objects, first.key())
	lost := second.folder() + "/" + first.file() + "-ffffffffffffffff"
	s.objects[lost] = []byte("x")
	s.after = func(request string) bool {
		if request == "LIST" {
			s.objects[first.key()] = told
		}
		return false
	}
	if n, err := fresh.Sweep(t.Context(), noon.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d swept: %v", n, err)
	}
	if keys := s.keys(); !slices.Contains(keys, first.dataKey()) || slices.Contains(keys, lost) || len(keys) != 4 {
		t.Errorf("left are %q", keys)
	}
}

// What a manifest names is not swept, whichever name it has.
func TestWhatHasAnotherNameIsNotSwept(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	_, first, _ := twoSegments(t, a, Recipients{})
	m := first.LogManifest
	m.Object.Key = first.file() + "-again-0123456789abcdef"
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s.objects[m.dataKey()], s.objects[first.key()] = s.objects[first.dataKey()], raw
	delete(s.objects, first.dataKey())
	if n, err := fresh.Sweep(t.Context(), noon.Add(time.Hour)); n != 0 || err != nil || !slices.Contains(s.keys(), m.dataKey()) {
		t.Errorf("%d swept: %v", n, err)
	}
	if got, err := readAll(t, fresh, listed(t, fresh).Logs[0], bucket.Identities{}); err != nil || !strings.HasPrefix(string(got), Magic) {
		t.Errorf("the test is none: %v", err)
	}
}
