// SPDX-License-Identifier: Apache-2.0

package failover

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// A site that accepts writes while its keyring lives in its pod's memory alone loses with that pod all that was acknowledged
// under its keys. So nobody is opened before the operator holds the keyring (I16). A site that is open already stays so: closing
// it would not bring its keys to safety any sooner.

// isEscrowMissing: its pod has the only copy of its keyring. Were the role moved there, the next restart of that pod would take
// what the active site has acknowledged (I16), so a person orders that or nobody does. The site that a change under way moves the
// role away from is not asked: to open it again moves the role nowhere.
func isEscrowMissing(s Snapshot, _ Memory, site Site) string {
	if t := s.Status.Transition; !site.EscrowMissing || t != nil && t.From == site.Name {
		return ""
	}
	return "the escrow Secret of its keyring is gone, and only its pod has the keyring still; " + restoreEscrow(s.Group, site.Name).String()
}

// restorable is a site that would be a candidate if its escrow Secret were there, other than the active one.
func restorable(s Snapshot, m Memory) (string, bool) {
	for _, c := range candidates(s, m) {
		if c.Site.Name != s.Status.ActiveSite && c.Unfit.By == GuardEscrowMissing {
			return c.Site.Name, true
		}
	}
	return "", false
}

// isUnescrowed: what it would acknowledge could be read by nobody once its pod is gone (I16). A sealed keyring comes from
// escrow, and a site without one has nothing to lose. A file that is being written has no digest, and is not in escrow either.
func isUnescrowed(_ Snapshot, _ Memory, site Site) string {
	k := site.Sidecar.Report.Keyring
	switch {
	case k == nil || k.Sealed || k.Digest != "" && k.Digest == k.EscrowedDigest:
		return ""
	case k.Trouble != "":
		return "its live keyring is not escrowed: " + k.Trouble
	}
	return "its live keyring is not escrowed yet"
}

// nobodyFit names why there is no candidate: an escrow that is all that is missing is something else to do than a site that
// is down.
func nobodyFit(s Snapshot, m Memory) Reason {
	for _, c := range candidates(s, m) {
		switch {
		case c.Site.Name == s.Status.ActiveSite:
		case c.Unfit.By == GuardUnescrowed:
			return v1alpha1.ReasonKeyringNotEscrowed // it is the last of the guards, so nothing else stands in its way
		case c.Unfit.By == GuardWithoutRows:
			return v1alpha1.ReasonRowsMissing
		}
	}
	return v1alpha1.ReasonNoFitCandidate
}

// lostFor names why a target that nobody can replace is not opened.
func lostFor(s Snapshot, m Memory, target Site) Reason {
	if isUnescrowed(s, m, target) != "" || nobodyFit(s, m) == v1alpha1.ReasonKeyringNotEscrowed {
		return v1alpha1.ReasonKeyringNotEscrowed
	}
	if nobodyFit(s, m) == v1alpha1.ReasonRowsMissing {
		return v1alpha1.ReasonRowsMissing
	}
	return v1alpha1.ReasonTargetLost
}

// keptShut leaves a site closed that would be opened now, until its keyring is in escrow (I16). It says so loudly once that
// takes longer than any step may.
func (d Decision) keptShut(s Snapshot, seen Topology, site, why string) Decision {
	since := d.Memory.ReopenSince
	if t := s.Status.Transition; t != nil {
		since = later(t.GatePassedAt, s.LeaderSince)
	}
	verdict := VerdictWait
	if late(s, since) {
		verdict, why = VerdictBlocked, why+"; "+notEscrowedRemedy.String()
	}
	return d.say(seen, verdict, v1alpha1.ReasonKeyringNotEscrowed, "%s is not opened: %s", site, why).within(s.Policy.PollInterval / 4)
}
