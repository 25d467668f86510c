// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func TestLostSecrets(t *testing.T) {
	t.Run("accounts of a group that has run", func(t *testing.T) {
		w := newWorld(t, scopetest.Group(scopetest.Running))
		g := w.group()
		w.reconcileStuck(v1alpha1.ReasonSecretIncomplete)
		if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: "mysql-orders-accounts"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("new passwords were made, which fit no server: %v", err)
		}
		if diff := cmp.Diff(g.Status.Sites, w.group().Status.Sites); diff != "" {
			t.Errorf("sites (-want +got):\n%s", diff)
		}
	})
	t.Run("root of a group that has run", func(t *testing.T) {
		w := runningWorld(t)
		key := types.NamespacedName{Namespace: "shop", Name: "mysql-orders-root"}
		root := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		w.must(w.c.Delete(w.ctx, root))
		w.reconcile()
		w.reconcile()
		if err := w.c.Get(w.ctx, key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("a password was made, which fits no server: %v", err)
		}
		if said := w.said.Of(v1alpha1.ReasonRootSecretMissing); len(said) != 1 || !strings.Contains(said[0], key.Name) {
			t.Errorf("events %v", said)
		}
		if len(w.deployments()) != 3 {
			t.Error("the sites wait for a Secret that they do not need")
		}
		w.must(w.c.Create(w.ctx, root.DeepCopy()))
		w.reconcile()
		if n := w.said.Count(v1alpha1.ReasonRootSecretMissing); n != 1 {
			t.Errorf("an empty one is told of again: %d events", n)
		}
		root.Data = map[string][]byte{"password": []byte("p")}
		w.must(w.c.Update(w.ctx, root.DeepCopy()))
		w.reconcile()
		w.must(w.c.Delete(w.ctx, root.DeepCopy()))
		w.reconcile()
		if n := w.said.Count(v1alpha1.ReasonRootSecretMissing); n != 2 {
			t.Errorf("lost again after it was restored: %d events", n)
		}
	})
	t.Run("root of a new group", func(t *testing.T) {
		w := newWorld(t, scopetest.Group())
		w.reconcile()
		root := &corev1.Secret{}
		if w.get(root, "mysql-orders-root"); len(root.Data["password"]) == 0 || w.said.Count(v1alpha1.ReasonRootSecretMissing) != 0 {
			t.Errorf("events %v", w.said.List)
		}
	})
	// The object of a Secret that somebody emptied is there, and is told of like one that is gone. What is in it stays as it is.
	for name, left := range map[string]map[string][]byte{
		"accounts that were emptied": nil,
		"accounts that were emptied in part": {
			"replication": []byte("r"), "sidecar": []byte("s"), "clone": []byte("c"), "operator-previous": []byte("former"), "serial": []byte("3"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-accounts"}, Data: left}
			w := newWorld(t, scopetest.Group(scopetest.Running), secret)
			w.reconcileStuck(v1alpha1.ReasonSecretIncomplete)
			if c := w.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "mysql-orders-accounts") || !strings.Contains(c.Message, "restore it") {
				t.Errorf("condition %+v", c)
			}
			if n := w.said.Count(v1alpha1.ReasonAccountsSecretMissing); n != 1 {
				t.Errorf("%d events", n)
			}
			got := &corev1.Secret{}
			w.get(got, secret.Name)
			if diff := cmp.Diff(left, got.Data); diff != "" {
				t.Errorf("passwords were made, which fit no server (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeysForReportsI12: each site has its own, made once. One that was deleted is made again, and one that is none is told.
func TestKeysForReportsI12(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	key := func(site string) string {
		t.Helper()
		secret := &corev1.Secret{}
		w.get(secret, v1alpha1.ReportSecret("orders", site))
		if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != w.group().UID {
			t.Errorf("key of %s: owner %+v", site, owner)
		}
		return string(secret.Data[v1alpha1.ReportKey])
	}
	w.reconcile()
	a, b := key("a"), key("b")
	if len(a) != wire.ReportKeyBytes || len(b) != wire.ReportKeyBytes || a == b {
		t.Errorf("I12: keys of %d and %d bytes, the same: %t", len(a), len(b), a == b)
	}
	if w.reconcile(); key("a") != a {
		t.Error("the key was made again")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.ReportSecret("orders", "a")}}
	w.must(w.c.Delete(w.ctx, secret))
	if w.reconcile(); key("a") == a || len(key("a")) != wire.ReportKeyBytes {
		t.Error("a key that was deleted was not made again")
	}
	w.get(secret, secret.Name)
	secret.Data[v1alpha1.ReportKey] = []byte("short")
	w.must(w.c.Update(w.ctx, secret))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonSecretIncomplete || !strings.Contains(c.Message, secret.Name) {
		t.Errorf("condition %+v", c)
	}
}

func (w *world) reconcileStuck(reason v1alpha1.Reason) {
	w.t.Helper()
	w.reconcile()
	if len(w.deployments()) != 0 {
		w.t.Error("pods were made")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != reason {
		w.t.Errorf("condition %+v", c)
	}
}
