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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/secure"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// provingAccess tells how a site is verified, once that is asked of it.
type provingAccess struct {
	worktest.Access
	unverified bool
}

func (a provingAccess) Site(_ context.Context, g *v1alpha1.MysqlFailoverGroup, site, _ string) (mysql.Target, error) {
	if !g.TLSVerified() || a.unverified {
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
	w.r.Access = provingAccess{}
	w.r.Dial = func(target mysql.Target) (work.Recipient, error) { return &worktest.Server{}, w.refused[target.Addr] }
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

// TestWhatAnotherPodSaidDoesNotCount: a site is as far as the pod that is there.
func TestWhatAnotherPodSaidDoesNotCount(t *testing.T) {
	end := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		change func(*scope.Scope)
		want   secure.Site
	}{
		"all is there":        {func(*scope.Scope) {}, secure.Site{Name: "b", Loaded: true, Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"no pod":              {func(s *scope.Scope) { delete(s.Pods, "b") }, secure.Site{Name: "b"}},
		"a pod that goes":     {func(s *scope.Scope) { s.Pods["b"].DeletionTimestamp = new(metav1.Now()) }, secure.Site{Name: "b"}},
		"another pod said so": {func(s *scope.Scope) { s.Pods["b"].UID = "new" }, secure.Site{Name: "b"}},
		"nothing was said":    {func(s *scope.Scope) { s.Facts.Sites["b"] = scope.SiteFacts{PodUID: "one"} }, secure.Site{Name: "b"}},
		"MySQL does not take it": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.Problem = "no" },
			secure.Site{Name: "b", Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"MySQL shows none": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.NotAfter = nil },
			secure.Site{Name: "b", Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"clients were not counted": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.Plain = nil }, secure.Site{Name: "b", Loaded: true, Verified: true}},
	} {
		group := scopetest.Group(withTLS)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "one"}}
		s := &scope.Scope{Group: group, Pods: map[string]*corev1.Pod{"b": pod}, Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"b": {
			PodUID: "one", ReceiverVerifies: true, Certificate: &wire.CertificateReport{NotAfter: &end, Plain: &wire.PlainReport{Connections: 2}},
		}}}}
		tc.change(s)
		got := secureSite(s, "b")
		if got.Name != tc.want.Name || got.Loaded != tc.want.Loaded || got.Verified != tc.want.Verified ||
			(got.Plain == nil) != (tc.want.Plain == nil) || got.Plain != nil && *got.Plain != *tc.want.Plain {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestNumbersThatGoUpAndDownAreWrittenOnceAMinute: but at once when the first client comes or the last one goes.
func TestNumbersThatGoUpAndDownAreWrittenOnceAMinute(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := metav1.NewTime(now.Add(-30 * time.Second))
	count := func(n int32) []v1alpha1.SiteTLSStatus {
		return []v1alpha1.SiteTLSStatus{{Name: "a", PlainConnections: n}}
	}
	for name, tc := range map[string]struct {
		before   []v1alpha1.SiteTLSStatus
		clients  int
		at       metav1.Time
		want     int32
		wantTime time.Time
	}{
		"one more":                 {count(3), 4, at, 3, at.Time},
		"one more, a minute ago":   {count(3), 4, metav1.NewTime(now.Add(-time.Minute)), 4, now},
		"the last one has gone":    {count(3), 0, at, 0, now},
		"the first one":            {count(0), 3, at, 3, now},
		"a site more":              {nil, 3, at, 3, now},
		"another site than before": {[]v1alpha1.SiteTLSStatus{{Name: "b", PlainConnections: 3}}, 3, at, 3, now},
	} {
		g := secure.Group{Status: v1alpha1.TLSStatus{Phase: v1alpha1.TLSClients, Later: true, Sites: tc.before, CountedAt: &tc.at}, Sites: []secure.Site{{Name: "a", Plain: &secure.Plain{Connections: tc.clients}}}}
		got := tlsStatus(&scope.Scope{Now: now}, g, secure.Decision{Phase: v1alpha1.TLSClients, Later: true})
		if len(got.Sites) != 1 || got.Sites[0].PlainConnections != tc.want || !got.CountedAt.Time.Equal(tc.wantTime) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	g := secure.Group{Status: v1alpha1.TLSStatus{Phase: v1alpha1.TLSClients, CountedAt: &at}, Sites: []secure.Site{{Name: "a", Plain: &secure.Plain{}}}}
	if got := tlsStatus(&scope.Scope{Now: now}, g, secure.Decision{Phase: v1alpha1.TLSRequired}); got.Sites != nil || got.CountedAt != nil || !got.Since.Time.Equal(now) {
		t.Errorf("nobody is counted any more: %+v", got)
	}
}
