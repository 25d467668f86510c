// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlainConnections says what becomes of clients that connect without TLS.
//
// +kubebuilder:validation:Enum=Allow;RefuseWhenUnused;Refuse
type PlainConnections string

// What becomes of clients that connect without TLS.
const (
	// PlainAllow lets them connect.
	PlainAllow PlainConnections = "Allow"
	// PlainRefuseWhenUnused refuses them once no site has seen one for 10 minutes.
	PlainRefuseWhenUnused PlainConnections = "RefuseWhenUnused"
	// PlainRefuse refuses them, also those that are in use.
	PlainRefuse PlainConnections = "Refuse"
)

// TLSPhase is how far a group is on its way to TLS. Each phase accepts what the one before it had made.
type TLSPhase string

// The phases of TLS, in their order.
const (
	// TLSPlain: the sites have no certificate.
	TLSPlain TLSPhase = "Plain"
	// TLSCertificates: the sites get the certificate, one after the other; those with and without one accept each other.
	TLSCertificates TLSPhase = "Certificates"
	// TLSChannels: every site has the certificate; the group's own connections are verified from now on, running receivers one by one.
	TLSChannels TLSPhase = "Channels"
	// TLSClients: all connections of the group itself are verified; clients may still connect without TLS.
	TLSClients TLSPhase = "Clients"
	// TLSRequired: the sites refuse connections without TLS.
	TLSRequired TLSPhase = "Required"
)

// TLSStatus is how far a group is on its way to TLS. It is durable before anything is done by it.
type TLSStatus struct {
	// phase is Plain, Certificates, Channels, Clients or Required.
	//
	// +optional
	Phase TLSPhase `json:"phase,omitempty"`
	// later is true for a group that ran without TLS before it got it.
	//
	// +optional
	Later bool `json:"later,omitempty"`
	// since is when the phase began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// certificate is the one in the Secret of spec.tls; absent while it is missing or cannot be read.
	//
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`
	// countedAt is when sites was written last. Numbers that only go up and down are written once a minute.
	//
	// +optional
	CountedAt *metav1.Time `json:"countedAt,omitempty"`
	// sites counts the clients without TLS, while some may connect so.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []SiteTLSStatus `json:"sites,omitempty"`
}

// CertificateStatus says until when the certificate of a group is good, and when the operator renews it.
type CertificateStatus struct {
	// notAfter is when the certificate ends.
	//
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// renewal is from when on the operator makes another one; absent if somebody else does.
	//
	// +optional
	Renewal *metav1.Time `json:"renewal,omitempty"`
	// authorityNotAfter is when the authority ends that signed it; absent if ca.crt does not hold it.
	//
	// +optional
	AuthorityNotAfter *metav1.Time `json:"authorityNotAfter,omitempty"`
	// authorityRenewal is from when on the operator makes another authority; absent if somebody else does.
	//
	// +optional
	AuthorityRenewal *metav1.Time `json:"authorityRenewal,omitempty"`
}

// SiteTLSStatus counts the clients of a site that are connected without TLS.
type SiteTLSStatus struct {
	// name of the site.
	//
	// +required
	Name string `json:"name"`
	// plainConnections is how many connections of clients without TLS were open at the last look. Connections of a few seconds may be missed.
	//
	// +optional
	PlainConnections int32 `json:"plainConnections"`
}

// tlsPhase is the phase by which the group is operated. Without one it had TLS from its beginning, if it has it now: the API takes
// spec.tls later only for a group whose status says Plain.
func (g *MysqlFailoverGroup) tlsPhase() TLSPhase {
	switch {
	case g.Spec.TLS == nil:
		return TLSPlain
	case g.Status.TLS == nil || g.Status.TLS.Phase == "":
		return TLSRequired
	}
	return g.Status.TLS.Phase
}

// TLSMounted is true if the pods of MySQL have the certificate, or get it with their next update.
func (g *MysqlFailoverGroup) TLSMounted() bool { return g.tlsPhase() != TLSPlain }

// TLSVerified is true if every site has the certificate, so that the group's own connections are verified.
func (g *MysqlFailoverGroup) TLSVerified() bool {
	phase := g.tlsPhase()
	return phase == TLSChannels || phase == TLSClients || phase == TLSRequired
}

// TLSRequired is true if the sites refuse connections without TLS, or do so with their next update.
func (g *MysqlFailoverGroup) TLSRequired() bool { return g.tlsPhase() == TLSRequired }

// CacheTLS is true if the cache, if there is one, takes connections over TLS alone. What is not said follows the group, but a running
// cache stays as it is when the group gets TLS later. A certificate that is not in use yet may be somebody else's.
func (g *MysqlFailoverGroup) CacheTLS() bool {
	if !g.TLSMounted() {
		return false
	}
	if g.Spec.Cache != nil && g.Spec.Cache.TLS.Enabled != nil {
		return *g.Spec.Cache.TLS.Enabled
	}
	return g.Status.TLS == nil || !g.Status.TLS.Later
}

// SitesThere are the sites of the specification, and then those that left it and are still there: one of them may be the active site
// until the role has moved, and no replica could verify it without its name.
func (g *MysqlFailoverGroup) SitesThere() []string {
	var sites []string
	for _, site := range g.Spec.Sites {
		sites = append(sites, site.Name)
	}
	for _, site := range g.Status.Sites {
		if !slices.Contains(sites, site.Name) {
			sites = append(sites, site.Name)
		}
	}
	if active := g.Status.ActiveSite; active != "" && !slices.Contains(sites, active) {
		sites = append(sites, active)
	}
	return sites
}
