// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const aSecond = int64(time.Second / time.Microsecond)

// own are transactions of serverA.
func own(text string) gtid.Set {
	if text == "" {
		return gtid.Set{}
	}
	return gtid.MustParse(serverA + ":" + text)
}

// filed is a file of serverA: what was before it, what is in it, and when that was committed, in seconds.
func filed(epoch int64, log, previous, set string, first, last, seen int64) Log {
	return Log{LogManifest: LogManifest{Version: 1, Epoch: epoch, Site: "a", ServerUUID: serverA, Log: log, To: 1, Sealed: true, FirstCommit: first * aSecond, LastCommit: last * aSecond,
		SeenAt: micro(seen * aSecond)}, Set: own(set), Previous: own(previous)}
}

func began(epoch int64, executed string, at int64) Epoch {
	e := Epoch{Version: 1, Epoch: epoch, Site: "a", GTIDExecuted: own(executed).String()}
	if epoch > 1 { // on another server
		e.ServerUUID = fmt.Sprintf("0a0b0c0d-0000-0000-0000-00000000000%d", epoch)
	}
	if at != 0 {
		e.PromotedAt = micro(at * aSecond)
	}
	return e
}

// A gap is told with what is known of when it was.
func TestHowAGapIsTold(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		after, before time.Time
		want          string
	}{
		{time.Time{}, time.Time{}, ""}, {at, time.Time{}, " after 2026-01-02T12:00:00.000000Z"}, {time.Time{}, at, " before 2026-01-02T12:00:00.000000Z"},
		{at, at, " after 2026-01-02T12:00:00.000000Z before 2026-01-02T12:00:00.000000Z"},
	} {
		if got := (Gap{GTIDs: own("1-2"), After: tc.after, Before: tc.before}).String(); got != "2 transactions ("+serverA+":1-2)"+tc.want {
			t.Errorf("%q", got)
		}
	}
	if got := clip(strings.Repeat("x", 401)); got != strings.Repeat("x", 400)+"..." || clip(got[:400]) != got[:400] {
		t.Errorf("%q", got)
	}
}

// What is told of an epoch is of all its files, in whichever order they come.
func TestWhatIsToldOfAnEpoch(t *testing.T) {
	files := []Log{
		filed(1, "binlog.000001", "", "1-2", 3, 4, 5), filed(1, "binlog.000002", "1-2", "3", 1, 2, 3), filed(1, "binlog.000003", "1-3", "", 0, 0, 4),
	}
	for i, bytes := range []int64{10, 5, 1} {
		files[i].Object.Bytes = bytes
	}
	p := History(NewListing([]Epoch{began(1, "", 1)}, files))
	e := p.Epochs[0]
	if e.ServerUUID != serverA || e.Files != 3 || e.Bytes != 16 || !e.First.Equal(micro(aSecond)) || !e.Last.Equal(micro(4*aSecond)) || !e.SeenAt.Equal(micro(5*aSecond)) {
		t.Errorf("%+v", e)
	}
	if !p.Earliest.Equal(micro(aSecond)) || len(p.Files) != 2 {
		t.Errorf("from %s, %d files", p.Earliest, len(p.Files))
	}
	named := began(1, "", 1)
	named.ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
	if e := History(NewListing([]Epoch{named}, files)).Epochs[0]; e.ServerUUID != named.ServerUUID {
		t.Errorf("a file says what server an epoch began on: %s", e.ServerUUID)
	}
	if sameServer(EpochPast{}, EpochPast{Epoch: Epoch{Epoch: 1}}) {
		t.Error("two servers of which nothing is known are one")
	}
}

