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
	case !o.given() || o.begun || last.State != "" && last.State != cloneCompleted:
		return ""
	case p.withdrawn.has(t.key, o):
		return "it was withdrawn before its clone began: the annotation was taken off"
	case o.from != "" && o.from != g.ActiveSite:
		// Transactions that an emergency failover lost, and that the new active site lacks, may be on this site alone.
		return fmt.Sprintf("the active site was %s when it was ordered, and is %s now: order it again if its data may still go", o.from, g.ActiveSite)
	case !o.discards() && g.Sites[site].Following && !p.otherCopy(t, g):
		return fmt.Sprintf("%s is by now the only healthy copy beside the active site: wait until another site replicates, or order %s%s",
			site, site, confirmed)
	}
	return ""
}

// otherCopy is true if there is a healthy copy beside the active site and the site of the task.
func (p *provisioner) otherCopy(t task, g scope.GroupFacts) bool {
	for _, other := range t.group.Status.Sites {
		f := g.Sites[other.Name]
		_, busy := p.work.Busy(t.key.Group.Namespace, t.key.Group.Name, other.Name)
		if other.Name != t.key.Site && other.Name != g.ActiveSite && other.Provisioned &&
			f.MysqlUp && f.Following && !f.Diverged && !f.Cloning && !busy {
			return true
		}
	}
	return false
}
