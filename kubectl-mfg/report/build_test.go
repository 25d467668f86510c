// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "message of " + reason}
}

// healthy is a group of two sites that is well, and what the operator sees of it.
func healthy() (*v1alpha1.MysqlFailoverGroup, LiveView) {
	cr := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"},
		Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{
			{Name: "paris", Role: v1alpha1.PrimaryCandidate}, {Name: "rome", Role: v1alpha1.PrimaryCandidate},
		}},
		Status: v1alpha1.MysqlFailoverGroupStatus{
			ActiveSite: "paris", Epoch: 3, Phase: v1alpha1.GroupRunning,
			Sites: []v1alpha1.SiteStatus{
				{Name: "paris", State: v1alpha1.SitePrimary}, {Name: "rome", State: v1alpha1.SiteReplica},
			},
			Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "AsExpected")},
		},
	}
	view := LiveView{Status: wire.StatusList{
		Operator: "v0.1.0", IssuedAt: noon,
		Groups: []wire.GroupStatus{{
			Namespace: "shop", Group: "orders", ActiveSite: "paris", Epoch: 3, ObservedAt: noon.Add(-time.Second),
			Topology: "Healthy", Verdict: "Nothing",
			Sites: []wire.SiteStatus{
				{Name: "paris", State: "Primary", Reachable: true, SidecarReachable: true, Writable: true},
				{Name: "rome", State: "Replica", Reachable: true, SidecarReachable: true},
			},
		}},
	}}
	return cr, view
}

// opened lets the active site have been opened that long after the operator's newest look, which saw it closed.
func opened(cr *v1alpha1.MysqlFailoverGroup, v *LiveView, later time.Duration) {
	live := &v.Status.Groups[0]
	live.Sites[0].Writable, live.Sites[0].State = false, "Fenced"
	cr.Status.Failovers = []v1alpha1.FailoverRecord{{
		Epoch: 3, Kind: v1alpha1.FailoverPlanned, From: "rome", To: "paris", OpenedAt: metav1.NewMicroTime(live.ObservedAt.Add(later)),
	}}
}

