// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report"
)

func TestOrderedUpdate(t *testing.T) {
	w := runningWorld(t)
	w.facts.open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	old := w.deployments()

	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	changed := func() []string {
		var out []string
		for site, hash := range w.deployments() {
			if hash != old[site] {
				out = append(out, site)
			}
		}
		slices.Sort(out)
		return out
	}
	configured := func(site string) bool {
		config := &corev1.ConfigMap{}
		w.get(config, v1alpha1.ConfigName("orders", site))
		return strings.Contains(config.Data[render.ConfigKeyMyCnf], "max_connections=77")
	}
	for _, step := range []struct {
		settle string
		want   []string
	}{
		{"", []string{"b"}}, {"b", []string{"b", "c"}}, {"c", []string{"a", "b", "c"}},
	} {
		if step.settle != "" {
			w.settle(step.settle)
		}
		for range 3 {
			// However often it looks, it waits for the site in flight.
			w.reconcile()
		}
		if diff := cmp.Diff(step.want, changed()); diff != "" {
			t.Fatalf("after %q settled (-want +got):\n%s", step.settle, diff)
		}
		for _, site := range []string{"a", "b", "c"} {
			if configured(site) != slices.Contains(step.want, site) {
				t.Errorf("after %q settled: the option file of %s is that of another turn", step.settle, site)
			}
		}
		if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	}
	if n := w.said.count(report.SiteUpdating); n != 3 {
		t.Errorf("%d events of an update of three sites", n)
	}
}

func TestNoUpdateDuringFailover(t *testing.T) {
	w := runningWorld(t)
	w.facts.open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	g := w.group()
	g.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, To: "b"}
	w.must(w.c.Status().Update(w.ctx, g))
	w.reconcile()
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Facts of the pod that was there before say nothing about the one that is there now.
func TestSettledNeedsFactsOfThisPod(t *testing.T) {
	w := runningWorld(t)
	w.facts.open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	f, _ := w.facts.Sites("", "")
	stale := f.Sites["b"]
	stale.PodUID = "the-pod-before"
	w.facts.set("b", stale)
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	w.reconcile()
	got := w.deployments()
	if got["c"] != old["c"] || got["a"] != old["a"] {
		t.Errorf("a second site was taken while b is not known to serve: %v, before %v", got, old)
	}
}

func TestBrokenSiteIsRepairedFirst(t *testing.T) {
	w := runningWorld(t)
	w.facts.open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.set("c", SiteFacts{})
	d := &appsv1.Deployment{}
	w.get(d, "mysql-orders-c")
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(metav1.Now().Add(-2 * brokenAfter)),
	}}
	w.must(w.c.Status().Update(w.ctx, d))
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	got := w.deployments()
	if got["c"] == old["c"] || got["b"] != old["b"] || got["a"] != old["a"] {
		t.Errorf("got %v, before %v", got, old)
	}
}
