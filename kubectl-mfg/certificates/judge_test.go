// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// party is somebody with a key, who signs others or shows a certificate.
type party struct {
	cert       *x509.Certificate
	key        *ecdsa.PrivateKey
	crt, keyed []byte
}

var serial int64

// signed makes one that is good from so many days from now on to so many; by nil it signs itself.
func signed(t *testing.T, by *party, name string, from, to int, names ...string) *party {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: names, BasicConstraintsValid: true, IsCA: by == nil || name == "between",
		NotBefore: now.Add(time.Duration(from) * day), NotAfter: now.Add(time.Duration(to) * day),
	}
	if by == nil {
		by = &party{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &party{c, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})}
}

var hosts = []string{"mysql-orders-a.shop.svc", "mysql-orders-b.shop.svc"}

// world is a group with a certificate, and sites that show it.
type world struct {
	t        *testing.T
	ca, leaf *party
	f        Facts
}

func newWorld(t *testing.T, tls *v1alpha1.TLSSpec) *world {
	t.Helper()
	w := &world{t: t, ca: signed(t, nil, "first", -100, 1000)}
	w.leaf = signed(t, w.ca, "mysql-orders", -10, 80, hosts...)
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	g.Spec.TLS, g.Spec.Sites = tls, []v1alpha1.Site{{Name: "a"}, {Name: "b"}}
	w.f = Facts{Group: g, Now: now}
	w.holds(w.leaf, w.ca)
	w.shows("a", w.leaf)
	w.shows("b", w.leaf)
	if tls.Made() {
		at := func(days int) *metav1.Time { return new(metav1.NewTime(now.Add(time.Duration(days) * day))) }
		g.Status.TLS = &v1alpha1.TLSStatus{Certificate: &v1alpha1.CertificateStatus{Renewal: at(50), AuthorityRenewal: at(270)}}
	}
	return w
}

func (w *world) holds(leaf *party, authorities ...*party) {
	w.f.Secret = &corev1.Secret{Data: map[string][]byte{"tls.crt": leaf.crt, "tls.key": leaf.keyed}}
	for _, a := range authorities {
		w.f.Secret.Data["ca.crt"] = append(w.f.Secret.Data["ca.crt"], a.crt...)
	}
}

func (w *world) shows(site string, leaf *party) {
	for i := range w.f.Sites {
		if w.f.Sites[i].Name == site {
			w.f.Sites[i].Chain = []*x509.Certificate{leaf.cert}
			return
		}
	}
	w.f.Sites = append(w.f.Sites, Shown{Name: site, Chain: []*x509.Certificate{leaf.cert}})
}

