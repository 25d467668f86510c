// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// lapsed says why an order is no longer valid when its turn comes; empty if it is. The order may have waited for hours,
// for example behind another clone, and the facts on which it was accepted may have changed. Once a clone has begun the
// site's data is gone, and the order stays valid whatever happens (I14).
func (p *provisioner) lapsed(t task, g scope.GroupFacts, last mysql.CloneStatus) string {
	o, site := t.order, t.key.Site
	switch {
	case !notBegun(o, last):
		return ""
	case p.withdrawn.has(t.key, o):
		return "it was withdrawn before its clone began: the annotation was taken off"
	case o.from != "" && o.from != g.ActiveSite:
		// Transactions that an emergency failover lost, and that the new active site lacks, may be on this site alone.
		return fmt.Sprintf("the active site was %s when it was ordered, and is %s now: order it again if its data may still go", o.from, g.ActiveSite)
	case !o.discards() && g.Sites[site].Following && !g.Sites[site].Filtered && !p.otherCopy(t, g):
		return fmt.Sprintf("%s is by now the only healthy copy beside the active site: wait until another site replicates, or order %s%s",
			site, site, confirmed)
	}
	return ""
}

// notBegun is true for an order whose clone has not begun: the site's data is still there.
func notBegun(o order, last mysql.CloneStatus) bool {
	return o.given() && !o.begun && (last.State == "" || last.State == cloneCompleted)
}

// waitsForCopy says why the order of the policy must wait when its turn comes; empty if it need not. No person has accepted
// that the active site is the only copy for a while. The order stays: a person may confirm it, or another copy may come back.
func (p *provisioner) waitsForCopy(t task, g scope.GroupFacts, last mysql.CloneStatus) string {
	if t.order.value != orderOfPolicy || !notBegun(t.order, last) || p.otherCopy(t, g) {
		return ""
	}
	return policyWaits(t.key)
}

// copyLost is true if a clone must not begin although it might at the last look: the other copy that its order needs is gone. Whether the
// site followed is what that look saw, as its own replication is stopped by now (I14).
func (p *provisioner) copyLost(t task, s sight) bool {
	g, _ := p.reach.In(t.key.Group)
	f := g.Sites[t.key.Site]
	policy := t.order.value == orderOfPolicy
	needed := policy || !t.order.discards() && s.following && !f.Filtered
	return needed && notBegun(t.order, s.last) && !p.otherCopy(t, g)
}

// otherCopy is true if there is a healthy copy beside the active site and the site of the task that is there after its pod ends, as of the last
// poll: the work may have begun hours ago. A site that left the specification since is none: it is removed as soon as it may be.
func (p *provisioner) otherCopy(t task, g scope.GroupFacts) bool {
	for other, f := range g.Sites {
		_, busy := p.work.Busy(t.key.Group.Namespace, t.key.Group.Name, other)
		if other != t.key.Site && other != g.ActiveSite && f.Lasts && f.MysqlUp && f.Following && !f.Diverged && !f.Filtered && !f.Cloning && !busy {
			return true
		}
	}
	return false
}
