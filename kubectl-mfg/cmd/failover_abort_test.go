// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// order has a person order frankfurt, whatever is lost.
func order(f *fakeAPI) {
	lost(f)
	f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "frankfurt"}
}

// TestWithdrawOrder: an order that accepts data loss can be taken back until it is carried out, also without an operator:
// left on the group it would move the role at some later fault.
func TestWithdrawOrder(t *testing.T) {
	withdrawn := map[string]any{v1alpha1.AnnotationForceFailover: nil}
	planned := func(f *fakeAPI) { f.groups[0].Annotations[v1alpha1.AnnotationPlannedFailover] = "frankfurt" }
	tests := map[string]struct {
		args, stdin string
		change      func(*fakeAPI)
		code        int
		patched     []map[string]any
		want        []string
	}{
		"Asks":         {"", "y\n", nil, cli.ExitHealthy, []map[string]any{withdrawn}, []string{"frankfurt is ordered to take over", "Withdraw it? [y/N]", "is withdrawn"}},
		"NotConfirmed": {"", "n\n", nil, cli.ExitUsage, nil, []string{"nothing was changed"}},
		"DryRun":       {"--dry-run=client", "", nil, cli.ExitHealthy, nil, []string{"take off annotation mysql-mfg.io/accept-data-loss-failover"}},
		"OperatorDown": {"--yes", "", func(f *fakeAPI) { f.live = nil }, cli.ExitHealthy, []map[string]any{withdrawn}, []string{"is withdrawn"}},
		"Moving": {"--yes", "", func(f *fakeAPI) {
			f.groups[0].Status.Transition = &v1alpha1.Transition{To: "frankfurt", Step: v1alpha1.TransitionFencing}
		}, cli.ExitRefused, []map[string]any{withdrawn}, []string{"too late", "moving to frankfurt already (Fencing)", "kubectl mfg explain orders -n shop"}},
		"MovingElsewhere": {"--yes", "", func(f *fakeAPI) {
			f.groups[0].Status.Transition = &v1alpha1.Transition{To: "madrid", Step: v1alpha1.TransitionFencing}
		}, cli.ExitHealthy, []map[string]any{withdrawn}, []string{"is withdrawn", "moving to madrid (Fencing)"}},
		"NamesNoSite": {"--yes", "", func(f *fakeAPI) { f.groups[0].Annotations[v1alpha1.AnnotationForceFailover] = "" }, cli.ExitHealthy,
			[]map[string]any{withdrawn}, nil},
		"AskedToo": {"--yes --wait=false", "", planned, cli.ExitHealthy,
			[]map[string]any{{v1alpha1.AnnotationForceFailover: nil, v1alpha1.AnnotationPlannedFailover: nil}}, []string{"is withdrawn", "not asked for any more"}},
		"UnderWayToo": {"--yes --wait=false", "", func(f *fakeAPI) {
			planned(f)
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedWaiting}
		}, cli.ExitHealthy, []map[string]any{{v1alpha1.AnnotationForceFailover: nil, v1alpha1.AnnotationAbortFailover: "true"}}, []string{"asked for"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			order(f)
			if tc.change != nil {
				tc.change(f)
			}
			got := run(t, f, runOptions{stdin: tc.stdin, tick: looking(f, nil)}, append(strings.Fields("failover orders -n shop --abort"), strings.Fields(tc.args)...)...)
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" || got.code != tc.code {
				t.Errorf("exit code %d, want %d: %+v\n%s", got.code, tc.code, got, diff)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out+got.errOut, want) {
					t.Errorf("lacks %q:\n%s%s", want, got.out, got.errOut)
				}
			}
		})
	}
}

// looking has the operator end a look at each wait, in which it does something.
func looking(f *fakeAPI, does func()) func(int) {
	return func(n int) {
		if f.live != nil {
			f.live.IssuedAt = noon.Add(time.Duration(n) * time.Second)
			f.live.Groups[0].ObservedAt = f.live.IssuedAt
		}
		if does != nil {
			does()
		}
	}
}

