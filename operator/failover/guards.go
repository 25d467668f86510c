// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Guard names a rule against promoting a site.
type Guard string

// The guards, in the order in which they are asked.
const (
	GuardRemoved        Guard = "Removed"
	GuardDROnly         Guard = "DROnly"
	GuardNotProvisioned Guard = "NotProvisioned"
	GuardHalfCloned     Guard = "HalfCloned"
	GuardBusy           Guard = "Busy"
	GuardSilent         Guard = "Silent"
	GuardNotFenced      Guard = "NotFenced"
	GuardDiverged       Guard = "Diverged"
	GuardUnsettled      Guard = "Unsettled"
	GuardNumberingAgain Guard = "NumberingAgain"
	GuardWithoutRows    Guard = "WithoutRows"
	GuardEscrowMissing  Guard = "EscrowMissing"
	GuardUnescrowed     Guard = "Unescrowed"
)

// guard is one rule against promoting a site. Each is safe alone.
type guard struct {
	name Guard
	// ask says why the system may not promote the site by itself; empty if the rule has nothing against it.
	ask func(Snapshot, Memory, Site) string
	// order says why not even a person's order does; nil for a rule that an order overrides.
	order func(Snapshot, Memory, Site) string
	// remedy is what a person can do about it; nil leads to the pod of the site.
	remedy func(g Group, site string) []Remedy
}

// guards are all of them: the first that answers names why a site may not be promoted. A missing escrow Secret yields to an order: the
// keyring can be read now, and a person may know that it is safe, or that there is nothing else.
var guards = []guard{
	{name: GuardRemoved, ask: isRemoved, order: isRemoved},
	{name: GuardDROnly, ask: isDROnly, order: isDROnly},
	{name: GuardNotProvisioned, ask: isNotProvisioned, order: isOutside},
	{name: GuardHalfCloned, ask: isHalfCloned, order: isHalfCloned},
	{name: GuardBusy, ask: isBusy, order: isBusy},
	{name: GuardSilent, ask: isSilent, order: isSilent},
	{name: GuardNotFenced, ask: isNotFenced},
	{name: GuardDiverged, ask: isDiverged},
	{name: GuardUnsettled, ask: isUnsettled},
	{name: GuardNumberingAgain, ask: isNumberingAgain},
	{name: GuardWithoutRows, ask: isWithoutRows},
	{name: GuardEscrowMissing, ask: isEscrowMissing, remedy: recoverAndMove},
	{name: GuardUnescrowed, ask: isUnescrowed, order: isUnescrowed},
}

// Unfit says which rule is against promoting a site, and why. The zero value is a site that is fit.
type Unfit struct {
	By  Guard
	Why string
}

// unfit asks every guard whether the system may promote a site by itself.
func unfit(s Snapshot, m Memory, site Site) Unfit {
	for _, g := range guards {
		if why := g.ask(s, m, site); why != "" {
			return Unfit{g.name, why}
		}
	}
	return Unfit{}
}

// unfitByOrder asks those that no order overrides.
func unfitByOrder(s Snapshot, m Memory, site Site) Unfit {
	for _, g := range guards {
		if g.order == nil {
			continue // a person has seen what it says, and ordered the site all the same
		}
		if why := g.order(s, m, site); why != "" {
			return Unfit{g.name, why}
		}
	}
	return Unfit{}
}

// forcible is what even a person's order does not override: a dr-only site, or one that cannot be opened at all.
func forcible(s Snapshot, site Site) bool { return unfitByOrder(s, Memory{}, site).By == "" }

// cure is what a person can do about a site that is not fit.
func (u Unfit) cure(g Group, site string) []Remedy {
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == u.By })
	if i < 0 || guards[i].remedy == nil {
		return theSite(g, site)
	}
	return guards[i].remedy(g, site)
}

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
	if site.Whole() {
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
	if site.Whole() {
		return ""
	}
	return isNotProvisioned(s, m, site)
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
	if set := m.Of(site.Name).Diverged; !set.IsEmpty() {
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

// isNumberingAgain: the site's server wrote transactions that were lost, its data lacks them, and another site may still have
// them. Promoted, it would give their numbers to other transactions, and by its numbers the other site would count as whole (I10).
// A server that this version cloned has a new server_uuid, so this is about one that an earlier version cloned, and about a volume
// that was put back to an earlier state.
func isNumberingAgain(s Snapshot, m Memory, site Site) string {
	for _, r := range s.Status.Records {
		lost, err := gtid.Parse(r.LostSet)
		if err != nil {
			continue // it names no numbers; what came of its From is asked by isUnsettled, for which it is a loss
		}
		again := lost.OfServer(site.MySQL.ServerUUID).Subtract(site.All())
		if again.IsEmpty() {
			continue
		}
		for _, other := range s.Sites {
			if other.Name != site.Name && mayHold(m, r, other, again) {
				return fmt.Sprintf("would give the numbers of lost transactions again (%s), which %s may still have; bring %s back, "+
					"or order %s to be cloned anew (annotation %s)", again, other.Name, other.Name, site.Name, v1alpha1.AnnotationRecloneSite)
			}
		}
	}
	return ""
}
