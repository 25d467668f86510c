// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// cutOffWorld is a group of which a, which is active, and c can be reached neither by the operator nor by the API server. There a
// serves on the word of c. An update has been asked for.
func cutOffWorld(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	for _, site := range []string{"a", "c"} {
		w.facts.Set(site, scope.SiteFacts{})
		w.isUnavailable(site)
		w.nodeIs(site, corev1.ConditionUnknown)
		for _, pod := range w.podsOf(site) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: render.ContainerMySQL, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}
			w.must(w.c.Status().Update(w.ctx, &pod))
		}
	}
	w.fact("b", func(f *scope.SiteFacts) { f.Following = false })
	w.facts.Open("")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	return w
}

// I30: a new pod for the active site would end MySQL as soon as the partition is over, before anybody has what it acknowledged meanwhile.
func TestNoPodIsReplacedForAPartitionI30(t *testing.T) {
	w := cutOffWorld(t)
	old := w.deployments()
	for range 3 {
		w.reconcile()
	}
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Fatalf("I30: a pod is replaced during the partition (-want +got):\n%s", diff)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonWaitingForSite || !strings.Contains(c.Message, "node-a is not Ready") {
		t.Errorf("condition %+v", c)
	}
	// It is over, and nothing was heard of the sites yet: the pods are as the node controller left them.
	for _, site := range []string{"a", "c"} {
		w.nodeIs(site, corev1.ConditionTrue)
	}
	w.reconcile()
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Fatalf("I30: a pod is replaced at the end of the partition (-want +got):\n%s", diff)
	}
}

// A site whose MySQL does not start, as its node says, may need the update, also the active one.
func TestAnActiveSiteThatDoesNotStartIsRepaired(t *testing.T) {
	w := cutOffWorld(t)
	old := w.deployments()
	w.isUnavailable("a")
	for _, pod := range w.podsOf("a") {
		pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{
			Name: render.ContainerMySQL, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		}
		w.must(w.c.Status().Update(w.ctx, &pod))
	}
	w.reconcile()
	if got := w.deployments(); got["a"] == old["a"] || got["c"] != old["c"] {
		t.Errorf("got %v, before %v", got, old)
	}
}
