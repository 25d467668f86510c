// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// policy returns what the spec and the annotations of a group demand of its failover.
func policy(group *v1alpha1.MysqlFailoverGroup) failover.Policy {
	f, c := group.Spec.Failover, group.Spec.Sidecar
	return failover.Policy{
		Mode: f.Mode, PollInterval: orElse(f.PollInterval.Duration, 2*time.Second), Threshold: max(int(f.Threshold), 1),
		CrashGrace: f.CrashGrace.Duration, Cooldown: f.Cooldown.Duration, DrainTimeout: f.DrainTimeout.Duration,
		LeaseTimeout: orElse(c.LeaseTimeout.Duration, 20*time.Second), FenceTimeout: orElse(c.FenceTimeout.Duration, 2*time.Second),
		MaxLost: f.MaxLostTransactions, ForceTo: group.Annotations[v1alpha1.AnnotationForceFailover],
		PlannedTo: group.Annotations[v1alpha1.AnnotationPlannedFailover], AbortPlanned: isSet(group, v1alpha1.AnnotationAbortFailover),
		PlannedLagTimeout: orElse(f.PlannedLagTimeout.Duration, time.Minute), PlannedPauseTimeout: orElse(f.PlannedPauseTimeout.Duration, 5*time.Second),
		PausedUntil: pausedUntil(group), MaxReadLag: group.MaxReadLag(), StallTimeout: group.StallTimeout(),
		Cache: cachePolicy(group), AwaitsRestore: group.AwaitsRestore(), RestoredSite: group.RestoredSite(),
	}
}

// isSet is true for an annotation that needs no value.
func isSet(group *v1alpha1.MysqlFailoverGroup, key string) bool {
	_, set := group.Annotations[key]
	return set
}

// pausedUntil is until when a person keeps the operator from acting on its own. A value that is no time pauses nothing;
// the condition Paused says so.
func pausedUntil(group *v1alpha1.MysqlFailoverGroup) time.Time {
	until, _ := time.Parse(time.RFC3339, group.Annotations[v1alpha1.AnnotationPauseUntil])
	return until
}

func orElse(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

// noteCache asks about the cache of the target of a planned failover, until the move has begun. What is not known holds up only those who
// have said that they would rather not move than lose sessions.
func (l *loop) noteCache(group *v1alpha1.MysqlFailoverGroup, s *failover.Snapshot) {
	to := s.Policy.PlannedTo
	if group.Spec.Cache == nil || !group.Spec.Cache.Enabled || s.Status.Transition != nil {
		return
	}
	for i := range s.Sites {
		if s.Sites[i].Name != to {
			continue
		}
		why, known := l.caches.Behind(to)
		if !known && group.Spec.Cache.Planned.OnTimeout == v1alpha1.CacheRefuse {
			why = "whether the cache of " + to + " has caught up is not known"
		}
		s.Sites[i].CacheBehind = why
	}
}

// cachePolicy is how a planned failover waits for the cache of its target.
func cachePolicy(group *v1alpha1.MysqlFailoverGroup) (p failover.CachePolicy) {
	if c := group.Spec.Cache; c != nil && c.Enabled {
		p.SyncTimeout, p.Refuses = c.Planned.SyncTimeout.Duration, c.Planned.OnTimeout == v1alpha1.CacheRefuse
	}
	return p
}
