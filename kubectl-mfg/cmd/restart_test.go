// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestRestart: it is over once every pod of the order is ready and the operator has nothing left to do.
func TestRestart(t *testing.T) {
	const podsPath, all = "/api/v1/namespaces/shop/pods", v1alpha1.AnnotationRestartedAt
	asked := func(key string) []map[string]any { return []map[string]any{{key: "2026-11-03T12:00:00Z"}} }
	for name, tc := range map[string]struct {
		args, stdin string
		change      func(*v1alpha1.MysqlFailoverGroup)
		// back are the sites whose pods come back.
		back    string
		code    int
		patched []map[string]any
		want    string
	}{
		"All":      {"", "y\n", nil, "paris frankfurt madrid", cli.ExitHealthy, asked(all), "done: every site has a new pod"},
		"Progress": {"--yes", "", nil, "paris frankfurt madrid", cli.ExitHealthy, asked(all), "still to be replaced: paris, frankfurt, madrid; replacing the pod of madrid"},
		"Site":     {"frankfurt --yes", "", nil, "frankfurt", cli.ExitHealthy, asked(all + "-frankfurt"), "done: frankfurt has a new pod"},
		"Stuck":    {"--yes --timeout 5s", "", nil, "paris madrid", cli.ExitTimeout, asked(all), "still to be replaced: frankfurt"},
		// A clock that was ahead, or the same second: an order that is not later would do nothing, and be called done at once.
		"Later": {"--yes --wait=false", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.RestartedAtSite("madrid"): "2026-11-03T14:00:00Z"}
		}, "", cli.ExitHealthy, []map[string]any{{all: "2026-11-03T14:00:01Z"}}, "asked for"},
		"LaterElsewhere": {"frankfurt --yes --wait=false", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.RestartedAtSite("madrid"): "2026-11-03T14:00:00Z"}
		}, "", cli.ExitHealthy, asked(all + "-frankfurt"), "asked for"},
		"NotWaited": {"--yes --wait=false", "", nil, "", cli.ExitHealthy, asked(all), "asked for; see how far it is: kubectl mfg status orders -n shop -w"},
		"Active":    {"paris --yes", "", nil, "", cli.ExitRefused, nil, "kubectl mfg failover orders -n shop --to SITE"},
		"Unknown":   {"rome --yes", "", nil, "", cli.ExitRefused, nil, `has no site "rome"`},
		"Paused": {"--yes", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue})
		}, "", cli.ExitRefused, nil, "kubectl mfg resume orders -n shop"},
		"Moving": {"frankfurt --yes", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationPlannedFailover: "madrid"}
		}, "", cli.ExitRefused, nil, "a planned failover was requested"},
		"Observed": {"--dry-run=client", "", func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.Mode = v1alpha1.FailoverObserve }, "", cli.ExitHealthy, nil, "the pod of paris stays"},
		// That the pod of the active site stays was said before: it is not waited for.
		"ObservedDone": {"--yes --timeout 60s", "", func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.Mode = v1alpha1.FailoverObserve }, "frankfurt madrid", cli.ExitHealthy, asked(all), "done: every site but paris has a new pod"},
		"Dry":          {"--dry-run=client", "", nil, "", cli.ExitHealthy, nil, "Would     set annotation " + all + "=2026-11-03T12:00:00Z"},
		"NotSure":      {"", "n\n", nil, "", cli.ExitUsage, nil, "not confirmed"},
		"Empty":        {"", "", nil, "", cli.ExitUsage, nil, "no --yes"},
		"Many":         {"a b --yes", "", nil, "", cli.ExitUsage, nil, "at most 2 argument(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			if tc.change != nil {
				tc.change(&f.groups[0])
			}
			f.objects = map[string]any{podsPath: corev1.PodList{}}
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(n int) {
				g := &f.groups[0]
				progress := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonUpdating), Message: "replacing the pod of madrid"}
				if n > 20 && g.Spec.Failover.Mode == v1alpha1.FailoverObserve {
					progress = metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonRoleStays)}
				} else if n > 20 {
					progress = metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonAsExpected)}
				}
				g.Status.Conditions = append(g.Status.Conditions[:0:0], progress)
				if n < 10 {
					return
				}
				list := corev1.PodList{}
				for _, site := range strings.Fields(tc.back) {
					list.Items = append(list.Items, corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Name: site, Labels: map[string]string{v1alpha1.LabelSite: site}, Annotations: map[string]string{all: "2026-11-03T12:00:00Z"}},
						Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
					})
				}
				f.objects[podsPath] = list
			}}, append([]string{"restart", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRestartMeanwhile: an order must not replace a later one, or the person who gave the later one waits until the timeout.
func TestRestartMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		key, at string
		code    int
	}{
		"Later":      {v1alpha1.AnnotationRestartedAt, "2026-11-03T14:00:00Z", cli.ExitRefused},
		"LaterSite":  {v1alpha1.RestartedAtSite("madrid"), "2026-11-03T14:00:00Z", cli.ExitRefused},
		"SameSecond": {v1alpha1.AnnotationRestartedAt, "2026-11-03T12:00:00Z", cli.ExitRefused},
		"Earlier":    {v1alpha1.AnnotationRestartedAt, "2026-11-03T11:00:00Z", cli.ExitHealthy},
	} {
		f := loadHealthy(t)
		got := run(t, f, runOptions{stdin: "y\n", typed: func() {
			f.groups[0].Annotations = map[string]string{tc.key: tc.at}
		}}, strings.Fields("restart orders -n shop --wait=false")...)
		refused := tc.code == cli.ExitRefused
		if got.code != tc.code || (len(f.patched) == 0) != refused || strings.Contains(got.errOut, "another restart of orders was ordered meanwhile") != refused {
			t.Errorf("%s: %+v, asked %v", name, got, f.patched)
		}
	}
}
