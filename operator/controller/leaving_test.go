// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// replaceAllBut has the group consist of the active site and a new one.
func (w *world) replaceAllBut(site, by string) {
	w.t.Helper()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		g.Spec.Sites = []v1alpha1.Site{{Name: site, Role: v1alpha1.PrimaryCandidate}, {Name: by, Role: v1alpha1.PrimaryCandidate}}
	})
}

// stays checks that a site that leaves still has its pod and its data.
func (w *world) stays(site, why string) {
	w.t.Helper()
	if _, there := w.deployments()[site]; !there {
		w.t.Errorf("%s is removed: %s", site, why)
	}
	w.get(&corev1.PersistentVolumeClaim{}, v1alpha1.DataVolumeName(scopetest.Key.Name, site))
}

func (w *world) noPod(site string) {
	w.t.Helper()
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels(site)...))
}

// The active site fails before the new one has its data. The leaving site has the only copy left, and a person may put it back.
func TestTheLastCopyStaysUntilTheNewSiteHasTheData(t *testing.T) {
	w := settledWorld(t)
	w.replaceAllBut("a", "d")
	w.reconcile()
	w.facts.Set("a", scope.SiteFacts{Reachable: true})
	w.facts.Closed("a")
	w.isUnavailable("a")
	w.reconcile()
	w.askNobody()
	w.reconcile()
	w.reconcile()
	w.stays("b", "the active site is down, and d has no data")
	w.says("site b left the specification, and stays: no site is open", "put it back into spec.sites")
	w.settle("d")
	w.askNobody()
	w.hasData("d")
	w.reconcile()
	w.stays("b", "no site is open")
	w.says("site b left the specification, and stays: no site is open")
	w.facts.Open("a")
	w.reconcile()
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); strings.Contains(c.Message, "stays") {
		t.Errorf("b is gone: %+v", c)
	}
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a", "d"}) {
		t.Errorf("a is open and d has the data, and there are deployments of %v", got)
	}
	if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: "mysql-orders-b-data"}, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
		t.Errorf("the claim of b: %v", err)
	}
}

// The active site is open, and the new one has no data yet: what else there is to say comes first.
func TestWhoWaitsForACopyIsTold(t *testing.T) {
	w := settledWorld(t)
	w.replaceAllBut("a", "d")
	w.askNobody()
	w.reconcile()
	w.reconcile()
	w.stays("b", "d has no data")
	w.says("site b left the specification, and stays: it may have the only other copy of the data, which d still lacks", "kubectl mfg status orders -n shop")
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonLeavingSiteKept || strings.HasPrefix(c.Message, "site b") {
		t.Errorf("%+v", c)
	}
	if said := w.said.Of(v1alpha1.ReasonSiteRemovalRefused); len(said) != 2 { // of b and of c
		t.Errorf("%q", said)
	}
}

// What else is under way is closer to the cause. If nothing is, the site that stays is what there is to say.
func TestWhatALeavingSiteComesAfter(t *testing.T) {
	s := &scope.Scope{Kept: []string{"site b stays", "site c stays"}}
	if c := progressCondition(s, nil); c.Reason != v1alpha1.ReasonLeavingSiteKept || c.Message != "site b stays; site c stays" {
		t.Errorf("%+v", c)
	}
	s.Progress(scope.Moving(v1alpha1.ReasonCreating, "creating d"), scope.WhenMoving)
	if c := progressCondition(s, nil); c.Reason != v1alpha1.ReasonCreating || c.Message != "creating d; site b stays; site c stays" {
		t.Errorf("%+v", c)
	}
	// An operator that has just started does not know yet whether a site is open.
	unknown := &scope.Scope{Group: scopetest.Group(scopetest.Running)}
	if new(Reconciler).tellKept(unknown, "b"); len(unknown.Kept) != 0 {
		t.Errorf("%q", unknown.Kept)
	}
}

// says checks what the condition Progressing has in it.
func (w *world) says(words ...string) {
	w.t.Helper()
	for _, word := range words {
		if c := w.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, word) {
			w.t.Errorf("Progressing does not say %q: %+v", word, c)
		}
	}
}

// The pod of the active site that asks b is gone, and none was made in its place.
func TestAPodThatIsGoneStillAsksI4(t *testing.T) {
	w := settledWorld(t)
	w.replaceAllBut("a", "d")
	w.reconcile()
	w.settle("d")
	w.hasData("d")
	w.askNobody()
	w.noPod("a")
	w.reconcile()
	w.stays("b", "I4: the gone pod of a may still run and ask it")
	w.noPod("d")
	w.settle("a")
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for i := range s.Sites {
			s.Sites[i].Provisioned = s.Sites[i].Provisioned && s.Sites[i].Name != "d"
		}
	})
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "b"}) })
	w.askNobody()
	w.reconcile()
	if _, there := w.deployments()["c"]; there {
		t.Error("c stays for a new site whose pod is refused: that may need just what c holds")
	}
}

// A new site that gets no data is replaced by another: it never had any, so it goes at once.
func TestASiteThatNeverHadDataGoes(t *testing.T) {
	w := settledWorld(t)
	w.replaceAllBut("a", "d")
	w.reconcile()
	w.replaceAllBut("a", "e")
	w.askNobody()
	w.reconcile()
	w.reconcile()
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a", "b", "c", "e"}) {
		t.Errorf("deployments of %v", got)
	}
}

// A site that is put back keeps the mark and the volume by which it may be promoted.
func TestTheMarksOfALeavingSiteGoWithItsObjects(t *testing.T) {
	w := settledWorld(t)
	w.facts.Change("c", func(f *scope.SiteFacts) { f.VolumeID = "volume-c" })
	w.reconcile()
	marked := func(when string) {
		t.Helper()
		if c := w.site("c"); !c.Provisioned || c.VolumeID != "volume-c" || c.Node != "node-c" {
			t.Errorf("%s: %+v", when, c)
		}
	}
	all := slices.Clone(w.group().Spec.Sites)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.reconcile()
	marked("its pod runs")
	w.r.Client = failing{w.r.Client}
	_, _ = w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	marked("the look at the objects failed")
	w.r.Client = w.r.Client.(failing).Client
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = all })
	w.reconcile()
	marked("it is back")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.askNobody()
	w.reconcile()
	if c := w.site("c"); c.Provisioned || c.VolumeID != "" {
		t.Errorf("it is removed: %+v", c)
	}
}

// failing lists nothing.
type failing struct{ client.Client }

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the API server does not answer")
}
