// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

const bringBack = "bring a primary-candidate back"

// A person's order accepts a loss. It is the way out wherever the system has to stand still rather than lose what is known to
// exist, so whatever stands still says which site to order.

// WithOrder fills in how a person's order stands, for a whole decision: neither the sites nor the kind and the target of a change under way
// are others at its end.
func WithOrder(s facts.Snapshot) facts.Snapshot {
	to, t := s.Policy.ForceTo, s.Status.Transition
	s.Order = facts.Order{Accepted: to != "" && t != nil && t.To == to}
	if site, _ := s.Site(to); Forcible(s, site) {
		s.Order.To = to
	}
	return s
}

// orderable is the best site that an order can name, other than the excluded one.
func orderable(s facts.Snapshot, m facts.Memory, exclude string) (string, bool) {
	for _, c := range Rank(s, m) {
		if c.Site.Name != exclude && Forcible(s, c.Site) {
			return c.Site.Name, true
		}
	}
	return "", false
}

// enlistable says what makes a site fit that is kept out by the spec alone: that is the owner's decision (I6), and the owner may
// take it back.
func enlistable(s facts.Snapshot, m facts.Memory) string {
	for _, c := range Rank(s, m) {
		site := c.Site
		site.Role, site.Removed = v1alpha1.PrimaryCandidate, false
		switch {
		case UnfitOf(s, m, site).By != "" || c.Site.Name == s.Status.ActiveSite:
		case c.Site.Removed:
			return fmt.Sprintf("put %s back into spec.sites as a primary-candidate", site.Name)
		case c.Site.Role == v1alpha1.DROnly:
			return fmt.Sprintf("make %s a primary-candidate in spec.sites", site.Name)
		}
	}
	return ""
}

// WayOut is what a person can do about a failover that is blocked.
func WayOut(s facts.Snapshot, m facts.Memory, best Candidate, found bool) string {
	if found {
		return HowToOrder(best.Site.Name)
	}
	if nobodyFit(s, m) == v1alpha1.ReasonKeyringNotEscrowed {
		return remedy.NotEscrowed.String()
	}
	return WithoutCandidate(s, m, "")
}

// WithoutCandidate is what a person can do while no site is fit; the excluded one is not opened by order either.
func WithoutCandidate(s facts.Snapshot, m facts.Memory, exclude string) string {
	out := bringBack
	if enlist := enlistable(s, m); enlist != "" {
		out += ", or " + enlist
	}
	if to, can := orderable(s, m, exclude); can {
		out += "; " + HowToOrder(to)
	}
	return out
}

// HowToOrder is how a person orders a failover that the system does not do by itself.
func HowToOrder(to string) string {
	return fmt.Sprintf("to go on now and accept what may be lost, annotate the group %s=%s", v1alpha1.AnnotationForceFailover, to)
}

// LostWayOut is the same for a target that is lost, and that no site may replace by itself. One that does not acknowledge the
// epoch is not opened by order either.
func LostWayOut(s facts.Snapshot, m facts.Memory, target facts.Site) string {
	exclude := ""
	if target.Sidecar.Report.Epoch < s.Status.Epoch {
		exclude = target.Name
	}
	if LostFor(s, m, target) == v1alpha1.ReasonKeyringNotEscrowed {
		return remedy.NotEscrowed.String()
	}
	return WithoutCandidate(s, m, exclude)
}
