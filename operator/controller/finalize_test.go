// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func TestRemovedSite(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.reconcile()
	w.reconcile()
	if _, there := w.deployments()["c"]; !there {
		t.Error("I4: the site was removed while the pods of others ask it: it could not acknowledge an epoch any more")
	}
	w.askNobody()
	w.reconcile()
	if _, there := w.deployments()["c"]; there {
		t.Error("the Deployment of the removed site is still there")
	}
	w.get(&corev1.PersistentVolumeClaim{}, "mysql-orders-c-data")
	if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: "mysql-orders-c"}, &corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Errorf("its Service: %v", err)
	}
	for _, s := range w.group().Status.Sites {
		if s.Name == "c" && (s.Provisioned || s.Image != "" || s.Version != "") {
			t.Errorf("status of the removed site %+v", s)
		}
	}

	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = []v1alpha1.Site{g.Spec.Sites[1], {Name: "d"}} })
	w.reconcile()
	if _, there := w.deployments()["a"]; !there {
		t.Error("the active site was removed")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonActiveSiteKept {
		t.Errorf("condition %+v", c)
	}
}

// Whoever removes an end of a move that is under way takes away the proof, or the data, that it waits for.
func TestEndsOfATransitionAreKept(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.monitorStatus("b", 2)
	g := w.group()
	g.Status.Transition = &v1alpha1.Transition{From: "a", To: "b"}
	w.must(w.c.Status().Update(w.ctx, g))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = []v1alpha1.Site{{Name: "d"}, {Name: "e"}} })
	w.reconcile()
	if _, there := w.deployments()["c"]; !there {
		t.Error("c went before the new sites were made")
	}
	w.reconcile()
	if _, there := w.deployments()["c"]; !there {
		t.Error("c went before the new sites had the data: a pod alone is no copy")
	}
	w.settle("d", "e")
	w.askNobody()
	w.hasData("d", "e")
	w.reconcile()
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a", "b", "d", "e"}) {
		t.Errorf("deployments of %v", got)
	}
	if a := w.site("a"); a.Node != "node-a" || !a.Provisioned {
		t.Errorf("what is known of the old active site is forgotten: %+v", a)
	}
	w.writes = 0
	w.reconcile()
	w.writes = 0
	if w.reconcile(); w.writes != 0 {
		t.Errorf("%d writes although nothing has changed", w.writes)
	}
	g = w.group()
	g.Status.Transition = nil
	w.must(w.c.Status().Update(w.ctx, g))
	w.reconcile()
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"b", "d", "e"}) {
		t.Errorf("after the move deployments of %v", got)
	}
	if a := w.site("a"); a.Node != "node-a" || a.Provisioned {
		t.Errorf("I4: status of the removed site while the poll loop keeps it in sight: %+v", a)
	}
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for i := range s.Sites {
			if s.Sites[i].Name == "a" {
				s.Sites[i].State = ""
			}
		}
	})
	w.reconcile()
	if a := w.site("a"); a.Node != "" || a.Provisioned {
		t.Errorf("status of the removed site %+v", a)
	}
}

func TestDeletion(t *testing.T) {
	tests := map[string]struct {
		reason string
		option scopetest.Option
		stays  bool
		event  events.Event
	}{
		"retain": {"data outlives the group by default", func(*v1alpha1.MysqlFailoverGroup) {}, true, eventGroupDataKept},
		"delete": {"the user asked for it", deletePolicy, false, eventGroupDataRemoved},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(tt.option))
			w.reconcile()
			if !tt.stays {
				// Changed at the last moment: the owner references are still those of the other policy.
				w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
				w.reconcile()
				w.change(deletePolicy)
			} else {
				w.change(deletePolicy)
				w.reconcile()
				w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
			}
			w.must(w.c.Delete(w.ctx, w.group()))
			w.reconcile()
			if err := w.c.Get(w.ctx, scopetest.Key, &v1alpha1.MysqlFailoverGroup{}); !apierrors.IsNotFound(err) {
				t.Errorf("the group is still there: %v", err)
			}
			for _, obj := range []client.Object{
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mysql-orders-a-data"}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mysql-orders-accounts"}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mysql-orders-root"}},
			} {
				err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: obj.GetName()}, obj)
				if tt.stays && (err != nil || len(obj.GetOwnerReferences()) != 0) {
					t.Errorf("%s: %s: %v, owners %v", tt.reason, obj.GetName(), err, obj.GetOwnerReferences())
				}
				if !tt.stays && !apierrors.IsNotFound(err) {
					t.Errorf("%s: %s: %v", tt.reason, obj.GetName(), err)
				}
			}
			if got := w.said.Of(tt.event.Reason); len(got) != 1 || tt.stays && !strings.Contains(got[0], "kubectl -n shop delete pvc/mysql-orders-a-data") {
				t.Errorf("events %v", w.said.List)
			}
			if err := w.c.Get(w.ctx, keyName, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				t.Errorf("the key that signed is still there: %v", err)
			}
			if w.loops.forgotten == 0 {
				t.Error("the loop goes on")
			}
			w.reconcile()
		})
	}
}

