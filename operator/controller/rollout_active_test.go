// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report"
)

// holding sets what a site has executed.
func (w *world) holding(site, executed string) {
	g, _ := w.facts.Sites("", "")
	f := g.Sites[site]
	f.Executed = set(executed)
	w.facts.set(site, f)
}

// onlyTheActiveIsOld is a group of which everything but the active site got the new image.
func onlyTheActiveIsOld(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	w.facts.open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	w.settle("b")
	w.reconcile()
	w.settle("c")
	w.holding("a", history)
	return w
}

// The pod is replaced in place: if it does not come back, what only it held is lost.
func TestActiveSiteIsReplacedOnlyIfAnotherHasCaughtUp(t *testing.T) {
	w := onlyTheActiveIsOld(t)
	w.holding("b", uuidA+":1-40")
	// A site that is never promoted saves nobody.
	w.holding("c", history)
	old := w.deployments()["a"]
	w.reconcile()
	w.reconcile()
	if w.deployments()["a"] != old {
		t.Fatal("the active site's pod is replaced although no candidate holds what it holds")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != report.ReasonWaitingForSite || !strings.Contains(c.Message, "no other site") {
		t.Errorf("condition %+v", c)
	}
	// Under load a replica never holds what the active site holds at the same moment.
	w.holding("a", uuidA+":1-200")
	w.holding("b", uuidA+":1-150")
	w.reconcile()
	if w.deployments()["a"] == old {
		t.Errorf("a site that is a moment behind is caught up; condition %+v", w.condition(v1alpha1.ConditionProgressing))
	}
}

func TestMarkOfTheActiveSiteGrowsOld(t *testing.T) {
	w := onlyTheActiveIsOld(t)
	w.holding("b", uuidA+":1-40")
	old := w.deployments()["a"]
	w.reconcile()
	m := w.r.marks[testKey]
	m.at = m.at.Add(-2 * behindAtMost)
	w.r.marks[testKey] = m
	w.holding("a", uuidA+":1-200")
	w.holding("b", history)
	w.reconcile()
	if w.deployments()["a"] != old {
		t.Error("b is known to hold only what the active site held long ago")
	}
}

// While the active site's pod starts, its replicas do not follow. They must not be replaced for that.
func TestNothingElseIsReplacedWhileTheActiveSiteStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want bool
	}{
		"just now": {time.Second, true},
		"failed":   {2 * brokenAfter, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := onlyTheActiveIsOld(t)
			w.holding("b", history)
			w.reconcile()
			w.settle("a")
			pod := &corev1.Pod{}
			w.get(pod, "mysql-orders-a-"+w.deployments()["a"])
			w.must(w.c.Delete(w.ctx, pod))
			pod.ResourceVersion, pod.CreationTimestamp = "", metav1.NewTime(time.Now().Add(-tc.age))
			pod.Status.Conditions = nil
			w.must(w.c.Create(w.ctx, pod))
			for _, site := range []string{"a", "b", "c"} {
				w.facts.set(site, SiteFacts{MysqlUp: site == "c"})
			}
			w.facts.open("")
			old := w.deployments()
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.9" })
			w.reconcile()
			got := w.deployments()
			if spared := got["b"] == old["b"] && got["c"] == old["c"]; spared != tc.want {
				t.Errorf("got %v, before %v; condition %+v", got, old, w.condition(v1alpha1.ConditionProgressing))
			}
		})
	}
}