// TestWithdrawnTooLate: a look that was under way when the order was withdrawn may have begun it. Only the status after a newer
// look tells.
func TestWithdrawnTooLate(t *testing.T) {
	moving := func(g *v1alpha1.MysqlFailoverGroup) {
		g.Status.Transition = &v1alpha1.Transition{To: "frankfurt", Step: v1alpha1.TransitionFencing}
	}
	for name, tc := range map[string]struct {
		args   string
		change func(*fakeAPI)
		does   func(*v1alpha1.MysqlFailoverGroup)
		code   int
		want   string
	}{
		"Begun":    {"", nil, moving, cli.ExitRefused, "it was too late: the role is moving to frankfurt already (Fencing)"},
		"Done":     {"", nil, func(g *v1alpha1.MysqlFailoverGroup) { g.Status.ActiveSite, g.Status.Epoch = "frankfurt", 8 }, cli.ExitRefused, "it was too late: frankfurt is active under epoch 8"},
		"NotBegun": {"", nil, nil, cli.ExitHealthy, "is withdrawn"},
		"NoWait":   {"--wait=false", nil, moving, cli.ExitHealthy, "is withdrawn"},
		"Forbidden": {"", func(f *fakeAPI) { f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no") }, moving,
			cli.ExitRefused, "it was too late"},
	} {
		f := loadHealthy(t)
		order(f)
		if tc.change != nil {
			tc.change(f)
		}
		looks := 0
		got := run(t, f, runOptions{tick: looking(f, func() {
			if looks++; tc.does != nil {
				tc.does(&f.groups[0])
			}
		})}, strings.Fields("failover orders -n shop --abort --yes "+tc.args)...)
		if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) || (looks == 0) != (tc.args != "") {
			t.Errorf("%s: %d looks, %+v", name, looks, got)
		}
	}
	f := loadHealthy(t)
	order(f)
	if got := run(t, f, runOptions{}, strings.Fields("failover orders -n shop --abort --yes --timeout 3s")...); got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "it is withdrawn, and may have begun before") {
		t.Errorf("an operator that does not look: %+v", got)
	}
}

// TestAbortNotTakenUp: nobody has to answer for what the operator has not begun.
func TestAbortNotTakenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeAPI)
		phase  v1alpha1.PlannedPhase
		code   int
		want   string
	}{
		"Withdrawn":    {nil, "", cli.ExitHealthy, "not asked for any more"},
		"OperatorDown": {func(f *fakeAPI) { f.live = nil }, "", cli.ExitHealthy, "not asked for any more"},
		"Noticed":      {nil, v1alpha1.PlannedAborted, cli.ExitHealthy, "not asked for any more"},
		"TooLate":      {nil, v1alpha1.PlannedMoving, cli.ExitRefused, "it was too late: the planned failover to frankfurt had begun (Moving)"},
	} {
		f := loadHealthy(t)
		g := &f.groups[0]
		g.Annotations = map[string]string{v1alpha1.AnnotationPlannedFailover: "frankfurt"}
		if tc.change != nil {
			tc.change(f)
		}
		got := run(t, f, runOptions{tick: looking(f, func() {
			if tc.phase != "" {
				g.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: tc.phase, StartedAt: microTime(1)}
			}
		})}, strings.Fields("failover orders -n shop --abort --yes")...)
		want := []map[string]any{{v1alpha1.AnnotationPlannedFailover: nil}}
		if diff := cmp.Diff(want, f.patched); diff != "" || got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
			t.Errorf("%s: %+v\n%s", name, got, diff)
		}
	}
}

