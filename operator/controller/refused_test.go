// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// refuses has the API server refuse the objects of a name, as a quota or a policy does.
func (w *world) refuses(name string) {
	w.reject = func(got string) error {
		if got != name {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, name, nil)
	}
}

// settledWorld is a world whose three sites run.
func settledWorld(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	return w
}

// What a new site lacks may be just what a leaving one holds, such as a quota. The removal of that one, updates and all that comes after
// them go on without the new site.
func TestANewSiteThatIsRefusedHoldsUpNoOther(t *testing.T) {
	const site, config = "mysql-orders-d", "mysql-orders-d-config"
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: config}}
	for name, tt := range map[string]struct {
		refused string
		foreign client.Object
		reason  v1alpha1.Reason
	}{
		"its claim":     {refused: "mysql-orders-d-data", reason: v1alpha1.ReasonObjectRefused},
		"its Service":   {refused: site, reason: v1alpha1.ReasonObjectRefused},
		"its ConfigMap": {refused: config, reason: v1alpha1.ReasonObjectRefused},
		"a foreign Service": {
			foreign: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: site}}, reason: v1alpha1.ReasonForeignObject,
		},
		"a foreign ConfigMap": {foreign: foreign, reason: v1alpha1.ReasonForeignObject},
	} {
		t.Run(name, func(t *testing.T) {
			w := settledWorld(t)
			if tt.foreign != nil {
				w.must(w.c.Create(w.ctx, tt.foreign.DeepCopyObject().(client.Object)))
			} else {
				w.refuses(tt.refused)
			}
			before := w.deployments()
			w.change(deletePolicy)
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Spec.Sites = append([]v1alpha1.Site{{Name: "d", Role: v1alpha1.PrimaryCandidate}}, g.Spec.Sites[:2]...)
			})
			w.reconcile()
			if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != tt.reason || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "site d ") {
				t.Errorf("condition %+v", c)
			}
			if w.deployments()["b"] == before["b"] {
				t.Error("b is not updated")
			}
			w.settle("b")
			w.askNobody()
			w.reconcile()
			if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a", "b"}) {
				t.Errorf("deployments of %v", got)
			}
			claim := &corev1.PersistentVolumeClaim{}
			if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: "mysql-orders-c-data"}, claim); !apierrors.IsNotFound(err) {
				t.Errorf("the claim of c: %v", err)
			}
			if said := w.said.Of(tt.reason); len(said) != 1 {
				t.Errorf("events %v", w.said.List)
			}
			if tt.foreign != nil {
				w.must(w.c.Delete(w.ctx, tt.foreign))
			}
			w.reject = nil
			w.reconcile()
			if _, made := w.deployments()["d"]; !made {
				t.Error("d is not made although nothing is in its way any more")
			}
		})
	}
}

// I21: it has no MySQL that could take a password, so those of the others are replaced without it. Once it is made, it is waited for again.
func TestPasswordsAreReplacedAlthoughANewSiteIsRefusedI21(t *testing.T) {
	w, _ := passwordWorld(t)
	w.refuses("mysql-orders-d-data")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d", Role: v1alpha1.DROnly})
		g.Annotations = map[string]string{v1alpha1.AnnotationRotatePasswords: "all"}
	})
	w.until("every other site takes the next ones", w.waitsFor(v1alpha1.ReasonSidecarBehind))
	w.reject = nil
	w.until("it is waited for", w.waitsFor(v1alpha1.ReasonSiteBusy))
}

// Nor has it a certificate that the former authority signed, and that the others would have to trust.
func TestTheAuthorityIsReplacedAlthoughANewSiteIsRefused(t *testing.T) {
	w := newWorld(t, scopetest.Group(withMadeTLS))
	w.reconcile()
	w.refuses("mysql-orders-d-data")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d", Role: v1alpha1.DROnly})
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateCertificate: "ca=2m", v1alpha1.AnnotationRotateCertificate + "-id": "1"}
	})
	says := func(what string) {
		t.Helper()
		w.reconcile()
		w.reconcile()
		if c := w.condition(v1alpha1.ConditionTLSReady); c.Reason != v1alpha1.ReasonCertificateAuthorityChanging || !strings.Contains(c.Message, what) {
			t.Errorf("condition %+v, want %q in it", c, what)
		}
	}
	says("MySQL of a, b, c trusts it")
	w.shows("a", "b", "c")
	says("signs from ")
	w.reject = nil
	says("MySQL of d trusts it")
}

// A group of two replaces one site by a new one that cannot be made: the leaving one has the only copy beside the active site.
func TestALeavingSiteStaysUntilTheNewOneIsMade(t *testing.T) {
	w := settledWorld(t)
	w.refuses("mysql-orders-d-data")
	w.change(deletePolicy)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Sites = []v1alpha1.Site{g.Spec.Sites[0], {Name: "d", Role: v1alpha1.DROnly}}
	})
	w.askNobody()
	w.reconcile()
	w.reconcile()
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("deployments of %v", got)
	}
	w.get(&corev1.PersistentVolumeClaim{}, "mysql-orders-b-data")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:1] })
	w.askNobody()
	w.reconcile()
	if got := scope.Sorted(w.deployments()); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("nothing is awaited any more, and there are deployments of %v", got)
	}
}

// Nothing is made or replaced around a site that runs and whose objects are refused.
func TestARunningSiteThatIsRefusedStopsTheRest(t *testing.T) {
	w := settledWorld(t)
	w.r = New(w.r.Options)
	w.refuses("mysql-orders-b")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d"}) })
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonReconcileError {
		t.Errorf("condition %+v", c)
	}
}

// A new site that cannot be made takes no part in the steps of the keyrings: no time runs for it, and the others are kept.
func TestKeyringsAreKeptAlthoughANewSiteIsRefused(t *testing.T) {
	freshMetrics(t)
	w := encryptedWorld(t)
	w.reconcile()
	w.boot("one", "a", "b", "c")
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.refuses("mysql-orders-d-data")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d"}) })
	for _, site := range []string{"a", "b", "c"} {
		w.push(site, 1, "one")
	}
	w.rest()
	if got := w.phases(); got != "Escrowed Escrowed Escrowed" {
		t.Errorf("phases %q", got)
	}
	at := w.group().Status.EncryptionAtRest
	if slices.ContainsFunc(at.Sites, func(st v1alpha1.SiteKeyringStatus) bool { return st.Name == "d" }) {
		t.Errorf("status has the keyring of a site that is not made: %+v", at.Sites)
	}
}
