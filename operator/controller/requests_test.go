// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

const groupType = "*v1alpha1.MysqlFailoverGroup"

// asksWithID is an order of the plugin, which has an id.
func (w *world) asksWithID(kind v1alpha1.RequestKind, value, id string) {
	w.t.Helper()
	g := w.group()
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	g.Annotations[kind.Annotation()], g.Annotations[kind.IDAnnotation()] = value, id
	w.must(w.c.Update(w.ctx, g))
}

// An order that a person gives by hand has an id before anything is done for it, and the rotation notes whose answer it is to be.
func TestAnOrderByHandGetsAnID(t *testing.T) {
	w := sealedWorld(t)
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	w.reconcile()
	id := w.group().Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()]
	if st := w.keyring("c"); id == "" || st.Phase != v1alpha1.KeyringPending || st.Request != id {
		t.Errorf("id %q, keyring %+v", id, st)
	}
	w.reconcile()
	if now := w.group().Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()]; now != id {
		t.Errorf("the id was %q and is %q", id, now)
	}
}

// An operator that ends after the answer is durable, and before the order is off the group, leaves an order that is answered. The next
// one takes it off, and neither carries it out nor answers it once more, although by now nothing is against it.
func TestAnAnsweredOrderIsNotCarriedOut(t *testing.T) {
	for _, kind := range []v1alpha1.RequestKind{v1alpha1.RequestRotateKeyring, v1alpha1.RequestRecloneSite} {
		w := sealedWorld(t)
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "c", Phase: v1alpha1.PlannedMoving}
		})
		w.asksWithID(kind, "c", "1")
		w.fail[groupType] = errors.New("ends here")
		if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
			t.Fatalf("%s: no error", kind)
		}
		first := *w.group().Status.LastRequest(kind)
		if first.ID != "1" || first.Outcome != v1alpha1.RequestRefused || first.Reason != v1alpha1.AnswerRoleMoving || w.group().Annotations[kind.Annotation()] != "c" {
			t.Fatalf("%s: answered %+v, annotations %v", kind, first, w.group().Annotations)
		}
		clear(w.fail)
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) { s.PlannedFailover = nil })
		w.reconcile()
		w.reconcile()
		if now := *w.group().Status.LastRequest(kind); now != first {
			t.Errorf("%s: answered twice: %+v", kind, now)
		}
		if _, stands := w.group().Annotations[kind.Annotation()]; stands || w.site("c").Clone != nil || w.keyring("c").Phase != v1alpha1.KeyringSealed {
			t.Errorf("%s: stands %t, site %+v, keyring %+v", kind, stands, w.site("c"), w.keyring("c"))
		}
		w.asksWithID(kind, "c", "2")
		w.reconcile()
		if w.site("c").Clone == nil && w.keyring("c").Phase != v1alpha1.KeyringPending {
			t.Errorf("%s: the next order for the same site is taken for the one before: %s", kind, w.last(kind))
		}
	}
}

// An answer that cannot be persisted leaves its order on the group: somebody waits for it.
func TestAnOrderStaysUntilItsAnswerIsDurable(t *testing.T) {
	w := sealedWorld(t)
	w.asksWithID(v1alpha1.RequestRotateKeyring, "nowhere", "1")
	w.fail["*v1alpha1.MysqlFailoverGroupApplyConfiguration"] = errors.New("away")
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Fatalf("error %v", err)
	}
	if w.group().Annotations[v1alpha1.AnnotationRotateKeyring] != "nowhere" || w.last(v1alpha1.RequestRotateKeyring) != "" {
		t.Errorf("annotations %v, answer %s", w.group().Annotations, w.last(v1alpha1.RequestRotateKeyring))
	}
	clear(w.fail)
	w.reconcile()
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "nowhere: Refused (UnknownSite)") {
		t.Errorf("answered %q", last)
	}
}
