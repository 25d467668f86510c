// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Candidate is a site and why it may or may not take over.
type Candidate struct {
	Site    Site
	Unfit   string
	All     gtid.Set
	ToApply int64
}

// unfitness is the chain of guards: the first that answers names why the site may not be promoted. Each is safe alone.
var unfitness = []func(Snapshot, Memory, Site) string{
	isDROnly, isNotProvisioned, isBusy, isSilent, isNotFenced, isDiverged,
}

func isDROnly(_ Snapshot, _ Memory, site Site) string {
	if site.Role != v1alpha1.PrimaryCandidate {
		return "is " + string(site.Role) // I6: never promoted, also not as the last survivor.
	}
	return ""
}

func isNotProvisioned(s Snapshot, _ Memory, site Site) string {
	t := s.Status.Transition
	if t != nil && t.Kind == v1alpha1.FailoverBootstrap && t.To == site.Name {
		return "" // the first active site is where the group's data begins
	}
	if !site.Provisioned {
		return "holds no data of the group yet"
	}
	return ""
}

func isBusy(_ Snapshot, _ Memory, site Site) string {
	if site.Busy != "" || site.MySQL.Cloning {
		return "is busy: " + cmp.Or(site.Busy, "Clone")
	}
	return ""
}

func isSilent(_ Snapshot, _ Memory, site Site) string {
	switch {
	case !site.Sidecar.Answered:
		return "its sidecar does not answer"
	case !site.SQLAnswers():
		return "its MySQL does not answer"
	}
	return ""
}

func isNotFenced(s Snapshot, _ Memory, site Site) string {
	if site.Writable() && site.Name != s.Status.ActiveSite {
		return "is writable although it is not active"
	}
	return ""
}

func isDiverged(_ Snapshot, m Memory, site Site) string {
	if set, diverged := m.Diverged[site.Name]; diverged {
		return "has transactions that the active site lacks: " + set.String()
	}
	return ""
}

// candidates ranks every site: fit ones first, the best first.
func candidates(s Snapshot, m Memory) []Candidate {
	var all []Candidate
	for _, site := range s.Sites {
		c := Candidate{Site: site, All: site.All()}
		c.ToApply = site.MySQL.Retrieved.Subtract(site.MySQL.Executed).Count()
		for _, guard := range unfitness {
			if c.Unfit = guard(s, m, site); c.Unfit != "" {
				break
			}
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, better)
	return all
}

// better orders candidates: fit, most transactions (executed or retrieved), least left to apply, priority, name.
func better(a, b Candidate) int {
	fit := func(c Candidate) int {
		if c.Unfit == "" {
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
		if c.Unfit == "" && c.Site.Name != exclude {
			return c, true
		}
	}
	return Candidate{}, false
}

// missing is what reachable provisioned sites have and a candidate lacks, and on which site. Diverged sites do not
// count: their extra transactions are held for a person.
func missing(s Snapshot, m Memory, c Site) (gtid.Set, string) {
	for _, site := range s.Sites {
		_, diverged := m.Diverged[site.Name]
		if site.Name == c.Name || !site.SQLAnswers() || !site.Provisioned || diverged || site.Busy != "" {
			continue
		}
		if lacks := site.All().Subtract(c.All()); !lacks.IsEmpty() {
			return lacks, site.Name
		}
	}
	return gtid.Set{}, ""
}
