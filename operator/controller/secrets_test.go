// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report"
)

func TestLostSecrets(t *testing.T) {
	t.Run("accounts of a group that has run", func(t *testing.T) {
		w := newWorld(t, testGroup(running))
		g := w.group()
		w.reconcileStuck(report.ReasonSecretIncomplete)
		if err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: "mysql-orders-accounts"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("new passwords were made, which fit no server: %v", err)
		}
		if diff := cmp.Diff(g.Status.Sites, w.group().Status.Sites); diff != "" {
			t.Errorf("sites (-want +got):\n%s", diff)
		}
	})
	t.Run("authority of a group that has run", func(t *testing.T) {
		accounts := render.AccountsSecret(render.Input{Group: testGroup()}, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"})
		w := newWorld(t, testGroup(running), accounts)
		w.reconcile()
		w.get(&corev1.Secret{}, "mysql-orders-authority")
		if w.said.count(report.AuthorityReplaced) != 1 {
			t.Errorf("events %v", w.said.list)
		}
	})
	t.Run("incomplete authority", func(t *testing.T) {
		w := newWorld(t, testGroup(), render.AuthoritySecret(render.Input{Group: testGroup()}, nil, []byte("public")))
		w.reconcileStuck(report.ReasonSecretIncomplete)
	})
}

// TestAKeyThatWasReplacedReachesEverySiteAtOnce: the operator still signs with the former one, so no site may lose that
// before all have the new one; and no pod may be replaced for it.
func TestAKeyThatWasReplacedReachesEverySiteAtOnce(t *testing.T) {
	w := newWorld(t, testGroup(running), render.AccountsSecret(render.Input{Group: testGroup()}, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"}))
	key := func() ed25519.PublicKey {
		t.Helper()
		secret := &corev1.Secret{}
		w.get(secret, "mysql-orders-authority")
		public, err := publicKey(secret.Data[render.KeyAuthorityPrivate])
		if err != nil {
			t.Fatal(err)
		}
		return public
	}
	trust := func(want ...ed25519.PublicKey) {
		t.Helper()
		for _, site := range []string{"a", "b", "c"} {
			config := &corev1.ConfigMap{}
			w.get(config, v1alpha1.ConfigName("orders", site))
			var text []byte
			for _, k := range want {
				one, err := encodePublic(k)
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, one...)
			}
			if got := config.Data[render.ConfigKeyAuthority]; got != string(text) {
				t.Errorf("%s trusts\n%s\nwant\n%s", site, got, text)
			}
			if !strings.Contains(config.Data[render.ConfigKeyMyCnf], "max_connections=7") {
				t.Errorf("%s: what has to wait for the site's turn was changed: %s", site, config.Data[render.ConfigKeyMyCnf])
			}
		}
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "7"} })
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.open("a")
	former, pods := key(), w.deployments()
	w.facts.signedBy(former)
	w.reconcile()
	trust(former)

	w.must(w.c.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-authority"}}))
	w.reconcile()
	next := key()
	if next.Equal(former) {
		t.Fatal("the key is the former one")
	}
	trust(next, former)
	if said := w.said.of(report.AuthorityReplaced); len(said) != 2 || !strings.Contains(said[1], "the former key, which the operator still has") {
		t.Errorf("events %v", said)
	}
	w.facts.signedBy(next)
	w.reconcile()
	trust(next)
	if diff := cmp.Diff(pods, w.deployments()); diff != "" {
		t.Errorf("pods are replaced for a key (-want +got):\n%s", diff)
	}

	// A person puts another one into the Secret, and the operator was restarted: it has nothing of the former one.
	private, public, err := newAuthority()
	w.must(err)
	secret := &corev1.Secret{}
	w.get(secret, "mysql-orders-authority")
	secret.Data = map[string][]byte{render.KeyAuthorityPrivate: private, render.KeyAuthorityPublic: public}
	w.must(w.c.Update(w.ctx, secret))
	w.facts.signedBy(key())
	w.reconcile()
	trust(key())
}

// TestKeysForReportsI12: each site has its own, made once. One that was deleted is made again, and one that is none is told.
func TestKeysForReportsI12(t *testing.T) {
	w := newWorld(t, testGroup())
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
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != report.ReasonSecretIncomplete || !strings.Contains(c.Message, secret.Name) {
		t.Errorf("condition %+v", c)
	}
}

func (w *world) reconcileStuck(reason string) {
	w.t.Helper()
	w.reconcile()
	if len(w.deployments()) != 0 {
		w.t.Error("pods were made")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != reason {
		w.t.Errorf("condition %+v", c)
	}
}
