// SPDX-License-Identifier: Apache-2.0

package facts

import "time"

// CachePolicy is how a planned failover waits for the cache of its target; the zero value waits for none.
type CachePolicy struct {
	// SyncTimeout is how long it waits, before writes pause.
	SyncTimeout time.Duration
	// Refuses is true if the planned failover is refused then; otherwise it continues, and sessions may be lost.
	Refuses bool
}