// What an epoch knew is what it began with; if nobody can tell, what its files hold and name.
func TestWhatAnEpochKnew(t *testing.T) {
	files := EpochPast{Archived: own("4-5"), previous: own("1-3"), Files: 1}
	told, untold, broken := files, files, files
	told.Known, told.GTIDExecuted = true, own("1-2").String()
	untold.Known, untold.Unknown, untold.GTIDExecuted = true, true, own("1-2").String()
	broken.Known, broken.GTIDExecuted = true, "x"
	unseen := files
	unseen.GTIDExecuted = own("1-2").String()
	for name, tc := range map[string]struct {
		e    EpochPast
		want string
		says bool
	}{
		"told": {told, "1-2", true}, "not told": {untold, "1-5", true}, "not to be read": {broken, "1-5", true}, "no object": {unseen, "1-5", true}, "nothing": {EpochPast{}, "", false},
	} {
		if got, says := tc.e.knows(); !got.Equal(own(tc.want)) || says != tc.says {
			t.Errorf("%s: %s %t", name, got, says)
		}
	}
	p := History(NewListing([]Epoch{began(1, "", 1), began(3, "1-3", 2)}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 1, 1)}))
	if got := p.epoch(2).within(own("1-9")); !got.Equal(own("1-3")) {
		t.Errorf("of an epoch that nothing is known of, the next one knows %s", got)
	}
	if got := p.epoch(9).within(own("1-9")); !got.Equal(own("1-9")) {
		t.Errorf("of an epoch to come, %s is known", got)
	}
	unknown := began(3, "", 2)
	unknown.Unknown = true
	p = History(NewListing([]Epoch{began(1, "", 1), unknown}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 1, 1)}))
	if got := p.epoch(2).within(own("1-9")); !got.Equal(own("1-9")) {
		t.Errorf("an epoch that nobody can tell of forbids all but %s", got)
	}
}

// When a gap was: after the last commit of the history that is archived before it, and before the first after it, or what was seen there.
func TestWhenAGapWas(t *testing.T) {
	one, two := filed(1, "binlog.000001", "", "1-2", 1, 3, 3), filed(1, "binlog.000002", "1-2", "3", 1, 2, 3)
	for _, tc := range []struct {
		name   string
		epochs []Epoch
		shows  []Log
		after  int64
		before int64
	}{
		{"a file without transactions", []Epoch{began(1, "", 1)}, []Log{filed(1, "binlog.000003", "1-5", "", 0, 0, 9)}, 3, 9},
		{"a file with some", []Epoch{began(1, "", 1)}, []Log{filed(1, "binlog.000003", "1-5", "6", 8, 8, 9)}, 3, 8},
		{"after what was lost", []Epoch{began(1, "", 1), began(2, "1-5", 8)}, []Log{filed(1, "binlog.000003", "1-3", "9", 7, 7, 7), filed(2, "binlog.000001", "1-5", "6", 9, 9, 9)}, 3, 9},
	} {
		p := History(NewListing(tc.epochs, append([]Log{one, two}, tc.shows...)))
		if len(p.Gaps) != 1 || !p.Gaps[0].GTIDs.Equal(own("4-5")) || !p.Gaps[0].After.Equal(micro(tc.after*aSecond)) || !p.Gaps[0].Before.Equal(micro(tc.before*aSecond)) {
			t.Errorf("%s: %v", tc.name, p.Gaps)
		}
	}
}

