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

// byCause sorts the problems of sites: losses before the rest, and of two alike, first the one of the site that has the role, or had
// it. What merely follows from the loss of that site, or from the change of the role, comes last and says so.
func (r MysqlFailoverGroupReport) byCause(problems []Problem) []Problem {
	cause := r.ActiveSite
	if r.Transition != nil {
		cause = r.Transition.From
	}
	lost := slices.ContainsFunc(problems, func(p Problem) bool { return p.Site == cause && p.Reason == v1alpha1.ReasonSiteUnreachable })
	for i, p := range problems {
		closed := p.Reason == v1alpha1.ReasonSiteFenced || p.Reason == v1alpha1.ReasonSiteDetached
		problems[i].Consequence = closed && p.Site != cause && (lost || r.Transition != nil)
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
	return problems
}
