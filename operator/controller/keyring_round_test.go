// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// I14: all pods of one unseal are told one round, also by an operator that was restarted, and the next unseal has another: the sidecar
// gives up on the operator's word only what is older than it.
func TestRoundIsThatOfTheUnsealI14(t *testing.T) {
	w := sealedWorld(t)
	told := func() string {
		var d appsv1.Deployment
		w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "c"))
		for _, c := range d.Spec.Template.Spec.InitContainers {
			for _, e := range c.Env {
				if c.Name == render.ContainerBootstrap && e.Name == "MFG_KEYRING_ROUND" {
					return e.Value
				}
			}
		}
		return ""
	}
	if got := told(); got != "" {
		t.Errorf("a sealed pod is in round %s", got)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
	})
	w.reconcile()
	w.reconcile()
	st, first := w.keyring("c"), told()
	if first != fmt.Sprintf("%s/%d", w.group().UID, st.Round) || st.Round == 0 {
		t.Fatalf("told %q in round %d", first, st.Round)
	}
	w.boot("one", "c")
	w.r.encryption.Forget(scopetest.Key)
	w.rest()
	if got := told(); got != first || w.keyring("c").Round != st.Round {
		t.Errorf("after a restart: round %s, before %s", got, first)
	}
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "c"))
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta}
	s := &scope.Scope{Key: scopetest.Key, Group: w.group(), Pods: map[string]*corev1.Pod{"c": pod}, Deployments: map[string]*appsv1.Deployment{"c": &d}}
	if got := encryption.PodOf(s, "c"); got.Round != st.Round || !got.Current {
		t.Errorf("its pod counts as one of round %d (current %t)", got.Round, got.Current)
	}
}
