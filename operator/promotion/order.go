// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

const bringBack = "bring a primary-candidate back"

// A person's order accepts a loss. It is the way out wherever the operator must wait rather than lose what is known to exist,
// so the message of every such wait says which site to order.

// WithOrder fills in a person's order for a whole decision: the sites, and the kind and target of a change under way, stay the same until
// its end.
func WithOrder(s facts.Snapshot) facts.Snapshot {
	to, t := s.Policy.ForceTo, s.Status.Transition
	s.Order = facts.Order{Accepted: to != "" && t != nil && t.To == to}
	if site, _ := s.Site(to); Forcible(s, site) {
		s.Order.To = to
	}
	return s
}

// orderable names the best site that an order can promote, other than the excluded one.
func orderable(s facts.Snapshot, m facts.Memory, exclude string) (string, bool) {
	for _, c := range Rank(s, m) {
		if c.Site.Name != exclude && Forcible(s, c.Site) {
			return c.Site.Name, true
		}
	}
	return "", false
}

// enlistable says how to make a site fit that only the spec keeps out: that is the owner's decision (I6), and the owner may
// change it.
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

// WithoutCandidate is what a person can do while no site is fit; an order does not open the excluded one either.
func WithoutCandidate(s facts.Snapshot, m facts.Memory, exclude string) string {
	out := bringBack
	if site, can := writeless(s, m); can {
		out = mendVolume(s.Group, site)[0].Text + ", or " + bringBack
	}
	if enlist := enlistable(s, m); enlist != "" {
		out += ", or " + enlist
	}
	if to, can := orderable(s, m, exclude); can {
		out += "; " + HowToOrder(to)
	}
	return out
}

// HowToOrder says how a person orders a failover that the operator does not begin otherwise.
func HowToOrder(to string) string {
	return fmt.Sprintf("to fail over now and accept what may be lost, annotate the group %s=%s", v1alpha1.AnnotationForceFailover, to)
}

// LostWayOut is the way out for a lost target that no site may replace without an order. An order does not open a target that
// does not acknowledge the epoch either.
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
