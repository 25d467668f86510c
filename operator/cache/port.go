// SPDX-License-Identifier: Apache-2.0

package cache

// Readiness tells MySQL's failover about the cache of a site.
type Readiness struct {
	// Known is false if no loop looks after the cache, or none has looked lately: then MySQL
	// does as it would without one, unless cache.planned.onTimeout is Refuse.
	Known bool
	// Synced is true if a move of MySQL to that site would keep the sessions.
	Synced bool
	// Why says to people why not.
	Why string
}
