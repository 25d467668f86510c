// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/remedy"
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
	GuardKeptFenced     Guard = "KeptFenced"
	GuardWithoutRows    Guard = "WithoutRows"
	GuardFiltered       Guard = "Filtered"
	GuardVolumeFailing  Guard = "VolumeFailing"
	GuardEscrowMissing  Guard = "EscrowMissing"
	GuardUnescrowed     Guard = "Unescrowed"
)

// guard is one rule against promoting a site. Each is safe alone.
type guard struct {
	name Guard
	// ask says why the operator may not promote the site without an order; empty if the rule has nothing against it.
	ask func(facts.Snapshot, facts.Memory, facts.Site) string
	// order says why even a person's order does not promote it; nil for a rule that an order overrides.
	order func(facts.Snapshot, facts.Memory, facts.Site) string
	// remedy is what a person can do about it; nil points to the pod of the site.
	remedy func(g facts.Group, site string) []facts.Remedy
}

// guards lists all of them: the first that objects says why a site may not be promoted. A missing escrow Secret yields to an order:
// the keyring can be read now, and a person may know that it is safe, or that there is nothing else.
var guards = []guard{
	{name: GuardRemoved, ask: IsRemoved, order: IsRemoved},
	{name: GuardDROnly, ask: IsDROnly, order: IsDROnly},
	{name: GuardNotProvisioned, ask: lineage.IsNotProvisioned, order: isOutside},
	{name: GuardHalfCloned, ask: isHalfCloned, order: isHalfCloned},
	{name: GuardBusy, ask: IsBusy, order: IsBusy, remedy: remedy.WaitForWork},
	{name: GuardSilent, ask: isSilent, order: isSilent},
	{name: GuardNotFenced, ask: isNotFenced},
	{name: GuardDiverged, ask: IsDiverged},
	{name: GuardUnsettled, ask: isUnsettled},
	{name: GuardNumberingAgain, ask: IsNumberingAgain},
	{name: GuardKeptFenced, ask: IsKeptFenced, order: IsKeptFenced, remedy: remedy.FenceOff},
	{name: GuardWithoutRows, ask: IsWithoutRows},
	{name: GuardFiltered, ask: IsFiltered, remedy: remedy.CloneAgain},
	{name: GuardVolumeFailing, ask: IsVolumeFailing, remedy: mendVolume},
	{name: GuardEscrowMissing, ask: isEscrowMissing, remedy: remedy.RecoverAndMove},
	{name: GuardUnescrowed, ask: IsUnescrowed, order: IsUnescrowed},
}

// Unfit says which rule is against promoting a site, and why. The zero value is a site that is fit.
type Unfit struct {
	By  Guard
	Why string
}

// UnfitOf asks the guards whether the operator may promote a site without an order.
func UnfitOf(s facts.Snapshot, m facts.Memory, site facts.Site) Unfit {
	for _, g := range guards {
		if why := g.ask(s, m, site); why != "" {
			return Unfit{g.name, why}
		}
	}
	return Unfit{}
}

// UnfitByOrder asks only the guards that no order overrides.
func UnfitByOrder(s facts.Snapshot, m facts.Memory, site facts.Site) Unfit {
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

// Forcible is true if an order may promote the site, whatever is remembered: not a dr-only site, nor one that cannot be opened at all.
func Forcible(s facts.Snapshot, site facts.Site) bool {
	return UnfitByOrder(s, facts.Memory{}, site).By == ""
}

// Cure is what a person can do about a site that is not fit.
func (u Unfit) Cure(g facts.Group, site string) []facts.Remedy {
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == u.By })
	if i < 0 || guards[i].remedy == nil {
		return remedy.TheSite(g, site)
	}
	return guards[i].remedy(g, site)
}

// IsRemoved says that a site left the specification.
func IsRemoved(_ facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if site.Removed {
		return "left the specification"
	}
	return ""
}

// IsDROnly says that a site may never be promoted (I6).
func IsDROnly(_ facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if site.Role != v1alpha1.PrimaryCandidate {
		return "is " + string(site.Role) // I6: never promoted, not even as the last survivor.
	}
	return ""
}

