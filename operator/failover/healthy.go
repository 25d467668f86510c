// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/views"
)

// healthy keeps everything around a writable active site right.
func healthy(s Snapshot, d Decision, a Site) Decision {
	d = d.say(TopologyHealthy, VerdictNothing, v1alpha1.ReasonHealthy, "%s is active", a.Name).then(Select{Site: a.Name})
	var foreign []string
	for _, site := range s.Sites {
		if site.Name != a.Name && site.Writable() && site.Busy == "" {
			foreign = append(foreign, site.Name)
		}
	}
	if len(foreign) > 0 {
		d = d.then(Announce{Fence: foreign})
	}
	d.Status.Records = lineage.SettleLoss(s, d.Memory, a)
	for _, site := range s.Sites {
		if d.Memory.Of(site.Name).Unsettled && site.MySQL.Direct && site.MySQL.ReplicaHost != "" && !site.MySQL.ReceiverStopped {
			d = d.then(Drain{Site: site.Name}) // what only this site has can be counted only while nothing arrives
		}
		if shouldFollow(s, d.Memory, site, a) {
			d = d.then(Follow{Site: site.Name, Source: a.Name})
		}
	}
	d.Persist = lineage.RecordsDiffer(d.Status.Records, s.Status.Records)
	return d
}

// shouldFollow is true for a site that may be attached to the active site and is not.
func shouldFollow(s Snapshot, m Memory, site, a Site) bool {
	switch {
	case site.Name == a.Name, site.Removed, site.Busy != "", lineage.IdentityOf(s, m, site) != lineage.IdentityGroup:
		return false // what only an unsettled site has is counted first
	case !site.MySQL.Direct, !a.MySQL.Direct, !site.Fenced():
		return false // never CHANGE REPLICATION SOURCE on a site that might accept writes, or that was not compared
	case !site.All().Subtract(a.MySQL.Executed).IsEmpty():
		// Not comparable in this poll, or diverged: attaching would mix histories.
		return site.MySQL.ReplicaOf == a.Name && site.MySQL.ReceiverStopped
	}
	return site.MySQL.ReplicaOf != a.Name || site.MySQL.ReceiverStopped || !site.MySQL.SQLRunning || site.MySQL.Delayed
}

// sayUnwritable notes that clients cannot write, and says so if there is nothing else to say about the group.
func (d Decision) sayUnwritable(s Snapshot) Decision {
	if d.Unwritable = views.UnwritableOf(s, d.decided(), d.StallStands); d.Unwritable != nil && d.Verdict == VerdictNothing {
		words, way := d.Unwritable.Message()
		d.Reason, d.Message = d.Unwritable.Reason, words+"; "+way.String()
	}
	return d
}