func TestHealth(t *testing.T) {
	type group = v1alpha1.MysqlFailoverGroup
	tests := map[string]struct {
		reason  string
		change  func(cr *group, v *LiveView)
		summary Summary
		want    []v1alpha1.Reason // reason, and site
	}{
		"Healthy": {
			reason: "nothing speaks against it", change: func(*group, *LiveView) {},
			summary: SummaryReady,
		},
		"HealthyByLastKnown": {
			reason: "an operator that only this user cannot ask is no problem of the group",
			change: func(_ *group, v *LiveView) { *v = LiveView{Missing: "forbidden", Denied: true} }, summary: SummaryReady,
		},
		"OperatorSilent": {
			reason: "what the status remembers is no health where the operator should have answered",
			change: func(_ *group, v *LiveView) { *v = LiveView{Missing: "no answer within 3s"} }, summary: SummaryUnknown,
			want: []v1alpha1.Reason{v1alpha1.ReasonOperatorSilent},
		},
		"NotLookedAfter": {
			reason: "an operator that does not know the group keeps no status of it true",
			change: func(_ *group, v *LiveView) { v.Status.Groups = nil }, summary: SummaryUnknown,
			want: []v1alpha1.Reason{v1alpha1.ReasonOperatorSilent},
		},
		"OperatorSilentInAnOutage": {
			reason: "what the status says of an outage is more than that nobody answers",
			change: func(cr *group, v *LiveView) {
				*v = LiveView{Missing: "no answer within 3s"}
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "ActiveSiteSilent")}
			},
			summary: SummaryUnavailable, want: []v1alpha1.Reason{v1alpha1.ReasonOperatorSilent, "ActiveSiteSilent"},
		},
		"SidecarOfActiveSilent": {
			reason:  "a site that cannot be fenced serves on: that is no outage, and must be seen",
			change:  func(_ *group, v *LiveView) { v.Status.Groups[0].Sites[0].SidecarReachable = false },
			summary: SummaryDegraded, want: []v1alpha1.Reason{v1alpha1.ReasonSidecarSilent + " paris"},
		},
		"ReplicaLacksRows": {
			reason: "a replica that skips transactions looks whole by its GTID set, and must not take over",
			change: func(cr *group, v *LiveView) {
				cr.Status.Sites[1].State, cr.Status.Sites[1].Reason = v1alpha1.SiteReplica, v1alpha1.ReasonReplicationFiltered
				v.Status.Groups[0].Sites[1].Message = "a replication filter is set"
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{v1alpha1.ReasonReplicationFiltered + " rome"},
		},
		"ReplicaLackedRowsBefore": {
			reason: "what was noted of another state is no problem of this one",
			change: func(cr *group, v *LiveView) {
				cr.Status.Sites[1].State, cr.Status.Sites[1].Reason = v1alpha1.SiteDetached, v1alpha1.ReasonReplicationFiltered
				v.Status.Groups[0].Sites[1].Message = "follows paris"
			},
			summary: SummaryReady,
		},
		"CloningDoesNotAnswer": {
			reason: "a site whose data is replaced does not answer at times; its state says more",
			change: func(_ *group, v *LiveView) {
				v.Status.Groups[0].Sites[1] = wire.SiteStatus{Name: "rome", State: "Cloning"}
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SiteCloning rome"},
		},
		"FencedDoesNotAnswer": {
			reason: "of a silent site it is not known that it is fenced",
			change: func(_ *group, v *LiveView) {
				v.Status.Groups[0].Sites[1] = wire.SiteStatus{Name: "rome", State: "Fenced"}
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SiteUnreachable rome"},
		},
		"OperatorDown": {
			reason: "without an operator nothing fails over",
			change: func(_ *group, v *LiveView) { *v = LiveView{Missing: "no endpoints", Down: true} }, summary: SummaryDegraded,
			want: []v1alpha1.Reason{v1alpha1.ReasonOperatorDown},
		},
		"SeveralWritable": {
			reason: "the worst case is said first, whatever the status says",
			change: func(_ *group, v *LiveView) {
				v.Status.Groups[0].Sites[1].Writable, v.Status.Groups[0].Sites[1].State = true, "Fenced"
			},
			summary: SummarySplitBrain, want: []v1alpha1.Reason{v1alpha1.ReasonSeveralWritableSites, v1alpha1.ReasonForeignWriter + " rome"},
		},
		"SeveralWritableWhileTheRoleMoves": {
			reason: "nothing hides two writers, also not a failover or an outage",
			change: func(cr *group, v *LiveView) {
				cr.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, From: "rome", To: "paris"}
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "FailingOver")}
				v.Status.Groups[0].Sites[1].Writable = true
			},
			summary: SummarySplitBrain, want: []v1alpha1.Reason{v1alpha1.ReasonSeveralWritableSites, "FailingOver", v1alpha1.ReasonForeignWriter + " rome"},
		},
		"SeveralWritableAsLastKnown": {
			reason: "who may not ask the operator reads it from the status",
			change: func(cr *group, v *LiveView) {
				*v = LiveView{Missing: "forbidden", Denied: true}
				cr.Status.Sites[1] = v1alpha1.SiteStatus{Name: "rome", State: v1alpha1.SiteFenced, Reason: v1alpha1.ReasonForeignWriter, Message: "is writable although it is not active"}
			},
			summary: SummarySplitBrain, want: []v1alpha1.Reason{v1alpha1.ReasonSeveralWritableSites, v1alpha1.ReasonForeignWriter + " rome"},
		},
		"SecondWriterWasFenced": {
			reason: "what the operator sees now counts, not what the status remembers",
			change: func(cr *group, v *LiveView) {
				cr.Status.Sites[1].Reason = v1alpha1.ReasonForeignWriter
			},
			summary: SummaryReady,
		},
		"SecondWriterIsSilent": {
			reason: "of a silent site nobody knows whether it accepts writes",
			change: func(cr *group, v *LiveView) {
				cr.Status.Sites[1].Reason = v1alpha1.ReasonForeignWriter
				v.Status.Groups[0].Sites[1] = wire.SiteStatus{Name: "rome", State: "Unreachable", Writable: true}
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SiteUnreachable rome"},
		},
		"OneWriterThatIsNotActive": {
			reason: "one writer in the wrong place is an outage of the Service, and nothing to merge",
			change: func(_ *group, v *LiveView) {
				sites := v.Status.Groups[0].Sites
				sites[0].Writable, sites[1].Writable, sites[1].State = false, true, "Fenced"
			},
			summary: SummaryUnavailable, want: []v1alpha1.Reason{v1alpha1.ReasonActiveSiteReadOnly + " paris", v1alpha1.ReasonForeignWriter + " rome"},
		},
		"WritableBehindOfflineMode": {
			reason: "a site that is cloned, or gets new keys, is writable while no client gets in",
			change: func(_ *group, v *LiveView) {
				v.Status.Groups[0].Sites[1].Writable, v.Status.Groups[0].Sites[1].State = true, "Cloning"
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SiteCloning rome"},
		},
		"ActiveReadOnly": {
			reason: "a group without a writer is unavailable, although its status may not say so yet",
			change: func(_ *group, v *LiveView) { v.Status.Groups[0].Sites[0].Writable = false }, summary: SummaryUnavailable,
			want: []v1alpha1.Reason{v1alpha1.ReasonActiveSiteReadOnly + " paris"},
		},
		"OpenedSinceTheLook": {
			reason: "right after a failover the newest look at the sites may be from before the active site was opened",
			change: func(cr *group, v *LiveView) {
				opened(cr, v, time.Millisecond)
			},
			summary: SummaryReady,
		},
		"ClosedSinceItWasOpened": {
			reason: "a look from after the opening counts",
			change: func(cr *group, v *LiveView) {
				opened(cr, v, -time.Millisecond)
			},
			summary: SummaryUnavailable, want: []v1alpha1.Reason{v1alpha1.ReasonActiveSiteReadOnly + " paris", "SiteFenced paris"},
		},
		"OpenedByAnotherClock": {
			reason: "a look that seems much older than the opening was made by another clock, and hides nothing",
			change: func(cr *group, v *LiveView) {
				opened(cr, v, lookAge)
			},
			summary: SummaryUnavailable, want: []v1alpha1.Reason{v1alpha1.ReasonActiveSiteReadOnly + " paris", "SiteFenced paris"},
		},
		"ReplicaUnreachable": {
			reason: "the operator's newest look wins over the status; Ready sums up and is not repeated",
			change: func(cr *group, v *LiveView) {
				v.Status.Groups[0].Sites[1] = wire.SiteStatus{Name: "rome", State: "Unreachable"}
				cr.Status.Conditions = []metav1.Condition{
					condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "SiteUnreachable"),
					condition(v1alpha1.ConditionReplicationHealthy, metav1.ConditionFalse, "SiteUnreachable"),
				}
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SiteUnreachable rome"},
		},
		"ReadyFalseAlone": {
			reason: "what only Ready says must not be lost",
			change: func(cr *group, _ *LiveView) {
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "SomethingNew")}
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"SomethingNew"},
		},
		"Blocked": {
			change: func(cr *group, _ *LiveView) {
				cr.Status.Conditions = append(cr.Status.Conditions, condition(v1alpha1.ConditionFailoverBlocked, metav1.ConditionTrue, "Cooldown"))
			},
			summary: SummaryDegraded, want: []v1alpha1.Reason{"Cooldown"},
		},
		"Unavailable": {
			change: func(cr *group, _ *LiveView) {
				cr.Status.Conditions = append(cr.Status.Conditions, condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "AllSitesSilent"))
			},
			summary: SummaryUnavailable, want: []v1alpha1.Reason{"AllSitesSilent"},
		},
		"FailingOver": {
			reason: "the target of a change is not open yet: that is one problem, not three",
			change: func(cr *group, v *LiveView) {
				cr.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "rome", To: "paris"}
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "FailingOver")}
				v.Status.Groups[0].Sites[0] = wire.SiteStatus{Name: "paris", State: "Fenced", Reachable: true}
			},
			summary: SummaryFailingOver, want: []v1alpha1.Reason{"FailingOver"},
		},
		"Bootstrapping": {
			change: func(cr *group, v *LiveView) {
				cr.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverBootstrap, To: "paris"}
				cr.Status.Phase = v1alpha1.GroupBootstrapping
				*v = LiveView{Missing: "x", Denied: true}
			},
			summary: SummaryBootstrapping, want: []v1alpha1.Reason{"FailingOver"},
		},
		"New": {
			reason: "nobody has looked at it yet",
			change: func(cr *group, v *LiveView) {
				cr.Status = v1alpha1.MysqlFailoverGroupStatus{}
				v.Status.Groups = nil
			},
			summary: SummaryBootstrapping, want: []v1alpha1.Reason{v1alpha1.ReasonNotObserved},
		},
		"Stale": {
			reason: "a poll loop that hangs shows by the operator's own clock",
			change: func(_ *group, v *LiveView) { v.Status.Groups[0].ObservedAt = noon.Add(-11 * time.Second) }, summary: SummaryDegraded,
			want: []v1alpha1.Reason{v1alpha1.ReasonStale},
		},
		"SlowPollIsNotStale": {
			change: func(cr *group, v *LiveView) {
				cr.Spec.Failover.PollInterval = metav1.Duration{Duration: 10 * time.Second}
				v.Status.Groups[0].ObservedAt = noon.Add(-40 * time.Second)
			},
			summary: SummaryReady,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cr, view := healthy()
			tc.change(cr, &view)
			r := Build(cr, view)
			var got []v1alpha1.Reason
			for _, p := range r.Problems {
				said := p.Reason
				if p.Site != "" {
					said += v1alpha1.Reason(" " + p.Site)
				}
				got = append(got, said)
				if p.Message == "" {
					t.Errorf("problem %s says nothing", p.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if (r.Health == SplitBrain) != (tc.summary == SummarySplitBrain) {
				t.Errorf("%s: %s", tc.reason, r.Health)
			}
			if (r.Health == Healthy) != (len(tc.want) == 0) || r.Summary != tc.summary {
				t.Errorf("%s: %s, %s, want %s", tc.reason, r.Health, r.Summary, tc.summary)
			}
		})
	}
}