// TestWaitersHearOfWithdrawal: who waits for what another person withdraws is not told of an older outcome.
func TestWaitersHearOfWithdrawal(t *testing.T) {
	for args, u := range map[string]failover.Undone{
		"--accept-data-loss": {Order: "frankfurt", Ordered: true}, "": {Asked: "frankfurt", IsAsked: true},
	} {
		f := loadHealthy(t)
		if u.Ordered {
			lost(f)
		}
		g := &f.groups[0]
		for _, kind := range []v1alpha1.RequestKind{v1alpha1.RequestForceFailover, v1alpha1.RequestPlannedFailover} {
			g.Status.LastRequests = append(g.Status.LastRequests, v1alpha1.LastRequest{Kind: kind, ID: "earlier", Target: "frankfurt", Outcome: v1alpha1.RequestDone})
		}
		got := run(t, f, runOptions{tick: func(int) {
			for key, value := range u.Change() {
				if g.Annotations[key] = value; value == "" {
					delete(g.Annotations, key)
				}
			}
			g.Status.ActiveSite = "frankfurt" // as the status says while the old site is still fenced
			g.Status.Transition = &v1alpha1.Transition{From: "paris", To: "frankfurt", Step: v1alpha1.TransitionFencing}
		}}, strings.Fields("failover orders -n shop --to frankfurt --yes "+args)...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "withdrawn by a person") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestPendingOrderIsTold: wherever somebody looks, and when the waiting for it ends.
func TestPendingOrderIsTold(t *testing.T) {
	const withdraw = "kubectl mfg failover orders -n shop --abort"
	f := loadHealthy(t)
	order(f)
	if got := run(t, f, runOptions{}, "status", "orders", "-n", "shop"); !strings.Contains(got.out, "frankfurt is ordered to take over") || !strings.Contains(got.out, withdraw) {
		t.Errorf("status does not show it: %s", got.out)
	}
	var rep report.MysqlFailoverGroupReport
	if err := json.Unmarshal([]byte(run(t, f, runOptions{}, "status", "orders", "-n", "shop", "-o", "json").out), &rep); err != nil || rep.OrderedTo != "frankfurt" {
		t.Errorf("%v, ordered to %q", err, rep.OrderedTo)
	}
	if got := run(t, f, runOptions{}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes"); got.code != cli.ExitRefused || !strings.Contains(got.errOut, withdraw) {
		t.Errorf("what it keeps from happening: %+v", got)
	}

	f = loadHealthy(t)
	lost(f)
	args := strings.Fields("failover orders -n shop --to frankfurt --accept-data-loss --yes")
	ctx, cancel := context.WithCancel(t.Context())
	for name, got := range map[string]ran{
		"timeout": run(t, f, runOptions{}, append(args, "--timeout", "3s")...),
		"ctrl-c":  run(t, f, runOptions{ctx: ctx, tick: func(int) { cancel() }}, args...),
	} {
		if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "the order stays on the group") || strings.Count(got.errOut, withdraw) != 2 {
			t.Errorf("%s: the plan and the end of the waiting say how to withdraw it: %+v", name, got)
		}
	}
}

// TestForcePlanClaimsWhatWasSeen: without the operator nobody looked whether the active site accepts writes.
func TestForcePlanClaimsWhatWasSeen(t *testing.T) {
	f := loadHealthy(t)
	f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no")
	got := run(t, f, runOptions{}, strings.Fields("failover orders -n shop --to frankfurt --accept-data-loss --dry-run=client")...)
	if !strings.Contains(got.out, "whether it accepts writes cannot be seen") || strings.Contains(got.out, "accepts no writes") {
		t.Errorf("%+v", got)
	}
}

// TestForceRefusedHasNextStep: whoever accepts loss at night is told what to do instead.
func TestForceRefusedHasNextStep(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"Writable": {"paris accepts writes", "to move the role without loss: kubectl mfg failover orders -n shop --to frankfurt"},
		"Gone":     {"", "see what the operator decides, and why: kubectl mfg explain orders -n shop"},
	} {
		f := loadHealthy(t)
		lost(f)
		o := runOptions{tick: func(int) {
			if tc.answer != "" {
				f.answer(v1alpha1.RequestForceFailover, v1alpha1.RequestRefused, v1alpha1.AnswerActiveSiteOpen, tc.answer)
			}
			f.groups[0].Annotations = nil
		}}
		got := run(t, f, o, strings.Fields("failover orders -n shop --to frankfurt --accept-data-loss --yes")...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
