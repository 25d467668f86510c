// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certs"
)

// Notice is how long before its end a certificate should have been renewed, at most. Shorter-lived ones have a sixth of their time:
// cert-manager renews when a third is left.
const Notice = 14 * 24 * time.Hour

// mostChecked bounds how many certificates of a file are looked at: a person may put there what he likes.
const mostChecked = 64

// Dates are those of the certificate in the Secret of a group, and of the authority that signed it; zero for one that is not known.
type Dates struct {
	ServerBegins, ServerEnds, AuthorityBegins, AuthorityEnds time.Time
	// ServerRenews and AuthorityRenews are from when on the operator makes others; zero if it does not.
	ServerRenews, AuthorityRenews time.Time
}

// DatesOf reads them from the Secret. What the operator makes itself it renews, as it has decided.
func DatesOf(secret *corev1.Secret, made certs.Decision) Dates {
	d := Dates{ServerRenews: made.ServerRenews, AuthorityEnds: made.AuthorityEnds, AuthorityRenews: made.AuthorityRenews}
	chain := read(secret.Data[certs.KeyServer])
	if len(chain) == 0 {
		return d
	}
	d.ServerBegins, d.ServerEnds = chain[0].NotBefore, chain[0].NotAfter
	if signer := signerOf(chain, read(secret.Data[certs.KeyBundle])); signer != nil && d.AuthorityEnds.IsZero() {
		d.AuthorityBegins, d.AuthorityEnds = signer.NotBefore, signer.NotAfter
	}
	return d
}

// signerOf is what ends first of what a certificate is believed by, of the best way to believe it; nil if there is none.
func signerOf(chain, authorities []*x509.Certificate) *x509.Certificate {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	var best *x509.Certificate
	// Not now: whether something has ended is another question. At both ends: an authority may be younger than what it is asked about.
	for _, at := range []time.Time{chain[0].NotBefore.Add(time.Second), chain[0].NotAfter.Add(-time.Second)} {
		found, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			continue
		}
		for _, path := range found {
			if first := endsFirst(path[min(1, len(path)-1):]); first != nil && (best == nil || first.NotAfter.After(best.NotAfter)) {
				best = first
			}
		}
	}
	return best
}

func endsFirst(path []*x509.Certificate) *x509.Certificate {
	var first *x509.Certificate
	for _, c := range path {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first
}

// read are the certificates of a file, but those that cannot be read.
func read(file []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for range mostChecked {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// Soon says what in a Secret ends soon and is not renewed by the operator; empty if nothing does.
func (d Dates) Soon(now time.Time) string {
	switch {
	case d.ServerRenews.IsZero() && endsSoon(d.ServerBegins, d.ServerEnds, now):
		return fmt.Sprintf("the certificate ends at %s, and the operator does not renew it", d.ServerEnds.UTC().Format(time.RFC3339))
	case d.AuthorityRenews.IsZero() && endsSoon(d.AuthorityBegins, d.AuthorityEnds, now):
		return fmt.Sprintf("the authority in ca.crt that signed the certificate ends at %s, and the operator does not renew it",
			d.AuthorityEnds.UTC().Format(time.RFC3339))
	}
	return ""
}

func endsSoon(begins, ends, now time.Time) bool {
	return !ends.IsZero() && now.Add(min(Notice, ends.Sub(begins)/6)).After(ends)
}

// Status is what status says of them; nil if nothing is known.
func (d Dates) Status() *v1alpha1.CertificateStatus {
	if d.ServerEnds.IsZero() {
		return nil
	}
	return &v1alpha1.CertificateStatus{
		NotAfter: stamp(d.ServerEnds), Renewal: stamp(d.ServerRenews), AuthorityNotAfter: stamp(d.AuthorityEnds), AuthorityRenewal: stamp(d.AuthorityRenews),
	}
}

func stamp(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return new(metav1.NewTime(at))
}