// A copy of a volume that a person made keeps the labels of the original, and often its owners. The group never uses it, so it stays.
func TestVolumesOfOthersOutliveTheGroup(t *testing.T) {
	volume := func(name, site string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: render.SiteLabels("orders", site), OwnerReferences: owners,
		}}
	}
	group := scopetest.Group(deletePolicy)
	other := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x", UID: "u", Controller: new(true)}
	former := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup", Name: "orders", UID: "before", Controller: new(true)}
	for name, tt := range map[string]struct {
		volume *corev1.PersistentVolumeClaim
		stays  bool
		owners int
	}{
		"a copy":                            {volume("copy", "b"), true, 0},
		"a copy with its owners":            {volume("copy", "b", *metav1.NewControllerRef(group, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))), true, 0},
		"a copy of no site":                 {volume("copy", ""), true, 0},
		"the name of another site":          {volume("mysql-orders-d-data", "b"), true, 0},
		"another controller's":              {volume("mysql-orders-d-data", "d", other), true, 1},
		"of a site that left":               {volume("mysql-orders-d-data", "d"), false, 0},
		"of a former group of this name":    {volume("mysql-orders-d-data", "d", former), false, 0},
		"of the group, with another's word": {volume("mysql-orders-d-data", "d", metav1.OwnerReference{Kind: "Backup", Name: "x", UID: "u"}), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionRetain} {
				w := newWorld(t, group.DeepCopy(), tt.volume.DeepCopy())
				w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = policy })
				w.reconcile()
				w.must(w.c.Delete(w.ctx, w.group()))
				w.reconcile()
				got := &corev1.PersistentVolumeClaim{}
				err := w.c.Get(w.ctx, client.ObjectKeyFromObject(tt.volume), got)
				retained := policy == v1alpha1.DeletionRetain
				if there := err == nil; there != (tt.stays || retained) || tt.stays && len(got.OwnerReferences) != tt.owners {
					t.Errorf("%s: %v, owners %v", policy, err, got.OwnerReferences)
				}
				event := eventGroupDataRemoved
				if retained {
					event = eventGroupDataKept
				}
				said := w.said.Of(event.Reason)
				if len(said) != 1 {
					t.Fatalf("%s: events %v", policy, w.said.List)
				}
				own, left, _ := strings.Cut(said[0], "not its own")
				if named := "pvc/" + tt.volume.Name; strings.Contains(own, named) == tt.stays || strings.Contains(left, named) != tt.stays {
					t.Errorf("%s: it says %q", policy, said[0])
				}
			}
		})
	}
}

