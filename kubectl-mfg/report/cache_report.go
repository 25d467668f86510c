// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// CacheReportKind is the kind of CacheReport.
const CacheReportKind = "MfgCacheReport"

// CacheReport is the cache store of one group in detail.
type CacheReport struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	// ActiveSite is where MySQL takes writes; the master of the cache belongs there.
	ActiveSite string `json:"activeSite,omitempty"`
	Cache      Cache  `json:"cache"`
	// PasswordSecret and TLSSecret are the Secrets that clients need; TLSSecret is empty without TLS.
	PasswordSecret string `json:"passwordSecret"`
	TLSSecret      string `json:"tlsSecret,omitempty"`
	// LastRequest is the last answer to a requested promotion.
	LastRequest *v1alpha1.LastRequest `json:"lastRequest,omitempty"`
	Hints       []Hint                `json:"hints,omitempty"`
}

// Encrypted says how connections are protected.
func (r CacheReport) Encrypted() string {
	if r.Cache.TLS {
		return "TLS with the certificate of Secret " + r.TLSSecret
	}
	return "without TLS"
}

// BuildCache makes the report; nil for a group without a cache store.
func BuildCache(cr *v1alpha1.MysqlFailoverGroup, view LiveView) *CacheReport {
	group := Build(cr, view)
	if group.Cache == nil {
		return nil
	}
	out := &CacheReport{
		APIVersion: APIVersion, Kind: CacheReportKind, Metadata: Metadata{Name: cr.Name, Namespace: cr.Namespace}, ActiveSite: group.ActiveSite,
		Cache: *group.Cache, PasswordSecret: CachePasswordSecret(cr), LastRequest: cr.Status.LastRequest(v1alpha1.RequestPromoteCache),
	}
	if out.Cache.TLS && cr.Spec.TLS != nil {
		out.TLSSecret = cr.Spec.TLS.Secret(cr.Name)
	}
	if ready := out.Cache.Ready; ready == nil || !*ready {
		out.Hints = CacheHints(cr.Namespace, cr.Name, &out.Cache)
	}
	return out
}

// CachePasswordSecret returns the Secret with the cache's password: the user's, or the operator's own.
func CachePasswordSecret(cr *v1alpha1.MysqlFailoverGroup) string {
	if cr.Spec.Cache != nil && cr.Spec.Cache.Auth.SecretName != "" {
		return cr.Spec.Cache.Auth.SecretName
	}
	return v1alpha1.CacheAuthSecret(cr.Name)
}