// isOutside is IsNotProvisioned for an order. Status may name no site that has the group's data: the first one was lost before
// that was noted. Then any site may begin the group again. While one has the data, a site without the mark is half cloned,
// unless its clone has not begun.
func isOutside(s facts.Snapshot, m facts.Memory, site facts.Site) string {
	if !site.OtherVolume && !slices.ContainsFunc(s.Sites, func(other facts.Site) bool { return other.Provisioned }) {
		return ""
	}
	if site.Whole() {
		return ""
	}
	return lineage.IsNotProvisioned(s, m, site)
}

// isHalfCloned says that a clone began into a site with the mark, which no order of ours does, and left part of the data and
// sets that claim all of it. The first active site is exempt: the group's data begins there, whatever happened to it before.
func isHalfCloned(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	t := s.Status.Transition
	if site.Provisioned && site.MySQL.HalfCloned && !(t != nil && t.Kind == v1alpha1.FailoverBootstrap) {
		return "received a clone that did not end well; order it again (annotation " + v1alpha1.AnnotationRecloneSite + ")"
	}
	return ""
}

// IsBusy says which long work holds a site.
func IsBusy(_ facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if site.Busy != "" || site.MySQL.Cloning {
		return "is busy: " + cmp.Or(site.Busy, facts.WorkClone)
	}
	return ""
}

func isSilent(_ facts.Snapshot, _ facts.Memory, site facts.Site) string {
	switch {
	case !site.Sidecar.Answered:
		return "its sidecar does not answer"
	case !site.MySQL.Direct:
		// I8: the sidecar's report leaves out the relay log, which must be applied before the site is promoted.
		return "its MySQL does not answer the operator"
	}
	return ""
}

func isNotFenced(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if site.Writable() && site.Name != s.Status.ActiveSite {
		return "is writable although it is not active"
	}
	return ""
}

// IsDiverged names the transactions of a site that the active site lacks (I10).
func IsDiverged(_ facts.Snapshot, m facts.Memory, site facts.Site) string {
	if set := m.Of(site.Name).Diverged; !set.IsEmpty() {
		return "has transactions that the active site lacks: " + set.String()
	}
	return ""
}

// IsFiltered says that the site's server skipped transactions, or may have: MySQL counts what a replication filter skips as executed, so
// the sets look whole while rows are missing (I7). To open the active site again moves no role, so the rule does not apply.
func IsFiltered(s facts.Snapshot, m facts.Memory, site facts.Site) string {
	t, was := s.Status.Transition, m.Of(site.Name).Filtered
	switch {
	case t == nil && site.Name == s.Status.ActiveSite || t != nil && (t.From == site.Name || t.Kind == v1alpha1.FailoverBootstrap):
		return ""
	case site.MySQL.Filtered:
		return "a replication filter is set, so rows are missing here"
	case was != "" && was == site.MySQL.ServerUUID:
		return "a replication filter was set, so rows may be missing here"
	}
	return ""
}

// isUnsettled says that the site was active, was replaced, and has not been compared with an open active site
// since. It may hold transactions that were written off (I10).
func isUnsettled(_ facts.Snapshot, m facts.Memory, site facts.Site) string {
	if m.Of(site.Name).Unsettled {
		return "used to be active; the operator has not compared its data with the new active site yet"
	}
	return ""
}

// IsNumberingAgain says that the site's server wrote transactions that were lost, that its data lacks them, and that another site may
// still have them. If it were promoted, it would give their numbers to other transactions, and by its numbers the other site would
// count as whole (I10). A server that this version cloned has a new server_uuid, so this concerns one that an earlier version cloned,
// and a volume that was put back to an earlier state.
func IsNumberingAgain(s facts.Snapshot, m facts.Memory, site facts.Site) string {
	for _, r := range s.Status.Records {
		lost, err := gtid.Parse(r.LostSet)
		if err != nil {
			continue // it names no numbers; isUnsettled judges its From, and takes it for a loss
		}
		again := lost.OfServer(site.MySQL.ServerUUID).Subtract(site.All())
		if again.IsEmpty() {
			continue
		}
		for _, other := range s.Sites {
			if other.Name != site.Name && lineage.MayHold(m, r, other, again) {
				return fmt.Sprintf("would give the numbers of lost transactions again (%s), which %s may still have; bring %s back, "+
					"or order %s to be cloned again (annotation %s)", again, other.Name, other.Name, site.Name, v1alpha1.AnnotationRecloneSite)
			}
		}
	}
	return ""
}
