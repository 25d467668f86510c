// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// A person keeps a site fenced (I29). The guards of promotion see to it that the role is not moved there; here is what becomes of a site that
// has the role already. While it is open it stays so: to close it would stop all writes on a word that was meant for another site. Once
// it is closed, it is not opened again.

// maySoonClose is true for an open site that would not be opened now. Its statement holds, which closes nothing; but if the site closes
// between two looks, it stays closed.
func maySoonClose(s Snapshot, m Memory, site Site) bool {
	return site.KeptFenced || promotion.IsUnescrowed(s, m, site) != ""
}

// keptFenced moves the role away from a closed site that a person keeps fenced, under the rules of any emergency failover. It answers and is
// fenced, so the site that takes over fetches all that it holds. If no site may take over, the group stays without a writer, and says that a
// person asked for it.
func keptFenced(s Snapshot, d Decision, a Site) Decision {
	why := promotion.IsKeptFenced(s, d.Memory, a)
	d = due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonKeptFenced)
	if d.Blocked() {
		if d.Reason == v1alpha1.ReasonNoFitCandidate {
			d.Reason = v1alpha1.ReasonKeptFenced
		}
		d.Message = a.Name + " " + why + "; " + d.Message
	}
	return d
}

// keptFirst finds a site that could open first if no person kept it fenced.
func keptFirst(s Snapshot) (Site, bool) {
	for _, site := range s.Sites {
		free := site
		if free.KeptFenced = false; site.KeptFenced && mayBeFirst(s, free) {
			return site, true
		}
	}
	return Site{}, false
}
