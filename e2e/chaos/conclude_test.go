// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// move is a record of a failover that lost rows, counted as they were written: one in each transaction.
func move(from, to string, lost int64) v1alpha1.FailoverRecord {
	r := v1alpha1.FailoverRecord{From: from, To: to, LostTransactions: lost}
	if lost > 0 {
		r.LostRowsState = v1alpha1.LostRowsCounted
		r.LostRows = []v1alpha1.LostRows{{Inserted: lost}}
	}
	return r
}

// moved is the verdict over failovers of which the first left east and the last one ended at a site.
func moved(missing int, records ...v1alpha1.FailoverRecord) stage.Verdict {
	v := stage.Verdict{From: "east", To: "east", Changes: []journal.Change{{From: "east", To: "west"}}, Records: records}
	for _, r := range records {
		v.To = r.To
		v.Lost += r.LostTransactions
	}
	v.Missing = make([]journal.Commit, missing)
	return v
}

func unknown(n int) stage.Testimony {
	return stage.Testimony{Direct: []journal.Journal{{Unknown: make([]journal.Attempt, n)}}}
}

func nothing(context.Context, *Scene) error { return nil }

func TestConclude(t *testing.T) {
	var (
		east     = moved(0)
		west     = moved(0, move("east", "west", 0))
		back     = moved(0, move("east", "west", 0), move("west", "east", 0))
		failed   = errors.New("it went wrong")
		split    = moved(0)
		unseen   = moved(0, move("east", "west", 0))
		fewRows  = move("east", "west", 2)
		notKnown = move("east", "west", 2)
	)
	split.Overlaps = []journal.Overlap{{Reason: "at the same time"}}
	unseen.Changes = nil
	fewRows.LostRows[0].Inserted = 1
	notKnown.LostRowsState = "Purged"
	for name, tt := range map[string]struct {
		sc      Scenario
		v       stage.Verdict
		heard   stage.Testimony
		foreign int64
		// playErr, healErr, hearErr and compareErr are what goes wrong on the way.
		playErr, healErr, hearErr, compareErr error

		want     string // part of the error, none if empty
		compared int    // how many records were compared with the rows
		pictures int    // how often it was written down what there was to see
	}{
		"all is well":             {v: east},
		"the scenario fails":      {v: east, playErr: failed, want: "it went wrong", pictures: 1},
		"faults cannot be undone": {v: east, healErr: failed, want: "it went wrong"},
		"the group never heals":   {v: east, hearErr: failed, want: "it went wrong", pictures: 1},
		"two writers":             {v: split, want: "two sites accepted commits", pictures: 1},
		"a move nobody saw":       {v: unseen, want: "nothing is proven", compared: 1, pictures: 1},

		"may move, and does":     {v: west, compared: 1},
		"may move, and does not": {v: east},
		"stays, and does":        {sc: Scenario{Role: stays}, v: east},
		"stays, reopened":        {sc: Scenario{Role: stays}, v: moved(0, move("east", "east", 0))},
		"stays, but moves":       {sc: Scenario{Role: stays}, v: west, want: "was to stay with east", compared: 1, pictures: 1},
		"stays, but was away":    {sc: Scenario{Role: stays}, v: back, want: "was to stay with east", pictures: 1},
		"stays, no record of it": {sc: Scenario{Role: stays}, v: stage.Verdict{From: "east", To: "west", Changes: west.Changes}, want: "was to stay", pictures: 1},
		"moves, and does":        {sc: Scenario{Role: moves}, v: west, compared: 1},
		"moves, and comes back":  {sc: Scenario{Role: moves}, v: back},
		"moves, but stays":       {sc: Scenario{Role: moves}, v: east, want: "was to leave east", pictures: 1},
		"moves, but is reopened": {sc: Scenario{Role: moves}, v: moved(0, move("east", "east", 0)), want: "was to leave east", pictures: 1},

		"loses what is told":        {v: moved(2, move("east", "west", 2)), compared: 1},
		"lossless, and loses":       {sc: Scenario{Lossless: true}, v: moved(2, move("east", "west", 2)), want: "and none may be", pictures: 1},
		"lossless, unacknowledged":  {sc: Scenario{Lossless: true}, v: moved(0, move("east", "west", 2)), heard: unknown(2), compared: 1},
		"loses more than is told":   {v: moved(3, move("east", "west", 2)), want: "says that 2 were lost", pictures: 1},
		"loses without a failover":  {v: moved(1), want: "says that 0 were lost", pictures: 1},
		"tells more than was there": {v: moved(1, move("east", "west", 4)), heard: unknown(2), want: "only 1 rows are missing", pictures: 1},
		"tells the unknown":         {v: moved(1, move("east", "west", 3)), heard: unknown(2), compared: 1},
		"tells what is not ours":    {v: moved(1, move("east", "west", 3)), foreign: 2},
		"counts too few rows":       {v: moved(2, fewRows), want: "counts 1 rows", pictures: 1},
		"counted no rows":           {v: moved(2, notKnown), want: "counts 2 rows (Purged", pictures: 1},
		"the rows say otherwise":    {v: west, compareErr: failed, want: "it went wrong", compared: 1, pictures: 1},

		"dr-only is promoted": {v: moved(0, move("east", "south", 0)), want: "south is dr-only", compared: 1, pictures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			compared, pictures := 0, 0
			tt.sc.Play = func(context.Context, *Scene) error { return tt.playErr }
			s := &Scene{Active: "east", Candidate: "west", DR: "south", foreign: tt.foreign}
			err := act(t.Context(), tt.sc, s, crew{
				diagnose: func() { pictures++ },
				heal:     func(context.Context) error { return tt.healErr },
				hear: func(context.Context, *result) (stage.Verdict, stage.Testimony, error) {
					return tt.v, tt.heard, tt.hearErr
				},
				compare: func(context.Context, v1alpha1.FailoverRecord, []journal.Commit) error {
					compared++
					return tt.compareErr
				},
			}, &result{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if compared != tt.compared || pictures != tt.pictures {
				t.Errorf("%d records were compared and %d diagnoses made, want %d and %d", compared, pictures, tt.compared, tt.pictures)
			}
		})
	}
}

// A group without a dr-only site has none that may not be promoted.
// A machine that goes on ends what was under way (docs/guarantees.md), and no more: I1.
func TestUnderWayI1(t *testing.T) {
	servers := func(site string, count int) stage.Verdict {
		v := moved(0, move("east", "west", 0))
		v.ByServers = []commits.Overlap{{Site: site, Count: count}}
		return v
	}
	acknowledged := func(earlier, later journal.Period) stage.Verdict {
		v := moved(0, move("east", "west", 0))
		v.Overlaps = []journal.Overlap{{Earlier: earlier, Later: later}}
		return v
	}
	long := journal.Period{Site: "west", Commits: 900}
	for name, tt := range map[string]struct {
		may  int
		v    stage.Verdict
		want bool
	}{
		"one for each connection":       {7, servers("east", 7), true},
		"more than there are":           {7, servers("east", 8), false},
		"of another site":               {7, servers("west", 1), false},
		"where nothing stood still":     {0, servers("east", 1), false},
		"one of them is acknowledged":   {7, acknowledged(long, journal.Period{Site: "east", Commits: 1}), true},
		"the new one goes on after it":  {7, acknowledged(journal.Period{Site: "east", Commits: 1}, long), true},
		"many of them are acknowledged": {7, acknowledged(long, journal.Period{Site: "east", Commits: 8}), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := exceptUnderWay(Scenario{UnderWay: tt.may}, &Scene{Active: "east"}, tt.v)
			if err := got.CheckWriters(); (err == nil) != tt.want {
				t.Errorf("the writers are judged %v", err)
			}
		})
	}
}

