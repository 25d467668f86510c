// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
)

// IsLongSilent is true for a site that has been silent for as long as an active site must be before another replaces it.
func IsLongSilent(s facts.Snapshot, m facts.Memory, site string) bool {
	down := s.Now.Sub(OrNow(m.Of(site).DownSince, s.Now))
	return m.Of(site).SilentPolls >= s.Policy.Threshold && down >= time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval
}

// OrNow is t, or now if t was never set.
func OrNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

// EverySiteSilent is true if no site can be reached in any way.
func EverySiteSilent(s facts.Snapshot) bool {
	for _, site := range s.Sites {
		if site.Reachable() {
			return false
		}
	}
	return true
}
