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

// planned is a planned failover whose change has begun, with a pause of 30 s at most and 90 s to catch up before it.
func planned(reason, message string) func(*View) {
	return func(v *View) {
		v.Object.Status.Transition.Kind = v1alpha1.FailoverPlanned
		v.Object.Spec.Failover.PlannedPauseTimeout.Duration, v.Object.Spec.Failover.PlannedLagTimeout.Duration = 30*time.Second, 90*time.Second
		v.Report.Decision.Reason, v.Report.Decision.Message = reason, message
		yes := true
		v.Report.Sites[0].Reachable = &yes
	}
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
		"BeforeTheGateIsAsked": {func(*View) {}, "Countdown ████████░░░░ paris silent for 13 s; its lease of 20 s ends in 7 s, unless a peer renews it"},
		"Gate":                 {until(9500 * time.Millisecond), "Countdown ██████░░░░░░ 9 s until frankfurt can open (12:00:09Z), or sooner if paris is proven fenced"},
		"GateOver":             {until(-3 * time.Second), "Waited ████████████ long enough for paris to stop, since 3 s; frankfurt can open"},
		"SilenceOver": {func(v *View) { v.SilentSince = func(string) time.Time { return noon.Add(-time.Minute) } },
			"Lease ████████████ paris silent for 60 s; its lease of 20 s ended 40 s ago, unless a peer renewed it"},
		"SilentBeforeAnybodyLooked": {func(v *View) { v.SilentSince = func(string) time.Time { return time.Time{} } }, ""},
		"GatePassed":                {func(v *View) { v.Object.Status.Transition.Step = v1alpha1.TransitionOpening }, ""},
		"BackAndFenced":             {func(v *View) { yes := true; v.Report.Sites[0].Reachable = &yes }, ""},
		"NothingDecidedYet": {func(v *View) { v.Object.Status.Transition, v.Report.ActiveSite = nil, "paris" },
			"Countdown ████████░░░░ paris silent for 13 s; its lease of 20 s ends in 7 s, unless a peer renews it"},
		"AReplicaIsSilent": {func(v *View) { v.Object.Status.Transition = nil }, ""},
		"Planned":          {planned("DrainingRelayLog", ""), "Countdown ████░░░░░░░░ 21 s until the operator opens paris again (plannedPauseTimeout)"},
		"PlannedWaits": {func(v *View) {
			planned("", "")(v)
			at := noon.Add(-30 * time.Second)
			v.Object.Status.Transition, v.Report.Planned = nil, &report.Planned{From: "paris", To: "frankfurt", StartedAt: &at}
		}, "Countdown ████░░░░░░░░ 60 s until the operator refuses the failover (plannedLagTimeout); writes go on"},
		"PlannedIsOver": {func(v *View) {
			planned("", "")(v)
			v.Object.Spec.Failover.PlannedPauseTimeout.Duration = time.Second
		}, "Countdown ████████████ 0 s until the operator opens paris again (plannedPauseTimeout)"},
		"PlannedCannotBeTakenBack": {func(v *View) {
			planned("", "")(v)
			v.Object.Status.Transition.Step = v1alpha1.TransitionOpening
		}, ""},
		"LongerLease": {func(v *View) { v.Object.Spec.Sidecar.LeaseTimeout.Duration = 26 * time.Second },
			"Countdown ██████░░░░░░ paris silent for 13 s; its lease of 26 s ends in 13 s, unless a peer renews it"},
	} {
		v := view(tc.change)
		if got := strings.Join(strings.Fields(v.Countdown(300).Bare()), " "); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
		page := v.Draw(300).Bare()
		if n := strings.Count(page, "Countdown") + strings.Count(page, "Lease ") + strings.Count(page, "Waited"); n > 1 {
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
		"Gate": {func(*View) {}, []string{"[x] +0ms detected", "[x] +4.0s decided", "[x] applied", "[>] +13 s fencing no proof yet", "[ ] open frankfurt will take writes"}},
		"Drain": {func(v *View) {
			v.Report.Decision.Reason, v.Report.Decision.Message = string(v1alpha1.ReasonDrainingRelayLog), "3 to apply"
		}, []string{"[>] +13 s applying 3 to apply", "[ ] fence proof that paris has stopped", "[ ] open"}},
		"Opening": {func(v *View) {
			at := metav1.NewMicroTime(noon.Add(-time.Second))
			t := v.Object.Status.Transition
			t.Step, t.GatePassedAt, t.Evidence = v1alpha1.TransitionOpening, &at, []string{"the proof"}
		}, []string{"[x] applied", "[x] +12.0s fenced the proof", "[>] +13 s opening frankfurt does not take writes yet"}},
		"NoOperator": {func(v *View) { v.Report.Decision = nil }, []string{"[?] apply not known", "[?] fence", "[ ] open"}},
		"Planned": {func(v *View) {
			v.Object.Status.Transition = nil
			at := noon.Add(-3 * time.Second)
			v.Report.Planned = &report.Planned{From: "paris", To: "frankfurt", Phase: "Waiting", Cause: "Requested", Message: "14 to apply", StartedAt: &at}
		}, []string{"Planned paris → frankfurt, Waiting for 3s; nothing has changed yet", "[x] +0ms asked", "[>] +3 s catching up 14 to apply", "[ ] fence paris takes writes until then", "[ ] apply", "[ ] open"}},
		"PlannedIsFenced": {planned("AwaitingFenceProof", "paris has not reported itself fenced"), []string{"[x] +0ms asked", "[x] +4.0s decided",
			"[>] +13 s fencing paris has not reported itself fenced", "[ ] apply frankfurt will apply the last commits of paris", "[ ] open"}},
		"PlannedApplies": {planned("DrainingRelayLog", "3 to apply"), []string{"[x] fenced paris takes no writes [>] +13 s applying 3 to apply [ ] open"}},
		"PlannedIsTakenBack": {func(v *View) {
			planned("AwaitingFenceProof", "paris is opened again")(v)
			v.Object.Status.Transition.To = "paris"
		}, []string{"planned failover is taken back: paris opens again under epoch 8", "decided epoch 8 is persisted; no site may open writes [>] +13 s opening paris is opened again"}},
		"Lost": {func(v *View) {
			v.Object.Status.Transition = nil
			v.Report.Metadata = report.Metadata{Namespace: "shop", Name: "orders"}
			v.Object.Status.Failovers = []v1alpha1.FailoverRecord{{Kind: v1alpha1.FailoverEmergency, From: "paris", To: "frankfurt", LostTransactions: 3}}
		}, []string{"at least 3 lost", "Lost at least 3 commits of paris are missing on frankfurt; to list them:", "kubectl mfg history orders -n shop"}},
	} {
		page := strings.Join(strings.Fields(view(tc.change).Draw(300).Bare()), " ")
		for _, want := range tc.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q in\n%s", name, want, page)
			}
		}
	}
}
