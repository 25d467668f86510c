// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// terminate deletes the volume claim of a site, which Kubernetes keeps as long as its pod runs.
func (w *world) terminate(site string) {
	w.t.Helper()
	c := &corev1.PersistentVolumeClaim{}
	w.get(c, v1alpha1.DataVolumeName(scopetest.Key.Name, site))
	c.Finalizers = append(c.Finalizers, "kubernetes.io/pvc-protection")
	w.must(w.c.Update(w.ctx, c))
	w.must(w.c.Delete(w.ctx, c))
}

// A claim that somebody deleted by mistake stays in sight, and its site runs, until its pod ends. Until then there is time.
func TestAClaimThatIsBeingDeletedIsTold(t *testing.T) {
	w := settledWorld(t)
	w.terminate("b")
	w.change(sized("20Gi"))
	w.reconcile()
	w.reconcile()
	said := w.said.Of(v1alpha1.ReasonVolumeTerminating)
	if len(said) != 1 || !strings.Contains(said[0], "Site b") || !strings.Contains(said[0], "kubectl delete pod mysql-orders-b-") {
		t.Errorf("events %v", w.said.List)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonVolumeTerminating {
		t.Errorf("condition %+v", c)
	}
	if w.sizeOf("b") != "10Gi" || w.said.Count(v1alpha1.ReasonVolumeCannotGrow) > 0 {
		t.Errorf("a volume that goes is asked to grow to %s: %v", w.sizeOf("b"), w.said.List)
	}
}

// Only the condition keeps the group from a turn of an upgrade, and it has one reason. Site b comes before c.
func TestAClaimThatIsBeingDeletedIsToldBeforeOtherVolumes(t *testing.T) {
	w := settledWorld(t)
	w.terminate("c")
	w.change(sized("20Gi"))
	w.reconcile()
	w.reconcile()
	if w.said.Count(v1alpha1.ReasonVolumeGrowing) == 0 {
		t.Errorf("no other volume has anything to say: %v", w.said.List)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonVolumeTerminating {
		t.Errorf("condition %+v", c)
	}
}

// The data of an active site that is down may be the newest. A new pod would throw it away.
func TestTheActiveSiteIsNotRepairedWhileItsClaimIsBeingDeleted(t *testing.T) {
	for terminating, want := range map[bool]bool{false: true, true: false} {
		w := settledWorld(t)
		if terminating {
			w.terminate("a")
		}
		w.facts.Set("a", scope.SiteFacts{})
		w.facts.Open("")
		w.isUnavailable("a")
		old := w.deployments()
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
		w.reconcile()
		if replaced := w.deployments()["a"] != old["a"]; replaced != want {
			t.Errorf("terminating %t: replaced %t", terminating, replaced)
		}
	}
}

// An update of the only site would end its pod, and with it all data of the group.
func TestTheOnlySiteIsNotUpdatedWhileItsClaimIsBeingDeleted(t *testing.T) {
	for terminating, want := range map[bool]bool{false: true, true: false} {
		w := settledWorld(t)
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:1] })
		w.askNobody()
		w.reconcile()
		w.settle("a")
		w.reconcile()
		if terminating {
			w.terminate("a")
		}
		old := w.deployments()
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
		w.reconcile()
		if replaced := w.deployments()["a"] != old["a"]; replaced != want || len(old) != 1 {
			t.Errorf("terminating %t: replaced %t of %v", terminating, replaced, old)
		}
		c := w.condition(v1alpha1.ConditionProgressing)
		if kept := c.Reason == v1alpha1.ReasonVolumeTerminating && strings.Contains(c.Message, "mysql-orders-a-data is being deleted"); kept != terminating {
			t.Errorf("terminating %t: condition %+v", terminating, c)
		}
	}
}

// A site that leaves may have the only copy that lasts.
func TestACopyWhoseClaimIsBeingDeletedIsNone(t *testing.T) {
	group := scopetest.Group(scopetest.Running)
	s := &scope.Scope{Group: group, Provisioned: map[string]bool{"a": true, "b": true, "d": true}, Deployments: map[string]*appsv1.Deployment{"a": {}, "b": {}}}
	s.Group.Status.ActiveSite = "a"
	for _, terminating := range []bool{false, true} {
		s.Terminating = map[string]bool{"b": terminating}
		if awaitsCopy(s, "d") != terminating {
			t.Errorf("terminating %t: waits %t", terminating, awaitsCopy(s, "d"))
		}
	}
}

// While something of a site cannot be removed its claim stays, since nobody can take its deletion back: the site may come back into the
// specification. What is left after a crash is found by the Service.
func TestTheVolumeOfARemovedSiteGoesLast(t *testing.T) {
	w := sealedWorld(t, deletePolicy)
	all := slices.Clone(w.group().Spec.Sites)
	w.keep = func(name string) error {
		if name == v1alpha1.KeyringSecret(scopetest.Key.Name, "c", 1) {
			return errors.New("the API server does not answer")
		}
		return nil
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.askNobody()
	for range 4 {
		_, _ = w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	}
	if _, there := w.deployments()["c"]; there {
		t.Error("the pod stays until the keyrings are gone: it would lose them")
	}
	w.get(&corev1.PersistentVolumeClaim{}, v1alpha1.DataVolumeName(scopetest.Key.Name, "c"))
	w.get(&corev1.Service{}, v1alpha1.SiteName(scopetest.Key.Name, "c"))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = all })
	w.keep = nil
	for range 3 {
		_, _ = w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	}
	w.get(&corev1.PersistentVolumeClaim{}, v1alpha1.DataVolumeName(scopetest.Key.Name, "c"))
	if w.said.Count(v1alpha1.ReasonSiteRemoved) > 0 || w.deployments()["c"] == "" {
		t.Errorf("deployments %v, events %v", w.deployments(), w.said.List)
	}
}

// The work on a removed site ends with it, and that on other sites goes on.
func TestTheWorkOnARemovedSiteEnds(t *testing.T) {
	w := settledWorld(t)
	var ended []string
	for _, site := range []string{"b", "c"} {
		key := scope.SiteKey{Group: scopetest.Key, Site: site}
		w.r.Work.Begin(key, func() { ended = append(ended, site) }).Hold()
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.reconcile()
	if len(ended) > 0 {
		t.Errorf("the work on %v ends before the site is removed", ended)
	}
	w.askNobody()
	w.reconcile()
	if len(ended) != 1 || ended[0] != "c" || w.busy("c") || !w.busy("b") {
		t.Errorf("the work on %v ends; b is held %t, c %t", ended, w.busy("b"), w.busy("c"))
	}
}
