// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// refusals is the chain of guards before a rotation begins: the first that objects says why, and what to do. Each guard
// is safe alone. mayRotate checks again that the site is not the active one, right before the keys are rotated.
var refusals = []struct {
	reason string
	guard  func(Group, Site) string
}{
	{v1alpha1.AnswerIsActiveSite, isActivePrimary},
	{v1alpha1.AnswerRoleMoving, isAboutToTakeOver},
	{v1alpha1.AnswerRoleMoving, roleIsMoving},
	{v1alpha1.AnswerKeyringNotSealed, isNotSealed},
	{v1alpha1.AnswerKeyringFull, isNearlyFull},
	{v1alpha1.AnswerKeyringFull, hasManyVersions},
	{v1alpha1.AnswerSiteWithoutData, holdsNoData},
	{v1alpha1.AnswerSiteDiverged, hasDiverged},
	{v1alpha1.AnswerSiteNotFollowing, doesNotFollow},
	{v1alpha1.AnswerUpdateUnderWay, orderedUpdateInFlight},
	{v1alpha1.AnswerOtherKeyring, otherKeyringInFlight},
}

// nearlyFull leaves room for what clones add: escrow takes no keyring beyond MaxKeyringFile, so its pod would have the only copy.
const nearlyFull = wire.MaxKeyringFile / 4 * 3

// isNearlyFull: MySQL never removes an old InnoDB master key from a keyring. A site that begins with an empty volume gets a fresh one.
func isNearlyFull(_ Group, s Site) string {
	v, _ := s.current()
	if v.Size < nearlyFull {
		return ""
	}
	return fmt.Sprintf("the keyring of %s has %d bytes, and at most %d go into escrow: give the site an empty volume (delete its volume claim and its pod), "+
		"and it is cloned with a fresh keyring", s.Name, v.Size, wire.MaxKeyringFile)
}

// manyVersions leaves room for the versions of tries that end half-way: each new key makes one more version, and none is pruned while the
// site is not sealed.
const manyVersions = wire.MaxKeyringVersions / 4 * 3

// hasManyVersions: a person with the right to make Secrets put them there, or rolled the site back and never forward. Escrow takes no
// version beyond MaxKeyringVersions.
func hasManyVersions(_ Group, s Site) string {
	if len(s.Versions) < manyVersions {
		return ""
	}
	return fmt.Sprintf("%d versions of the keyring of %s are in escrow, and no more than %d may be: label those with the lowest numbers %s=true and delete them, but keep the last ten, "+
		"and all that status.encryptionAtRest.sites[] or a Deployment names", len(s.Versions), s.Name, wire.MaxKeyringVersions, v1alpha1.LabelAllowDeletion)
}

// isActivePrimary: I20. If a rotation goes wrong and destroys a replica's data, the active site still has that data.
func isActivePrimary(_ Group, s Site) string {
	if !s.Active {
		return ""
	}
	return fmt.Sprintf("%s is the active site: move the role to another site first (annotation %s)", s.Name, v1alpha1.AnnotationPlannedFailover)
}

func isAboutToTakeOver(g Group, s Site) string {
	if g.PlannedTo == "" {
		return ""
	}
	return fmt.Sprintf("a planned failover to %s is under way: order the rotation of %s again once it is over", g.PlannedTo, s.Name)
}

func roleIsMoving(g Group, s Site) string {
	if !g.Transition {
		return ""
	}
	return fmt.Sprintf("the active site is changing: order the rotation of %s again once it has", s.Name)
}

func isNotSealed(_ Group, s Site) string {
	if s.Status.Phase == v1alpha1.KeyringSealed {
		return ""
	}
	return fmt.Sprintf("the keyring of %s is %s: only a sealed one is rotated", s.Name, phaseText(s.Status.Phase))
}

func holdsNoData(_ Group, s Site) string {
	if s.Provisioned && s.Clone == CloneNone && !s.Busy {
		return ""
	}
	return fmt.Sprintf("%s does not hold the group's data yet, or is being worked on: wait until it replicates", s.Name)
}

// hasDiverged: transactions that no other site has must not be made to depend on new keys (I10).
func hasDiverged(_ Group, s Site) string {
	if !s.Diverged {
		return ""
	}
	return fmt.Sprintf("%s has, or may have, transactions that no other site has: it is rotated once it has been cloned again (annotation %s)", s.Name, v1alpha1.AnnotationRecloneSite)
}

