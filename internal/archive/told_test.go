// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"strings"
	"testing"
)

// A gap begins after an epoch that opened without it, if it is known what that opened with, and when.
func TestAGapAfterAnOpening(t *testing.T) {
	untold, broken := began(2, "", 6), began(2, "", 6)
	untold.Unknown, broken.GTIDExecuted = true, "x"
	for name, tc := range map[string]struct {
		e     Epoch
		after int64
	}{"it is told": {began(2, "1-4", 6), 6}, "it is not": {untold, 4}, "it cannot be read": {broken, 4}, "when is not known": {began(2, "1-4", 0), 4}, "too late": {began(2, "1-4", 9), 4}} {
		later := filed(2, "binlog.000001", "1-5", "6", 9, 9, 9)
		later.ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
		p := History(NewListing([]Epoch{began(1, "", 1), tc.e}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 4, 4), later}))
		if len(p.Gaps) != 1 || !p.Gaps[0].GTIDs.Equal(own("5")) || !p.Gaps[0].After.Equal(micro(tc.after*aSecond)) {
			t.Errorf("%s: %v", name, p.Gaps)
		}
	}
}

// A file without a time of a commit says nothing of when the archive begins.
func TestAFileWithoutATimeIsNotTheEarliest(t *testing.T) {
	p := History(NewListing([]Epoch{began(1, "", 1)}, []Log{filed(1, "binlog.000001", "", "1-2", 3, 4, 4), filed(1, "binlog.000002", "1-2", "3", 0, 0, 5)}))
	if !p.Earliest.Equal(micro(3 * aSecond)) {
		t.Errorf("from %s", p.Earliest)
	}
}

// I26: between two epochs of one server nothing was lost, whatever the operator saw a moment before the second one.
func TestWhatAnEpochOfOneServerKnewI26(t *testing.T) {
	one, two := began(1, "", 1), began(2, "1-3", 5)
	one.ServerUUID, two.ServerUUID = serverA, serverA
	p := History(NewListing([]Epoch{one, two}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 4, 4)}))
	if got := p.epoch(1).within(own("1-9")); !got.Equal(own("1-4")) {
		t.Errorf("I26: %s", got)
	}
}

// Where a route to a time ends, with clocks that differ and gaps around it.
func TestWhereATimeEnds(t *testing.T) {
	behind := filed(2, "binlog.000001", "1-6", "7", 4, 10, 10)
	behind.ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
	for name, tc := range map[string]struct {
		epochs  []Epoch
		files   []Log
		at      int64
		reaches string // empty: in a gap
		steps   int
	}{
		"where the gap at the end begins": {[]Epoch{began(1, "1-4", 1)}, []Log{filed(1, "binlog.000001", "1-4", "5-6", 2, 3, 3), filed(1, "binlog.000002", "1-8", "", 0, 0, 5)}, 3, "1-6", 1},
		"the next site's clock is behind": {[]Epoch{began(1, "1-4", 1), began(2, "1-6", 3)}, []Log{filed(1, "binlog.000001", "1-4", "5-6", 2, 9, 9), behind}, 5, "1-6", 1},
		"a clock went back behind a gap": {[]Epoch{began(1, "1-4", 1)}, []Log{filed(1, "binlog.000001", "1-4", "5-6", 2, 5, 5), filed(1, "binlog.000002", "1-8", "9", 4, 9, 9)},
			5, "", 0},
	} {
		r, err := Plan(History(NewListing(tc.epochs, tc.files)), own("1-4"), Target{Time: micro(tc.at * aSecond)})
		if (err == nil) != (tc.reaches != "") || !r.Reaches.Equal(own(tc.reaches)) || len(r.Steps) != tc.steps || err != nil && (RefusalOf(err) == nil || RefusalOf(err).Kind != InGap) {
			t.Errorf("%s: reaches %s in %d steps: %v", name, r.Reaches, len(r.Steps), err)
		}
	}
}

// What an epoch began with and no file shows is not archived, and not before the archive.
func TestWhatNoFileShows(t *testing.T) {
	p := History(NewListing([]Epoch{began(1, "", 1), began(2, "1-6", 5)}, []Log{filed(1, "binlog.000001", "1-2", "3-4", 1, 3, 3)}))
	for have, want := range map[string]string{"1-2": "that lead to the target are not archived", "1": "beginning of the archive"} {
		_, err := Plan(p, own(have), Target{BeforeFailover: 2})
		if r := RefusalOf(err); r == nil || r.Kind != InGap || !strings.Contains(r.Message, want) {
			t.Errorf("with %s: %v", have, err)
		}
	}
}

// What was before a log is told by its first file, and whether it has checksums by all of them.
func TestWhatIsHeldOfALog(t *testing.T) {
	first, second := filed(1, "binlog.000001", "1-4", "5", 1, 1, 1), filed(1, "binlog.000001", "1-5", "6", 2, 2, 2)
	first.Sealed, second.Sealed, second.From, second.To = false, false, 1, 2
	first.Checksums, second.Checksums = true, true
	if h := HeldOf(NewListing(nil, []Log{first, second}), first.LogManifest, first.Log); !h.Previous.Equal(own("1-4")) || !h.Checksums || !h.Set.Equal(own("5-6")) || h.To != 2 {
		t.Errorf("%+v", h)
	}
}
