// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/certs"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

const (
	caSecret   = "mysql-orders-ca"
	madeSecret = "mysql-orders-tls"
)

func withMadeTLS(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS = &v1alpha1.TLSSpec{} }

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	w.get(s, name)
	return s
}

// The active site left the specification, and stays until the role has moved: its replicas check its name all that time.
func TestALeavingActiveSiteKeepsItsNameInTheCertificate(t *testing.T) {
	w := settledWorld(t)
	w.change(withMadeTLS)
	w.reconcile()
	before := string(w.secret(madeSecret).Data[corev1.TLSCertKey])
	w.replaceAllBut("b", "d")
	w.reconcile()
	made := w.secret(madeSecret)
	names := []string{render.Host("shop", "orders", "a"), render.Host("shop", "orders", "b"), render.Host("shop", "orders", "d")}
	if err := access.CheckTLS(made, names, time.Now()); err != nil || string(made.Data[corev1.TLSCertKey]) == before {
		t.Errorf("the new certificate: %v", err)
	}
	if why := whyNotMeant(made, w.group()); why != "" {
		t.Error("it does not pass for the group's own:", why)
	}
}

func TestAGroupGetsACertificateOfItsOwn(t *testing.T) {
	w := newWorld(t, scopetest.Group(withMadeTLS))
	w.reconcile()
	made, ca := w.secret(madeSecret), w.secret(caSecret)
	names := render.CertificateNames(w.group())
	if err := access.CheckTLS(made, names, time.Now()); err != nil {
		t.Fatal(err)
	}
	if whyNotMeant(made, w.group()) != "" {
		t.Error("it does not pass for the group's own:", whyNotMeant(made, w.group()))
	}
	if _, is := made.Data[certs.KeyPrivate]; is || len(ca.Data[certs.KeyPrivate]) == 0 || made.Type != corev1.SecretTypeTLS {
		t.Errorf("keys of %s: %d, type %s", madeSecret, len(made.Data), made.Type)
	}
	if c := w.condition(v1alpha1.ConditionTLSReady); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonAsExpected {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonCertificateAuthorityMade) + w.said.Count(v1alpha1.ReasonCertificateMade); n != 2 || len(w.deployments()) == 0 {
		t.Errorf("%d events, %d deployments", n, len(w.deployments()))
	}
	for _, s := range []*corev1.Secret{made, ca} {
		if s.Labels[v1alpha1.LabelGroup] != "orders" || len(s.OwnerReferences) != 0 {
			t.Errorf("%s: %v %v", s.Name, s.Labels, s.OwnerReferences)
		}
	}
	w.reconcile()
	if now := w.secret(madeSecret); string(now.Data[certs.KeyServer]) != string(made.Data[certs.KeyServer]) {
		t.Error("it is made at every look")
	}
	// Nothing mounts the authority's key.
	for _, d := range listed(t, w) {
		for _, v := range d {
			if v.Secret != nil && v.Secret.SecretName == caSecret {
				t.Error("a pod mounts the authority's key")
			}
		}
	}
}

func listed(t *testing.T, w *world) (out [][]corev1.Volume) {
	t.Helper()
	for _, site := range w.group().Spec.Sites {
		spec := render.Deployment(render.Input{Group: w.group()}, site).Spec.Template.Spec
		out = append(out, spec.Volumes)
	}
	if len(out) == 0 {
		t.Fatal("no pods")
	}
	return out
}

func foreign(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{"theirs": []byte("hunter2")}}
}

// What somebody else put there is neither used nor written over.
func TestASecretOfSomebodyElseIsNotWrittenOver(t *testing.T) {
	for _, name := range []string{caSecret, madeSecret} {
		w := newWorld(t, scopetest.Group(withMadeTLS), foreign(name))
		w.reconcile()
		c := w.condition(v1alpha1.ConditionTLSReady)
		if c.Reason != v1alpha1.ReasonForeignObject || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "label secret "+name) || strings.Contains(c.Message, "hunter2") {
			t.Errorf("%s: %+v", name, c)
		}
		if s := w.secret(name); len(s.Data) != 1 || len(s.Labels) != 0 || len(w.deployments()) > 0 {
			t.Errorf("%s was changed: %v; %d deployments", name, s.Labels, len(w.deployments()))
		}
	}
}

