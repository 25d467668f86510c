// SPDX-License-Identifier: Apache-2.0

package cache

// Readiness is what MySQL's failover is told of the cache of a site.
type Readiness struct {
	// Known is false if nobody looks after the cache, or has not looked lately: then MySQL does as it would without one.
	Known bool
	// Synced is true if a move of MySQL to that site would keep the sessions.
	Synced bool
	// Why not, to people.
	Why string
}