// TestNewerEpochWins: between a status and a live view of different ages, the epoch decides who is active.
func TestNewerEpochWins(t *testing.T) {
	for name, tc := range map[string]struct {
		live int64
		want string
	}{"LiveOlder": {2, "paris"}, "Same": {3, "paris"}, "LiveNewer": {4, "rome"}} {
		cr, view := healthy()
		view.Status.Groups[0].Epoch = tc.live
		if tc.live != 3 {
			view.Status.Groups[0].ActiveSite = "rome"
		}
		r := Build(cr, view)
		if r.ActiveSite != tc.want || r.Epoch != max(3, tc.live) {
			t.Errorf("%s: %s under epoch %d, want %s", name, r.ActiveSite, r.Epoch, tc.want)
		}
		for _, s := range r.Sites {
			if s.Active != (s.Name == tc.want) {
				t.Errorf("%s: site %s active = %t", name, s.Name, s.Active)
			}
		}
	}
}

// TestOlderLiveView: what was decided about a former active site is not shown beside the newer status.
func TestOlderLiveView(t *testing.T) {
	for name, tc := range map[string]struct {
		live int64
		want bool
	}{"Older": {2, false}, "Same": {3, true}, "Newer": {4, true}} {
		cr, view := healthy()
		live := &view.Status.Groups[0]
		live.Epoch, live.Hold, live.Forecast = tc.live, true, &wire.Forecast{Site: "rome"}
		if r := Build(cr, view); (r.Decision != nil) != tc.want || r.Hold != tc.want || (r.Forecast != nil) != tc.want {
			t.Errorf("%s: decision %v, hold %t, forecast %v", name, r.Decision, r.Hold, r.Forecast)
		}
	}
}

