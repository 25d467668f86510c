// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A group that runs without TLS and gets tls: {} goes its steps with a certificate of the operator's. While a Secret of somebody else lies in its
// place the steps wait, and nothing else does.
func TestTLSThatTheOperatorMakesComesInSteps(t *testing.T) {
	for name, stranger := range map[string]string{"nothing in the way": "", "a strange authority": caSecret, "a strange certificate": madeSecret} {
		t.Run(name, func(t *testing.T) {
			w := newStepping(t)
			before := w.deployments()
			if stranger != "" {
				w.must(w.c.Create(w.ctx, foreign(stranger)))
			}
			w.change(withMadeTLS)
			w.reconcile()
			if stranger != "" {
				if c := w.condition(v1alpha1.ConditionTLSReady); w.step() != v1alpha1.TLSPlain || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonForeignObject {
					t.Fatalf("phase %s, condition %+v", w.step(), c)
				}
				if c := w.condition(v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonWaitingForTLS {
					t.Errorf("pods that need no certificate yet wait for one: %+v", c)
				}
				if now := w.deployments(); !maps.Equal(now, before) {
					t.Error("pods are replaced for a certificate that is not there")
				}
				w.must(w.c.Delete(w.ctx, w.secret(stranger)))
				w.reconcile()
			}
			if w.step() != v1alpha1.TLSCertificates || !w.group().Status.TLS.Later {
				t.Errorf("status.tls %+v, TLSReady %+v", w.group().Status.TLS, w.condition(v1alpha1.ConditionTLSReady))
			}
		})
	}
}
