// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Certificate says until when a group's certificate is valid, and when the operator renews it.
type Certificate struct {
	NotAfter time.Time `json:"notAfter"`
	// Renewal and AuthorityRenewal are nil for what the operator does not renew.
	Renewal           *time.Time `json:"renewal,omitempty"`
	AuthorityNotAfter *time.Time `json:"authorityNotAfter,omitempty"`
	AuthorityRenewal  *time.Time `json:"authorityRenewal,omitempty"`
	// Fit is true if TLSReady is: the operator sees nothing that ends soon. It knows how long a certificate is good in all, which status
	// does not say, and warns of a short-lived one in the last sixth of that time alone.
	Fit bool `json:"-"`
}

const (
	// CertificateNotice is how long before its end a certificate should be renewed that the operator does not renew, unless it is Fit.
	CertificateNotice = 14 * 24 * time.Hour
	// CertificateOverdue is how long after its time the operator's renewal counts as late: clients have a day to trust a new authority.
	CertificateOverdue = 3 * 24 * time.Hour
)

// CertificateOf returns what status tells of it; nil if that is nothing.
func CertificateOf(cr *v1alpha1.MysqlFailoverGroup) *Certificate {
	if cr.Spec.TLS == nil || cr.Status.TLS == nil || cr.Status.TLS.Certificate == nil || cr.Status.TLS.Certificate.NotAfter.IsZero() {
		return nil
	}
	c := cr.Status.TLS.Certificate
	return &Certificate{
		NotAfter: c.NotAfter.UTC(), Renewal: timeOf(c.Renewal), AuthorityNotAfter: timeOf(c.AuthorityNotAfter), AuthorityRenewal: timeOf(c.AuthorityRenewal),
		Fit: meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionTLSReady),
	}
}

// Words says until when it is valid and who renews it.
func (c Certificate) Words(now time.Time) string {
	words := fmt.Sprintf("certificate until %s (%d days left)", c.NotAfter.Format(time.DateOnly), int(c.NotAfter.Sub(now)/(24*time.Hour)))
	if !now.Before(c.NotAfter) {
		words = "certificate ended at " + c.NotAfter.Format(time.RFC3339)
	}
	if c.Renewal == nil {
		return words + "; the operator does not renew it"
	}
	return words + "; the operator renews it from " + c.Renewal.Format(time.DateOnly) + " on"
}

// Trouble says what is wrong with its time, or that of its authority; empty if nothing is. Bad is true once something has ended.
func (c Certificate) Trouble(now time.Time) (text string, bad bool) {
	if text, bad = c.ending("the certificate", c.NotAfter, c.Renewal, now); text != "" || c.AuthorityNotAfter == nil {
		return text, bad
	}
	return c.ending("its authority", *c.AuthorityNotAfter, c.AuthorityRenewal, now)
}

func (c Certificate) ending(what string, ends time.Time, renewal *time.Time, now time.Time) (text string, bad bool) {
	switch at := ends.Format(time.RFC3339); {
	case !now.Before(ends):
		return fmt.Sprintf("%s ended at %s", what, at), true
	case renewal != nil && now.Sub(*renewal) > CertificateOverdue:
		return fmt.Sprintf("the operator should have renewed %s at %s; it ends at %s", what, renewal.Format(time.RFC3339), at), false
	case renewal == nil && !c.Fit && ends.Sub(now) < CertificateNotice:
		return fmt.Sprintf("%s ends at %s, and the operator does not renew it", what, at), false
	}
	return "", false
}
