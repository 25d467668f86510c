// SPDX-License-Identifier: Apache-2.0

package doctor

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// authority makes an authority, in PEM, and how it issues certificates.
func authority(t *testing.T) (roots []byte, issue func(name string, until time.Time) *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial := int64(0)
	make := func(template, parent *x509.Certificate) *x509.Certificate {
		serial++
		template.SerialNumber, template.NotBefore = big.NewInt(serial), noon.AddDate(-1, 0, 0)
		raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, NotAfter: noon.AddDate(5, 0, 0)}
	root = make(root, root)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), func(name string, until time.Time) *x509.Certificate {
		return make(&x509.Certificate{DNSNames: []string{name}, NotAfter: until}, root)
	}
}

// The doctor says of the escrow endpoint what a sidecar with a keyring in its hands would find out.
func TestEscrowIsBelievedOrNot(t *testing.T) {
	const name = "mfg-auxiliary.mfg-system.svc"
	roots, issue := authority(t)
	_, foreign := authority(t)
	year := noon.AddDate(1, 0, 0)
	shows := func(c *x509.Certificate) *Endpoint {
		return &Endpoint{Chain: []*x509.Certificate{c}, Authorities: roots}
	}
	// Made by the operator: no authority of the group has signed it, and none is read.
	own := func(c *x509.Certificate) *Endpoint { return &Endpoint{Chain: []*x509.Certificate{c}, Own: true} }
	brief := func(left time.Duration) *Endpoint {
		c := issue(name, noon.Add(left))
		c.NotBefore = c.NotAfter.AddDate(0, 0, -6) // Verify looks at the field, not at the bytes
		return shows(c)
	}
	noExec := shows(issue(name, year))
	noExec.AuthoritiesErr = errors.New("pods/exec is forbidden")
	for what, tc := range map[string]struct {
		endpoint *Endpoint
		level    Level
		says     string
	}{
		"Well":     {shows(issue(name, year)), OK, "the sites believe the endpoint " + name},
		"NoAnswer": {&Endpoint{Err: errors.New("connection refused")}, Fail, "does not answer: connection refused"},
		"NoRight":  {&Endpoint{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)}, Unknown, "you may not create pods/portforward"},
		"NoList": {&Endpoint{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "dba" cannot list resource "pods" in API group ""`))},
			Unknown, "you may not list pods"},
		"OtherName":    {shows(issue("escrow.example.com", year)), Fail, "the certificate is for escrow.example.com"},
		"Ended":        {shows(issue(name, noon.Add(-time.Hour))), Fail, "ended at 2026-11-03T11:00:00Z"},
		"EndsSoon":     {shows(issue(name, noon.AddDate(0, 0, 6))), Warn, "ends at 2026-11-09"},
		"OtherIssuer":  {shows(foreign(name, year)), Fail, "the sites do not believe the endpoint"},
		"NoAuthority":  {&Endpoint{Chain: shows(issue(name, year)).Chain}, Fail, "the sites do not believe the endpoint"},
		"ShortLived":   {brief(25 * time.Hour), OK, "the sites believe the endpoint"},
		"ShortEnds":    {brief(23 * time.Hour), Warn, "ends at 2026-11-04"},
		"Own":          {own(foreign(name, year)), OK, "the operator makes it, and gives the sites its authority"},
		"OwnOtherName": {own(foreign("escrow.example.com", year)), Fail, "the certificate is for escrow.example.com"},
		"OwnEnded":     {own(foreign(name, noon.Add(-time.Hour))), Fail, "ended at 2026-11-03T11:00:00Z"},
		"OwnEndsSoon":  {own(foreign(name, noon.AddDate(0, 0, 6))), Warn, "ends at 2026-11-09"},
		"CannotBeSeen": {noExec, Unknown, "pods/exec is forbidden"},
	} {
		t.Run(what, func(t *testing.T) {
			w, _ := well()
			w.Escrow = tc.endpoint
			found := escrow(t.Context(), w)
			if len(found) != 1 || found[0].Level != tc.level || !strings.Contains(found[0].Message, tc.says) {
				t.Fatalf("%+v", found)
			}
			if (found[0].Remedy == "") != (tc.level == OK) {
				t.Errorf("remedy %q", found[0].Remedy)
			}
			if tc.endpoint.Own && strings.Contains(found[0].Remedy, "Secret") {
				t.Errorf("there is no Secret of a person to renew: %q", found[0].Remedy)
			}
		})
	}
}
