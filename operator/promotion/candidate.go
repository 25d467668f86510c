// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// Candidate is a site and why it may or may not take over.
type Candidate struct {
	Site    facts.Site
	Unfit   Unfit
	All     gtid.Set
	ToApply int64
}

// Rank ranks every site: fit ones first, the best first.
func Rank(s facts.Snapshot, m facts.Memory) []Candidate {
	var all []Candidate
	for _, site := range s.Sites {
		c := Candidate{Site: site, All: site.All()}
		c.ToApply = site.MySQL.Retrieved.Subtract(site.MySQL.Executed).Count()
		c.Unfit = UnfitOf(s, m, site)
		all = append(all, c)
	}
	slices.SortStableFunc(all, Better)
	return all
}

// The rules by which candidates are ranked, in their order.
const (
	RankFit      = "Fit"
	RankMost     = "MostTransactions"
	RankVolume   = "VolumeStays"
	RankLeast    = "LeastToApply"
	RankPriority = "Priority"
	RankName     = "Name"
	// RankOnly is the rule of a candidate that has no other to compare with.
	RankOnly = "OnlyCandidate"
)

// Better orders candidates: fit, most transactions (executed or retrieved), a volume whose claim is not being deleted, least left to apply,
// priority, name. The last copy of a transaction counts for more than the volume that it is on: the others get it from there. So does
// a site that can be opened soon: for a volume that stays, at most closeCount transactions more are applied first.
func Better(a, b Candidate) int {
	fit := func(c Candidate) int {
		if c.Unfit.By == "" {
			return 0
		}
		return 1
	}
	late := func(c Candidate) int { // sorts as ToApply does, only coarser, so that this is an order
		if c.soon() {
			return 0
		}
		return 1
	}
	goes := func(c Candidate) int {
		if c.Site.Pod.VolumeGoes && c.soon() {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(fit(a), fit(b)),
		cmp.Compare(b.All.Count(), a.All.Count()),
		cmp.Compare(late(a), late(b)),
		cmp.Compare(goes(a), goes(b)),
		cmp.Compare(a.ToApply, b.ToApply),
		cmp.Compare(b.Site.Priority, a.Site.Priority),
		cmp.Compare(a.Site.Name, b.Site.Name),
	)
}

// soon is true for a candidate with so little left to apply that it can be opened soon.
func (c Candidate) soon() bool { return c.ToApply <= closeCount }

// StaysLonger is true if a comes before b, of as many transactions, because of their volumes.
func StaysLonger(a, b Candidate) bool {
	return b.Site.Pod.VolumeGoes && !a.Site.Pod.VolumeGoes && a.soon() && b.soon()
}

// Choose returns the best fit candidate other than the excluded site.
func Choose(s facts.Snapshot, m facts.Memory, exclude string) (Candidate, bool) {
	for _, c := range Rank(s, m) {
		if c.Unfit.By == "" && c.Site.Name != exclude {
			return c, true
		}
	}
	return Candidate{}, false
}