func TestNoDR(t *testing.T) {
	if err := checkDR(moved(0, v1alpha1.FailoverRecord{}), &Scene{Active: "east"}); err != nil {
		t.Error(err)
	}
}

// I4: a site that was left alone commits nothing of its own after its lease.
func TestALeaseEndsByTheServersTimestampsI4(t *testing.T) {
	alone := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	end := alone.Add(shutAfter())
	own := func(site string, at time.Time) commits.Transaction {
		return commits.Transaction{Site: site, At: at, Original: at, Server: 1, Writer: 1}
	}
	applied := own("east", end.Add(time.Second))
	applied.Server = 2
	back := move("west", "east", 0)
	back.StartedAt = metav1.NewMicroTime(end.Add(time.Minute))
	for name, tt := range map[string]struct {
		logs    []commits.Transaction
		unread  string
		records []v1alpha1.FailoverRecord
		any     bool // nobody was left alone
		fails   bool
	}{
		"in time":                 {logs: []commits.Transaction{own("east", end.Add(-1))}},
		"too late":                {logs: []commits.Transaction{own("east", end.Add(-1)), own("east", end)}, fails: true},
		"too late, not cut off":   {logs: []commits.Transaction{own("east", end)}, any: true},
		"another site":            {logs: []commits.Transaction{own("west", end.Add(time.Second))}},
		"applied from another":    {logs: []commits.Transaction{applied}},
		"it is its turn again":    {logs: []commits.Transaction{own("east", end.Add(2*time.Minute))}, records: []v1alpha1.FailoverRecord{back}},
		"before its turn":         {logs: []commits.Transaction{own("east", end.Add(time.Second))}, records: []v1alpha1.FailoverRecord{back}, fails: true},
		"the logs cannot be read": {unread: "they are encrypted", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scene{Active: "east", alone: alone}
			if tt.any {
				s.alone = time.Time{}
			}
			err := checkAlone(moved(0, tt.records...), stage.Testimony{Logs: tt.logs, Unread: tt.unread}, s)
			if (err != nil) != tt.fails {
				t.Errorf("error = %v", err)
			}
		})
	}
}

