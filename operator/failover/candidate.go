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
	isRemoved, isDROnly, isNotProvisioned, isHalfCloned, isBusy, isSilent, isNotFenced, isDiverged, isUnsettled,
	isNumberingAgain, isWithoutRows, isEscrowMissing, isUnescrowed,
}

// unforgivable are the guards that no order overrides. A missing escrow Secret is not among them: the keyring can be read now, and
// a person may know that it is safe, or that there is nothing else.
var unforgivable = []func(Snapshot, Memory, Site) string{isRemoved, isDROnly, isOutside, isHalfCloned, isBusy, isSilent, isUnescrowed}

func isRemoved(_ Snapshot, _ Memory, site Site) string {
	if site.Removed {
		return "left the specification"
	}
	return ""
}

func isDROnly(_ Snapshot, _ Memory, site Site) string {
	if site.Role != v1alpha1.PrimaryCandidate {
		return "is " + string(site.Role) // I6: never promoted, also not as the last survivor.
	}
	return ""
}

func isNotProvisioned(s Snapshot, _ Memory, site Site) string {
	if site.OtherVolume {
		// Also before the first opening: status knows its volume, so it had data, as after a restore of status (I12).
		return "is on another volume than the one that holds its data"
	}
	t := s.Status.Transition
	if t != nil && t.Kind == v1alpha1.FailoverBootstrap {
		return "" // the first active site is where the group's data begins; what others hold is compared
	}
	if !site.Provisioned {
		return unprovisioned(site)
	}
	return ""
}

func unprovisioned(site Site) string {
	if site.whole() {
		return "is about to be cloned anew, and only an order promotes it"
	}
	return "holds no data of the group yet"
}

// isOutside is the same for an order. Status may hold no site that has data of the group: what was opened first was lost before
// that was noted. Any may begin it anew then; while one has it, a site without the mark is half cloned, unless its clone has not
// begun.
func isOutside(s Snapshot, m Memory, site Site) string {
	if !site.OtherVolume && !slices.ContainsFunc(s.Sites, func(other Site) bool { return other.Provisioned }) {
		return ""
	}
	if site.whole() {
		return ""
	}
	return isNotProvisioned(s, m, site)
}

// whole is true for a site that has all that it had when it was provisioned, whatever its mark says: it is on that very volume,
// and its server knows of no clone that began and did not end well. The mark goes when a clone is ordered, which may be long
// before the clone begins. In doubt it is false: part of the data would pass for all of it (I12).
func (s Site) whole() bool {
	return s.Noted && s.MySQL.Direct && !s.MySQL.NoClone && !s.MySQL.HalfCloned && !s.thrownAway() && !s.MySQL.Executed.IsEmpty()
}

// isHalfCloned: a clone that was begun into a site with the mark, which no order of ours does, has left it with part of the data
// and with sets that claim all of it. The first active site is where the group's data begins, whatever happened to it before.
func isHalfCloned(s Snapshot, _ Memory, site Site) string {
	t := s.Status.Transition
	if site.Provisioned && site.MySQL.HalfCloned && !(t != nil && t.Kind == v1alpha1.FailoverBootstrap) {
		return "received a clone that did not end well; order it anew (annotation " + v1alpha1.AnnotationRecloneSite + ")"
	}
	return ""
}

func isBusy(_ Snapshot, _ Memory, site Site) string {
	if site.Busy != "" || site.MySQL.Cloning {
		return "is busy: " + cmp.Or(site.Busy, WorkClone)
	}
	return ""
}