// TestEachProblemIsFound, and nothing else is.
func TestEachProblemIsFound(t *testing.T) {
	made, given := &v1alpha1.TLSSpec{}, &v1alpha1.TLSSpec{SecretName: "tls"}
	issuer := &v1alpha1.TLSSpec{SecretName: "tls", IssuerRef: &v1alpha1.IssuerRef{Name: "x"}}
	for name, tc := range map[string]struct {
		tls    *v1alpha1.TLSSpec
		change func(w *world)
		worst  Level
		// check, level and says are those of a finding that there must be.
		check string
		level Level
		says  string
	}{
		"all is well, by the operator": {made, nil, OK, Server, OK, "is good until 2027-02-13; the operator renews it from 2027-01-14 on"},
		"all is well, by somebody":     {given, nil, OK, Server, OK, "the operator does not renew it"},
		"a site shows it":              {made, nil, OK, "site b", OK, "MySQL shows it"},
		"no Secret":                    {given, func(w *world) { w.f.Secret = nil }, Fail, "secret", Fail, "Secret tls does not exist"},
		"no right": {given, func(w *world) { w.f.Secret, w.f.SecretErr = nil, errors.New("forbidden") }, OK, "secret", Unknown,
			"was not read: forbidden"},
		"rubbish":        {given, func(w *world) { w.f.Secret.Data["tls.crt"] = []byte("x") }, Fail, Server, Fail, "tls.crt holds no certificate"},
		"no authority":   {given, func(w *world) { w.f.Secret.Data["ca.crt"] = nil }, Fail, Authority, Fail, "ca.crt holds no certificate"},
		"another key":    {given, func(w *world) { w.f.Secret.Data["tls.key"] = signed(t, nil, "x", 0, 1).keyed }, Fail, Server, Fail, "no pair"},
		"another signer": {given, func(w *world) { w.holds(w.leaf, signed(t, nil, "other", -1, 9)) }, Fail, Server, Fail, "it was signed by CN=first"},
		"one between ends": {given, func(w *world) {
			between := signed(t, w.ca, "between", -50, 3)
			w.holds(signed(t, between, "x", -10, 80, hosts...), w.ca)
			w.f.Secret.Data["tls.crt"] = append(w.f.Secret.Data["tls.crt"], between.crt...)
		}, Warn, Authority, Warn, "it ends at 2026-11-28"},
		"a name is missing": {given, func(w *world) { w.holds(signed(t, w.ca, "x", -1, 80, hosts[0]), w.ca) }, Fail, Server, Fail,
			"it lacks the name mysql-orders-b.shop.svc"},
		"it has ended":      {given, func(w *world) { w.holds(signed(t, w.ca, "x", -90, -1, hosts...), w.ca) }, Fail, Server, Fail, "it expired at 2026-11-24"},
		"not good yet":      {given, func(w *world) { w.holds(signed(t, w.ca, "x", 1, 90, hosts...), w.ca) }, Fail, Server, Fail, "it is not good before 2026-11-26"},
		"it ends soon":      {given, func(w *world) { w.holds(signed(t, w.ca, "x", -90, 13, hosts...), w.ca) }, Warn, Server, Warn, "ends at 2026-12-08T12:00:00Z, and the operator does not"},
		"15 days are left":  {given, func(w *world) { w.holds(signed(t, w.ca, "x", -90, 15, hosts...), w.ca) }, Warn, "site a", Warn, "another certificate"},
		"of cert-manager":   {issuer, func(w *world) { w.holds(signed(t, w.ca, "x", -90, 13, hosts...), w.ca) }, Warn, Server, Warn, "the operator does not renew it"},
		"a short-lived one": {given, func(w *world) { w.holds(signed(t, w.ca, "x", -5, 2, hosts...), w.ca) }, Warn, "site a", Warn, "another certificate"},
		"the operator is late": {made, func(w *world) {
			w.f.Group.Status.TLS.Certificate.Renewal = new(metav1.NewTime(now.Add(-25 * time.Hour)))
		}, Warn, Server, Warn,
			"the operator should have renewed it at 2026-11-24T11:00:00Z"},
		"it is about to renew it": {made, func(w *world) {
			w.f.Group.Status.TLS.Certificate.Renewal = new(metav1.NewTime(now.Add(-23 * time.Hour)))
		}, OK, Server, OK, "is good until"},
		"the authority ends soon": {given, func(w *world) {
			w.ca = signed(t, nil, "x", -900, 10)
			w.leaf = signed(t, w.ca, "x", -10, 80, hosts...)
			w.holds(w.leaf, w.ca)
			w.shows("a", w.leaf)
			w.shows("b", w.leaf)
		}, Warn, Authority, Warn, "it ends at 2026-12-05"},
		"a site shows one that ended": {made, func(w *world) { w.shows("b", signed(t, w.ca, "x", -90, -1, hosts...)) }, Fail, "site b", Fail,
			"MySQL shows a certificate that ended at 2026-11-24"},
		"a site shows the former one": {made, func(w *world) { w.shows("b", signed(t, w.ca, "x", -60, 30, hosts...)) }, Warn, "site b", Warn,
			"MySQL shows another certificate than that in the Secret, until 2026-12-25"},
		"a site shows one that nobody trusts": {made, func(w *world) { w.shows("b", signed(t, nil, "other", -60, 30, hosts...)) }, Fail, "site b", Fail,
			"it was signed by CN=other"},
		"a site is away": {made, func(w *world) { w.f.Sites[1] = Shown{Name: "b", Err: errors.New("no pod")} }, OK, "site b", Unknown, "no pod"},
		"without the Secret a site is judged by itself": {made, func(w *world) {
			w.f.Secret, w.f.SecretErr = nil, errors.New("forbidden")
			w.shows("b", signed(t, nil, "other", -60, 30))
		}, OK, "site b", OK, "MySQL shows it"},
		"the escrow listener":      {made, func(w *world) { w.f.Escrow = &Shown{Chain: []*x509.Certificate{w.leaf.cert}} }, OK, Escrow, OK, "until 2027-02-13"},
		"its certificate ends":     {made, func(w *world) { w.f.Escrow = &Shown{Chain: []*x509.Certificate{signed(t, w.ca, "x", -90, 3).cert}} }, Warn, Escrow, Warn, "it ends at"},
		"its certificate ended":    {made, func(w *world) { w.f.Escrow = &Shown{Chain: []*x509.Certificate{signed(t, w.ca, "x", -90, -3).cert}} }, Fail, Escrow, Fail, "no keyring"},
		"it is not reached":        {made, func(w *world) { w.f.Escrow = &Shown{Err: errors.New("nobody there")} }, OK, Escrow, Unknown, "nobody there"},
		"an order stands":          {made, func(w *world) { w.f.Group.Annotations = map[string]string{v1alpha1.AnnotationRotateCertificate: "ca"} }, OK, "order", OK, "not answered yet (ca)"},
		"the authority is changed": {made, changing, OK, Authority, OK, "it is being replaced: the next authority is in ca.crt"},
	} {
		w := newWorld(t, tc.tls)
		if tc.change != nil {
			tc.change(w)
		}
		rep := Build(w.f)
		found := false
		for _, f := range rep.Findings {
			found = found || f.Check == tc.check && f.Level == tc.level && strings.Contains(f.Message, tc.says)
			if f.Level == Fail && f.Remedy == "" {
				t.Errorf("%s: nothing is said to do about: %+v", name, f)
			}
		}
		if !found || rep.Worst() != tc.worst {
			t.Errorf("%s: worst %s, findings %+v", name, rep.Worst(), rep.Findings)
		}
	}
}

