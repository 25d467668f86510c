// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// serves is true while the site whose role an order would take is seen to accept writes. Such an order would be refused, or
// throw away what is being acknowledged.
func (t Takeover) serves() bool {
	active, _ := t.s.Site(t.s.Status.ActiveSite)
	if change := t.s.Status.Transition; change != nil {
		from, _ := t.s.Site(change.From)
		return active.Writable() || from.Writable()
	}
	return active.Writable() && !active.Stalls() // a volume that takes no writes acknowledges none either
}

// OrOrder adds to a remedy how a person overrides the rule, with words that join the two, but not while a site serves.
func (t Takeover) OrOrder(join string, first facts.Remedy) []facts.Remedy {
	if t.serves() {
		return []facts.Remedy{first}
	}
	to := t.best.Site.Name
	if change := t.s.Status.Transition; change != nil {
		to = change.To
	}
	if to == "" {
		to = "SITE"
	}
	return []facts.Remedy{first, remedy.New(join, remedy.ForceTo(t.s.Group, to))}
}

// remediesWithoutCandidate is what a person can do while no site is fit.
func (t Takeover) remediesWithoutCandidate() []facts.Remedy {
	if nobodyFit(t.s, t.m) == v1alpha1.ReasonKeyringNotEscrowed {
		return []facts.Remedy{remedy.NotEscrowed}
	}
	all := []facts.Remedy{remedy.Advice(bringBack)}
	if site, can := endable(t.s, t.m); can {
		all = append(remedy.FenceOff(t.s.Group, site), remedy.Advice("or "+bringBack))
	}
	if site, can := restorable(t.s, t.m); can {
		all = []facts.Remedy{remedy.RestoreEscrow(t.s.Group, site), remedy.Advice("or " + bringBack)}
	}
	if site, can := writeless(t.s, t.m); can {
		all = append(mendVolume(t.s.Group, site), remedy.Advice("or "+bringBack))
	}
	if to, can := orderable(t.s, t.m, ""); can && !t.serves() {
		all = append(all, remedy.New("or accept what may be lost", remedy.ForceTo(t.s.Group, to)))
	}
	return all
}
