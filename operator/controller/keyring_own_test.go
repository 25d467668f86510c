// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The keyrings stay with the volumes that need them, whoever collects what has an owner.
func TestKeyringsOutliveAGroupThatRetains(t *testing.T) {
	for policy, stays := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.DeletionRetain: true, v1alpha1.DeletionDelete: false} {
		t.Run(string(policy), func(t *testing.T) {
			w := sealedWorld(t, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = policy })
			var s corev1.Secret
			w.get(&s, "mysql-orders-c-keyring-v1")
			if metav1.GetControllerOf(&s) == nil {
				t.Errorf("owners %+v", s.OwnerReferences)
			}
			w.must(w.c.Delete(w.ctx, w.group()))
			w.reconcile()
			err := w.c.Get(w.ctx, client.ObjectKeyFromObject(&s), &s)
			if (err == nil) != stays || stays && len(s.OwnerReferences) > 0 {
				t.Errorf("after the group: %v, owners %+v", err, s.OwnerReferences)
			}
			// The chart's policy refuses to delete a keyring that is not marked.
			const mark = "label secret -l mysql-mfg.io/keyring-version,mysql-mfg.io/failover-group=orders mysql-mfg.io/allow-deletion=true && kubectl -n shop delete "
			if said := w.said.Of(v1alpha1.ReasonGroupDataKept); stays && (len(said) != 1 || !strings.Contains(said[0], mark)) {
				t.Errorf("events %v", said)
			}
		})
	}
}

// I17: after a backup of the cluster was restored, or a group was deleted by force, keyrings are owned by a group that is gone: its name
// is that of the group that is there, its UID is not. The garbage collector would come for them.
func TestKeyringsOfADeadOwnerAreTakenOverI17(t *testing.T) {
	dead := func(s *corev1.Secret) { s.OwnerReferences[0].UID = "of-a-group-that-is-gone" }
	ofOthers := func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: scopetest.Key.Name, UID: "u", Controller: new(true)}}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Secret)
		ours   bool
	}{"of a group of this name": {dead, true}, "of something else": {ofOthers, false}} {
		t.Run(name, func(t *testing.T) {
			w := sealedWorld(t)
			var s corev1.Secret
			w.get(&s, "mysql-orders-c-keyring-v1")
			tt.change(&s)
			w.must(w.c.Update(w.ctx, &s))
			w.escrowSeen()
			w.reconcile()
			w.get(&s, "mysql-orders-c-keyring-v1")
			owner := metav1.GetControllerOf(&s)
			if owner == nil || (owner.UID == w.group().UID) != tt.ours || len(s.OwnerReferences) != 1 {
				t.Errorf("owners %+v", s.OwnerReferences)
			}
			// What status does not lead to any more keeps its dead owner until the group goes: then nothing may be left that is collected.
			tt.change(&s)
			w.must(w.c.Update(w.ctx, &s))
			w.must(w.c.Delete(w.ctx, w.group()))
			w.reconcile()
			w.get(&s, "mysql-orders-c-keyring-v1")
			if (len(s.OwnerReferences) == 0) != tt.ours {
				t.Errorf("after the group: owners %+v", s.OwnerReferences)
			}
		})
	}
}

// A site that left the specification leaves its volume behind, unless the policy says otherwise, and that is waste without its
// keyring. Its token is of no use to anybody.
func TestKeyringsOfASiteThatLeftGoWithItsData(t *testing.T) {
	for policy, stays := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.DeletionRetain: true, v1alpha1.DeletionDelete: false} {
		w := encryptedWorld(t, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = policy })
		w.push("b", 1, "one")
		w.push("c", 1, "one")
		w.must(w.r.encryption.Escrow.RenewToken(w.ctx, w.group(), "c", 1))
		w.must(w.r.encryption.RemoveKeyrings(w.ctx, &scope.Scope{Key: scopetest.Key, Group: w.group()}, "c", !stays))
		is := func(name string) bool {
			err := w.c.Get(w.ctx, client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: name}, &corev1.Secret{})
			w.must(client.IgnoreNotFound(err))
			return err == nil
		}
		if is("mysql-orders-c-keyring-v1") != stays || !is("mysql-orders-b-keyring-v1") || is(v1alpha1.KeyringTokenSecret(scopetest.Key.Name, "c")) {
			t.Errorf("%s: keyring of c %t, of b %t; token of c %t", policy, is("mysql-orders-c-keyring-v1"), is("mysql-orders-b-keyring-v1"),
				is(v1alpha1.KeyringTokenSecret(scopetest.Key.Name, "c")))
		}
	}
}