func doesNotFollow(_ Group, s Site) string {
	if s.Pod.Settled {
		return ""
	}
	return fmt.Sprintf("%s does not replicate: order its rotation again once it does", s.Name)
}

func orderedUpdateInFlight(g Group, s Site) string {
	if g.Update == "" {
		return ""
	}
	return fmt.Sprintf("an ordered update is in flight (%s): order the rotation of %s again once it is over", g.Update, s.Name)
}

// otherKeyringInFlight: one replica at a time, so that the others stay fit for a failover. A site in Failed is not fit: either it
// is still unsealed, with keys that are not in escrow, or its escrow Secret is gone.
func otherKeyringInFlight(g Group, s Site) string {
	for _, other := range g.Sites {
		if other.Name == s.Name {
			continue
		}
		phase := other.Status.Phase
		if _, have := other.current(); !have && other.Status.KeyringSecret != "" {
			return fmt.Sprintf("the escrow Secret %s of %s is missing: restore it first", other.Status.KeyringSecret, other.Name)
		}
		if phase == v1alpha1.KeyringFailed {
			return fmt.Sprintf("the keyring of %s is Failed, and may be in its pod alone: mend that first; status.encryptionAtRest.sites[] says why", other.Name)
		}
		if phase != v1alpha1.KeyringSealed {
			return fmt.Sprintf("the keyring of %s is %s: wait until it is sealed", other.Name, phaseText(phase))
		}
	}
	return ""
}

func refusal(g Group, s Site) (reason, why string) {
	for _, refusal := range refusals {
		if why := refusal.guard(g, s); why != "" {
			return refusal.reason, why
		}
	}
	return "", ""
}

// Refusal says why the rotation of a site would be refused now, and the reason that the answer would have; empty if it would not be refused.
func Refusal(g Group, site string) (reason, why string) {
	i := slices.IndexFunc(g.Sites, func(s Site) bool { return s.Name == site })
	if i < 0 {
		return v1alpha1.AnswerSiteWithoutData, fmt.Sprintf("%s has no pod yet", site)
	}
	return refusal(g, g.Sites[i])
}

// mayBegin is true if no guard objects to a rotation.
func mayBegin(g Group, s Site) bool {
	reason, _ := refusal(g, s)
	return reason == ""
}

// ordered is true if the annotation orders the rotation of a site.
func ordered(g Group, s Site) bool { return g.RotateSet && g.Rotate == s.Name }

// mayRotate is true if both master keys may be rotated now. I20: never on the active site. The pod must be the unsealed one
// and must replicate: a replica that is behind or diverged is not made to depend on new keys.
func mayRotate(g Group, s Site) bool { return notYet(g, s) == "" }

// notYet says which fact keeps the master keys from being rotated now; empty if none does.
func notYet(g Group, s Site) string {
	switch r := s.Report; {
	case !g.Known:
		return "nothing is known of the sites yet"
	case s.Active:
		return "it is the active site" // I20
	case g.Transition, g.PlannedTo != "":
		return "the active site is changing"
	case !g.Donor:
		return "the active site does not accept writes"
	case !s.Provisioned, s.Clone != CloneNone:
		return "it does not hold the group's data yet"
	case s.Busy:
		return "it is being worked on"
	case s.Diverged:
		return "it has, or may have, transactions that no other site has"
	case len(s.Versions) >= manyVersions:
		return hasManyVersions(g, s)
	case !s.Pod.Current, r == nil, r.Sealed:
		return "its pod is to be replaced by an unsealed one"
	case !s.Pod.Settled:
		return "it does not replicate"
	case r.Component != component, !r.Active:
		return "MySQL does not say that it has a keyring"
	}
	return ""
}

// noSuchSite refuses an order for a site that does not exist.
func noSuchSite(g Group) string {
	if !g.RotateSet || slices.ContainsFunc(g.Sites, func(s Site) bool { return s.Name == g.Rotate }) {
		return ""
	}
	var names []string
	for _, s := range g.Sites {
		names = append(names, s.Name)
	}
	return fmt.Sprintf("the group has no site %q: name one of %s", g.Rotate, strings.Join(names, ", "))
}

func phaseText(p v1alpha1.KeyringPhase) string {
	if p == "" {
		return "not there"
	}
	return string(p)
}
