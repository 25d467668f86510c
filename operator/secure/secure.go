// SPDX-License-Identifier: Apache-2.0

// Package secure decides the steps by which a group that runs without TLS gets it. It is pure. Each step accepts the result of the
// one before, so that sites may be in two of them at once, and a failover works in every one.
package secure

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Quiet is how long no site may have seen a client without TLS before RefuseWhenUnused refuses such clients.
const Quiet = 10 * time.Minute

// Site is one site of the group as last seen.
type Site struct {
	Name string
	// Loaded is true if the sidecar of the site's pod says that the certificate is in that pod, and that MySQL shows it.
	Loaded bool
	// Verified is true if the receiver in that pod is connected with the active site, and verifies it.
	Verified bool
	// Refuses is true if the site has a pod that was made to refuse connections without TLS, the next one would be like it, and MySQL answers
	// in it. Accepts is true if the site has a pod that was made to accept them. Both are false for a site that is away.
	Refuses, Accepts bool
	// Plain is what that sidecar says of clients without TLS; nil if unknown.
	Plain *Plain
}

// Plain is how many clients a site has without TLS.
type Plain struct {
	Connections int
	// QuietFor is how long the sidecar has seen none.
	QuietFor time.Duration
}

// Group is the input of the decision.
type Group struct {
	// Status is what is durable; zero if nothing was decided yet.
	Status v1alpha1.TLSStatus
	// Asked is true if spec.tls is set, PlainConnections is its field.
	Asked            bool
	PlainConnections v1alpha1.PlainConnections
	// Usable is true if the Secret holds a certificate that every site can run with, and may be used for the group.
	Usable bool
	// Refused is true if status says that every site refuses connections without TLS.
	Refused bool
	// Settled is true if the active site is known and open, and no transition is under way.
	Settled bool
	Active  string
	// Sites are the sites of the specification, the active one included.
	Sites []Site
}

// Decision is how far the group may go from now on, and what the next step waits for.
type Decision struct {
	Phase v1alpha1.TLSPhase
	// Later is true for a group that ran without TLS before.
	Later bool
	// Refused is true once every site refuses connections without TLS.
	Refused bool
	// Reason and Message say what the phase is and what it waits for; Site is the site that it waits for, if there is one.
	Reason  v1alpha1.Reason
	Site    string
	Message string
}

// Decide takes at most one step.
func Decide(g Group) Decision {
	d := Decision{Phase: g.Status.Phase, Later: g.Status.Later}
	switch {
	case !g.Asked && d.Phase == "":
		d.Phase = v1alpha1.TLSPlain
		return d
	case !g.Asked:
		return d // what is durable stays: only the API could have removed spec.tls, and it does not
	case d.Phase == "":
		// It had TLS from its beginning: the API accepts spec.tls later only for a group whose status says Plain.
		d.Phase = v1alpha1.TLSRequired
	case d.Phase == v1alpha1.TLSPlain && g.Usable:
		d.Phase, d.Later = v1alpha1.TLSCertificates, true
	case d.Phase == v1alpha1.TLSCertificates && g.Usable && len(g.Sites) > 0 && withoutCertificate(g) == "":
		d.Phase = v1alpha1.TLSChannels
	case d.Phase == v1alpha1.TLSChannels && g.Usable && g.Settled && len(g.Sites) > 0 && unverified(g) == "":
		d.Phase = v1alpha1.TLSClients
	case d.Phase == v1alpha1.TLSClients && g.Usable && refuses(g):
		d.Phase = v1alpha1.TLSRequired
	case d.Phase == v1alpha1.TLSRequired && Wanted(g) == v1alpha1.PlainAllow:
		d.Phase = v1alpha1.TLSClients
	}
	return explained(g, d)
}

// Wanted returns what should happen to clients without TLS, as the specification says, or its default: a group that got TLS later cuts
// no client off before a person has said so.
func Wanted(g Group) v1alpha1.PlainConnections {
	switch {
	case g.PlainConnections != "":
		return g.PlainConnections
	case g.Status.Later:
		return v1alpha1.PlainAllow
	}
	return v1alpha1.PlainRefuse
}

