// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The node is where the gate looks for the proof that a lost pod is gone: it must not move before the pod has.
func TestNodeIsThatOfThePodThatRan(t *testing.T) {
	sidecar := func(s corev1.ContainerStatus) []corev1.ContainerStatus {
		s.Name = render.ContainerSidecar
		return []corev1.ContainerStatus{{Name: render.ContainerBootstrap, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, s}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, tc := range map[string]struct {
		reason string
		node   string
		init   []corev1.ContainerStatus
		want   string
	}{
		"not scheduled":       {"the old pod may still run", "", nil, "node-b"},
		"scheduled":           {"bootstrap waits for the old pod's lock", "new", nil, "node-b"},
		"sidecar waits":       {"bootstrap waits for the old pod's lock", "new", sidecar(corev1.ContainerStatus{State: waiting}), "node-b"},
		"sidecar started":     {"it has the lock", "new", sidecar(corev1.ContainerStatus{Started: new(true)}), "new"},
		"sidecar runs":        {"it has the lock", "new", sidecar(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}), "new"},
		"sidecar ended":       {"it had the lock", "new", sidecar(corev1.ContainerStatus{State: ended}), "new"},
		"sidecar ended often": {"it had the lock", "new", sidecar(corev1.ContainerStatus{State: waiting, LastTerminationState: ended}), "new"},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.reconcile()
			var d appsv1.Deployment
			w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "b"))
			w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels("b")...))
			w.reconcile()
			if got := w.site("b").Node; got != "node-b" {
				t.Errorf("without a pod: %q", got)
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: d.Name + "-new", Labels: d.Spec.Template.Labels},
				Spec:       corev1.PodSpec{NodeName: tc.node}, Status: corev1.PodStatus{InitContainerStatuses: tc.init},
			}
			w.must(w.c.Create(w.ctx, pod))
			w.reconcile()
			if got := w.site("b").Node; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// The condition of the cache is its loop's: the controller neither counts it as its own, which had it write status at every look, nor keeps
// it while something fails, which left it there after the cache was turned off.
func TestTheConditionOfTheCacheIsNotTheControllers(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	cache := func(status *applyv1alpha1.MysqlFailoverGroupStatusApplyConfiguration) {
		t.Helper()
		config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(status)
		w.must(w.c.Status().Apply(w.ctx, config, client.FieldOwner(v1alpha1.ManagerCacheStatus), client.ForceOwnership))
	}
	cache(applyv1alpha1.MysqlFailoverGroupStatus().WithConditions(applymetav1.Condition().WithType(v1alpha1.ConditionCacheReady).
		WithStatus(metav1.ConditionTrue).WithReason(string(v1alpha1.ReasonAsExpected)).WithMessage("well").WithLastTransitionTime(metav1.Now())))
	w.reconcileOften()
	w.writes = 0
	w.reconcile()
	atRest := w.writes
	cache(applyv1alpha1.MysqlFailoverGroupStatus())
	w.reconcileOften()
	w.writes = 0
	w.reconcile()
	if atRest != w.writes {
		t.Errorf("at rest a look writes %d times beside a cache, and %d times without", atRest, w.writes)
	}
	cache(applyv1alpha1.MysqlFailoverGroupStatus().WithConditions(applymetav1.Condition().WithType(v1alpha1.ConditionCacheReady).
		WithStatus(metav1.ConditionTrue).WithReason(string(v1alpha1.ReasonAsExpected)).WithMessage("well").WithLastTransitionTime(metav1.Now())))
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Service{}, client.InNamespace(scopetest.Key.Namespace)))
	w.reject = func(string) error { return errors.New("denied") }
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("nothing failed")
	}
	cache(applyv1alpha1.MysqlFailoverGroupStatus())
	if c := w.condition(v1alpha1.ConditionCacheReady); c.Type != "" {
		t.Errorf("the cache is off, and the controller keeps %+v", c)
	}
}