// TestNoForecast: nobody takes over by itself without an operator, and while the role moves the remembered one is of the
// site that lost it.
func TestNoForecast(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup, *LiveView)
		want   bool
	}{
		"Denied": {func(_ *v1alpha1.MysqlFailoverGroup, v *LiveView) { v.Denied = true }, true},
		"Down":   {func(_ *v1alpha1.MysqlFailoverGroup, v *LiveView) { v.Down = true }, false},
		"Transition": {func(g *v1alpha1.MysqlFailoverGroup, _ *LiveView) {
			g.Status.Transition = &v1alpha1.Transition{To: "rome"}
		}, false},
	} {
		cr, view := healthy()
		cr.Status.Forecast, view.Status.Groups = &v1alpha1.Forecast{Site: "rome"}, nil
		tc.change(cr, &view)
		if got := Build(cr, view).Forecast != nil; got != tc.want {
			t.Errorf("%s: a forecast %t, want %t", name, got, tc.want)
		}
		if got := BuildExplained(cr, view, nil).Forecast != nil; got != tc.want {
			t.Errorf("%s: explained: a forecast %t, want %t", name, got, tc.want)
		}
	}
}

// TestReverted: a planned failover that ended where it began is told as one, with its target as long as the status has it.
func TestReverted(t *testing.T) {
	at := func(s int) *metav1.MicroTime {
		t := metav1.NewMicroTime(noon.Add(time.Duration(s) * time.Second))
		return &t
	}
	record := v1alpha1.FailoverRecord{Epoch: 5, Kind: v1alpha1.FailoverPlanned, From: "paris", To: "paris", StartedAt: *at(0), OpenedAt: *at(4)}
	planned := func(finished int) *v1alpha1.PlannedFailoverStatus {
		return &v1alpha1.PlannedFailoverStatus{From: "paris", To: "rome", Phase: v1alpha1.PlannedReverted, FinishedAt: at(finished)}
	}
	moved, forced := record, record
	moved.To, forced.Kind = "rome", v1alpha1.FailoverForced
	for name, tc := range map[string]struct {
		record   v1alpha1.FailoverRecord
		planned  *v1alpha1.PlannedFailoverStatus
		reverted bool
		intended string
	}{
		"ItsOwn":  {record, planned(3), true, "rome"},
		"Later":   {record, planned(60), true, ""},
		"Nothing": {record, nil, true, ""},
		"Moved":   {moved, planned(3), false, ""},
		"Forced":  {forced, planned(3), false, ""},
	} {
		cr, view := healthy()
		cr.Status.Failovers, cr.Status.PlannedFailover = []v1alpha1.FailoverRecord{tc.record}, tc.planned
		f, c := Build(cr, view).LastFailover, BuildHistory(cr, 0).Items[0]
		if f.Reverted != tc.reverted || f.IntendedTo != tc.intended || c.Reverted != tc.reverted || c.IntendedTo != tc.intended {
			t.Errorf("%s: %t %q, in history %t %q", name, f.Reverted, f.IntendedTo, c.Reverted, c.IntendedTo)
		}
	}
}

