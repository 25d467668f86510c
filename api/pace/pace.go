// SPDX-License-Identifier: Apache-2.0

// Package pace says of one group whether it waits for its turn to be given the pods of another version of the operator, and why the turn cannot
// begin. The operator decides by it and the plugin shows it, so that both say the same. It is pure. See docs/upgrades.md.
package pace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Group is what the decision needs of one group.
type Group struct {
	// Name is namespace/name; it orders the turns.
	Name string
	// Behind is true while a pod of the group is of an older version of the operator.
	Behind bool
	// Pinned is true if a person keeps the group at the version that made its pods.
	Pinned bool
	// Unseen is true as long as the version that leads has not looked at the group.
	Unseen bool
	// Why says why the group is not healthy; empty if it is.
	Why string
	// Kept says why none of the pods that are left would be replaced now, though the group is healthy; empty if they would be.
	Kept string
	// Window is when the group's turn may begin; nil means that of the installation. Closed is true if it cannot be read.
	Window Window
	Closed bool
}

// See is a group as the decision sees it; revision names the version that leads.
func See(g *v1alpha1.MysqlFailoverGroup, revision string) Group {
	out := Group{Name: g.Namespace + "/" + g.Name, Pinned: g.Annotations[v1alpha1.AnnotationUpgradePin] != "", Why: unhealthy(g)}
	window, err := ParseWindow(g.Annotations[v1alpha1.AnnotationUpgradeWindow])
	out.Window, out.Closed = window, err != nil
	u := g.Status.Upgrade
	if u == nil || u.Revision != revision {
		// A group in its turn must not be taken for done by what an older version said.
		out.Unseen = true
		if out.Why == "" {
			out.Why = "this version of the operator has not looked at it yet"
		}
		return out
	}
	for _, site := range u.Sites {
		out.Behind = out.Behind || site.Behind
	}
	out.Kept = kept(g)
	return out
}

// Elsewhere says that another release of the operator than the one that leads by the Lease own operates the group; empty if none does. It has
// turns of its own. A process without a Lease leaves a claim that has run out as it is, and operates the group, so there the claim says nothing.
func Elsewhere(g *v1alpha1.MysqlFailoverGroup, own string) string {
	if claim := g.Status.Claim; own != "" && claim != nil && claim.Lease != own {
		return "it is operated under Lease " + claim.Lease
	}
	return ""
}

// kept says why the operator replaces none of the pods that are left, for as long as a person does nothing; empty if it replaces one. With the
// turn such a group would stop all others. It rests on nothing that the turn itself changes: else the turn would come back again and again.
func kept(g *v1alpha1.MysqlFailoverGroup) string {
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return fmt.Sprintf("it is paused; to end that: kubectl mfg resume %s -n %s", g.Name, g.Namespace)
	}
	encryption := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady)
	if encryption != nil && encryption.Status == metav1.ConditionFalse && encryption.Reason == string(v1alpha1.ReasonEscrowListenerMissing) {
		return "no pod of it is replaced: " + encryption.Message
	}
	// A replica's data would have to be cloned, which may take longer than a turn, and the active site could not be replaced at all.
	progressing := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionProgressing)
	if progressing != nil && progressing.Status == metav1.ConditionFalse && progressing.Reason == string(v1alpha1.ReasonVolumeTerminating) {
		return "a volume of it is being deleted: " + progressing.Message
	}
	active := g.Status.ActiveSite
	var keyrings []string
	role := false
	for _, site := range g.Status.Upgrade.Sites {
		switch {
		case !site.Behind:
		case keyringFailed(g, site.Name):
			keyrings = append(keyrings, site.Name)
		case site.Name == active:
			role = true // it is replaced once it has given its role away
		default:
			return ""
		}
	}
	switch {
	case role:
		return roleStays(g)
	case len(keyrings) > 0:
		return onlyCopy(g, keyrings)
	}
	return ""
}

// roleStays says why only the active site is left, and keeps its role; empty if it can give it away.
func roleStays(g *v1alpha1.MysqlFailoverGroup) string {
	active := g.Status.ActiveSite
	if g.Spec.Failover.Mode == v1alpha1.FailoverObserve {
		return "only its active site " + active + " is left, whose role the operator does not move: spec.failover.mode is Observe"
	}
	fenced, failed := unfit(g)
	switch {
	case len(failed) > 0:
		return fmt.Sprintf("only its active site %s is left, and no other site can take its role; %s", active, onlyCopy(g, failed))
	case len(fenced) > 0:
		return fmt.Sprintf("only its active site %s is left, and a person keeps each site fenced that could take its role (%s); to end that: kubectl mfg fence off %s %s -n %s",
			active, strings.Join(fenced, ", "), g.Name, fenced[0], g.Namespace)
	}
	return ""
}

func onlyCopy(g *v1alpha1.MysqlFailoverGroup, sites []string) string {
	return fmt.Sprintf("only the running pod may have the keyring that its data needs (%s); see what to do: kubectl mfg keyring verify %s -n %s",
		strings.Join(sites, ", "), g.Name, g.Namespace)
}

// unfit are the sites that could take the role of the active one but for a person who keeps them fenced, or for their keyrings; none if another can.
func unfit(g *v1alpha1.MysqlFailoverGroup) (fenced, failed []string) {
	for _, site := range g.Spec.Sites {
		switch {
		case site.Role != v1alpha1.PrimaryCandidate || site.Name == g.Status.ActiveSite:
		case v1alpha1.KeptFenced(g, site.Name):
			fenced = append(fenced, site.Name)
		case keyringFailed(g, site.Name):
			failed = append(failed, site.Name)
		default:
			return nil, nil
		}
	}
	return fenced, failed
}

// keyringFailed is true for a site whose running pod may have the only copy of its keyring: the operator does not replace that pod.
func keyringFailed(g *v1alpha1.MysqlFailoverGroup, site string) bool {
	return g.Status.EncryptionAtRest != nil && slices.ContainsFunc(g.Status.EncryptionAtRest.Sites, func(st v1alpha1.SiteKeyringStatus) bool {
		return st.Name == site && st.Phase == v1alpha1.KeyringFailed
	})
}

// WhyNot says why the turn of a group that is behind cannot begin, even if nobody else has it; empty if it can.
func WhyNot(g Group, installation Window, now time.Time) string {
	window := g.Within(installation)
	switch {
	case g.Pinned:
		return "it is pinned"
	case g.Closed:
		return "its window cannot be read"
	case g.Why != "":
		return "it is not healthy: " + g.Why
	case g.Kept != "":
		return g.Kept
	case !window.Open(now):
		return "its window is closed: " + window.String()
	}
	return ""
}

// Within is when its turn may begin.
func (g Group) Within(installation Window) Window {
	if g.Window != nil {
		return g.Window
	}
	return installation
}

// unhealthy says why no other group may begin beside this one, or this one itself; empty if it is healthy.
func unhealthy(g *v1alpha1.MysqlFailoverGroup) string {
	progressing := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionProgressing)
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case g.DeletionTimestamp != nil:
		return "it is being deleted"
	case g.Status.ObservedGeneration != g.Generation:
		return "its specification has just changed"
	case g.Status.Transition != nil:
		return "its active site is changing"
	case ready == nil:
		return "it is not ready yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Message
	case progressing == nil:
		return "it is not known what is under way"
	case progressing.Status == metav1.ConditionTrue, progressing.Reason == string(v1alpha1.ReasonSiteNotBack):
		return progressing.Message
	}
	return ""
}