// TestWhatToDoAboutAnAuthority: of the operator's own, a renewal of the server certificate by the same authority is no way out.
func TestWhatToDoAboutAnAuthority(t *testing.T) {
	ends := func(days int) func(w *world) {
		return func(w *world) {
			w.ca = signed(t, nil, "x", -900, days)
			w.leaf = signed(t, w.ca, "x", -10, 80, hosts...)
			w.holds(w.leaf, w.ca)
		}
	}
	unknown := func(w *world) { // as an operator tells that cannot read its authority
		ends(3)(w)
		w.f.Group.Status.TLS = nil
	}
	const status, renew = "kubectl mfg status orders -n shop", "kubectl mfg certificates renew orders -n shop"
	made, given := &v1alpha1.TLSSpec{}, &v1alpha1.TLSSpec{SecretName: "tls"}
	for name, tc := range map[string]struct {
		tls    *v1alpha1.TLSSpec
		change func(w *world)
		check  string
		want   string
	}{
		"it has ended":             {made, ends(-1), Authority, status},
		"it ends":                  {made, unknown, Authority, status},
		"there is none":            {made, func(w *world) { w.f.Secret.Data["ca.crt"] = nil }, Authority, status},
		"of somebody else":         {given, ends(-1), Authority, "put a renewed certificate into Secret tls"},
		"the server's certificate": {made, func(w *world) { w.holds(signed(t, w.ca, "x", -90, -1, hosts...), w.ca) }, Server, renew},
	} {
		w := newWorld(t, tc.tls)
		tc.change(w)
		told := 0
		for _, f := range Build(w.f).Findings {
			if f.Check != tc.check || f.Level == OK {
				continue
			}
			told++
			if f.Remedy != tc.want {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if told == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

func changing(w *world) {
	w.f.Group.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionTLSReady, Status: "True", Reason: string(v1alpha1.ReasonCertificateAuthorityChanging), Message: "the next authority is in ca.crt",
	}}
}

// TestWhichAuthoritySigns is told from what is mounted: nobody has to read the Secret with the authority's key for it.
func TestWhichAuthoritySigns(t *testing.T) {
	former, first, next := signed(t, nil, "former", -3000, 600), signed(t, nil, "first", -100, 3500), signed(t, nil, "next", -1, 3600)
	leaf := signed(t, first, "mysql-orders", -10, 80, hosts...)
	for name, tc := range map[string]struct {
		tls  *v1alpha1.TLSSpec
		want []string
	}{
		"by the operator":  {&v1alpha1.TLSSpec{}, []string{Former, Signs, SignsNext}},
		"by somebody else": {&v1alpha1.TLSSpec{SecretName: "x"}, []string{"", Signs, ""}},
	} {
		w := newWorld(t, tc.tls)
		w.holds(leaf, former, first, next)
		var roles []string
		for _, c := range Build(w.f).Certificates {
			if c.What == Authority {
				roles = append(roles, c.Role)
			}
		}
		if strings.Join(roles, ",") != strings.Join(tc.want, ",") {
			t.Errorf("%s: %q, want %q", name, roles, tc.want)
		}
	}
}

// TestDaysLeft are whole ones, and below zero once it has ended.
func TestDaysLeft(t *testing.T) {
	c := signed(t, nil, "x", -1, 2).cert
	for at, want := range map[time.Time]int{now: 2, now.Add(time.Hour): 1, now.Add(2*day - time.Second): 0, now.Add(2*day + time.Second): -1} {
		if got := rowOf(Server, "", c, at).DaysLeft; got != want {
			t.Errorf("at %s: %d, want %d", at, got, want)
		}
	}
}

// TestNoKeyIsInTheReport, whatever is where.
func TestNoKeyIsInTheReport(t *testing.T) {
	w := newWorld(t, &v1alpha1.TLSSpec{SecretName: "x"})
	w.f.Secret.Data["tls.key"], w.f.Secret.Data["tls.crt"] = []byte("hunter2"), append([]byte("hunter2"), w.leaf.crt...)
	for _, f := range Build(w.f).Findings {
		if strings.Contains(f.Message+f.Remedy, "hunter2") {
			t.Errorf("%+v", f)
		}
	}
}