// A group that runs goes on with the certificate that it has, whatever becomes of the authority; and a label gets it going again.
func TestADamagedAuthorityIsTold(t *testing.T) {
	group := scopetest.Group(withMadeTLS, scopetest.Running)
	accounts := render.AccountsSecret(render.Input{Group: group}, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"})
	w := newWorld(t, group, accounts)
	w.reconcile()
	before := w.secret(madeSecret)
	ca := w.secret(caSecret)
	good := ca.DeepCopy().Data
	ca.Data = map[string][]byte{certs.KeyAuthority: []byte("hunter2")}
	w.must(w.c.Update(w.ctx, ca))
	w.reconcile()
	c := w.condition(v1alpha1.ConditionTLSReady)
	if c.Reason != v1alpha1.ReasonCertificateAuthorityUnusable || c.Status != metav1.ConditionFalse || strings.Contains(c.Message, "hunter2") || !strings.Contains(c.Message, "delete it") {
		t.Errorf("%+v", c)
	}
	if now := w.secret(madeSecret); string(now.Data[certs.KeyServer]) != string(before.Data[certs.KeyServer]) || len(w.secret(caSecret).Data) != 1 || len(w.deployments()) == 0 {
		t.Error("something was changed")
	}
	ca = w.secret(caSecret)
	ca.Data = good
	w.must(w.c.Update(w.ctx, ca))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

// An order that waits for a person first is refused with the reason, which is the condition's too. It does not stand.
func TestAnOrderThatCannotBeCarriedOutIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(ca *corev1.Secret)
		reason v1alpha1.Reason
		says   string
	}{
		"damaged": {func(ca *corev1.Secret) { ca.Data = map[string][]byte{certs.KeyAuthority: []byte("hunter2")} }, v1alpha1.ReasonCertificateAuthorityUnusable, "delete it"},
		"foreign": {func(ca *corev1.Secret) { ca.Labels = nil }, v1alpha1.ReasonForeignObject, "label secret " + caSecret},
	} {
		for _, value := range []string{"server", "ca"} {
			w := newWorld(t, scopetest.Group(withMadeTLS))
			w.reconcile()
			ca := w.secret(caSecret)
			tc.spoil(ca)
			w.must(w.c.Update(w.ctx, ca))
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations = map[string]string{v1alpha1.AnnotationRotateCertificate: value, v1alpha1.AnnotationRotateCertificate + "-id": "1"}
			})
			w.reconcile()
			last := w.group().Status.LastRequest(v1alpha1.RequestRotateCertificate)
			if last == nil || last.Outcome != v1alpha1.RequestRefused || last.Reason != string(tc.reason) || !strings.Contains(last.Message, tc.says) || strings.Contains(last.Message, "hunter2") {
				t.Errorf("%s, %s: %+v", name, value, last)
			}
			if w.group().Annotations[v1alpha1.AnnotationRotateCertificate] != "" || w.said.Count(v1alpha1.ReasonCertificateRotationRefused) != 1 {
				t.Errorf("%s, %s: it stands", name, value)
			}
			if c := w.condition(v1alpha1.ConditionTLSReady); c.Reason != tc.reason {
				t.Errorf("%s, %s: %+v", name, value, c)
			}
		}
	}
}

// shows has sites report that their MySQL took what is in the Secret.
func (w *world) shows(sites ...string) {
	w.t.Helper()
	made := w.secret(madeSecret)
	for _, site := range sites {
		w.facts.Change(site, func(f *scope.SiteFacts) {
			f.Certificate = &wire.CertificateReport{Bundle: certs.Fingerprint(made.Data[certs.KeyBundle]), Current: certs.Fingerprint(made.Data[certs.KeyServer])}
		})
	}
}

func authorities(t *testing.T, file []byte) (n int) {
	t.Helper()
	for len(file) > 0 {
		block, rest := pem.Decode(file)
		if block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Fatal(err)
		}
		n, file = n+1, rest
	}
	return n
}

