// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	ua = "0000000a-0000-0000-0000-000000000000"
	ub = "0000000b-0000-0000-0000-000000000000"
)

func gt(text string) gtid.Set { return gtid.MustParse(text) }

// file is one sealed log of a folder, with commits from one microsecond to another.
func file(epoch int64, site, log, previous, set string, first, last int64) Log {
	uuid := map[string]string{"a": ua, "b": ub}[site]
	return Log{LogManifest: LogManifest{Epoch: epoch, Site: site, ServerUUID: uuid, Log: log, To: 100, Sealed: true, FirstCommit: first, LastCommit: last,
		SeenAt: time.UnixMicro(max(last, 1))}, Set: gt(set), Previous: gt(previous)}
}

func epoch(n int64, site, set string) Epoch {
	return Epoch{Epoch: n, Site: site, ServerUUID: map[string]string{"a": ua, "b": ub}[site], GTIDExecuted: set, PromotedAt: time.UnixMicro(n * 1000)}
}

// I26: somebody applied a lost transaction again, by hand, in a later epoch: it is taken from there, where it has its place in the order.
func TestALostTransactionThatCameBack(t *testing.T) {
	p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-2"), epoch(3, "a", ua+":1-3,"+ub+":1-2")}, []Log{
		file(1, "a", "x.000001", "", ua+":1-3", 1, 3), file(2, "b", "x.000001", ua+":1-2", ua+":3,"+ub+":1-2", 4, 6),
	}))
	r, err := Plan(p, gtid.Set{}, Target{Latest: true})
	if err != nil || len(r.Steps) != 2 || !r.Steps[0].Apply.Equal(gt(ua+":1-2")) || !r.Steps[0].Leave.Equal(gt(ua+":3")) || !r.Steps[1].Apply.Equal(gt(ua+":3,"+ub+":1-2")) {
		t.Errorf("%+v: %v", r, err)
	}
	r, err = Plan(p, gtid.Set{}, Target{GTID: ua + ":3"})
	if err != nil || len(r.Steps) != 2 || r.Stop.GTID != ua+":3" {
		t.Errorf("%+v: %v", r, err)
	}
}

// The operator sees a server's set a moment before its next epoch begins: between two epochs of one server, one after the other, nothing is lost.
func TestTwoEpochsOfOneServer(t *testing.T) {
	logs := []Log{file(1, "a", "x.000001", "", ua+":1-5", 1, 5)}
	if p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "a", ua+":1-4")}, logs)); !p.Lost.IsEmpty() {
		t.Errorf("lost %s", p.Lost)
	}
	// With another site's in between there may be.
	if p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(3, "a", ua+":1-4")}, logs)); !p.Lost.Equal(gt(ua + ":5")) {
		t.Errorf("lost %s", p.Lost)
	}
	if p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-4")}, logs)); !p.Lost.Equal(gt(ua + ":5")) {
		t.Errorf("lost %s", p.Lost)
	}
}

