// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// threeLogs are sealed, with one transaction each: 5, 6 and 7, committed at their second.
func threeLogs(t *testing.T, a *Archive) []Log {
	t.Helper()
	if err := a.PutEpoch(t.Context(), Epoch{Epoch: 1, Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + ":1-4"}); err != nil {
		t.Fatal(err)
	}
	var out []Log
	for i, previous := range []string{":1-4", ":1-5", ":1-6"} {
		m := newMadeLog(serverA + previous)
		m.transaction(int64(5+i), int64(5+i)*aSecond, 100)
		name := []string{"binlog.000001", "binlog.000002", "binlog.000003"}[i]
		out = append(out, must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: name, To: int64(len(m.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{})))
	}
	return out
}

// lose removes the data of a file, behind its manifest.
func lose(t *testing.T, dir string, l Log) {
	t.Helper()
	if err := os.Remove(filepath.Join(filepath.Dir(dir), l.dataKey())); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, a *Archive) Listing {
	t.Helper()
	l, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What somebody removed by hand is a gap, and no target behind it is promised, wherever it is in the history.
func TestWhatIsMissingBehindItsManifestIsAGap(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gone          []int
		missing, id   string
		after, before int64 // seconds; 0 for none
	}{
		"the first": {[]int{0}, ":5", ":5", 0, 6}, "one between": {[]int{1}, ":6", ":6", 5, 7}, "two in a row": {[]int{0, 1}, ":5-6", ":6", 0, 7}, "the last": {[]int{2}, ":7", ":7", 6, noon.Unix()},
		"all": {[]int{0, 1, 2}, ":5-7", ":7", 0, noon.Unix()},
	} {
		a, dir := openFolder(t)
		logs := threeLogs(t, a)
		if l := listed(t, a); len(l.Missing) > 0 || len(History(l).Gaps) > 0 {
			t.Fatalf("%s: a whole archive has a gap: %+v", name, l.Missing)
		}
		for _, i := range tc.gone {
			lose(t, dir, logs[i])
		}
		for range 2 { // what is known to be missing is told again
			l := listed(t, a)
			p := History(l)
			if len(l.Missing) != len(tc.gone) || len(l.Logs) != 3-len(tc.gone) || len(p.Gaps) != 1 || p.Gaps[0].GTIDs.String() != serverA+tc.missing ||
				!p.Gaps[0].After.Equal(micro(tc.after*aSecond)) || !p.Gaps[0].Before.Equal(micro(tc.before*aSecond)) || p.Base.String() != serverA+":1-4" {
				t.Fatalf("%s: missing %d, gaps %v, base %s", name, len(l.Missing), p.Gaps, p.Base)
			}
			for _, target := range []Target{{Latest: true}, {GTID: serverA + tc.id}} {
				if _, err := Plan(p, gtid.MustParse(serverA+":1-4"), target); RefusalOf(err) == nil || RefusalOf(err).Kind != InGap || RefusalOf(err).Gap == nil {
					t.Errorf("%s: %+v: %v", name, target, err)
				}
			}
			if r, err := Plan(p, gtid.MustParse(serverA+":1-7"), Target{Latest: true}); err != nil || len(r.Steps) > 0 {
				t.Errorf("%s: from a backup after the gap: %v", name, err)
			}
		}
	}
}

