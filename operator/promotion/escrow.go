// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// If a site accepts writes while only its pod's memory has its keyring, losing that pod loses all that was acknowledged under
// its keys. So no site is opened before the operator holds its keyring (I16). A site that is already open stays open: closing it
// would not bring its keys to safety any sooner.

// isEscrowMissing says that only the site's pod still has its keyring. If the role moved there, the next restart of that pod
// would lose what the active site has acknowledged (I16), so only a person orders that. The site that a change under way moves
// the role away from is exempt: to open it again moves the role nowhere.
func isEscrowMissing(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if t := s.Status.Transition; !site.EscrowMissing || t != nil && t.From == site.Name {
		return ""
	}
	return "the escrow Secret of its keyring is gone, and only its pod has the keyring still; " + remedy.RestoreEscrow(s.Group, site.Name).String()
}

// restorable names a site other than the active one that would be a candidate if its escrow Secret were there.
func restorable(s facts.Snapshot, m facts.Memory) (string, bool) {
	for _, c := range Rank(s, m) {
		if c.Site.Name != s.Status.ActiveSite && c.Unfit.By == GuardEscrowMissing {
			return c.Site.Name, true
		}
	}
	return "", false
}

// IsUnescrowed says that only the pod of a site has its keyring; see facts.Site.Unescrowed.
func IsUnescrowed(_ facts.Snapshot, _ facts.Memory, site facts.Site) string { return site.Unescrowed() }

// nobodyFit says why there is no candidate: if only an escrow is missing, people must do something else than for a site
// that is down.
func nobodyFit(s facts.Snapshot, m facts.Memory) facts.Reason {
	for _, c := range Rank(s, m) {
		switch {
		case c.Site.Name == s.Status.ActiveSite:
		case c.Unfit.By == GuardUnescrowed:
			return v1alpha1.ReasonKeyringNotEscrowed // it is the last guard, so nothing else is against the site
		case c.Unfit.By == GuardKeptFenced:
			return v1alpha1.ReasonKeptFenced
		case c.Unfit.By == GuardWithoutRows:
			return v1alpha1.ReasonRowsMissing
		case c.Unfit.By == GuardVolumeFailing:
			return v1alpha1.ReasonVolumeTakesNoWrites
		}
	}
	return v1alpha1.ReasonNoFitCandidate
}

// LostFor says why a target that no site can replace is not opened.
func LostFor(s facts.Snapshot, m facts.Memory, target facts.Site) facts.Reason {
	if IsUnescrowed(s, m, target) != "" || nobodyFit(s, m) == v1alpha1.ReasonKeyringNotEscrowed {
		return v1alpha1.ReasonKeyringNotEscrowed
	}
	switch why := nobodyFit(s, m); {
	case IsKeptFenced(s, m, target) != "", why == v1alpha1.ReasonKeptFenced:
		return v1alpha1.ReasonKeptFenced
	case why == v1alpha1.ReasonRowsMissing, why == v1alpha1.ReasonVolumeTakesNoWrites:
		return why
	}
	return v1alpha1.ReasonTargetLost
}
