// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

// view is an emergency failover from paris to frankfurt, 13 s after paris fell silent.
func view(change func(*View)) View {
	no, yes := false, true
	o := &v1alpha1.MysqlFailoverGroup{}
	o.Status.Transition = &v1alpha1.Transition{
		Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "paris", To: "frankfurt", Reason: "ActiveSiteSilent",
		DetectedAt: metav1.NewMicroTime(noon.Add(-13 * time.Second)), StartedAt: metav1.NewMicroTime(noon.Add(-9 * time.Second)),
	}
	v := View{
		Painter: paint.Painter{Signs: canvas.Unicode, Now: noon}, Object: o,
		Report: report.MysqlFailoverGroupReport{
			ActiveSite: "frankfurt", Epoch: 8, Sites: []report.Site{{Name: "paris", Reachable: &no}, {Name: "frankfurt", Reachable: &yes, Active: true}},
			Transition: &report.Transition{Step: string(v1alpha1.TransitionFencing), From: "paris", To: "frankfurt"},
			Decision:   &report.Decision{Verdict: "Wait", Reason: string(v1alpha1.ReasonAwaitingFenceProof), Message: "no proof yet"},
		},
		SilentSince: func(string) time.Time { return noon.Add(-13 * time.Second) },
	}
	change(&v)
	return v
}

// TestOneCountdown: there is one, it counts to the time that the gate names where that is known, and what is over is told in the past.
func TestOneCountdown(t *testing.T) {
	until := func(d time.Duration) func(*View) {
		return func(v *View) { v.Rule = &wire.ExplainedRule{Name: "Gate", Until: noon.Add(d)} }
	}
	for name, tc := range map[string]struct {
		change func(*View)
		want   string
	}{
		"BeforeTheGateIsAsked": {func(*View) {}, "Countdown ████████░░░░ paris silent for 13 s; its lease of 20 s runs out in 7 s, unless a peer renews it"},
		"Gate":                 {until(9500 * time.Millisecond), "Countdown ██████░░░░░░ 9 s until the lease of paris runs out (12:00:09Z), or until it is proven fenced"},
		"GateOver":             {until(-3 * time.Second), "Lease ████████████ that of paris ran out 3 s ago"},
		"SilenceOver": {func(v *View) { v.SilentSince = func(string) time.Time { return noon.Add(-time.Minute) } },
			"Lease ████████████ paris silent for 60 s; its lease of 20 s ran out 40 s ago, unless a peer renewed it"},
		"SilentBeforeAnybodyLooked": {func(v *View) { v.SilentSince = func(string) time.Time { return time.Time{} } }, ""},
		"GatePassed":                {func(v *View) { v.Object.Status.Transition.Step = v1alpha1.TransitionOpening }, ""},
		"BackAndFenced":             {func(v *View) { yes := true; v.Report.Sites[0].Reachable = &yes }, ""},
		"NothingDecidedYet": {func(v *View) { v.Object.Status.Transition, v.Report.ActiveSite = nil, "paris" },
			"Countdown ████████░░░░ paris silent for 13 s; its lease of 20 s runs out in 7 s, unless a peer renews it"},
		"AReplicaIsSilent": {func(v *View) { v.Object.Status.Transition = nil }, ""},
		"LongerLease": {func(v *View) { v.Object.Spec.Sidecar.LeaseTimeout.Duration = 26 * time.Second },
			"Countdown ██████░░░░░░ paris silent for 13 s; its lease of 26 s runs out in 13 s, unless a peer renews it"},
	} {
		v := view(tc.change)
		if got := strings.Join(strings.Fields(v.Countdown(300).Bare()), " "); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
		page := v.Draw(300).Bare()
		if n := strings.Count(page, "Countdown") + strings.Count(page, "Lease "); n > 1 {
			t.Errorf("%s: %d countdowns in\n%s", name, n, page)
		}
	}
}

// TestSteps: what is done, what is waited for, and what is to come; and of nobody's answer nothing is made up.
func TestSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*View)
		want   []string
	}{
		"Gate": {func(*View) {}, []string{"[x] +0ms detected", "[x] +4.0s decided", "[x] applied", "[>] +13 s fenced no proof yet", "[ ] opened"}},
		"Drain": {func(v *View) {
			v.Report.Decision.Reason, v.Report.Decision.Message = string(v1alpha1.ReasonDrainingRelayLog), "3 to apply"
		}, []string{"[>] +13 s applied 3 to apply", "[ ] fenced", "[ ] opened"}},
		"Opening": {func(v *View) {
			at := metav1.NewMicroTime(noon.Add(-time.Second))
			t := v.Object.Status.Transition
			t.Step, t.GatePassedAt, t.Evidence = v1alpha1.TransitionOpening, &at, []string{"the proof"}
		}, []string{"[x] applied", "[x] +12.0s fenced the proof", "[>] +13 s opened"}},
		"NoOperator": {func(v *View) { v.Report.Decision = nil }, []string{"[?] applied not known", "[?] fenced", "[ ] opened"}},
		"Planned": {func(v *View) {
			v.Object.Status.Transition = nil
			at := noon.Add(-3 * time.Second)
			v.Report.Planned = &report.Planned{From: "paris", To: "frankfurt", Phase: "Waiting", Cause: "Requested", Message: "14 to apply", StartedAt: &at}
		}, []string{"Planned paris → frankfurt, Waiting for 3s; nothing has changed yet", "[x] +0ms asked", "[>] +3 s caught up 14 to apply", "[ ] fenced", "[ ] opened"}},
		"Lost": {func(v *View) {
			v.Object.Status.Transition = nil
			v.Report.Metadata = report.Metadata{Namespace: "shop", Name: "orders"}
			v.Object.Status.Failovers = []v1alpha1.FailoverRecord{{Kind: v1alpha1.FailoverEmergency, From: "paris", To: "frankfurt", LostTransactions: 3}}
		}, []string{"at least 3 lost", "Lost at least 3 commits of paris are not in frankfurt", "kubectl mfg history orders -n shop"}},
	} {
		page := strings.Join(strings.Fields(view(tc.change).Draw(300).Bare()), " ")
		for _, want := range tc.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q in\n%s", name, want, page)
			}
		}
	}
}
