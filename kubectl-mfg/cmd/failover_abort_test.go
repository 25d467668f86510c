// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cmd/report"
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
	tests := map[string]struct {
		args, stdin string
		change      func(*fakeAPI)
		code        int
		patched     []map[string]any
		want        []string
	}{
		"Asks":         {"", "y\n", nil, exitHealthy, []map[string]any{withdrawn}, []string{"frankfurt is ordered to take over", "Withdraw it? [y/N]", "is withdrawn"}},
		"NotConfirmed": {"", "n\n", nil, exitUsage, nil, []string{"nothing was changed"}},
		"DryRun":       {"--dry-run=client", "", nil, exitHealthy, nil, []string{"take off annotation mysql-mfg.io/accept-data-loss-failover"}},
		"OperatorDown": {"--yes", "", func(f *fakeAPI) { f.live = nil }, exitHealthy, []map[string]any{withdrawn}, []string{"is withdrawn"}},
		"Moving": {"--yes", "", func(f *fakeAPI) {
			f.groups[0].Status.Transition = &v1alpha1.Transition{To: "frankfurt", Step: v1alpha1.TransitionFencing}
		}, exitHealthy, []map[string]any{withdrawn}, []string{"moving to frankfurt already (Fencing)", "kubectl mfg explain orders -n shop"}},
		"NamesNoSite": {"--yes", "", func(f *fakeAPI) { f.groups[0].Annotations[v1alpha1.AnnotationForceFailover] = "" }, exitHealthy, []map[string]any{withdrawn}, nil},
		"PlannedToo": {"--yes --wait=false", "", func(f *fakeAPI) { f.groups[0].Annotations[v1alpha1.AnnotationPlannedFailover] = "frankfurt" }, exitHealthy,
			[]map[string]any{{v1alpha1.AnnotationForceFailover: nil, v1alpha1.AnnotationAbortFailover: "true"}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			order(f)
			if tc.change != nil {
				tc.change(f)
			}
			got := run(t, f, runOptions{stdin: tc.stdin}, append(strings.Fields("failover orders -n shop --abort"), strings.Fields(tc.args)...)...)
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
	if got := run(t, f, runOptions{}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes"); got.code != exitRefused || !strings.Contains(got.errOut, withdraw) {
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
		if got.code != exitTimeout || !strings.Contains(got.errOut, "the order stays on the group") || strings.Count(got.errOut, withdraw) != 2 {
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
		"Writable": {v1alpha1.AnnotationForceFailover + "=frankfurt: refused, paris accepts writes", "to move the role without loss: kubectl mfg failover orders -n shop --to frankfurt"},
		"Gone":     {"", "see what the operator decides, and why: kubectl mfg explain orders -n shop"},
	} {
		f := loadHealthy(t)
		lost(f)
		o := runOptions{tick: func(int) {
			if asked(f, v1alpha1.AnnotationForceFailover) {
				f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationLastRequest: tc.answer}
			}
		}}
		got := run(t, f, o, strings.Fields("failover orders -n shop --to frankfurt --accept-data-loss --yes")...)
		if got.code != exitRefused || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