// An order for another authority waits for every site, and is answered when the former one is gone.
func TestTheAuthorityIsReplacedByOrder(t *testing.T) {
	w := newWorld(t, scopetest.Group(withMadeTLS))
	w.reconcile()
	first := string(w.secret(caSecret).Data[certs.KeyAuthority])
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateCertificate: "ca=2m", v1alpha1.AnnotationRotateCertificate + "-id": "1"}
	})
	w.reconcile()
	if n := authorities(t, w.secret(madeSecret).Data[certs.KeyBundle]); n != 2 {
		t.Fatalf("%d authorities", n)
	}
	w.shows("a", "b")
	if again := w.reconcile(); again > scope.WhenWaiting {
		t.Errorf("looked at again in %s", again)
	}
	c := w.condition(v1alpha1.ConditionTLSReady)
	if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonCertificateAuthorityChanging || !strings.Contains(c.Message, "MySQL of c trusts it") {
		t.Errorf("%+v", c)
	}
	if string(w.secret(caSecret).Data[certs.KeyAuthority]) != first || w.group().Annotations[v1alpha1.AnnotationRotateCertificate] == "" {
		t.Fatal("it did not wait for c")
	}
	if !slices.Contains(ownRequests, v1alpha1.RequestRotateCertificate) {
		t.Error("nobody names requests of this kind")
	}
}

func TestAnOrderForTheServerIsAnswered(t *testing.T) {
	w := newWorld(t, scopetest.Group(withMadeTLS))
	w.reconcile()
	before := string(w.secret(madeSecret).Data[certs.KeyServer])
	order := func(value string) v1alpha1.LastRequest {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationRotateCertificate: value, v1alpha1.AnnotationRotateCertificate + "-id": value + "1"}
		})
		w.reconcile()
		if w.group().Annotations[v1alpha1.AnnotationRotateCertificate] != "" {
			t.Errorf("%q stands", value)
		}
		return *w.group().Status.LastRequest(v1alpha1.RequestRotateCertificate)
	}
	if last := order("server"); last.Outcome != v1alpha1.RequestDone || string(w.secret(madeSecret).Data[certs.KeyServer]) == before {
		t.Errorf("%+v", last)
	}
	if last := order("everything"); last.Outcome != v1alpha1.RequestRefused || last.Reason != v1alpha1.AnswerNoSuchCertificate {
		t.Errorf("%+v", last)
	}
	w = newWorld(t, scopetest.Group(withTLS), tlsSecret(t, siteHosts...))
	if last := order("server"); last.Outcome != v1alpha1.RequestRefused || !strings.Contains(last.Message, "orders-tls") {
		t.Errorf("of somebody else: %+v", last)
	}
	w = newWorld(t, scopetest.Group())
	if last := order("server"); last.Outcome != v1alpha1.RequestRefused {
		t.Errorf("without TLS: %+v", last)
	}
}

// With Retain the authority outlives the group, so that a group of the same name needs no other ca.crt. What is not ours is left alone.
func TestTheAuthorityOutlivesTheGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		options []scopetest.Option
		stays   bool
	}{"Retain": {[]scopetest.Option{withMadeTLS}, true}, "Delete": {[]scopetest.Option{withMadeTLS, deletePolicy}, false}} {
		w := newWorld(t, scopetest.Group(tc.options...), foreign("orders-tls"))
		w.reconcile()
		w.must(w.c.Delete(w.ctx, w.group()))
		w.reconcile()
		for _, secret := range []string{caSecret, madeSecret} {
			s := &corev1.Secret{}
			err := w.c.Get(w.ctx, types.NamespacedName{Namespace: "shop", Name: secret}, s)
			if (err == nil) != tc.stays || len(s.OwnerReferences) > 0 {
				t.Errorf("%s: %s: %v", name, secret, err)
			}
		}
	}
	group := scopetest.Group(deletePolicy, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: madeSecret} })
	theirs := tlsSecret(t, siteHosts...)
	theirs.Name = madeSecret
	w := newWorld(t, group, theirs)
	w.reconcile()
	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	w.secret(madeSecret)
}
