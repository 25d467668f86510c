// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// AskedByNobody is true for a new site without data that no pod of another site was ever started with as a peer: it may run and would
// answer, but no site asks it (decision 0019). Status says so, and stops before the first such pod is made. A pod's peers are fixed when
// it starts, and a site that is open was started before its failover began.
func AskedByNobody(m facts.Memory, site facts.Site) bool {
	return site.Unlisted && !site.Provisioned && !m.Of(site.Name).Listed
}

// LongestLease is how long x may stay open at most, the fence's deadline included. A spec with a shorter lease binds only
// a sidecar that heard of it: a pod that was started with a longer one and is cut off keeps that. For a pod that was
// never seen, the longest lease that any site was given is assumed.
func LongestLease(s facts.Snapshot, m facts.Memory, x string) time.Duration {
	site, _ := s.Site(x)
	longest := max(s.Policy.LeaseTimeout+s.Policy.FenceTimeout, gate.Runs(site.Runs).LongestLease())
	if known := m.Of(x).Lease; known > 0 {
		return max(longest, known)
	}
	for _, other := range m.Sites {
		longest = max(longest, other.Lease)
	}
	return longest
}
