// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// ranks says how near to the cause a site's problem is: a person who is woken up reads one line. Other reasons rank in between.
var ranks = map[v1alpha1.Reason]int{
	v1alpha1.ReasonForeignWriter:   -4,
	v1alpha1.ReasonSiteUnreachable: -3,
	v1alpha1.ReasonSiteDiverged:    -2,
	v1alpha1.ReasonSidecarSilent:   1,
	v1alpha1.ReasonSiteDetached:    2,
	v1alpha1.ReasonSiteFenced:      2,
}

// meant is true for the fence of the old active site in a planned failover: that is a step of it, no problem.
func (r MysqlFailoverGroupReport) meant(p Problem) bool {
	t := r.Transition
	return t != nil && t.Kind == string(v1alpha1.FailoverPlanned) && p.Site == t.From && p.Reason == v1alpha1.ReasonSiteFenced
}

// byCause sorts the problems of sites: losses before the rest, and of two alike, first the one of the site that has the role, or had
// it. What merely follows from the loss of that site, or from the change of the role, comes last and says so. What a person
// must read before anything of the group comes apart: the loss of that site, and a site that accepts writes and must not.
func (r MysqlFailoverGroupReport) byCause(problems []Problem) (first, others []Problem) {
	cause := r.ActiveSite
	if r.Transition != nil {
		cause = r.Transition.From
	}
	isLoss := func(p Problem) bool { return p.Site == cause && p.Reason == v1alpha1.ReasonSiteUnreachable }
	anyLoss := slices.ContainsFunc(problems, isLoss)
	for i, p := range problems {
		closed := p.Reason == v1alpha1.ReasonSiteFenced || p.Reason == v1alpha1.ReasonSiteDetached
		problems[i].Consequence = closed && p.Site != cause && (anyLoss || r.Transition != nil)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		rank := func(p Problem) int {
			n := 2 * ranks[p.Reason]
			if p.Site != cause {
				n++
			}
			if p.Consequence {
				n += 100
			}
			return n
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, p := range problems {
		if isLoss(p) || p.Reason == v1alpha1.ReasonForeignWriter {
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	return first, others
}