// Until when the archive can bring a group back: as its newest files say, not beyond the next opening, and as the heartbeat of the newest epoch
// says if it tells of nothing that is not archived.
func TestTheLatestPoint(t *testing.T) {
	beat := func(epoch, at int64, executed string) *Heartbeat {
		return &Heartbeat{Version: 1, Epoch: epoch, At: micro(at * aSecond), GTIDExecuted: executed}
	}
	all := own("1-2").String()
	for _, tc := range []struct {
		name   string
		epochs []Epoch
		beat   *Heartbeat
		want   int64
	}{
		{"the files", []Epoch{began(1, "", 1)}, nil, 5},
		{"the next one has no files yet", []Epoch{began(1, "", 1), began(2, "1-2", 20)}, nil, 5},
		{"the next one was opened meanwhile", []Epoch{began(1, "", 1), began(2, "1-2", 3)}, nil, 3},
		{"nobody knows when", []Epoch{began(1, "", 1), began(2, "1-2", 0)}, nil, 5},
		{"a heartbeat", []Epoch{began(1, "", 1)}, beat(1, 9, all), 9},
		{"an older heartbeat", []Epoch{began(1, "", 1)}, beat(1, 4, all), 5},
		{"one of the epoch before", []Epoch{began(1, "", 1), began(2, "1-2", 20)}, beat(1, 9, all), 5},
		{"one of an epoch to come", []Epoch{began(1, "", 1)}, beat(2, 9, all), 9},
		{"one that knows more", []Epoch{began(1, "", 1)}, beat(1, 9, own("1-3").String()), 5},
		{"one that cannot be read", []Epoch{began(1, "", 1)}, beat(1, 9, "x"), 5},
	} {
		l := NewListing(tc.epochs, []Log{filed(1, "binlog.000001", "", "1-2", 1, 2, 5)})
		l.Heartbeat = tc.beat
		if got := History(l).Latest; !got.Equal(micro(tc.want * aSecond)) {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// Why a target cannot be reached is told in each case by its kind, and with the gap if that is why.
func TestWhyThereIsNoRoute(t *testing.T) {
	unknown := began(3, "", 8)
	unknown.Unknown = true
	l := NewListing([]Epoch{began(2, "1-4", 1), unknown}, []Log{
		filed(2, "binlog.000001", "1-4", "5-6", 2, 3, 3), filed(2, "binlog.000002", "1-8", "9", 6, 6, 7), filed(2, "binlog.000003", "1-9", "10", 7, 7, 7),
	})
	p := History(l)
	at := func(s int64) Target { return Target{Time: micro(s * aSecond)} }
	for _, tc := range []struct {
		name   string
		have   string
		target Target
		kind   RefusalKind
		says   string
		gap    bool
	}{
		{"in a gap", "1-4", at(4), InGap, "lies in a gap", true},
		{"behind it", "1-4", at(7), InGap, "behind a gap", true},
		{"the backup has what is missing", "1-8", at(6), "", "", false},
		{"before the gap", "1-4", at(2), "", "", false},
		{"where the gap begins", "1-4", at(3), "", "", false}, // which is what its text offers
		{"before all files", "1-4", at(1), "", "", false},
		{"before all files, with an older backup", "1-2", at(1), InGap, "choose a later backup", false},
		{"the backup is later", "1-9", at(5), BackupTooNew, "later than", false},
		{"later than all", "1-8", at(60), BeyondLatest, "later than", false},
		{"a transaction in a gap", "1-4", Target{GTID: serverA + ":7"}, InGap, "lies in a gap", true},
		{"a transaction behind it", "1-4", Target{GTID: serverA + ":9"}, InGap, "behind a gap", true},
		{"a transaction of nobody", "1-8", Target{GTID: serverA + ":99"}, NotInHistory, "does not hold", false},
		{"no transaction", "1-8", Target{GTID: "x"}, BadTarget, "not the GTID", false},
		{"two", "1-8", Target{GTID: serverA + ":9-10"}, BadTarget, "not the GTID", false},
		{"an older backup", "1-2", Target{GTID: serverA + ":5"}, InGap, "choose a later backup", false},
		{"a failover that nobody can tell of", "1-8", Target{BeforeFailover: 3}, NotInHistory, "does not know", false},
		{"no such failover", "1-8", Target{BeforeFailover: 7}, NotInHistory, "knows no epoch", false},
		{"a backup of after the failover", "1-8", Target{BeforeFailover: 2}, BackupTooNew, "did not begin with", false},
		{"nothing to do before the failover", "1-4", Target{BeforeFailover: 2}, "", "", false},
	} {
		_, err := Plan(p, own(tc.have), tc.target)
		r := RefusalOf(err)
		switch {
		case tc.kind == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.kind != "" && (r == nil || r.Kind != tc.kind || !strings.Contains(r.Message, tc.says) || (r.Gap != nil) != tc.gap):
			t.Errorf("%s: %v, %+v", tc.name, err, r)
		}
	}
}

// A time is reached if all that was committed until then is there: a gap that begins with it or later is no matter, and one that the backup fills.
func TestATimeBetweenGaps(t *testing.T) {
	p := History(NewListing([]Epoch{began(1, "1-4", 1)}, []Log{
		filed(1, "binlog.000001", "1-4", "5-6", 2, 3, 3), filed(1, "binlog.000002", "1-8", "", 0, 0, 5), filed(1, "binlog.000003", "1-8", "9", 9, 9, 9),
		filed(1, "binlog.000004", "1-10", "11", 14, 14, 14),
	}))
	for _, tc := range []struct {
		name    string
		have    string
		at      int64
		reaches string
	}{
		{"within the last file before a gap", "1-4", 2, "1-6"},
		{"where the first gap begins", "1-4", 3, "1-6"},
		{"after a gap, before the next transaction", "1-4", 6, ""},
		{"the same, with a backup that fills it", "1-8", 6, "1-8"},
		{"where the second gap begins, with that backup", "1-8", 9, "1-9"},
		{"behind the second gap, with that backup", "1-8", 14, ""},
	} {
		r, err := Plan(p, own(tc.have), Target{Time: micro(tc.at * aSecond)})
		if (err == nil) != (tc.reaches != "") || err == nil && !r.Reaches.Equal(own(tc.reaches)) || err != nil && RefusalOf(err).Kind != InGap {
			t.Errorf("%s: reaches %s: %v", tc.name, r.Reaches, err)
		}
	}
}

// Before a failover: what the archive lacks after it is no matter, and what it lacks before it is.
func TestBeforeAFailoverWithGaps(t *testing.T) {
	later := filed(2, "binlog.000009", "1-9", "10", 9, 9, 9)
	later.Site, later.ServerUUID = "b", began(2, "", 0).ServerUUID
	for name, tc := range map[string]struct {
		set  string
		kind RefusalKind
	}{"a gap after it": {"1-4", ""}, "a gap before it": {"1-3", InGap}} {
		p := History(NewListing([]Epoch{began(1, "", 1), began(2, "1-4", 5)}, []Log{filed(1, "binlog.000001", "", tc.set, 1, 3, 3), later}))
		r, err := Plan(p, own(""), Target{BeforeFailover: 2})
		if tc.kind == "" && (err != nil || !r.Reaches.Equal(own("1-4"))) || tc.kind != "" && (RefusalOf(err) == nil || RefusalOf(err).Kind != tc.kind) {
			t.Errorf("%s: %+v: %v", name, r, err)
		}
	}
	broken := began(2, "", 5)
	broken.GTIDExecuted = "x"
	p := History(NewListing([]Epoch{began(1, "", 1), broken}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 3, 3)}))
	if _, err := Plan(p, own(""), Target{BeforeFailover: 2}); RefusalOf(err) == nil || RefusalOf(err).Kind != NotInHistory {
		t.Errorf("a set that cannot be read: %v", err)
	}
}

// Of a newest epoch that nobody can tell of, nothing follows about what is before the archive: what was pruned stays known as that.
func TestPrunedBeforeAnUnknownEpoch(t *testing.T) {
	unknown := began(2, "", 5)
	unknown.Unknown = true
	if p := NextPruned(NewListing([]Epoch{began(1, "", 1), unknown}, nil), Cutoff{At: micro(aSecond), Set: own("1-5")}); p.GTIDExecuted != own("1-5").String() || p.Epoch != 2 {
		t.Errorf("%+v", p)
	}
}
