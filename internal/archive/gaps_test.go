// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// goneLog is a file of which only the manifest is left.
func goneLog(l Log) Log { l.Gone = true; return l }

// When the transactions of a gap were committed is told by the files around it, and files that show different things are different gaps.
func TestWhereGapsBeginAndEnd(t *testing.T) {
	first := filed(1, "binlog.000001", "", "1-4", 1, 4, 4)
	for name, tc := range map[string]struct {
		logs []Log
		want []string
	}{
		"a missing file of which a part is archived": {[]Log{first, goneLog(filed(1, "binlog.000002", "1-3", "4-6", 4, 6, 6)), filed(1, "binlog.000003", "1-8", "9", 9, 9, 9)},
			[]string{"5-6 of 1: 4 to 9", "7-8 of 1: 4 to 9"}},
		"a file without a time of a commit": {[]Log{first, goneLog(filed(1, "binlog.000002", "1-4", "5", 5, 5, 5)), filed(1, "binlog.000003", "1-5", "6", 0, 0, 6),
			filed(1, "binlog.000004", "1-6", "7", 7, 7, 7)}, []string{"5 of 1: 4 to 7"}},
		"purged, and missing": {[]Log{first, filed(1, "binlog.000002", "1-5", "6", 6, 6, 6), goneLog(filed(1, "binlog.000003", "1-6", "7", 7, 7, 7)),
			filed(1, "binlog.000004", "1-7", "8", 8, 8, 8)}, []string{"5 of 1: 4 to 6", "7 of 1: 6 to 8"}},
		"of two epochs": {[]Log{first, goneLog(filed(1, "binlog.000002", "1-4", "5", 5, 5, 5)), goneLog(filed(2, "binlog.000001", "1-5", "6", 6, 6, 7))},
			[]string{"5 of 1: 4 to 5", "6 of 2: 4 to 7"}},
		"the last two": {[]Log{first, goneLog(filed(1, "binlog.000002", "1-4", "5", 5, 5, 5)), goneLog(filed(1, "binlog.000003", "1-5", "6", 6, 6, 8))}, []string{"5-6 of 1: 4 to 8"}},
	} {
		var there, gone []Log
		for _, l := range tc.logs {
			if l.Gone {
				gone = append(gone, l)
			} else {
				there = append(there, l)
			}
		}
		var got []string
		for _, g := range History(NewListing(nil, there).withMissing(gone)).Gaps {
			got = append(got, fmt.Sprintf("%s of %d: %d to %d", g.GTIDs.String()[len(serverA)+1:], g.Epoch, g.After.Unix(), g.Before.Unix()))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// I26: what a server executed in a file that is missing belongs to what its epoch knew, so it is not lost.
func TestWhatAMissingFileKnewI26(t *testing.T) {
	missing := filed(2, "binlog.000001", "1-4", "5", 5, 5, 5)
	missing.ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
	p := History(NewListing(nil, []Log{filed(1, "binlog.000001", "", "1-4", 1, 4, 4), filed(1, "binlog.000002", "1-4", "5", 5, 5, 5)}).withMissing([]Log{missing}))
	if first := p.Epochs[0].First; !first.Equal(micro(aSecond)) {
		t.Errorf("epoch 1 begins at %s", first)
	}
	if !p.Archived.Equal(own("1-5")) || !p.Lost.IsEmpty() || len(p.Gaps) > 0 {
		t.Errorf("I26: archived %s, lost %s, gaps %v", p.Archived, p.Lost, p.Gaps)
	}
}

// I27: the manifest of a missing file goes if nothing of the history was in it that the backup does not hold.
func TestAMissingFileOfWhatWasLostIsPruned(t *testing.T) {
	missing := filed(1, "binlog.000002", "1-4", "5", 5, 5, 5)
	for executed, want := range map[string]int{"1-4": 2, "1-5": 1} {
		l := NewListing([]Epoch{began(1, "", 1), began(2, executed, 6)}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 4, 4)}).withMissing([]Log{missing})
		if got := Prunable(l, Cutoff{At: micro(9 * aSecond), Set: own("1-4")}); len(got) != want {
			t.Errorf("I27: epoch 2 began with %s: %d go, want %d", executed, len(got), want)
		}
	}
}

// I27: what a failover lost and somebody applied again later stays in both places.
func TestWhatWasAppliedAgainIsNotPruned(t *testing.T) {
	again := filed(2, "binlog.000001", "1-4", "5", 5, 5, 7)
	again.ServerUUID = "0a0b0c0d-0000-0000-0000-000000000002"
	l := NewListing([]Epoch{began(1, "", 1), began(2, "1-4", 6)}, []Log{filed(1, "binlog.000001", "", "1-4", 1, 4, 4), filed(1, "binlog.000002", "1-4", "5", 5, 5, 5), again})
	if got := Prunable(l, Cutoff{At: micro(9 * aSecond), Set: own("1-4")}); len(got) != 1 || got[0].Log != "binlog.000001" {
		t.Errorf("I27: %d go", len(got))
	}
}

// An object that cannot be asked for is not missing.
func TestWhatCannotBeAskedForIsNotMissing(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	logs := threeLogs(t, a)
	folder := filepath.Join(filepath.Dir(dir), logs[0].folder())
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if there, gone, err := a.present(t.Context(), found{}, logs); err == nil {
		t.Errorf("%d are there, %d are missing", len(there), len(gone))
	}
}

// What is known to be missing is not asked for again.
func TestWhatIsMissingIsAskedForOnce(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	logs := threeLogs(t, a)
	path := filepath.Join(filepath.Dir(dir), logs[1].dataKey())
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lose(t, dir, logs[1])
	listed(t, a)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, gone, err := a.present(t.Context(), found{}, logs[1:2]); err != nil || len(gone) != 1 {
		t.Errorf("%v: %d are missing", err, len(gone))
	}
	// Once it is listed again, it is there.
	if l := listed(t, a); len(l.Missing) > 0 || len(a.gone) > 0 {
		t.Errorf("%d are missing", len(l.Missing))
	}
}

// TestAnOldSiteThatWroteOnHidesNoGapI26: until its lease ended, a site that was cut off wrote what was lost, and the new one committed
// meanwhile. How long it wrote says nothing of when the gap behind it began.
func TestAnOldSiteThatWroteOnHidesNoGapI26(t *testing.T) {
	p := History(NewListing([]Epoch{epoch(1, "a", ""), epoch(2, "b", ua+":1-4")}, []Log{
		file(1, "a", "x.000001", "", ua+":1-9", 2, 9), file(2, "b", "x.000002", ua+":1-4,"+ub+":1-2", ub+":3", 10, 10),
	}))
	if _, err := Plan(p, gtid.Set{}, Target{Time: time.UnixMicro(8)}); RefusalOf(err) == nil || RefusalOf(err).Kind != InGap {
		t.Errorf("I26: a time at which the new site may have committed is reached without what it committed: %v, gaps %v", err, p.Gaps)
	}
	if _, err := Plan(p, gtid.Set{}, Target{Time: time.UnixMicro(1)}); err != nil {
		t.Errorf("a time before all of it: %v", err)
	}
}
