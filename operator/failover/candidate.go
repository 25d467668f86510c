// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Candidate is a site and why it may or may not take over.
type Candidate struct {
	Site    Site
	Unfit   Unfit
	All     gtid.Set
	ToApply int64
}

// candidates ranks every site: fit ones first, the best first.
func candidates(s Snapshot, m Memory) []Candidate {
	var all []Candidate
	for _, site := range s.Sites {
		c := Candidate{Site: site, All: site.All()}
		c.ToApply = site.MySQL.Retrieved.Subtract(site.MySQL.Executed).Count()
		c.Unfit = unfit(s, m, site)
		all = append(all, c)
	}
	slices.SortStableFunc(all, better)
	return all
}

// The rules by which candidates are ranked, in their order.
const (
	rankFit      = "Fit"
	rankMost     = "MostTransactions"
	rankLeast    = "LeastToApply"
	rankPriority = "Priority"
	rankName     = "Name"
	// rankOnly is said of one that has nobody to be compared with.
	rankOnly = "OnlyCandidate"
)

// better orders candidates: fit, most transactions (executed or retrieved), least left to apply, priority, name.
func better(a, b Candidate) int {
	fit := func(c Candidate) int {
		if c.Unfit.By == "" {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(fit(a), fit(b)),
		cmp.Compare(b.All.Count(), a.All.Count()),
		cmp.Compare(a.ToApply, b.ToApply),
		cmp.Compare(b.Site.Priority, a.Site.Priority),
		cmp.Compare(a.Site.Name, b.Site.Name),
	)
}

// choose returns the best fit candidate other than the excluded site.
func choose(s Snapshot, m Memory, exclude string) (Candidate, bool) {
	for _, c := range candidates(s, m) {
		if c.Unfit.By == "" && c.Site.Name != exclude {
			return c, true
		}
	}
	return Candidate{}, false
}