func TestTargetsThatAreRefused(t *testing.T) {
	p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-4")}, []Log{
		file(1, "a", "x.000001", ua+":1", ua+":2-5", 2, 5), file(2, "b", "x.000001", ua+":1-4", ub+":1-2", 6, 7), file(2, "b", "x.000003", ua+":1-4,"+ub+":1-4", ub+":5", 10, 10),
	}))
	have := gt(ua + ":1")
	for name, tc := range map[string]struct {
		have   gtid.Set
		target Target
		want   RefusalKind
	}{
		"none":                 {have, Target{}, BadTarget},
		"two":                  {have, Target{Latest: true, GTID: ua + ":2"}, BadTarget},
		"no GTID":              {have, Target{GTID: "x"}, BadTarget},
		"two GTIDs":            {have, Target{GTID: ua + ":2-3"}, BadTarget},
		"a lost one":           {have, Target{GTID: ua + ":5"}, WasLost},
		"one of nowhere":       {have, Target{GTID: ua + ":9"}, NotInHistory},
		"no such epoch":        {have, Target{BeforeFailover: 7}, NotInHistory},
		"in the gap":           {have, Target{GTID: ub + ":3"}, InGap},
		"behind the gap":       {have, Target{GTID: ub + ":5"}, InGap},
		"all":                  {have, Target{Latest: true}, InGap},
		"a time in the gap":    {have, Target{Time: time.UnixMicro(8)}, InGap},
		"later than all":       {have, Target{Time: time.UnixMicro(11)}, BeyondLatest},
		"a backup of too late": {gt(ua + ":1-3"), Target{GTID: ua + ":2"}, BackupTooNew},
		"of after a failover":  {gt(ua + ":1-4," + ub + ":1"), Target{BeforeFailover: 2}, BackupTooNew},
		"a diverged backup":    {gt(ua + ":1-5"), Target{Latest: true}, BackupDiverged},
		"too old a backup":     {gtid.Set{}, Target{GTID: ua + ":2"}, InGap},
	} {
		_, err := Plan(p, tc.have, tc.target)
		if r := RefusalOf(err); r == nil || r.Kind != tc.want || r.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Before the archive's beginning there is nothing to go on from, even if nothing came after it.
	empty := History(NewListing(nil, []Log{file(1, "a", "x.000002", ua+":1-4", "", 0, 0)}))
	if _, err := Plan(empty, gtid.Set{}, Target{Latest: true}); RefusalOf(err) == nil {
		t.Errorf("an archive that begins later than the backup: %v", err)
	}
}

// What was lost may have been committed after a time that is wanted, and before what is wanted too.
func TestATimeAmongWhatWasLost(t *testing.T) {
	p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1")}, []Log{
		file(1, "a", "x.000001", "", ua+":1-2", 10, 30), file(2, "b", "x.000001", ua+":1", ub+":1-2", 15, 40),
	}))
	r, err := Plan(p, gtid.Set{}, Target{Time: time.UnixMicro(20)})
	if err != nil || len(r.Steps) != 2 || r.Stop.Time.IsZero() {
		t.Errorf("%+v: %v", r, err)
	}
}

// I27, one guard after the other.
func TestWhatIsNotPruned(t *testing.T) {
	at := time.UnixMicro(1000)
	epochs := []Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-4")}
	newest := file(2, "b", "x.000009", ua+":1-9", ub+":9", 900, 900)
	for name, tc := range map[string]struct {
		log  Log
		set  string
		at   time.Time
		goes bool
	}{
		"all of it is in the backup":      {file(1, "a", "x.000001", "", ua+":1-4", 1, 4), ua + ":1-4", at, true},
		"and what was lost is old":        {file(1, "a", "x.000001", "", ua+":1-5", 1, 4), ua + ":1-4", at, true},
		"the backup lacks one":            {file(1, "a", "x.000001", "", ua+":1-4", 1, 4), ua + ":1-3", at, false},
		"what was lost is new":            {file(1, "a", "x.000001", "", ua+":1-5", 1, 1000), ua + ":1-4", at, false},
		"it names what the backup lacks":  {file(1, "a", "x.000001", ua+":1-4", "", 0, 0), ua + ":1-3", at, false},
		"the backup holds nothing":        {file(1, "a", "x.000001", "", "", 0, 0), "", at, false},
		"there is no backup":              {file(1, "a", "x.000001", "", ua+":1-4", 1, 4), ua + ":1-4", time.Time{}, false},
		"it is the one to go on from":     {file(2, "b", "x.000010", ua+":1-4", ub+":1", 1, 4), ua + ":1-9," + ub + ":1-9", at, false},
		"it is not the one to go on from": {file(2, "b", "x.000001", ua+":1-4", ub+":1", 1, 4), ua + ":1-9," + ub + ":1-9", at, true},
	} {
		got := false
		for _, gone := range Prunable(NewListing(epochs, []Log{tc.log, newest}), Cutoff{At: tc.at, Set: gt(tc.set)}) {
			got = got || gone.key() == tc.log.key()
		}
		if got != tc.goes {
			t.Errorf("I27: %s: it goes: %t", name, got)
		}
	}
}

