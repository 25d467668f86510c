// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/operator/keyring"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A site is not sealed, nor its pod replaced, on the word of a report from before its clone, however often that is looked at: with
// a poll interval of 30 s one report stands for longer than any calm.
func TestI14ReportFromBeforeTheCloneSealsNothing(t *testing.T) {
	w := encryptedWorld(t)
	w.reconcile()
	w.boot("one", "a", "b", "c")
	for _, site := range []string{"a", "b", "c"} {
		w.push(site, 1, "one")
	}
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.rest()
	before := w.deployments()
	w.data("a", "b", "c") // the clones have ended, and were looked at past the poll loop
	wait := func(what string) {
		t.Helper()
		for range 3 {
			w.reconcile()
			w.later(10 * time.Second)
		}
		if st := w.keyring("c"); st.Stage != "" || w.deployments()["c"] != before["c"] {
			t.Errorf("%s: %+v", what, st)
		}
	}
	wait("nothing was heard since")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	wait("an update is asked for")
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.7" })
	w.push("c", 2, "two")
	wait("another keyring is in escrow")
	w.live("c", func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte("two")) })
	w.rest()
	w.rest()
	if st := w.keyring("c"); st.Stage != v1alpha1.KeyringSealing || st.KeyringVersion != 2 {
		t.Errorf("not sealed with the keyring of its clone: %+v", st)
	}
}

// The pod in which master keys were rotated, or the first of them, has the only copy until its sidecar has pushed it. An update that is
// pending does not replace it because the last report knows of no new keys.
func TestI14PodOfARotationOutlivesAPendingUpdate(t *testing.T) {
	for name, ended := range map[string]error{"rotated": nil, "half rotated": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			w := sealedWorld(t)
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
			})
			w.reconcile()
			w.reconcile()
			w.boot("one", "c")
			w.rest()
			before := w.deployments()["c"]
			if st := w.keyring("c"); st.Stage != v1alpha1.KeyringRotating {
				t.Fatalf("status %+v", st)
			}
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
			// It may begin and end between two looks.
			w.r.Work.BeginRotation(scope.SiteKey{Group: scopetest.Key, Site: "c"}, func() {}).Finish(ended)
			for range 3 {
				w.reconcile()
				w.later(10 * time.Second)
			}
			if w.deployments()["c"] != before {
				t.Error("the pod with the new keys is replaced")
			}
		})
	}
}

// lateVault tells what was there before something happened, as an answer does that was on its way meanwhile.
type lateVault struct {
	vault
	asked     int
	meanwhile func()
}

func (v *lateVault) Versions(ctx context.Context, ns, group, site string) ([]keyring.Version, error) {
	v.asked++
	out, err := v.vault.Versions(ctx, ns, group, site)
	if v.meanwhile != nil && site == "c" {
		v.meanwhile()
		v.meanwhile = nil
	}
	return out, err
}

// A Secret that is deleted while the Secrets are being listed is missed by the list. The watch tells of it before the list is put
// down, and what is put down must not pass for newer than that.
func TestDeletionDuringALookIsSeenAtTheNextOne(t *testing.T) {
	w := sealedWorld(t)
	v := &lateVault{vault: vault{w.c}}
	w.r.encryption.Escrow = v
	w.reconcile()
	v.asked = 0
	w.reconcile()
	if v.asked != 0 {
		t.Fatalf("sealed sites that nothing happened to were asked for %d times", v.asked)
	}
	w.escrowSeen()
	v.meanwhile = func() {
		gone := secret("c", 1, "one")
		w.must(w.c.Delete(w.ctx, gone))
		w.r.encryption.GroupOfKeyring(w.ctx, gone)
	}
	w.reconcile()
	w.reconcile()
	if st := w.keyring("c"); st.Phase != v1alpha1.KeyringFailed {
		t.Errorf("nobody noticed: %+v", st)
	}
}
