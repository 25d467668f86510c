// SPDX-License-Identifier: Apache-2.0

// Package cache decides which cache pod of a group is the master and takes the traffic of applications. It is pure: operator/cache/loop
// gathers what it is given, persists and performs what it says, and operator/cache/engine speaks to the pods.
//
// The cache holds sessions and cached data. It may lose keys; it may never cost MySQL a failover or a second. So nothing here waits for
// MySQL or is waited for by it, and what MySQL has decided is never decided otherwise: the master belongs to the site that status.activeSite
// names (its home), and is elsewhere only while the cache there cannot be it.
//
// Only one pod takes traffic, and that is the one that status.cache.activeSite names, or while status.cache.transition stands the target
// of that. A transition is persisted before its first effect and dropped after its last, so whoever begins in between finds it and goes on.
package cache
