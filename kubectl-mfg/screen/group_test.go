// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

func group() report.MysqlFailoverGroupReport {
	return report.MysqlFailoverGroupReport{
		Metadata: report.Metadata{Name: "orders", Namespace: "shop"}, Summary: report.SummaryReady, ActiveSite: "paris",
		Facts: report.Facts{Source: report.Live},
		Sites: []report.Site{{Name: "paris", State: "Primary", Active: true, Fence: "open"}, {Name: "rome", State: "Replica"}},
	}
}

// TestGroupSays: what each fact of a report is called on the screen.
func TestGroupSays(t *testing.T) {
	noon := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	lag := 7.0
	progressing := func(status string, reason v1alpha1.Reason) []report.Condition {
		return []report.Condition{{Type: "Progressing", Status: status, Reason: reason, Message: "the message"}}
	}
	for name, tc := range map[string]struct {
		change func(*report.MysqlFailoverGroupReport)
		want   string
		not    string
	}{
		"Active since": {func(r *report.MysqlFailoverGroupReport) { at := noon.Add(-time.Minute); r.ActiveSiteSince = &at }, "paris (active for 60s)", ""},
		"Changing": {func(r *report.MysqlFailoverGroupReport) {
			r.Transition = &report.Transition{Kind: "Emergency", Step: "Opening", From: "rome", To: "paris", Reason: "ActiveSiteDown", StartedAt: noon.Add(-42 * time.Second)}
		}, "emergency rome -> paris, Opening; begun 42s ago: ActiveSiteDown", "since"},
		"Updating":      {func(r *report.MysqlFailoverGroupReport) { r.Conditions = progressing("True", "Updating") }, "Updating  the message [Updating]", ""},
		"Held up":       {func(r *report.MysqlFailoverGroupReport) { r.Conditions = progressing("False", "WaitingForTLS") }, "Held up   the message [WaitingForTLS]", ""},
		"Nothing to do": {func(r *report.MysqlFailoverGroupReport) { r.Conditions = progressing("False", "AsExpected") }, "", "the message"},
		"Nobody": {func(r *report.MysqlFailoverGroupReport) {
			r.Forecast = &report.Forecast{Message: "spec.failover.mode is Manual"}
		}, "If lost   no site would take over: spec.failover.mode is Manual", ""},
		"Last known": {func(r *report.MysqlFailoverGroupReport) {
			r.Facts.Source = report.LastKnown
			r.Forecast = &report.Forecast{Site: "rome", Message: "rome would take over", LostTransactionsStep: "0"}
		}, "If lost   last known: rome would take over; 0 transactions would be lost", ""},
		"Not of this one": {func(r *report.MysqlFailoverGroupReport) {
			r.Facts = report.Facts{Source: report.LastKnown, Operator: "v1"}
		}, "the operator answered, but not about this group", "not reachable"},
		"Clone not begun":  {func(r *report.MysqlFailoverGroupReport) { r.Sites[1].Clone = &report.Clone{Source: "paris"} }, "Cloning   rome from paris\n", "%"},
		"Data is replaced": {func(r *report.MysqlFailoverGroupReport) { r.Sites[1].State, r.Sites[1].LagSeconds = "Cloning", &lag }, "", "7s"},
		"Disk": {func(r *report.MysqlFailoverGroupReport) {
			r.Sites[1].Volume = &wire.VolumeUse{UsedBytes: 81, TotalBytes: 100}
		}, "81%", ""},
		"Disk of one": {func(r *report.MysqlFailoverGroupReport) {
			r.Sites[0].Volume = &wire.VolumeUse{UsedBytes: 41, TotalBytes: 100}
		}, "DISK", ""},
		"I29: kept fenced":       {func(r *report.MysqlFailoverGroupReport) { r.Sites[1].Fence, r.Sites[1].KeptFenced = "read-only", true }, "read-only, kept", ""},
		"I29: kept, and unknown": {func(r *report.MysqlFailoverGroupReport) { r.Sites[1].KeptFenced = true }, "  kept", ""},
		"I29: kept, and open":    {func(r *report.MysqlFailoverGroupReport) { r.Sites[0].KeptFenced = true }, "", "kept"},
		"Disk of none":           {func(*report.MysqlFailoverGroupReport) {}, "", "DISK"},
		"One": {func(r *report.MysqlFailoverGroupReport) {
			r.LastFailover = &report.Failover{Kind: "Emergency", From: "rome", To: "paris", LostTransactions: 1}
		}, "at least 1 transaction lost", ""},
		"Reverted": {func(r *report.MysqlFailoverGroupReport) {
			r.LastFailover = &report.Failover{Kind: "Planned", From: "paris", To: "paris", Reverted: true, IntendedTo: "rome", LossExact: true}
		}, "last failover: planned paris -> rome, reverted: paris stayed active", "paris -> paris"},
		"Reverted long ago": {func(r *report.MysqlFailoverGroupReport) {
			r.LastFailover = &report.Failover{Kind: "Planned", From: "paris", To: "paris", Reverted: true, LossExact: true}
		}, "last failover: planned, reverted: paris stayed active", "paris -> paris"},
	} {
		r := group()
		tc.change(&r)
		got := Group(r, Options{Now: noon})
		if !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not) {
			t.Errorf("%s: want %q, and not %q:\n%s", name, tc.want, tc.not, got)
		}
	}
}