// withoutCertificate returns a site that could not be verified, or could not verify another; empty if there is none.
func withoutCertificate(g Group) string {
	for _, s := range g.Sites {
		if !s.Loaded {
			return s.Name
		}
	}
	return ""
}

// unverified returns a site that is not known to verify its source; empty if there is none. The active site has no source.
func unverified(g Group) string {
	for _, s := range g.Sites {
		if s.Name != g.Active && !s.Verified {
			return s.Name
		}
	}
	return ""
}

// refuses is true if clients without TLS must be refused now.
func refuses(g Group) bool {
	switch Wanted(g) {
	case v1alpha1.PlainRefuse:
		return true
	case v1alpha1.PlainRefuseWhenUnused:
		return len(g.Sites) > 0 && used(g) == ""
	case v1alpha1.PlainAllow:
	}
	return false
}

// used returns a site that has clients without TLS, had some lately, or may have; empty if there is none.
func used(g Group) string {
	for _, s := range g.Sites {
		if s.Plain == nil || s.Plain.Connections > 0 || s.Plain.QuietFor < Quiet {
			return s.Name
		}
	}
	return ""
}

// accepting returns a site that may accept connections without TLS; empty if there is none. Once all were seen to refuse them, a site that
// is away or starts again accepts none: only a pod that was made otherwise counts.
func accepting(g Group) string {
	for _, s := range g.Sites {
		if s.Accepts || !s.Refuses && !g.Refused {
			return s.Name
		}
	}
	return ""
}

// explained adds what the phase is and what the next one waits for.
func explained(g Group, d Decision) Decision {
	switch d.Phase {
	case v1alpha1.TLSPlain:
		d.Reason, d.Message = v1alpha1.ReasonTLSWaitingForCertificate,
			"nothing has changed yet: a usable certificate is waited for; see condition TLSReady"
	case v1alpha1.TLSCertificates:
		d.Reason, d.Site = v1alpha1.ReasonTLSUpdatingSites, withoutCertificate(g)
		d.Message = "the sites get the certificate, one after the other, and accept each other with and without it" + waiting(d.Site,
			"has it in its pod and in MySQL")
	case v1alpha1.TLSChannels:
		d.Reason, d.Site = v1alpha1.ReasonTLSVerifying, unverified(g)
		d.Message = "every site has the certificate; replicas verify their source from now on, one after the other" + waiting(d.Site, "does so")
		if d.Site == "" && !g.Settled {
			d.Message += "; the next step waits until the active site is open and the role stays"
		}
	case v1alpha1.TLSClients:
		d.explainClients(g)
	case v1alpha1.TLSRequired:
		if d.Site = accepting(g); d.Site == "" {
			d.Refused, d.Reason, d.Message = true, v1alpha1.ReasonAsExpected, "every site refuses connections without TLS"
			break
		}
		d.Reason = v1alpha1.ReasonTLSUpdatingSites
		d.Message = "the sites are updated, one after the other, to refuse connections without TLS" + waiting(d.Site, "does so")
	}
	return d
}

func (d *Decision) explainClients(g Group) {
	const own = "all connections of the group itself are verified; "
	switch Wanted(g) {
	case v1alpha1.PlainRefuseWhenUnused:
		d.Reason, d.Site = v1alpha1.ReasonTLSPlainConnectionsSeen, used(g)
		d.Message = fmt.Sprintf("%sclients without TLS are refused once no site has seen one for %s", own, Quiet) + waiting(d.Site, "has seen none for so long")
	case v1alpha1.PlainRefuse:
		if g.Usable {
			d.Reason, d.Message = v1alpha1.ReasonTLSUpdatingSites, own+"clients without TLS are refused next, by an update of one site after the other"
			return
		}
		d.Reason, d.Message = v1alpha1.ReasonTLSWaitingForCertificate,
			own+"clients without TLS are refused as soon as the certificate is usable again; see condition TLSReady"
	default:
		d.Reason, d.Message = v1alpha1.ReasonTLSPlainConnectionsAllowed,
			own+"clients may connect without TLS until spec.tls.plainConnections says RefuseWhenUnused or Refuse"
	}
}

func waiting(site, until string) string {
	if site == "" {
		return ""
	}
	return fmt.Sprintf("; it waits until %s %s", site, until)
}
