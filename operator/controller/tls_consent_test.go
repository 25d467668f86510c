// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

var siteHosts = []string{"mysql-orders-a.shop.svc", "mysql-orders-b.shop.svc", "mysql-orders-c.shop.svc"}

// tlsSecret is a Secret with a certificate that signs itself.
func tlsSecret(t *testing.T, names ...string) *corev1.Secret {
	t.Helper()
	return tlsSecretFor(t, 90*24*time.Hour, names...)
}

// tlsSecretFor holds a certificate that is good for so long yet.
func tlsSecretFor(t *testing.T, left time.Duration, names ...string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(left - 91*24*time.Hour), NotAfter: time.Now().Add(left),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-tls", Annotations: map[string]string{}},
		Data: map[string][]byte{
			"ca.crt": cert, "tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		},
	}
}

// Whoever edits groups cannot have the certificate of something else put into pods that run an image of their choice.
func TestASecretThatIsNotMeantForTheGroupIsNotMounted(t *testing.T) {
	for name, tc := range map[string]struct {
		names    []string
		annotate map[string]string
		allowed  bool
	}{
		"the sites' names":               {siteHosts, nil, true},
		"all forms of all Services":      {append([]string{"mysql-orders-primary", "mysql-orders-replicas.shop.svc.cluster.local", "localhost"}, siteHosts...), nil, true},
		"the Services of the cache too":  {append([]string{"orders-cache.shop.svc", "orders-cache-a"}, siteHosts...), nil, true},
		"a cache of somebody else":       {append([]string{"orders-cache-shop.shop.svc"}, siteHosts...), nil, false},
		"a wildcard":                     {[]string{"*.shop.svc"}, nil, false},
		"the sites and the shop itself":  {append([]string{"shop.example.com"}, siteHosts...), nil, false},
		"of another namespace":           {append([]string{"mysql-orders-a.vault.svc"}, siteHosts...), nil, false},
		"of another group":               {append([]string{"mysql-billing-a.shop.svc"}, siteHosts...), nil, false},
		"a wildcard, allowed":            {[]string{"*.shop.svc"}, map[string]string{v1alpha1.AnnotationAllowGroups: "billing, orders"}, true},
		"a wildcard, allowed to all":     {[]string{"*.shop.svc"}, map[string]string{v1alpha1.AnnotationAllowGroups: "*"}, true},
		"a wildcard, allowed to another": {[]string{"*.shop.svc"}, map[string]string{v1alpha1.AnnotationAllowGroups: "orders-2"}, false},
		"by cert-manager for the group":  {[]string{"*.shop.svc"}, map[string]string{certificateAnnotation: "mysql-orders"}, true},
		"by cert-manager for the shop":   {[]string{"*.shop.svc"}, map[string]string{certificateAnnotation: "shop"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := tlsSecret(t, tc.names...)
			secret.Annotations = tc.annotate
			w := newWorld(t, scopetest.Group(withTLS), secret)
			w.reconcile()
			c := w.condition(v1alpha1.ConditionTLSReady)
			if made := len(w.deployments()) > 0; made != tc.allowed {
				t.Errorf("pods are made: %t, want %t; %+v", made, tc.allowed, c)
			}
			if !tc.allowed && (c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSecretNotMeant || !strings.Contains(c.Message, "annotate secret orders-tls")) {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

// A group that has run keeps the Secret that it has: the API lets it name no other.
func TestARunningGroupKeepsItsSecret(t *testing.T) {
	group := scopetest.Group(withTLS, scopetest.Running)
	accounts := render.AccountsSecret(render.Input{Group: group}, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"})
	w := newWorld(t, group, accounts, tlsSecret(t, "*.shop.svc"))
	w.reconcile()
	w.reconcile()
	if len(w.deployments()) == 0 {
		t.Error("its pods are not made again")
	}
	if c := w.condition(v1alpha1.ConditionTLSReady); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonSecretNotMeant {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonTLSSecretNotMeant); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func withIssuer(name string) scopetest.Option {
	return func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: name, IssuerRef: &v1alpha1.IssuerRef{Name: "ca"}}
	}
}

// cert-manager writes over the Secret that it is asked to write: it is asked only for one that is the group's, or nobody's.
func TestCertManagerIsNotMadeToOverwriteASecret(t *testing.T) {
	opaque := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-tls", Annotations: map[string]string{}},
			Data:       map[string][]byte{"token": []byte("of somebody else")},
		}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		secretName string
		secret     *corev1.Secret
		before     bool
		asked      bool
	}{
		"there is none":                 {"orders-tls", nil, false, true},
		"one of somebody else":          {"orders-tls", opaque(func(*corev1.Secret) {}), false, false},
		"one with the group's label":    {"orders-tls", opaque(func(s *corev1.Secret) { s.Labels = render.GroupLabels("orders") }), false, false},
		"one of another Certificate":    {"orders-tls", opaque(func(s *corev1.Secret) { s.Annotations[certificateAnnotation] = "shop" }), false, false},
		"one of the group's":            {"orders-tls", opaque(func(s *corev1.Secret) { s.Annotations[certificateAnnotation] = "mysql-orders" }), false, true},
		"one that was given away":       {"orders-tls", opaque(func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationAllowGroups] = "orders" }), false, true},
		"one that it writes already":    {"orders-tls", opaque(func(*corev1.Secret) {}), true, true},
		"another group's passwords":     {"mysql-billing-accounts", nil, false, false},
		"its own key":                   {"mysql-orders-authority", nil, false, false},
		"another group's application":   {"mysql-billing-app", nil, false, false},
		"another group's cache":         {"billing-cache-auth", nil, false, false},
		"the key of a site's reports":   {"mysql-billing-east-report", nil, false, false},
		"a keyring to come":             {"mysql-billing-east-keyring-v3", nil, false, false},
		"a name that looks a bit alike": {"mysql-orders-tls", nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			group := scopetest.Group(withIssuer(tc.secretName))
			w := newWorld(t, group)
			if tc.secret != nil {
				w.must(w.c.Create(w.ctx, tc.secret))
			}
			if tc.before {
				w.must(w.c.Create(w.ctx, render.Certificate(render.Input{Group: group})))
			}
			w.reconcile()
			certificate := &unstructured.Unstructured{}
			certificate.SetGroupVersionKind(render.Certificate(render.Input{Group: group}).GroupVersionKind())
			asked := w.c.Get(w.ctx, types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: render.CertificateName("orders")}, certificate) == nil
			c := w.condition(v1alpha1.ConditionTLSReady)
			if asked != tc.asked {
				t.Errorf("cert-manager is asked: %t, want %t; %+v", asked, tc.asked, c)
			}
			if !tc.asked && c.Reason != v1alpha1.ReasonSecretNotMeant {
				t.Errorf("condition %+v", c)
			}
		})
	}
}
