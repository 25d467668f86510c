// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the cache store: of the condition CacheReady, of events, of records in status.cache and of refusals.
const (
	// ReasonCacheStarting: the cache has no master yet.
	ReasonCacheStarting Reason = "CacheStarting"
	// ReasonCacheNoMaster: no cache pod answers that could be the master; applications have no cache.
	ReasonCacheNoMaster Reason = "CacheNoMaster"
	// ReasonCacheMoving: the change of the cache's master takes long.
	ReasonCacheMoving Reason = "CacheMoving"
	// ReasonCacheNotHome: the cache's master is on another site than the active one.
	ReasonCacheNotHome Reason = "CacheNotHome"
	// ReasonCacheNoReplica: the cache has a master and no replica that has caught up; a failover would lose the sessions.
	ReasonCacheNoReplica Reason = "CacheNoReplica"
	// ReasonCacheFull: the cache's master has as many clients as it may have, and refuses more; it stays the master.
	ReasonCacheFull Reason = "CacheFull"
	// ReasonCacheActionFails: every attempt of the operator to act on the cache fails; the message has the error.
	ReasonCacheActionFails Reason = "CacheActionFails"
	// ReasonCachePromoted: another cache became the master, with every key.
	ReasonCachePromoted Reason = "CachePromoted"
	// ReasonCacheSessionsLost: the cache's master changed, and keys were lost.
	ReasonCacheSessionsLost Reason = "CacheSessionsLost"
	// ReasonCacheMoveFailed: the cache's master could not be moved, and stays where it is.
	ReasonCacheMoveFailed Reason = "CacheMoveFailed"
	// ReasonCacheSecondMaster: a second cache was a master with data; it follows the one that takes the traffic, and its clients were cut.
	ReasonCacheSecondMaster Reason = "CacheSecondMaster"
	// ReasonCacheMasterSilent: the old master did not answer, so a replica was promoted without it.
	ReasonCacheMasterSilent Reason = "CacheMasterSilent"
	// ReasonCacheMasterRestarted: the process of the master ended and began again.
	ReasonCacheMasterRestarted Reason = "CacheMasterRestarted"
	// ReasonCacheTargetRestarted: the process that was to become the master, or had just become it, ended and began again.
	ReasonCacheTargetRestarted Reason = "CacheTargetRestarted"
	// ReasonCacheTakeOverFailed: the take-over did not end within its budget, so the replica was promoted without the old master.
	ReasonCacheTakeOverFailed Reason = "CacheTakeOverFailed"
	// ReasonCacheTargetNotSynced: the cache of the target has not caught up.
	ReasonCacheTargetNotSynced Reason = "CacheTargetNotSynced"
)