// Whatever happened, a failure of one part does not hide that of another one.
func TestBothErrorsAreTold(t *testing.T) {
	sc := Scenario{Play: func(context.Context, *Scene) error { return errors.New("first") }}
	err := act(t.Context(), sc, &Scene{}, crew{
		diagnose: func() {}, heal: func(context.Context) error { return nil },
		hear: func(context.Context, *result) (stage.Verdict, stage.Testimony, error) {
			return stage.Verdict{}, stage.Testimony{}, errors.New("second")
		},
	}, &result{})
	if err == nil || err.Error() != "first\nsecond" {
		t.Errorf("error = %v", err)
	}
}

// What is not exact yet is not judged yet.
func TestSettledLoss(t *testing.T) {
	exact := func(epoch, lost int64, state string) v1alpha1.FailoverRecord {
		return v1alpha1.FailoverRecord{Epoch: epoch, From: "east", To: "west", LossExact: true, LostTransactions: lost, LostRowsState: state}
	}
	for name, tt := range map[string]struct {
		record v1alpha1.FailoverRecord
		away   bool
		want   bool
	}{
		"exact and counted": {record: exact(8, 2, v1alpha1.LostRowsCounted), want: true},
		"nothing lost":      {record: exact(8, 0, ""), want: true},
		"not counted":       {record: exact(8, 2, "")},
		"not exact":         {record: v1alpha1.FailoverRecord{Epoch: 8, From: "east", To: "west"}},
		"of earlier":        {record: v1alpha1.FailoverRecord{Epoch: 7, From: "east", To: "west", LostTransactions: 2}, want: true},
		"the first of all":  {record: v1alpha1.FailoverRecord{Epoch: 8, To: "west"}, want: true},
		"reopened":          {record: v1alpha1.FailoverRecord{Epoch: 8, From: "west", To: "west"}, want: true},
		"a site is away":    {record: exact(8, 0, ""), away: true},
	} {
		t.Run(name, func(t *testing.T) {
			group := &v1alpha1.MysqlFailoverGroup{}
			group.Spec.Sites = []v1alpha1.Site{{Name: "west"}}
			group.Status = v1alpha1.MysqlFailoverGroupStatus{
				ActiveSite: "west", ReadySites: "1/1", Sites: []v1alpha1.SiteStatus{{Name: "west", State: v1alpha1.SitePrimary}},
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
				Failovers:  []v1alpha1.FailoverRecord{tt.record},
			}
			if tt.away {
				group.Status.Sites[0].State = v1alpha1.SiteUnreachable
			}
			if err := settledLoss(7)(group); (err == nil) != tt.want {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestRunnerCountsWhatFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string
		fine bool
	}{
		"all pass":     {want: []string{"one " + outcomePassed, "two " + outcomePassed}, fine: true},
		"one does not": {err: errors.New("it went wrong"), want: []string{"one " + outcomePassed, "two " + outcomeFailed + " it went wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "chaos.json")
			r := &runner{
				Stage: stage.Empty(io.Discard), options: options{out: path}, results: newResults("b"),
				play: func(_ context.Context, sc Scenario, _ *result) error {
					if sc.Name == "two" {
						return tt.err
					}
					return nil
				},
			}
			err := r.all(t.Context(), []Scenario{{Name: "one", Play: nothing}, {Name: "two", Play: nothing}})
			if (err == nil) != tt.fine {
				t.Errorf("error = %v", err)
			}
			wrote, err := readResults(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range wrote.Scenarios {
				got = append(got, strings.TrimSpace(s.Name+" "+s.Outcome+" "+s.Error))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySiteIsTried(t *testing.T) {
	refused := []journal.Journal{{States: []journal.State{{At: 11}}}}
	for name, tt := range map[string]struct {
		journals map[string][]journal.Journal
		fine     bool
	}{
		"both":     {map[string][]journal.Journal{"east": refused, "west": refused}, true},
		"only one": {map[string][]journal.Journal{"east": refused}, false},
	} {
		t.Run(name, func(t *testing.T) {
			peek := func(site string) []journal.Journal { return tt.journals[site] }
			if err := checkTried(peek, 10, "east", "west"); (err == nil) != tt.fine {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestTried(t *testing.T) {
	east := journal.Server{Site: "east"}
	for name, tt := range map[string]struct {
		journals []journal.Journal
		want     bool
	}{
		"no writer":              {},
		"one that is mute":       {journals: []journal.Journal{{}}},
		"refused before":         {journals: []journal.Journal{{States: []journal.State{{Server: east, At: 10}}}}},
		"refused since":          {journals: []journal.Journal{{}, {States: []journal.State{{Server: east, At: 9}, {Server: east, At: 11}}}}, want: true},
		"sent before, lost then": {journals: []journal.Journal{{Unknown: []journal.Attempt{{Start: 9, GaveUp: 12}}}}},
		"sent since, lost":       {journals: []journal.Journal{{Unknown: []journal.Attempt{{Start: 11, GaveUp: 12}}}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tried(tt.journals, 10); got != tt.want {
				t.Errorf("tried = %t", got)
			}
		})
	}
}