// One request that fails while a site is removed, whichever it is, leaves nothing behind: the next look finds the site, and ends it.
func TestARemovalThatFailedIsEnded(t *testing.T) {
	group := scopetest.Key.Name
	for _, name := range []string{
		v1alpha1.SiteName(group, "c"), v1alpha1.DataVolumeName(group, "c"), v1alpha1.KeyringSecret(group, "c", 1), v1alpha1.KeyringTokenSecret(group, "c"),
	} {
		w := sealedWorld(t, deletePolicy)
		w.must(w.r.encryption.Escrow.RenewToken(w.ctx, w.group(), "c", 1))
		failed := 0
		w.keep = func(of string) error {
			if of == name && failed == 0 {
				failed++
				return errors.New("the API server does not answer")
			}
			return nil
		}
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
		w.askNobody()
		for range 4 {
			_, _ = w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}) // one of them fails
		}
		if failed != 1 {
			t.Errorf("%s was never to be deleted", name)
		}
		for what, obj := range map[string]client.Object{
			v1alpha1.SiteName(group, "c"): &appsv1.Deployment{}, v1alpha1.DataVolumeName(group, "c"): &corev1.PersistentVolumeClaim{},
			v1alpha1.KeyringSecret(group, "c", 1): &corev1.Secret{}, v1alpha1.KeyringTokenSecret(group, "c"): &corev1.Secret{},
		} {
			if err := w.c.Get(w.ctx, client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: what}, obj); !apierrors.IsNotFound(err) {
				t.Errorf("%s could not be deleted once: %s is left (%v)", name, what, err)
			}
		}
		if n := w.said.Count(v1alpha1.ReasonSiteRemoved); n != 1 {
			t.Errorf("%s could not be deleted once: told %d times", name, n)
		}
	}
}

// A group that is made again starts with the keyrings that are there.
func TestRecreatedGroupFindsItsKeyrings(t *testing.T) {
	w := encryptedWorld(t)
	for _, site := range []string{"a", "b", "c"} {
		w.push(site, 1, "one")
		w.push(site, 3, "three")
	}
	w.reconcile()
	if got := w.phases(); got != "Escrowed Escrowed Escrowed" || w.keyring("a").KeyringVersion != 3 {
		t.Fatalf("%s: %+v", got, w.keyring("a"))
	}
	w.boot("", "a", "b", "c")
	w.rest()
	if got := w.phases(); got != "Sealed Sealed Sealed" {
		t.Errorf("%s: %+v", got, w.keyring("a"))
	}
}

func TestWithoutAnEscrowListenerNothingRuns(t *testing.T) {
	w := encryptedWorld(t)
	w.r.encryption.Escrow = nil
	w.reconcile()
	if len(w.deployments()) != 0 {
		t.Errorf("pods for %v", w.deployments())
	}
	if c := w.condition(v1alpha1.ConditionEncryptionReady); c.Reason != v1alpha1.ReasonEscrowListenerMissing {
		t.Errorf("condition %+v", c)
	}
}

// The keyrings of a group are let go of by name, or the group stays: the garbage collector takes what it owns.
func TestGroupStaysWhileItsKeyringsAreOutOfReach(t *testing.T) {
	w := sealedWorld(t)
	escrow := w.r.encryption.Escrow
	w.r.encryption.Escrow = nil
	w.must(w.c.Delete(w.ctx, w.group()))
	for range 2 {
		if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); !errors.Is(err, encryption.ErrKeyringsOutOfReach) {
			t.Errorf("got %v", err)
		}
	}
	if w.group().DeletionTimestamp == nil || w.said.Count(v1alpha1.ReasonDeletionWaits) != 1 {
		t.Errorf("events %v", w.said.List)
	}
	w.r.encryption.Escrow = escrow
	w.reconcile()
	var s corev1.Secret
	w.get(&s, "mysql-orders-c-keyring-v1")
	if len(s.OwnerReferences) > 0 {
		t.Errorf("owners %+v", s.OwnerReferences)
	}
}

// An installation that lost its escrow listener leaves what runs alone, and goes on to look after it.
func TestListenerLostLeavesPodsAlone(t *testing.T) {
	w := sealedWorld(t)
	before := w.deployments()
	w.r.encryption.Escrow, w.loops.ensured = nil, 0
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if now := w.deployments(); fmt.Sprint(now) != fmt.Sprint(before) || w.loops.ensured == 0 {
		t.Errorf("%v -> %v, loop asked for %d times", before, now, w.loops.ensured)
	}
}
