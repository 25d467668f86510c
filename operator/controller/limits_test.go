// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/follow"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// images are what the Deployments run, bootstrap and mysqld alike.
func (w *world) images() map[string]string {
	w.t.Helper()
	var list appsv1.DeploymentList
	w.must(w.c.List(w.ctx, &list))
	out := map[string]string{}
	for _, d := range list.Items {
		spec := d.Spec.Template.Spec
		if spec.InitContainers[1].Image != spec.Containers[0].Image {
			w.t.Errorf("bootstrap of %s runs %s", d.Name, spec.InitContainers[1].Image)
		}
		out[d.Labels[v1alpha1.LabelSite]] = spec.Containers[0].Image
	}
	return out
}

func TestAnImageThatIsNotAllowedIsNotRun(t *testing.T) {
	w := newWorld(t, scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "evil/mysql:9.7" }))
	w.r.Limits = limits.Limits{Images: []string{"mysql"}}
	w.reconcile()
	if got := w.images(); len(got) != 0 {
		t.Errorf("pods are made: %v", got)
	}
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonImageNotAllowed {
		t.Errorf("condition %+v", c)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonImageNotAllowed {
		t.Errorf("condition %+v", c)
	}
	w.reconcile()
	if n := w.said.Count(v1alpha1.ReasonImageNotAllowed); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.7" })
	w.reconcile()
	if diff := cmp.Diff(map[string]string{"a": "mysql:9.7", "b": "mysql:9.7", "c": "mysql:9.7"}, w.images()); diff != "" {
		t.Errorf("with one that is allowed (-want +got): %s", diff)
	}
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Type != "" {
		t.Errorf("condition %+v", c)
	}
}

// A group that runs keeps its image, also if it was never allowed: it is neither ended nor kept from being updated otherwise, and a
// Deployment that is lost is made again.
func TestARunningGroupKeepsItsImage(t *testing.T) {
	w := runningWorld(t)
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Open("a")
	w.reconcile()
	w.r.Limits = limits.Limits{Images: []string{"registry.example.com/mysql"}}
	before := w.deployments()
	w.reconcile()
	if diff := cmp.Diff(before, w.deployments()); diff != "" {
		t.Errorf("the limit alone replaces pods: %s", diff)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "evil/mysql:9.7" })
	w.reconcile()
	if diff := cmp.Diff(before, w.deployments()); diff != "" {
		t.Errorf("pods are replaced by those of an image that is not allowed: %s", diff)
	}
	w.r.Install.SidecarImage = "sidecar:next"
	w.reconcile()
	if after := w.deployments(); after["c"] == before["c"] {
		t.Error("the update of the sidecar does not reach the group")
	}
	want := map[string]string{"a": "mysql:9.7", "b": "mysql:9.7", "c": "mysql:9.7"}
	if diff := cmp.Diff(want, w.images()); diff != "" {
		t.Errorf("images (-want +got): %s", diff)
	}
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "b"))
	w.must(w.c.Delete(w.ctx, &d))
	w.reconcile()
	if diff := cmp.Diff(want, w.images()); diff != "" {
		t.Errorf("images after a Deployment was lost (-want +got): %s", diff)
	}
}

func TestANameThatIsNotAllowedIsNotPublished(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	w.steer()
	if w.endpoint() == nil {
		t.Fatal("no record without a limit")
	}
	w.r.follow = follow.New(w.r.base, w.r.apply, limits.Limits{DNSSuffixes: []string{"{namespace}.example.net"}})
	w.reconcile()
	if w.endpoint() != nil {
		t.Error("the record of a name that is not allowed stays")
	}
	if c := w.condition(v1alpha1.ConditionDNSReady); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNameNotAllowed {
		t.Errorf("condition %+v", c)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DNS.Name = "db.shop.example.net" })
	w.reconcile()
	if w.endpoint() == nil {
		t.Error("no record of a name that is allowed")
	}
}