// TestSites: order of the spec, then what only the operator sees; nothing is claimed of a silent site.
func TestSites(t *testing.T) {
	cr, view := healthy()
	sites := &view.Status.Groups[0].Sites
	*sites = []wire.SiteStatus{
		{Name: "removed", State: "Detached", Reachable: true},
		{Name: "rome", State: "Unreachable", Writable: false},
		{Name: "paris", State: "Primary", Reachable: true, Writable: true},
	}
	var names []string
	for _, s := range Build(cr, view).Sites {
		names = append(names, s.Name)
		if s.Name == "rome" && s.Writable != nil {
			t.Error("a silent site is said to be (not) writable")
		}
	}
	if diff := cmp.Diff([]string{"paris", "rome", "removed"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLastFailover(t *testing.T) {
	at := func(s int) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(time.Duration(s) * time.Second)) }
	record := v1alpha1.FailoverRecord{Kind: v1alpha1.FailoverEmergency, StartedAt: at(5), OpenedAt: at(7)}
	detected := record
	detected.DetectedAt = at(1)
	for name, tc := range map[string]struct {
		records []v1alpha1.FailoverRecord
		want    int64 // ms; -1: none
	}{
		"None":          {nil, -1},
		"OnlyBootstrap": {[]v1alpha1.FailoverRecord{{Kind: v1alpha1.FailoverBootstrap}}, -1},
		"FromDetection": {[]v1alpha1.FailoverRecord{detected, record}, 6000},
		"FromStart":     {[]v1alpha1.FailoverRecord{{Kind: v1alpha1.FailoverBootstrap}, record}, 2000},
	} {
		got := int64(-1)
		if f := lastFailover(tc.records, nil); f != nil {
			got = f.DurationMillis
		}
		if got != tc.want {
			t.Errorf("%s: %d ms, want %d", name, got, tc.want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	cr, view := healthy()
	before := Build(cr, view)
	view.Status.Groups[0].ObservedAt = noon
	view.Status.Groups[0].Sites[1].LastSeen = noon
	if diff := cmp.Diff(before.Fingerprint(), Build(cr, view).Fingerprint()); diff != "" {
		t.Errorf("time alone makes a difference:\n%s", diff)
	}
	view.Status.Groups[0].Sites[1].Errant = 1
	if cmp.Equal(before.Fingerprint(), Build(cr, view).Fingerprint()) {
		t.Error("an errant transaction makes none")
	}
}

// What would be lost is told from the custom resource alone as well, in its steps.
func TestForecastLoss(t *testing.T) {
	lost := int64(7)
	last := &v1alpha1.Forecast{Site: "west", LostTransactions: "<10", Lag: "<10s"}
	live := &wire.GroupStatus{Forecast: &wire.Forecast{Site: "west", LostTransactions: &lost}}
	for _, c := range []struct {
		name string
		cr   *v1alpha1.Forecast
		live *wire.GroupStatus
		want string
	}{
		{"the operator says it exactly", last, live, "at least 7 transactions lost"},
		{"only the status says it", last, nil, "last known: <10 transactions would be lost, lag <10s"},
		{"the lag is not known", &v1alpha1.Forecast{Site: "west", LostTransactions: "0"}, nil, "last known: 0 transactions would be lost"},
		{"nothing is known", &v1alpha1.Forecast{Site: "west"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cr := &v1alpha1.MysqlFailoverGroup{}
			cr.Status.Forecast = c.cr
			if got := forecastOf(cr, LiveView{}, c.live).Loss(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
