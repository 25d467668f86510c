// SPDX-License-Identifier: Apache-2.0

// Package cache decides which cache pod of a group is the master and takes the traffic of applications. It is pure: operator/cache/loop
// gathers its facts, and persists and performs its decisions; operator/cache/engine speaks to the pods.
//
// The cache holds sessions and cached data. It may lose keys; it may never cost MySQL a failover or a second. So it does not wait for MySQL,
// MySQL does not wait for it, and it never overrules what MySQL has decided: the master belongs to the site that status.activeSite names (its
// home), and is elsewhere only while the cache there cannot be it.
//
// Only one pod takes traffic: the one that status.cache.activeSite names or, while there is a status.cache.transition, its target. A
// transition is persisted before its first effect and dropped after its last, so an operator that starts in between finds it and continues it.
package cache
