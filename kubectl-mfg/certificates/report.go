// SPDX-License-Identifier: Apache-2.0

// Package certificates says what certificates a group has, until when they are valid, and what is wrong with them. It is pure: it gets
// what the Secret holds and what servers showed in handshakes.
package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Level is how bad a finding is.
type Level string

// The levels. Unknown is no judgement.
const (
	Unknown Level = "UNKNOWN"
	OK      Level = "OK"
	Warn    Level = "WARN"
	Fail    Level = "FAIL"
)

// What a certificate is.
const (
	Authority = "authority"
	Server    = "server"
	Site      = "site"
	Escrow    = "escrow"
)

// Facts is what Build judges.
type Facts struct {
	Group *v1alpha1.MysqlFailoverGroup
	Now   time.Time
	// Secret is the Secret of spec.tls; nil if it does not exist, or SecretErr says why it was not read.
	Secret    *corev1.Secret
	SecretErr error
	// Sites are what the MySQL of each site shows, Escrow what the operator's listener shows; nil for a group without keyrings.
	Sites  []Shown
	Escrow *Shown
}

// Shown is what a server shows of itself: its own certificate first. Err says why nothing was seen.
type Shown struct {
	Name  string
	Chain []*x509.Certificate
	Err   error
}

// Report holds all certificates of a group.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	// MadeBy is Operator (tls: {}), Issuer (issuerRef) or Somebody (secretName).
	MadeBy string `json:"madeBy"`
	// Secret is the Secret of spec.tls, in which servers and clients find certificate and authorities.
	Secret       string        `json:"secret"`
	Certificates []Certificate `json:"certificates"`
	Findings     []Finding     `json:"findings"`
}

// Certificate is one of them.
type Certificate struct {
	// What is authority, server (in the Secret), site (shown by a site's MySQL) or escrow.
	What string `json:"what"`
	Site string `json:"site,omitempty"`
	// Role is, for an authority, Signs, SignsNext or Former, all still trusted; for what a site shows, Current or Other.
	Role      string    `json:"role,omitempty"`
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	Names     []string  `json:"names,omitempty"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// DaysLeft is the number of whole days until NotAfter; negative once it has ended.
	DaysLeft int `json:"daysLeft"`
	// Renewal is when the operator starts to renew it; absent if the operator does not.
	Renewal *time.Time `json:"renewal,omitempty"`
	SHA256  string     `json:"sha256"`
}

// Roles.
const (
	Signs     = "Signs"
	SignsNext = "SignsNext"
	Former    = "Former"
	Current   = "Current"
	Other     = "Other"
)

// Finding is what one check found.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Worst returns the gravest level of all findings except Unknown.
func (r Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// rowOf describes a certificate. Its texts come from elsewhere; the screen escapes them.
func rowOf(what, site string, c *x509.Certificate, now time.Time) Certificate {
	sum := sha256.Sum256(c.Raw)
	days := int(c.NotAfter.Sub(now) / (24 * time.Hour))
	if now.After(c.NotAfter) {
		days--
	}
	return Certificate{
		What: what, Site: site, Subject: c.Subject.String(), Issuer: c.Issuer.String(), Names: c.DNSNames,
		NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC(), DaysLeft: days, SHA256: hex.EncodeToString(sum[:]),
	}
}

func timeOf(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
