// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

const second = time.Second

// written are commits of one connection that is acknowledged every tenth of a second, on a site, from and until (ms).
func written(worker int, site string, from, until int) []journal.Commit {
	var all []journal.Commit
	for at := from; at <= until; at += 100 {
		ack := time.Duration(at) * time.Millisecond
		all = append(all, journal.Commit{
			Key: journal.Key{Writer: "svc-0", Worker: worker, Seq: int64(at)}, Server: journal.Server{Site: site},
			Start: ack - 5*time.Millisecond, Ack: ack,
		})
	}
	return all
}

// Two moves under one set of writers: every pause, loss and margin belongs to the run in which it happened.
func TestSamples(t *testing.T) {
	var all []journal.Commit
	for _, part := range [][]journal.Commit{
		written(0, "east", 0, 10_000), written(0, "west", 10_400, 20_000), written(0, "east", 20_200, 30_000),
		written(1, "east", 50, 9_950), written(1, "west", 10_650, 19_950), written(1, "east", 20_250, 30_050),
	} {
		all = append(all, part...)
	}
	record := func(epoch int64, to string) v1alpha1.FailoverRecord {
		return v1alpha1.FailoverRecord{Epoch: epoch, To: to, Kind: v1alpha1.FailoverPlanned, LostTransactions: epoch}
	}
	marks := []mark{
		{site: "east", at: 10 * second, end: 13 * second, moved: true, records: []v1alpha1.FailoverRecord{record(2, "west")}},
		{site: "west", at: 20 * second, end: 23 * second, moved: true, records: []v1alpha1.FailoverRecord{record(3, "east")}},
	}
	lost := written(0, "west", 15_000, 15_000)
	witness := testimony{
		service: all, all: all, overlaps: journal.Overlaps(all, []string{"east", "west", "east"}),
		changes: journal.FenceMargins(all), missing: lost,
	}
	got, err := witness.samples(marks)
	if err != nil {
		t.Fatal(err)
	}
	want := []sample{
		{Seconds: 0.7, MergedSeconds: 0.4, From: "east", To: "west", Kind: "Planned", CommitsPerSecond: 20, MarginSeconds: 0.4, Reported: 2},
		{Seconds: 0.3, MergedSeconds: 0.2, From: "west", To: "east", Kind: "Planned", CommitsPerSecond: 20, MarginSeconds: 0.2, Lost: 1, Reported: 3},
	}
	acked := 0
	for i := range got {
		acked += got[i].Acked
		got[i].Acked = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if acked != len(all) {
		t.Errorf("%d rows were shared out, want %d", acked, len(all))
	}
}

func TestSamplesOfWhatProvesNothing(t *testing.T) {
	stays := written(0, "east", 0, 10_000)
	moved := mark{site: "east", at: 5 * second, end: 8 * second, moved: true}
	if _, err := (testimony{service: stays, all: stays}).samples([]mark{moved}); err == nil {
		t.Error("the role moved, no writer saw the new site, and that is no error")
	}
	ended := append(written(0, "east", 0, 10_000), written(1, "east", 0, 4_000)...)
	same := mark{site: "east", at: 5 * second, end: 8 * second}
	got, err := (testimony{service: ended, all: ended}).samples([]mark{same})
	if err == nil || got[0].Seconds != 4 {
		t.Errorf("a connection that never came back: %v s, error %v", got[0].Seconds, err)
	}
	two := append(written(0, "east", 0, 10_000), written(1, "west", 3_050, 9_050)...)
	split := testimony{service: two, all: two, overlaps: journal.Overlaps(two, []string{"east"})}
	if got, err := split.samples([]mark{same}); err == nil || got[0].Overlaps == 0 {
		t.Errorf("two sites take turns commit by commit: %+v, %v", got, err)
	}
}

// Connections that come back only after the run's end are no answer to its fault.
func TestSampleOfAServiceThatStaysAway(t *testing.T) {
	late := append(written(0, "east", 0, 4_000), written(0, "east", 9_000, 9_500)...)
	away := mark{site: "east", at: 5 * second, end: 8 * second}
	_, err := (testimony{service: late, all: late}).samples([]mark{away})
	for _, want := range []string{"never got through again", "no row went through the Service after the fault"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestCheckLoss(t *testing.T) {
	first := v1alpha1.FailoverRecord{Epoch: 2, From: "east", To: "west"}
	second := v1alpha1.FailoverRecord{Epoch: 3, From: "west", To: "east"}
	none := v1alpha1.FailoverRecord{Epoch: 4, From: "east", To: "east"}
	begin := v1alpha1.FailoverRecord{Epoch: 1, To: "east"}
	lost := written(0, "east", 0, 0)
	wrong := errors.New("the rows say otherwise")
	for name, tt := range map[string]struct {
		reason   string
		records  []v1alpha1.FailoverRecord
		missing  []journal.Commit
		compared []int64 // epochs
		differs  error
		want     string
	}{
		"nothing":             {reason: "no failover, no loss"},
		"lost by itself":      {reason: "there is no failover to explain it", missing: lost, want: "1 acknowledged rows are missing though nothing failed over"},
		"lost by a reopening": {reason: "the role stayed, and so must the rows", records: []v1alpha1.FailoverRecord{begin, none}, missing: lost, want: "nothing failed over"},
		"as told":             {reason: "the record says as much", records: []v1alpha1.FailoverRecord{first}, missing: lost, compared: []int64{2}},
		"nothing missing":     {reason: "the record may still say that there is", records: []v1alpha1.FailoverRecord{first}, compared: []int64{2}, differs: wrong, want: "the rows say otherwise"},
		"the last one":        {reason: "only it can have lost something", records: []v1alpha1.FailoverRecord{first, second, none}, compared: []int64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			var marks []mark
			for _, r := range tt.records {
				marks = append(marks, mark{records: []v1alpha1.FailoverRecord{r}})
			}
			var compared []int64
			err := checkLoss(marks, tt.missing, func(r v1alpha1.FailoverRecord) error {
				compared = append(compared, r.Epoch)
				return tt.differs
			})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: error %v, want %q", tt.reason, err, tt.want)
			}
			if diff := cmp.Diff(tt.compared, compared); diff != "" {
				t.Errorf("%s: compared (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestMoveEnded(t *testing.T) {
	at := func(s int64) *metav1.MicroTime { return &metav1.MicroTime{Time: time.Unix(s, 0)} }
	group := func(active string, p *v1alpha1.PlannedFailoverStatus) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Status.ActiveSite, g.Status.PlannedFailover = active, p
		return g
	}
	done := func(to string, phase v1alpha1.PlannedPhase, finished int64) *v1alpha1.PlannedFailoverStatus {
		return &v1alpha1.PlannedFailoverStatus{To: to, Phase: phase, FinishedAt: at(finished)}
	}
	before := group("east", done("east", v1alpha1.PlannedSucceeded, 10))
	for name, tt := range map[string]struct {
		reason       string
		now          *v1alpha1.MysqlFailoverGroup
		ended, error bool
	}{
		"none yet":     {"only the one before is there", before, false, false},
		"under way":    {"it has no end", group("west", &v1alpha1.PlannedFailoverStatus{To: "west", Phase: v1alpha1.PlannedMoving}), false, false},
		"done":         {"", group("west", done("west", v1alpha1.PlannedSucceeded, 20)), true, false},
		"status ahead": {"the active site is not said yet", group("east", done("west", v1alpha1.PlannedSucceeded, 20)), false, false},
		"refused":      {"an outcome, and not the wanted one", group("east", done("west", v1alpha1.PlannedRefused, 20)), true, true},
		"reverted":     {"", group("east", done("west", v1alpha1.PlannedReverted, 20)), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ended, err := moveEnded(before, tt.now)
			if ended != tt.ended || (err != nil) != tt.error {
				t.Errorf("%s: ended %t, error %v", tt.reason, ended, err)
			}
		})
	}
}

// An overlap by the servers' timestamps belongs to the run in which it happened, and fails it.
func TestSampleByServers(t *testing.T) {
	all := append(written(0, "east", 0, 10_000), written(0, "west", 10_400, 20_000)...)
	witness := testimony{
		service: all, all: all, changes: journal.FenceMargins(all),
		byServers: []serverOverlap{{at: 11 * second}, {at: 40 * second}},
	}
	m := mark{site: "east", at: 10 * second, end: 13 * second, moved: true}
	got, err := witness.sample(m, 0, 20*second)
	if err == nil || got.ByServers != 1 {
		t.Errorf("sample %+v, %v: one overlap was in this run", got, err)
	}
}