// A manifest that cannot be read is a gap if something later tells what had been executed. At the end of the archive nothing does, and the latest
// point would come out too early, without a word.
func TestWhatCannotBeReadAtTheEndIsNotTheLatestPoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoiled func(logs []Log) string
		later   bool
		unseen  bool
		refused bool
	}{
		"nothing":                      {func([]Log) string { return "" }, false, false, false},
		"the first":                    {func(logs []Log) string { return logs[0].key() }, false, false, true}, // by the gap
		"the last":                     {func(logs []Log) string { return logs[2].key() }, false, true, true},
		"the last, and there is more":  {func(logs []Log) string { return logs[2].key() }, true, false, true}, // by the gap
		"the epoch, and files show it": {func([]Log) string { return Epoch{Epoch: 1}.key() }, false, false, false},
		"an epoch of which is no file": {func([]Log) string { return Epoch{Epoch: 2}.key() }, false, true, true},
		"the heartbeat":                {func([]Log) string { return heartbeatKey }, false, false, false},
	} {
		a, dir := openFolder(t)
		logs := threeLogs(t, a)
		if err := a.PutHeartbeat(t.Context(), Heartbeat{Epoch: 1, Site: "a", ServerUUID: serverA, At: noon, GTIDExecuted: serverA + ":1-7"}); err != nil {
			t.Fatal(err)
		}
		if err := a.PutEpoch(t.Context(), Epoch{Epoch: 2, Site: "a", ServerUUID: serverA, PromotedAt: noon, GTIDExecuted: serverA + ":1-7"}); err != nil {
			t.Fatal(err)
		}
		if tc.later {
			m := newMadeLog(serverA + ":1-7")
			m.transaction(8, 8*aSecond, 100)
			must(t)(put(t, a, m, LogManifest{Epoch: 2, Site: "a", ServerUUID: serverA, Log: "binlog.000001", To: int64(len(m.raw)), Sealed: true}, NewCounter(gtid.Set{}, false), Recipients{}))
		}
		if key := tc.spoiled(logs); key != "" {
			if err := os.WriteFile(filepath.Join(filepath.Dir(dir), key), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a.forget(nil) // as the next process, which has read nothing yet
		p := History(listed(t, a))
		if (p.Unseen != nil) != tc.unseen {
			t.Errorf("%s: %+v", name, p.Unseen)
		}
		have := gtid.MustParse(serverA + ":1-4")
		if _, err := Plan(p, have, Target{Latest: true}); (RefusalOf(err) != nil) != tc.refused || err != nil && RefusalOf(err).Kind != InGap {
			t.Errorf("%s: the latest point: %v", name, err)
		}
		if _, err := Plan(p, have, Target{GTID: serverA + ":5"}); err != nil && name != "the first" {
			t.Errorf("%s: a target before it: %v", name, err)
		}
	}
}

// A manifest is read once, and once more if somebody else wrote over it: before it was listed for the first time, after, and if it is as long as before.
func TestAManifestThatWasWrittenOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		listed bool
		text   func(raw []byte) []byte
	}{
		"before it was listed": {false, func([]byte) []byte { return []byte("{") }},
		"after it was listed":  {true, func([]byte) []byte { return []byte("{") }},
		"with the same length": {true, func(raw []byte) []byte { return bytes.Repeat([]byte("x"), len(raw)) }},
	} {
		a, dir := openFolder(t)
		second := threeLogs(t, a)[1]
		path := filepath.Join(filepath.Dir(dir), second.key())
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(raw []byte, at time.Time) {
			t.Helper()
			if err := errors.Join(os.WriteFile(path, raw, 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		if tc.listed {
			listed(t, a)
		}
		write(tc.text(good), noon)
		if l := listed(t, a); len(l.Unreadable) != 1 || l.Unreadable[0].Key != second.key() || len(History(l).Gaps) != 1 {
			t.Errorf("%s: nobody sees it: unreadable %v", name, l.Unreadable)
		}
		write(good, noon.Add(time.Hour))
		if l := listed(t, a); len(l.Unreadable) > 0 || len(l.Logs) != 3 {
			t.Errorf("%s: it was put back, and unreadable are %v", name, l.Unreadable)
		}
	}
	s, a, fresh := openStorage(t)
	twoSegments(t, a, Recipients{})
	s.refuse()
	for range 2 {
		listed(t, fresh)
		if asked := s.requests("GET "); len(asked) != 2 {
			t.Errorf("what is as it was is read again: %q", asked)
		}
	}
}

// An object that was cut is as good as gone.
func TestAnObjectThatWasCutIsAGap(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	logs := threeLogs(t, a)
	if err := os.Truncate(filepath.Join(filepath.Dir(dir), logs[1].dataKey()), 10); err != nil {
		t.Fatal(err)
	}
	if p := History(listed(t, a)); len(p.Gaps) != 1 || p.Gaps[0].GTIDs.String() != serverA+":6" {
		t.Errorf("%v", p.Gaps)
	}
}

// A listing takes a while: what was written or removed in the middle of it is not missing.
func TestWhatChangesDuringAListingIsNotMissing(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	logs := threeLogs(t, a)
	f, err := a.find(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Remove(t.Context(), logs[1]); err != nil {
		t.Fatal(err)
	}
	lose(t, dir, logs[2])
	f.data = nil // as if all of it was written after the page of the data was listed
	there, gone, err := a.present(t.Context(), f, logs)
	if err != nil || len(there) != 1 || there[0].key() != logs[0].key() || len(gone) != 1 || gone[0].key() != logs[2].key() {
		t.Errorf("%v: there %d, gone %d", err, len(there), len(gone))
	}
}

// A log is there twice for a while, as one file and in segments: nothing is missing while either is whole.
func TestALogThatIsThereTwice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gone                    int // 0 and 1 are segments, 2 is the whole log
		logs, replaced, missing int
	}{"a segment": {1, 1, 2, 0}, "the whole log": {2, 2, 0, 1}} {
		a, dir := openFolder(t)
		m, first, second := twoSegments(t, a, Recipients{})
		whole := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: int64(len(m.raw))}, NewCounter(gtid.Set{}, false), Recipients{}))
		lose(t, dir, []Log{first, second, whole}[tc.gone])
		l := listed(t, a)
		p := History(l)
		if len(l.Logs) != tc.logs || l.Replaced.Files != tc.replaced || len(l.Missing) != tc.missing || len(p.Gaps) > 0 || p.Archived.String() != serverA+":5-7" {
			t.Errorf("%s: %d logs, %d replaced, %d missing, gaps %v", name, len(l.Logs), l.Replaced.Files, len(l.Missing), p.Gaps)
		}
		// It is not uploaded once more: nothing can be written where a manifest is.
		if h := HeldOf(l, whole.LogManifest, whole.Log); !h.Sealed || h.To != whole.To {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// A segment that is missing is not uploaded over and over: nothing can be written where its manifest is.
func TestHowFarALogIsHeldWithAHole(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	_, first, second := twoSegments(t, a, Recipients{})
	lose(t, dir, first)
	if h := HeldOf(listed(t, a), first.LogManifest, first.Log); h.To != second.To {
		t.Errorf("%+v", h)
	}
}

// Nor is one whose manifest cannot be read and stays: what follows goes on behind it.
func TestHowFarALogIsHeldWithAManifestThatCannotBeRead(t *testing.T) {
	segment := func(from, to int64, previous, set string) Log {
		l := filed(1, "binlog.000001", previous, set, 1, 1, 1)
		l.Sealed, l.From, l.To = false, from, to
		return l
	}
	first, second, third := segment(0, 100, "1-4", "5"), segment(100, 200, "1-5", "6"), segment(200, 300, "1-6", "7")
	for name, tc := range map[string]struct {
		there []Log
		bad   Log
		to    int64
		set   string
	}{
		"one between": {[]Log{first, third}, second, 300, "5-7"}, "none of it, but a hole": {[]Log{first, third}, segment(50, 60, "", ""), 100, "5"},
		"the last": {[]Log{first, second}, third, 200, "5-6"}, "the first": {[]Log{second, third}, first, 300, "6-7"},
	} {
		l := NewListing(nil, tc.there)
		l.Unreadable = []Unreadable{{Key: tc.bad.key()}}
		if h := HeldOf(l, first.LogManifest, first.Log); h.To != tc.to || !h.Set.Equal(own(tc.set)) {
			t.Errorf("%s: held to %d, %s", name, h.To, h.Set)
		}
	}
}

// I27: the manifest of what is missing goes with the other files, once a retained backup holds it; until then it says what is missing.
func TestWhatIsMissingIsPruned(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	logs := threeLogs(t, a)
	lose(t, dir, logs[0])
	for _, tc := range []struct {
		set     string
		removed int
		gaps    int
	}{{":1-4", 0, 1}, {":1-6", 2, 0}} {
		removed, err := a.Prune(t.Context(), listed(t, a), Cutoff{Backup: "monday", At: noon, Set: gtid.MustParse(serverA + tc.set)})
		if l := listed(t, a); err != nil || removed != tc.removed || len(History(l).Gaps) != tc.gaps || len(l.Missing) != tc.gaps {
			t.Errorf("I27: a backup with %s: %d removed, missing %d: %v", tc.set, removed, len(l.Missing), err)
		}
	}
}

// I26: what a server had executed in a file that is missing still says what its epoch knew.
func TestAnEpochOfWhichAFileIsMissingI26(t *testing.T) {
	lost := filed(2, "binlog.000001", "1-4", "9", 9, 9, 9) // epoch 2 had 1-4 and 9, and never 5
	l := NewListing(nil, []Log{filed(1, "binlog.000001", "", "1-5", 1, 5, 5)}).withMissing([]Log{lost})
	l.Missing[0].ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
	p := History(l)
	if p.Archived.String() != own("1-4").String() || p.Lost.String() != own("5").String() || len(p.Gaps) != 1 || !p.Gaps[0].GTIDs.Equal(own("9")) || p.Gaps[0].Epoch != 2 {
		t.Errorf("I26: archived %s, lost %s, gaps %v", p.Archived, p.Lost, p.Gaps)
	}
}
