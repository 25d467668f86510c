// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// CacheStatus is the cache store of a group, as its status says.
type CacheStatus struct {
	// Ready is what the condition CacheReady says; nil while there is none. Reason and Message are that condition's.
	Ready   *bool  `json:"ready,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// ActiveSite is the site whose cache is the master and takes the traffic; empty while none does.
	ActiveSite    string            `json:"activeSite,omitempty"`
	Transition    *CacheTransition  `json:"transition,omitempty"`
	LastPromotion *CachePromotion   `json:"lastPromotion,omitempty"`
	Sites         []CacheSiteStatus `json:"sites"`
}

// CacheTransition is a change of the cache's master that is under way.
type CacheTransition struct {
	Kind      string    `json:"kind"`
	From      string    `json:"from,omitempty"`
	To        string    `json:"to"`
	StartedAt time.Time `json:"startedAt"`
}

// CachePromotion is the last change of the cache's master.
type CachePromotion struct {
	At                time.Time `json:"at"`
	Kind              string    `json:"kind"`
	From              string    `json:"from,omitempty"`
	To                string    `json:"to"`
	Method            string    `json:"method"`
	SessionsPreserved bool      `json:"sessionsPreserved"`
	// TookMillis is for how long nobody took the traffic, in milliseconds.
	TookMillis int64  `json:"tookMillis"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
}

// CacheSiteStatus is the cache of one site.
type CacheSiteStatus struct {
	Name string `json:"name"`
	// Role is master or replica; empty while it does not answer.
	Role string `json:"role,omitempty"`
	// Link is Up, Down or Syncing for a replica.
	Link string `json:"link,omitempty"`
	// BehindBytes is how many bytes of the master's changes a replica has not received; nil while that is not known, and with Dragonfly,
	// which counts changes: BehindChanges.
	BehindBytes   *int64 `json:"behindBytes,omitempty"`
	BehindChanges *int64 `json:"behindChanges,omitempty"`
	// UsedMemoryBytes is the memory that its data takes; nil while that is not known.
	UsedMemoryBytes *int64 `json:"usedMemoryBytes,omitempty"`
	Image           string `json:"image,omitempty"`
	Message         string `json:"message,omitempty"`
}
