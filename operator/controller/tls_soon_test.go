// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certs"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestACertificateThatEndsSoonIsTold: of one that somebody else renews, before any site shows it, and in time.
func TestACertificateThatEndsSoonIsTold(t *testing.T) {
	const day = 24 * time.Hour
	w := newWorld(t, scopetest.Group(withTLS), tlsSecretFor(t, 13*day, siteHosts...))
	w.reconcile()
	c := w.condition(v1alpha1.ConditionTLSReady)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonCertificateNotRenewed || !strings.Contains(c.Message, "Secret orders-tls: the certificate ends at") {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonCertificateNotRenewed); n != 1 || len(w.deployments()) != 3 {
		t.Errorf("%d events, %d Deployments: nothing waits for what only ends soon", n, len(w.deployments()))
	}
	if s := w.group().Status.TLS.Certificate; s == nil || s.NotAfter == nil || s.AuthorityNotAfter == nil || s.Renewal != nil || s.AuthorityRenewal != nil {
		t.Errorf("status %+v", s)
	}
	w = newWorld(t, scopetest.Group(withTLS), tlsSecretFor(t, 16*day, siteHosts...))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSReady); c.Status != metav1.ConditionTrue {
		t.Errorf("16 days before: condition %+v", c)
	}
}

// TestStatusSaysWhenTheOperatorRenews what it made itself.
func TestStatusSaysWhenTheOperatorRenews(t *testing.T) {
	w := newWorld(t, scopetest.Group(withMadeTLS))
	w.reconcile()
	s := w.group().Status.TLS.Certificate
	if s == nil || s.Renewal == nil || s.AuthorityRenewal == nil {
		t.Fatalf("status %+v", s)
	}
	if s.NotAfter.Sub(s.Renewal.Time) > certs.ServerLife/3+certs.Skew || s.AuthorityNotAfter.Sub(s.AuthorityRenewal.Time) != certs.AuthorityRest {
		t.Errorf("status %+v", s)
	}
}
