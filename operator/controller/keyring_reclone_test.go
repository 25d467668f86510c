// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// answered is what became of an order for a reclone; empty while it stands.
func (w *world) answered(value string) string {
	w.t.Helper()
	g := w.group()
	if g.Annotations[v1alpha1.AnnotationRecloneSite] != "" {
		return ""
	}
	outcome, _ := strings.CutPrefix(g.Annotations[v1alpha1.AnnotationLastRequest], v1alpha1.AnnotationRecloneSite+"="+value+": ")
	return outcome
}

// A site whose escrow Secret is gone is unsealed only on a word that its data may go. An order without it would take the mark off the
// site, and then wait without end.
func TestRecloneOfASiteWithoutItsEscrowSecret(t *testing.T) {
	w := sealedWorld(t)
	w.must(w.c.Delete(w.ctx, secret("c", 1, "one")))
	w.escrowSeen()
	w.reconcile()
	w.order(v1alpha1.AnnotationRecloneSite, "c")
	w.reconcile()
	if got := w.answered("c"); !strings.HasPrefix(got, "refused, ") || !strings.Contains(got, "kubectl mfg recover-keyring orders c -n shop") || !strings.Contains(got, "c:confirm") {
		t.Errorf("answered %q", got)
	}
	if !w.site("c").Provisioned || w.site("c").Clone != nil {
		t.Errorf("something was changed: %+v", w.site("c"))
	}
	w.ordered("c", "c:confirm")
	w.reconcile()
	w.reconcile()
	if st := w.keyring("c"); st.Work != v1alpha1.KeyringClone || st.SeedVersion != 0 {
		t.Errorf("by a confirmed order: %+v", st)
	}
}
