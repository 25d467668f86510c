// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// inspected is an API server with all that the verbs of looking ask for.
func inspected(t *testing.T) *fakeAPI {
	t.Helper()
	f := load(t, filepath.Join("testdata", "status", "healthy"))
	parse(t, filepath.Join("testdata", "verbs", "history.yaml"), &f.groups[0])
	f.explanation = &wire.Explanation{}
	parse(t, filepath.Join("testdata", "verbs", "explanation.yaml"), f.explanation)
	var events []corev1.Event
	parse(t, filepath.Join("testdata", "verbs", "events.yaml"), &events)
	f.objects = map[string]any{"/api/v1/namespaces/shop/events": corev1.EventList{Items: events}}
	return f
}

// TestInspectVerbs compares the answer of each verb that only looks.
func TestInspectVerbs(t *testing.T) {
	tests := map[string]struct {
		args  string
		width int
		code  int
	}{
		"explain-80.txt":     {"explain orders -n shop", 80, cli.ExitDegraded},
		"explain-wide.txt":   {"explain orders -n shop", 0, cli.ExitDegraded},
		"explain.json":       {"explain orders -n shop -o json", 0, cli.ExitDegraded},
		"explain.jsonpath":   {"explain orders -n shop -o jsonpath={.explanation.blockers}", 0, cli.ExitDegraded},
		"history-80.txt":     {"history orders -n shop", 80, cli.ExitHealthy},
		"history-wide.txt":   {"history orders -n shop -o wide", 0, cli.ExitHealthy},
		"history.json":       {"history orders -n shop --epoch 8 -o json", 0, cli.ExitHealthy},
		"events-80.txt":      {"events orders -n shop", 80, cli.ExitHealthy},
		"events-recent.txt":  {"events orders -n shop --since 5m --warnings", 0, cli.ExitHealthy},
		"events.json":        {"events orders -n shop -o json", 0, cli.ExitHealthy},
		"list.txt":           {"list -n shop", 80, cli.ExitHealthy},
		"status-tree.txt":    {"status orders -n shop -o tree", 0, cli.ExitHealthy},
		"status-colours.txt": {"explain orders -n shop --color always", 100, cli.ExitDegraded},
	}
	for file, tc := range tests {
		t.Run(file, func(t *testing.T) {
			o := runOptions{width: tc.width, env: map[string]string{"NO_COLOR": "1"}}
			got := run(t, inspected(t), o, strings.Fields(tc.args)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", "verbs", file), got.out)
			for _, line := range strings.Split(got.out, "\n") {
				if strings.HasSuffix(line, " ") {
					t.Errorf("line ends in a blank: %q", line)
				}
			}
		})
	}
}

// TestExplainWithoutTheOperator: the custom resource says what it knows, and that it is no more than that.
func TestExplainWithoutTheOperator(t *testing.T) {
	tests := map[string]struct {
		change func(*fakeAPI)
		code   int
		want   []string
	}{
		"Forbidden": {func(f *fakeAPI) {
			f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no")
			f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt", Message: "frankfurt would take over (OnlyCandidate)"}
		}, cli.ExitDegraded, []string{"did not explain itself", "services/proxy", "last known: frankfurt would take over"}},
		"NobodyLeads": {func(f *fakeAPI) {
			f.answers[livePath] = operatorSays(503, wire.ReasonNotLeading)
			f.groups[0].Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "paris", To: "frankfurt", Reason: "ActiveSiteSilent"}
		}, cli.ExitDegraded, []string{"no operator leads  last known", "Changing  emergency paris -> frankfurt, Fencing; begun", "stands still [OperatorDown]", "kubectl get leases"}},
		"Blocked": {func(f *fakeAPI) {
			f.live = nil
			f.groups[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: "Cooldown", Message: "cooldown until noon"}}
		}, cli.ExitDegraded, []string{"no pod is ready", "cooldown until noon"}},
		"OlderOperator": {func(f *fakeAPI) { f.explanation = nil }, cli.ExitDegraded, []string{"older than this plugin"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := inspected(t)
			tc.change(f)
			got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("lacks %q:\n%s", want, got.out)
				}
			}
		})
	}
}

// TestExplainNobodyLeads: what the custom resource remembers calms nobody while no operator leads.
func TestExplainNobodyLeads(t *testing.T) {
	f := inspected(t)
	f.live = nil
	f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt", Message: "frankfurt would take over (OnlyCandidate)"}
	f.groups[0].Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "ActiveSiteOpen", Message: "paris accepts writes"},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "AsExpected", Message: "everything is as specified"},
		{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Paused", Message: "paused by a person"},
	}
	got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
	if got.code != cli.ExitDegraded || !strings.Contains(got.out, "paused by a person") {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
	for _, calming := range []string{"would take over", "accepts writes", "as specified"} {
		if strings.Contains(got.out, calming) {
			t.Errorf("%q is said:\n%s", calming, got.out)
		}
	}
}

// TestExplainInTransition: while the role moves it is said what it waits for, and not that a failover would, or would not, happen.
func TestExplainInTransition(t *testing.T) {
	f := inspected(t)
	x := f.explanation
	x.Topology, x.Verdict, x.Reason, x.DecidedBy, x.Blockers, x.Loss = "Transition", "Wait", "AwaitingFenceProof", "Gate", nil, nil
	got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "the role is moving, waits for: Gate") {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
	for _, wrong := range []string{"does not fail over", "Blocked ", "no site is fit"} {
		if strings.Contains(got.out, wrong) {
			t.Errorf("%q is said:\n%s", wrong, got.out)
		}
	}
}

func TestEventsWatchTellsEachOnce(t *testing.T) {
	f := inspected(t)
	ctx, cancel := context.WithCancel(t.Context())
	list, _ := f.objects["/api/v1/namespaces/shop/events"].(corev1.EventList)
	tick := func(n int) {
		switch n {
		case 1:
			list.Items = append(list.Items, corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "MysqlFailoverGroup", Name: "orders"},
				Type: "Normal", Reason: "Promoted", Message: "new", LastTimestamp: metav1.NewTime(noon)})
			f.objects["/api/v1/namespaces/shop/events"] = list
		case 2:
			f.answers["/api/v1/namespaces/shop/events"] = func(w http.ResponseWriter) {
				status(500, metav1.StatusReasonInternalError, "not right now")(w)
			}
		case 3:
			cancel()
		}
	}
	got := run(t, f, runOptions{tick: tick, ctx: ctx}, "events", "orders", "-n", "shop", "-w")
	if got.code != cli.ExitHealthy || strings.Count(got.out, "FailoverStarted") != 1 || strings.Count(got.out, "Promoted") != 1 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.errOut, "not right now") {
		t.Errorf("a failure in between was not told: %q", got.errOut)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	f := inspected(t)
	if got := run(t, f, runOptions{}, "history", "orders", "-n", "shop", "--epoch", "3"); got.code != cli.ExitError || !strings.Contains(got.errOut, "kubectl mfg history orders") {
		t.Errorf("%+v", got)
	}
	f.groups[0].Status.Failovers = nil
	if got := run(t, f, runOptions{}, "history", "orders", "-n", "shop"); got.code != 0 || !strings.Contains(got.out, "never changed") {
		t.Errorf("%+v", got)
	}
}
