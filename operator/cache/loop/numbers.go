// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

// The numbers in status change with every look, and each write costs the API server and everybody who watches groups. So status has them
// for people, roughly; the metrics have them exactly.
const (
	// freshFor is how old the numbers in status may be while they have changed by enough to be written.
	freshFor = time.Minute
	// memoryStep is how exact the used memory in status is, memoryNews by how much it changes at least before it is written again.
	memoryStep, memoryNews = 1 << 20, 8 << 20
	// leastBehind is how much a replica lacks at least for status to mention it: any less is what is on its way. leastChanges is the same for
	// an engine that counts changes.
	leastBehind, leastChanges = 64 << 10, 100
)

// behindOf is how much a replica lacks, as status says it.
func behindOf(active, replica cache.Pod) int64 {
	behind, least := cache.Behind(active, replica), int64(leastBehind)
	if active.Offset == 0 {
		least = leastChanges
	}
	if behind < least {
		return 0
	}
	return behind
}

// isNews is true if the numbers of two statuses, which have the same words, differ by enough for people.
func isNews(before, now *v1alpha1.CacheStatus) bool {
	if before == nil || now == nil || len(before.Sites) != len(now.Sites) {
		return true
	}
	for i, a := range before.Sites {
		b := now.Sites[i]
		if (a.OffsetBehind == nil) != (b.OffsetBehind == nil) || (a.UsedMemory == nil) != (b.UsedMemory == nil) {
			return true
		}
		if a.OffsetBehind != nil && differ(*a.OffsetBehind, *b.OffsetBehind, leastChanges) ||
			a.UsedMemory != nil && differ(a.UsedMemory.Value(), b.UsedMemory.Value(), memoryNews) {
			return true
		}
	}
	return false
}

// differ is true for two numbers that are at least so far apart, and by more than an eighth of the larger one.
func differ(a, b, least int64) bool {
	apart := max(a-b, b-a)
	return apart >= least && apart > max(a, b)/8
}
