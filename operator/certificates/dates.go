// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/chain"
	"github.com/mysql-mfg/mfg/operator/certs"
)

// Notice is how long before its end a certificate should have been renewed, at most. Shorter-lived ones have a sixth of their time:
// cert-manager renews when a third is left.
const Notice = 14 * 24 * time.Hour

// Dates are the dates of the certificate in the Secret of a group, and of the authority that signed it; zero if unknown.
type Dates struct {
	ServerBegins, ServerEnds, AuthorityBegins, AuthorityEnds time.Time
	// ServerRenews and AuthorityRenews are when the operator starts to renew them; zero if it does not.
	ServerRenews, AuthorityRenews time.Time
}

// DatesOf reads them from the Secret. The operator renews what it made itself, by its decision.
func DatesOf(secret *corev1.Secret, made certs.Decision) Dates {
	d := Dates{ServerRenews: made.ServerRenews, AuthorityEnds: made.AuthorityEnds, AuthorityRenews: made.AuthorityRenews}
	server := chain.Read(secret.Data[certs.KeyServer])
	if len(server) == 0 {
		return d
	}
	d.ServerBegins, d.ServerEnds = server[0].NotBefore, server[0].NotAfter
	if above := chain.Above(server, chain.Read(secret.Data[certs.KeyBundle])); above != nil && d.AuthorityEnds.IsZero() {
		first := chain.EndsFirst(above)
		d.AuthorityBegins, d.AuthorityEnds = first.NotBefore, first.NotAfter
	}
	return d
}

// Soon says what in a Secret ends soon and is not renewed by the operator; empty if nothing does.
func (d Dates) Soon(now time.Time) string {
	switch {
	case over(d.ServerNotice(), now):
		return fmt.Sprintf("the certificate ends at %s, and the operator does not renew it", d.ServerEnds.UTC().Format(time.RFC3339))
	case over(d.AuthorityNotice(), now):
		return fmt.Sprintf("the authority in ca.crt that signed the certificate ends at %s, and the operator does not renew it",
			d.AuthorityEnds.UTC().Format(time.RFC3339))
	}
	return ""
}

func over(notice, now time.Time) bool { return !notice.IsZero() && now.After(notice) }

// noticeOf returns when the warning begins that one ends soon; zero if its end is unknown.
func noticeOf(begins, ends time.Time) time.Time {
	if ends.IsZero() {
		return ends
	}
	return ends.Add(-min(Notice, ends.Sub(begins)/6))
}

// ServerNotice returns when Soon starts to name the certificate; zero if it never does.
func (d Dates) ServerNotice() time.Time {
	if !d.ServerRenews.IsZero() {
		return time.Time{}
	}
	return noticeOf(d.ServerBegins, d.ServerEnds)
}

// AuthorityNotice returns when Soon starts to name the authority; zero if it never does.
func (d Dates) AuthorityNotice() time.Time {
	if !d.AuthorityRenews.IsZero() {
		return time.Time{}
	}
	return noticeOf(d.AuthorityBegins, d.AuthorityEnds)
}

// Status returns what status says of them; nil if nothing is known.
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