// TestPreparedObjectsOutliveTheGroup: who may only edit groups chooses the names of what a group uses, so another application's Secret or volume
// may have one of them. The group uses it, and never deletes it or has it collected.
func TestPreparedObjectsOutliveTheGroup(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"example.org/owner": "somebody"}}
	}
	secret := func(name string, keys ...string) *corev1.Secret {
		out := &corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{}}
		for _, key := range keys {
			out.Data[key] = bytes.Repeat([]byte("x"), wire.ReportKeyBytes)
		}
		return out
	}
	there := func() []client.Object {
		return []client.Object{
			secret("mysql-orders-app", v1alpha1.ApplicationPassword), secret("mysql-orders-a-report", v1alpha1.ReportKey), secret("mysql-orders-c-report", v1alpha1.ReportKey),
			secret("mysql-orders-root", render.KeyRootPassword), secret("mysql-orders-accounts", render.AccountOperator, render.AccountReplication, render.AccountSidecar, render.AccountClone),
			&corev1.PersistentVolumeClaim{ObjectMeta: meta("mysql-orders-a-data")}, &corev1.PersistentVolumeClaim{ObjectMeta: meta("mysql-orders-c-data")},
		}
	}
	group := scopetest.Group(deletePolicy, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"} })
	w := newWorld(t, group.DeepCopy(), there()...)
	used := func(when string) {
		t.Helper()
		for _, obj := range there() {
			w.get(obj, obj.GetName())
			if obj.GetLabels()[v1alpha1.LabelGroup] != "orders" || obj.GetAnnotations()["example.org/owner"] != "somebody" || len(obj.GetOwnerReferences()) != 0 {
				t.Errorf("%s: %s has labels %v, annotations %v, owners %v", when, obj.GetName(), obj.GetLabels(), obj.GetAnnotations(), obj.GetOwnerReferences())
			}
		}
	}
	w.reconcile()
	used("at first")
	for range 3 { // it completes the Secrets of the application and of the accounts
		w.reconcile()
	}
	w.writes = 0
	if w.reconcile(); w.writes != 0 {
		t.Errorf("%d writes although nothing has changed", w.writes)
	}
	// The operator starts again, and sees the labels that it gave.
	w.r.apply = apply.NewApplier(w.c, w.c)
	w.reconcile()
	used("after a restart")
	own := &corev1.PersistentVolumeClaim{}
	if w.get(own, "mysql-orders-b-data"); len(own.OwnerReferences) != 1 || own.Annotations[v1alpha1.AnnotationPrepared] != "" {
		t.Errorf("the volume that the operator made has owners %v, annotations %v", own.OwnerReferences, own.Annotations)
	}

	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	used("after the group")
	if err := w.c.Get(w.ctx, client.ObjectKeyFromObject(own), own); !apierrors.IsNotFound(err) {
		t.Errorf("the group's own volume is still there: %v", err)
	}
	said := w.said.Of(eventGroupDataRemoved.Reason)
	if len(said) != 1 || !strings.Contains(said[0], "pvc/mysql-orders-b-data") {
		t.Fatalf("events %v", w.said.List)
	}
	if gone, stays, _ := strings.Cut(said[0], "not its own"); strings.Contains(gone, "mysql-orders-a-data") || !strings.Contains(stays, "pvc/mysql-orders-a-data") || !strings.Contains(stays, "secret/mysql-orders-app") {
		t.Errorf("it says %q", said[0])
	}

	// A group that never came to use them deletes them no more than one that did.
	hasty := group.DeepCopy()
	hasty.Finalizers = []string{v1alpha1.Finalizer}
	w = newWorld(t, hasty, there()...)
	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	for _, obj := range there() {
		w.get(obj, obj.GetName())
	}
}

// A site that leaves takes neither the volume that was prepared for it nor the Secret, and that volume's keyrings stay.
func TestPreparedObjectsOutliveTheirSite(t *testing.T) {
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-c-data"}}
	report := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-c-report"}, Data: map[string][]byte{v1alpha1.ReportKey: make([]byte, wire.ReportKeyBytes)}}
	w := runningWorld(t)
	w.must(w.c.Create(w.ctx, volume))
	w.must(w.c.Create(w.ctx, report))
	w.change(deletePolicy)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.reconcile()
	w.askNobody()
	w.reconcile()
	if _, there := w.deployments()["c"]; there {
		t.Fatal("the site is still there")
	}
	w.get(volume, volume.Name)
	w.get(report, report.Name)
	if said := w.said.Of(eventSiteRemoved.Reason); len(said) != 1 || !strings.Contains(said[0], "mysql-orders-c-data stays") {
		t.Errorf("it says %v", said)
	}
}

func TestOwnersFollowThePolicy(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	owners := func() (n int) {
		for _, name := range []string{"mysql-orders-accounts", "mysql-orders-root"} {
			s := &corev1.Secret{}
			w.get(s, name)
			n += len(s.OwnerReferences)
			if len(s.Data) == 0 {
				t.Errorf("%s lost its content", name)
			}
		}
		v := &corev1.PersistentVolumeClaim{}
		w.get(v, "mysql-orders-a-data")
		return n + len(v.OwnerReferences)
	}
	for _, step := range []struct {
		policy v1alpha1.DeletionPolicy
		want   int
	}{{v1alpha1.DeletionRetain, 0}, {v1alpha1.DeletionDelete, 3}, {v1alpha1.DeletionRetain, 0}} {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = step.policy })
		w.reconcile()
		if got := owners(); got != step.want {
			t.Errorf("%s: %d owners, want %d", step.policy, got, step.want)
		}
	}
}

// hasData has sites be provisioned.
func (w *world) hasData(sites ...string) {
	w.t.Helper()
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for _, name := range sites {
			i := slices.IndexFunc(s.Sites, func(is v1alpha1.SiteStatus) bool { return is.Name == name })
			s.Sites[i].Provisioned, s.Sites[i].Unlisted = true, false
		}
	})
}

// askNobody replaces all pods by such whose sidecars know no peer.
func (w *world) askNobody() {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.c.List(w.ctx, &pods))
	for i := range pods.Items {
		for j := range pods.Items[i].Spec.InitContainers {
			pods.Items[i].Spec.InitContainers[j].Env = nil
		}
		w.must(w.c.Update(w.ctx, &pods.Items[i]))
	}
}