// TestADiskThatFillsUpIsMarked: a MySQL without room stops.
func TestADiskThatFillsUpIsMarked(t *testing.T) {
	for used, want := range map[int64]text{79: {s: "79%"}, 80: {"80%", warn}, 89: {"89%", warn}, 90: {"90%", bad}} {
		if got := diskCell(&wire.VolumeUse{UsedBytes: used, TotalBytes: 100}); got != want {
			t.Errorf("%d: %+v, want %+v", used, got, want)
		}
	}
	if got := diskCell(nil); got.s != unknown {
		t.Errorf("not known: %+v", got)
	}
}

// TestRememberedIsMarked: a list and a tree do not show what is merely remembered as if it were seen.
func TestRememberedIsMarked(t *testing.T) {
	r := group()
	all := []report.MysqlFailoverGroupReport{r}
	if got := List(all, Options{}); strings.Contains(got, "FACTS") {
		t.Errorf("live facts need no column:\n%s", got)
	}
	all[0].Facts.Source = report.LastKnown
	all[0].Problems = []report.Problem{{Reason: "OperatorDown", Message: "no operator leads"}}
	if got := List(all, Options{Width: 40}); !strings.Contains(got, "LastKnown") {
		t.Errorf("the list does not mark it:\n%s", got)
	}
	got := Tree(all, Options{})
	for _, want := range []string{"last known", "no operator leads [OperatorDown]", "fence ?"} {
		if !strings.Contains(got, want) {
			t.Errorf("the tree lacks %q:\n%s", want, got)
		}
	}
}

// TestSplitBrainIsSeen: two writers are seen without being looked for, and nothing on the screen says that the second is fenced.
func TestSplitBrainIsSeen(t *testing.T) {
	well, torn := group(), group()
	torn.Metadata.Name, torn.Health, torn.Summary = "zebra", report.SplitBrain, report.SummarySplitBrain
	torn.Sites[1] = report.Site{Name: "rome", State: "Fenced", Fence: "open", Foreign: true}
	lines := strings.Split(List([]report.MysqlFailoverGroupReport{well, torn}, Options{Width: 80}), "\n")
	if !strings.Contains(lines[1], "zebra   SplitBrain") {
		t.Errorf("it does not come first:\n%s", strings.Join(lines, "\n"))
	}
	for what, got := range map[string]string{"screen": Group(torn, Options{}), "tree": Tree([]report.MysqlFailoverGroupReport{torn}, Options{})} {
		if !strings.Contains(got, "writable") || strings.Contains(got, "fenced") {
			t.Errorf("the %s calls a writable site fenced:\n%s", what, got)
		}
	}
	if got := List([]report.MysqlFailoverGroupReport{torn}, Options{Color: true}); !strings.Contains(got, string(bad)+"SplitBrain") {
		t.Errorf("it is not red:\n%q", got)
	}
}

// TestTroubleComesFirst: a list may be longer than the screen.
func TestTroubleComesFirst(t *testing.T) {
	var all []report.MysqlFailoverGroupReport
	for name, health := range map[string]report.Health{"a": report.Healthy, "b": report.Degraded, "c": report.Unknown, "d": report.SplitBrain, "e": report.Healthy} {
		r := group()
		r.Metadata.Name, r.Health = name, health
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b report.MysqlFailoverGroupReport) int {
		return strings.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	var order string
	for _, line := range strings.Split(List(all, Options{Width: 80}), "\n")[1:6] {
		order += line[:1]
	}
	if order != "dbcae" {
		t.Errorf("in the order %s", order)
	}
}