func isSilent(_ Snapshot, _ Memory, site Site) string {
	switch {
	case !site.Sidecar.Answered:
		return "its sidecar does not answer"
	case !site.MySQL.Direct:
		// I8: what its sidecar reports leaves out the relay log, which must be applied before it is promoted.
		return "its MySQL does not answer the operator"
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

// isUnsettled: the site was active, was replaced, and was not compared with an open active site since. It may hold
// transactions that were written off (I10).
func isUnsettled(s Snapshot, m Memory, site Site) string {
	if unsettled(s, m, site.Name) {
		return "was replaced as the active site and was not compared with its successor yet"
	}
	return ""
}

// unsettled is true while what a replaced active site alone holds is not known. While the role still moves away from a
// site this says nothing: then it is the transition's From.
func unsettled(s Snapshot, m Memory, site string) bool {
	if site == s.Status.ActiveSite || s.Status.Transition != nil && s.Status.Transition.From == site {
		return false
	}
	for _, r := range s.Status.Records {
		if r.To == site {
			return false // it was active again later
		}
		if r.From == site && r.LossExact {
			return holdsLost(s, m, r, site)
		}
		if r.From == site {
			return sameServer(r, m.UUID[site])
		}
	}
	return false
}

// holdsLost is true while a site still has transactions that its record calls lost, as far as can be seen. It says so also
// while nobody is there to compare with, and after the operator has forgotten that the site had diverged (I9).
// What the active site is known to have is not lost any more: a site that had it too may have become active since.
func holdsLost(s Snapshot, m Memory, r v1alpha1.FailoverRecord, name string) bool {
	if r.LostTransactions == 0 {
		return false
	}
	lost, err := gtid.Parse(r.LostSet)
	site, _ := s.Site(name)
	return err != nil || !site.All().Intersect(lost).Subtract(m.Executed[s.Status.ActiveSite]).IsEmpty()
}

// sameServer is false if a site is known to be another server than the one that a record speaks of: its data was
// replaced, and with it what it alone had.
func sameServer(r v1alpha1.FailoverRecord, uuid string) bool {
	return r.FromServerUUID == "" || uuid == "" && r.FromServerUUID != ServerReplaced || r.FromServerUUID == uuid
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

// replacedBy is what the successor of a replaced active site had when it was promoted: of what the old one holds, that much
// is the group's.
func replacedBy(s Snapshot, site string) gtid.Set {
	for _, r := range s.Status.Records {
		if r.From != site {
			continue
		}
		if set, err := gtid.Parse(r.ToExecuted); err == nil {
			return set
		}
		break
	}
	return gtid.Set{}
}

// missing is what reachable provisioned sites have and a candidate lacks, and on which site. Diverged sites
// do not count, and unsettled ones only with what is known to be good: the rest was written off, and is held for a person.
func missing(s Snapshot, m Memory, c Site) (gtid.Set, string) {
	for _, site := range s.Sites {
		if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() {
			return lacks, site.Name
		}
	}
	return gtid.Set{}, ""
}

// obtainable is the part of it that can still be had: nobody fetches from a relay log, and nobody applies one whose applier is broken.
func obtainable(s Snapshot, m Memory, c Site) (gtid.Set, string) {
	for _, site := range s.Sites {
		has := held(s, m, site)
		if brokenApplier(site) {
			has = has.Intersect(site.MySQL.Executed)
		}
		if lacks := has.Subtract(c.All()); !lacks.IsEmpty() {
			return lacks, site.Name
		}
	}
	return gtid.Set{}, ""
}

// leftBehind is all that reachable sites have and a candidate lacks when it is opened.
func leftBehind(s Snapshot, m Memory, c Site) (all gtid.Set, where []string) {
	for _, site := range s.Sites {
		if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() {
			all, where = all.Union(lacks), append(where, site.Name)
		}
	}
	return all, where
}

// held is what a site has that counts for what a successor must have (I7).
func held(s Snapshot, m Memory, site Site) gtid.Set {
	_, diverged := m.Diverged[site.Name]
	if !site.SQLAnswers() || isNotProvisioned(s, m, site) != "" || diverged || site.thrownAway() {
		return gtid.Set{}
	}
	if unsettled(s, m, site.Name) {
		// What it may have alone was written off, but what its successor had when that was promoted is good.
		return site.All().Intersect(replacedBy(s, site.Name))
	}
	return site.All()
}
