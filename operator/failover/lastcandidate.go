// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"

	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// decided is what views are made of.
func (d Decision) decided() views.Decided {
	return views.Decided{Status: d.Status, Memory: d.Memory, Healthy: d.Topology == TopologyHealthy, Reason: d.Reason, Message: d.Message}
}

// keptShut keeps a site closed that would otherwise be opened now, until its keyring is in escrow (I16). It says so loudly
// once that takes longer than any step may.
func (d Decision) lastCandidate(s Snapshot) string {
	active, _ := s.Site(d.Status.ActiveSite)
	seen := d.decided()
	if t := d.Status.Transition; t != nil {
		return t.To // it is about to be opened
	}
	if active.Sidecar.Answered && !active.Writable() || memory.IsLongSilent(s, d.Memory, active.Name) {
		best, _ := promotion.Choose(s, d.Memory, active.Name)
		return best.Site.Name // it takes over, now or once nothing forbids it
	}
	var going, staying []string
	for _, c := range promotion.Rank(s, d.Memory) {
		near, _ := promotion.IsClose(active, c.Site)
		switch {
		case c.Unfit.By != "" || c.Site.Name == active.Name || !near || c.Site.MySQL.ReplicaOf != active.Name || seen.MovedAway(s, c.Site.Name):
		case c.Site.Leaving != "":
			going = append(going, c.Site.Name)
		default:
			staying = append(staying, c.Site.Name)
		}
	}
	switch {
	case len(staying) == 1:
		return staying[0]
	case len(staying) > 0 || len(going) == 0:
		return ""
	}
	// Under load the ranking changes with every poll, and the mark lasts for a while: it stays with the site that has it.
	slices.Sort(going)
	for _, name := range going {
		if views.Lately(s, d.Memory.Of(name).LastCandidateAt) {
			return name
		}
	}
	return going[0]
}

// Unheard is true while no site of the group has answered, but not for long: their labels stay (views.Unheard).
func (d Decision) Unheard(s Snapshot) bool { return views.Unheard(s, d.Memory) }
