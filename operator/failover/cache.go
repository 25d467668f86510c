// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// CachePolicy is facts.CachePolicy.
type CachePolicy = facts.CachePolicy

// awaitCache waits until the target's cache has caught up, before writes pause: then the sessions move with MySQL. The cache may cost
// sessions, but never a failover. So the wait is bounded, applies only to planned failovers that a person wants, and is skipped if
// nothing is known about the cache.
func awaitCache(s Snapshot, d Decision, p Planned) (Decision, bool) {
	target, _ := s.Site(p.To)
	waited := s.Led(p.StartedAt)
	switch {
	case target.CacheBehind == "" || waited >= s.Policy.Cache.SyncTimeout && !s.Policy.Cache.Refuses:
		return d, false
	case waited >= s.Policy.Cache.SyncTimeout:
		return d.end(p, s.Now, v1alpha1.PlannedRefused, v1alpha1.ReasonCacheTargetNotSynced,
			"nothing was changed: %s, and did not catch up within cache.planned.syncTimeout %s", target.CacheBehind, s.Policy.Cache.SyncTimeout).
			advise(remedy.New("see what is wrong with the cache", s.Group.Command("status", "", "")),
				remedy.New("to move all the same, and perhaps lose the sessions, set spec.cache.planned.onTimeout to Proceed, then", remedy.MoveTo(s.Group, p.To))), true
	}
	d = d.waitsFor(p, v1alpha1.ReasonCacheTargetNotSynced, target.CacheBehind)
	d.Message = fmt.Sprintf("%s is active; the planned failover waits: %s", p.From, target.CacheBehind)
	return d.within(s.Policy.PollInterval / 20), true
}
