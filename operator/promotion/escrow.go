// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// A site that accepts writes while its keyring lives in its pod's memory alone loses with that pod all that was acknowledged
// under its keys. So nobody is opened before the operator holds the keyring (I16). A site that is open already stays so: closing
// it would not bring its keys to safety any sooner.

// isEscrowMissing: its pod has the only copy of its keyring. Were the role moved there, the next restart of that pod would take
// what the active site has acknowledged (I16), so a person orders that or nobody does. The site that a change under way moves the
// role away from is not asked: to open it again moves the role nowhere.
func isEscrowMissing(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if t := s.Status.Transition; !site.EscrowMissing || t != nil && t.From == site.Name {
		return ""
	}
	return "the escrow Secret of its keyring is gone, and only its pod has the keyring still; " + remedy.RestoreEscrow(s.Group, site.Name).String()
}

// restorable is a site that would be a candidate if its escrow Secret were there, other than the active one.
func restorable(s facts.Snapshot, m facts.Memory) (string, bool) {
	for _, c := range Rank(s, m) {
		if c.Site.Name != s.Status.ActiveSite && c.Unfit.By == GuardEscrowMissing {
			return c.Site.Name, true
		}
	}
	return "", false
}

// IsUnescrowed says that the keyring of a site lives in its pod alone; see facts.Site.Unescrowed.
func IsUnescrowed(_ facts.Snapshot, _ facts.Memory, site facts.Site) string { return site.Unescrowed() }

// nobodyFit names why there is no candidate: an escrow that is all that is missing is something else to do than a site that
// is down.
func nobodyFit(s facts.Snapshot, m facts.Memory) facts.Reason {
	for _, c := range Rank(s, m) {
		switch {
		case c.Site.Name == s.Status.ActiveSite:
		case c.Unfit.By == GuardUnescrowed:
			return v1alpha1.ReasonKeyringNotEscrowed // it is the last of the guards, so nothing else stands in its way
		case c.Unfit.By == GuardKeptFenced:
			return v1alpha1.ReasonKeptFenced
		case c.Unfit.By == GuardWithoutRows:
			return v1alpha1.ReasonRowsMissing
		}
	}
	return v1alpha1.ReasonNoFitCandidate
}

// LostFor names why a target that nobody can replace is not opened.
func LostFor(s facts.Snapshot, m facts.Memory, target facts.Site) facts.Reason {
	if IsUnescrowed(s, m, target) != "" || nobodyFit(s, m) == v1alpha1.ReasonKeyringNotEscrowed {
		return v1alpha1.ReasonKeyringNotEscrowed
	}
	switch why := nobodyFit(s, m); {
	case IsKeptFenced(s, m, target) != "", why == v1alpha1.ReasonKeptFenced:
		return v1alpha1.ReasonKeptFenced
	case why == v1alpha1.ReasonRowsMissing:
		return why
	}
	return v1alpha1.ReasonTargetLost
}
