// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/secure"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// provingAccess tells how a site is verified, once that is asked of it.
type provingAccess struct{ worktest.Access }

func (provingAccess) Site(_ context.Context, g *v1alpha1.MysqlFailoverGroup, site, _ string) (mysql.Target, error) {
	if !g.TLSVerified() {
		return mysql.Target{Addr: site}, nil
	}
	return mysql.Target{Addr: site, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, nil
}

// stepping is a group that runs without TLS, and whose servers the operator can verify unless refused says no.
type stepping struct {
	*world
	refused map[string]error
}

func newStepping(t *testing.T) *stepping {
	w := &stepping{world: runningWorld(t), refused: map[string]error{}}
	w.r.securing.Access = provingAccess{}
	w.r.securing.Dial = func(target mysql.Target) (work.Recipient, error) { return &worktest.Server{}, w.refused[target.Addr] }
	for range 4 {
		w.reconcile()
		w.settle(all...)
	}
	w.facts.Open("a")
	w.reconcile()
	return w
}

func (w *stepping) step() v1alpha1.TLSPhase {
	w.t.Helper()
	if t := w.group().Status.TLS; t != nil {
		return t.Phase
	}
	return ""
}

// says has the sidecars of sites say what they do of a certificate that MySQL has loaded.
func (w *stepping) says(clients int, quiet time.Duration, sites ...string) {
	w.t.Helper()
	begin, end := time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
	for _, site := range sites {
		w.settle(site)
		w.facts.Change(site, func(f *scope.SiteFacts) {
			f.Certificate = &wire.CertificateReport{NotBefore: &begin, NotAfter: &end, Plain: &wire.PlainReport{Connections: clients, QuietMillis: quiet.Milliseconds()}}
		})
	}
}

// moves has the role move.
func (w *stepping) moves(to string, epoch int64) {
	w.t.Helper()
	w.monitorStatus(to, epoch)
	w.facts.Open(to)
	for _, site := range all {
		w.facts.Change(site, func(f *scope.SiteFacts) { f.Writable, f.Following = site == to, site != to })
	}
}

var all = []string{"a", "b", "c"}

// TestTLSComesInSteps walks through all of them: each is in status before anything is done by it.
func TestTLSComesInSteps(t *testing.T) {
	w := newStepping(t)
	before := w.deployments()
	if w.step() != v1alpha1.TLSPlain || w.condition(v1alpha1.ConditionTLSRequired).Type != "" {
		t.Fatalf("phase %s, condition %+v", w.step(), w.condition(v1alpha1.ConditionTLSRequired))
	}

	w.change(withTLS)
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSRequired); w.step() != v1alpha1.TLSPlain || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonTLSWaitingForCertificate {
		t.Errorf("without a Secret: phase %s, condition %+v", w.step(), c)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonWaitingForTLS {
		t.Errorf("pods that need no certificate yet wait for one: %+v", c)
	}
	secret := tlsSecret(t, append([]string{"mysql-billing-a.shop.svc"}, siteHosts...)...)
	w.must(w.c.Create(w.ctx, secret))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSReady); w.step() != v1alpha1.TLSPlain || c.Reason != v1alpha1.ReasonSecretNotMeant {
		t.Errorf("with the Secret of somebody else: phase %s, condition %+v", w.step(), c)
	}
	secret.Annotations = map[string]string{v1alpha1.AnnotationAllowGroups: "orders"}
	w.must(w.c.Update(w.ctx, secret))
	w.reconcile()
	if w.step() != v1alpha1.TLSCertificates || !w.group().Status.TLS.Later {
		t.Errorf("with a Secret: %+v", w.group().Status.TLS)
	}
	if now := w.deployments(); !maps.Equal(now, before) {
		t.Error("a pod is changed before the step is durable")
	}
	w.reconcile()
	now := w.deployments()
	if changed := slices.DeleteFunc(slices.Clone(all), func(site string) bool { return now[site] == before[site] }); len(changed) != 1 || changed[0] == "a" {
		t.Errorf("one replica gets its certificate first, and alone: %v", changed)
	}
	w.says(1, 0, "b", "c")
	w.reconcile()
	w.says(1, 0, "b", "c")
	w.reconcile()
	if !w.asked("a") || w.step() != v1alpha1.TLSCertificates {
		t.Errorf("phase %s while the active site has no certificate; asked to move: %t", w.step(), w.asked("a"))
	}
	w.moves("b", 2)
	for range 3 {
		w.reconcile()
		w.says(1, 0, all...)
		w.moves("b", 2)
		w.refused["c"] = errors.New("signed by somebody else")
	}

	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSRequired); w.step() != v1alpha1.TLSCertificates || !strings.Contains(c.Message, "verify c") {
		t.Errorf("a site that the operator cannot verify: phase %s, condition %+v", w.step(), c)
	}
	delete(w.refused, "c")
	w.reconcile()
	if w.step() != v1alpha1.TLSChannels {
		t.Fatalf("phase %s, condition %+v", w.step(), w.condition(v1alpha1.ConditionTLSRequired))
	}
	w.reconcile()
	if w.step() != v1alpha1.TLSChannels {
		t.Errorf("phase %s with a receiver that verifies nobody", w.step())
	}
	for _, site := range []string{"a", "c"} {
		w.facts.Change(site, func(f *scope.SiteFacts) { f.ReceiverVerifies = true })
	}
	before = w.deployments()
	w.reconcile()
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSRequired); w.step() != v1alpha1.TLSClients || c.Reason != v1alpha1.ReasonTLSPlainConnectionsAllowed {
		t.Errorf("phase %s, condition %+v", w.step(), c)
	}
	if got := w.group().Status.TLS.Sites; len(got) != 3 || got[0].PlainConnections != 1 {
		t.Errorf("clients are counted: %+v", got)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS.PlainConnections = v1alpha1.PlainRefuseWhenUnused })
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSRequired); w.step() != v1alpha1.TLSClients || c.Reason != v1alpha1.ReasonTLSPlainConnectionsSeen {
		t.Errorf("with a client: phase %s, condition %+v", w.step(), c)
	}
	if now := w.deployments(); !maps.Equal(now, before) {
		t.Error("pods are replaced for nothing")
	}
	w.says(0, secure.Quiet, all...)
	w.moves("b", 2)
	w.reconcile()
	if w.step() != v1alpha1.TLSRequired {
		t.Errorf("phase %s without clients", w.step())
	}
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSRequired); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	if now := w.deployments(); now["a"] == before["a"] && now["c"] == before["c"] {
		t.Error("the sites are not updated to refuse clients without TLS")
	}
	if n := w.said.Count(v1alpha1.ReasonTLSStep); n != 4 {
		t.Errorf("%d events of four steps: %v", n, w.said.Of(v1alpha1.ReasonTLSStep))
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS.PlainConnections = v1alpha1.PlainAllow })
	w.reconcile()
	if w.step() != v1alpha1.TLSClients {
		t.Errorf("phase %s when clients are let in again", w.step())
	}
}