// I27: the segments of a log cannot be read without the first one, in which the format description is.
func TestTheBeginningOfALogStaysWithItsRest(t *testing.T) {
	segment := func(from, to int64, previous, set string) Log {
		l := file(1, "a", "x.000001", previous, set, from+1, to)
		l.Sealed, l.From, l.To = false, from, to
		return l
	}
	logs := []Log{segment(0, 10, "", ua+":1"), segment(10, 20, ua+":1", ua+":2"), segment(20, 30, ua+":1-2", ua+":3"), file(2, "b", "x.000001", ua+":1-3", ub+":1", 40, 50)}
	epochs := []Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-3")}
	for set, want := range map[string]int{ua + ":1-2": 1, ua + ":1-3": 3} {
		gone := Prunable(NewListing(epochs, slices.Clone(logs)), Cutoff{At: time.UnixMicro(1000), Set: gt(set)})
		if len(gone) != want || want == 1 && gone[0].From != 10 {
			t.Errorf("I27: with %s in the backup %d go: %+v", set, len(gone), gone)
		}
	}
}

// A backup of before a failover may hold what that lost: it is before nothing.
func TestPrunedIsOfTheHistory(t *testing.T) {
	l := NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-4")}, nil)
	if p := NextPruned(l, Cutoff{At: time.UnixMicro(1), Set: gt(ua + ":1-5")}); p.GTIDExecuted != ua+":1-4" || p.Epoch != 2 {
		t.Errorf("%+v", p)
	}
	// What its backups hold of the present epoch is of the history.
	now := NewListing(l.Epochs, []Log{file(2, "b", "x.000001", ua+":1-4", ub+":1-3", 5, 7)})
	if p := NextPruned(now, Cutoff{At: time.UnixMicro(9), Set: gt(ua + ":1-5," + ub + ":1-2")}); p.GTIDExecuted != ua+":1-4,"+ub+":1-2" {
		t.Errorf("%+v", p)
	}
	// So is what its server has numbered itself, before there is a file: a new archive begins with the oldest backup.
	fresh := NewListing([]Epoch{epoch(1, "a", "")}, nil)
	if p := NextPruned(fresh, Cutoff{At: time.UnixMicro(9), Set: gt(ua + ":1-5," + ub + ":1")}); p.GTIDExecuted != ua+":1-5" || p.Epoch != 1 {
		t.Errorf("%+v", p)
	}
	l.Pruned = &Pruned{Epoch: 1, GTIDExecuted: ua + ":1-5"}
	if p := History(l); !p.Base.Equal(gt(ua + ":1-4")) {
		t.Errorf("base %s", p.Base)
	}
}

func TestWhereArchivingGoesOn(t *testing.T) {
	logs := []ServerLog{{"x.000001", gt("")}, {"x.000002", gt(ua + ":1-3")}, {"x.000003", gt(ua + ":1-3")}, {"x.000004", gt(ua + ":1-6")}}
	for covered, want := range map[string]int{"": 0, ua + ":1-2": 0, ua + ":1-3": 2, ua + ":1-5": 2, ua + ":1-9": 3, ua + ":4-6": 0, ua + ":1:4-6": 0} {
		if got := Resume(logs, gt(covered)); got != want {
			t.Errorf("with %q it goes on from %d instead of %d", covered, got, want)
		}
	}
	// What was purged before anybody had it is no reason to begin again with the oldest log.
	if got := Resume(logs[1:], gt(ua+":2-6")); got != 2 {
		t.Errorf("behind a gap it goes on from %d", got)
	}
	segment := func(from, to int64, set string) Log {
		l := file(2, "a", "x.000004", ua+":1-6", set, 1, 1)
		l.Sealed, l.From, l.To = false, from, to
		return l
	}
	l := NewListing(nil, []Log{segment(0, 100, ua+":7"), segment(100, 150, ua+":8"), segment(200, 300, ua+":10"), file(1, "a", "x.000004", "", ua+":1", 1, 1)})
	folder := LogManifest{Epoch: 2, Site: "a", ServerUUID: ua}
	if h := HeldOf(l, folder, "x.000004"); h.To != 150 || h.Sealed || !h.Set.Equal(gt(ua+":7-8")) || !h.Previous.Equal(gt(ua+":1-6")) {
		t.Errorf("%+v", h)
	}
	if h := HeldOf(l, folder, "x.000005"); h.To != 0 {
		t.Errorf("%+v", h)
	}
}
