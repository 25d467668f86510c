// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
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
