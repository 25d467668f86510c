// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"

	"github.com/mysql-mfg/mfg/api/wire"
)

// cloneCache copies everything behind pointers: what was published never changes.
func cloneCache(c *wire.CacheStatus) *wire.CacheStatus {
	if c == nil {
		return nil
	}
	out := *c
	out.Ready, out.Transition, out.LastPromotion = clonePointer(c.Ready), clonePointer(c.Transition), clonePointer(c.LastPromotion)
	out.Sites = make([]wire.CacheSiteStatus, 0, len(c.Sites)) // not nil: readers get [], not null
	for _, s := range c.Sites {
		s.BehindBytes, s.BehindChanges, s.UsedMemoryBytes = clonePointer(s.BehindBytes), clonePointer(s.BehindChanges), clonePointer(s.UsedMemoryBytes)
		out.Sites = append(out.Sites, s)
	}
	return &out
}

// sameCache is true if nothing differs.
func sameCache(a, b *wire.CacheStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return samePointer(a.Ready, b.Ready) && a.Reason == b.Reason && a.Message == b.Message && a.ActiveSite == b.ActiveSite &&
		samePointer(a.Transition, b.Transition) && samePointer(a.LastPromotion, b.LastPromotion) && slices.EqualFunc(a.Sites, b.Sites, sameCacheSite)
}

func sameCacheSite(a, b wire.CacheSiteStatus) bool {
	if !samePointer(a.BehindBytes, b.BehindBytes) || !samePointer(a.BehindChanges, b.BehindChanges) || !samePointer(a.UsedMemoryBytes, b.UsedMemoryBytes) {
		return false
	}
	a.BehindBytes, a.BehindChanges, a.UsedMemoryBytes = nil, nil, nil
	b.BehindBytes, b.BehindChanges, b.UsedMemoryBytes = nil, nil, nil
	return a == b
}
