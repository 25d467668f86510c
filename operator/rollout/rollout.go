// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which one site may get a new pod now, and why no other. It is pure. Creating what is missing
// disturbs no one and is always allowed. Only one site at a time may have its pod replaced, replicas first, and only
// while every other site holds the group's data and serves. The active site is asked to give its role away first, and
// is updated last, then as a replica. See docs/updates.md.
package rollout

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Site holds the facts about one site that a decision needs.
type Site struct {
	Name string
	// Candidate is true if the site may be promoted at all.
	Candidate bool
	// Active is true for the active site, and for the site that is about to become it.
	Active bool
	// Moving is true for the two sites between which the active site changes.
	Moving bool
	// Exists is true if the site has a Deployment.
	Exists bool
	// Refused is true for a site that has none and cannot be made now.
	Refused bool
	// UpToDate is true if its Deployment has the wanted pod template.
	UpToDate bool
	// Settled is true if the site's pod is that of its Deployment, is ready, and plays its role in the group.
	Settled bool
	// Starting is true while the site's pod is being replaced, for as long as that usually takes.
	Starting bool
	// Late is true if the site has had its pod for so long that it should be settled.
	Late bool
	// Broken is true if the pod has not been ready for so long that replacing it costs nothing.
	Broken bool
	// MayServe says why a site that the operator has not reached for as long may serve all the same; normally empty.
	MayServe string
	// Busy is true while long work runs on the site.
	Busy bool
	// Loading is true while a backup is loaded onto the site, which a new pod would begin again.
	Loading bool
	// Kept says why the site's pod must not be replaced, whatever its template is; normally empty.
	Kept string
	// Fenced says that a person keeps the site fenced, so that it cannot take the role, and how to end that; normally empty.
	Fenced string
	// Doomed says why the site's data is gone once its pod ends, and what to do; normally empty.
	Doomed string
	// Diverged is true if the site has transactions that the group's history lacks.
	Diverged bool
	// Held is true for a site whose pod is back and serves, and that can get no further now: it has diverged, so a person must
	// decide, or it cannot be cloned before the active site is updated too.
	Held bool
	// Uncloned is true for a site that lacks the group's data and gets it only in a new pod. Replacing its pod costs
	// nothing, and a person may have ordered it.
	Uncloned bool
	// Trouble tells people what is known about why the site is not settled.
	Trouble string
}

// Group holds the facts that a decision rests on.
type Group struct {
	// Sites come in the order of the specification.
	Sites []Site
	// Transition is true while the active site changes.
	Transition bool
	// Paused says until when a person keeps the operator from replacing pods; normally empty.
	Paused string
	// RoleStays says why the role cannot be moved away from the active site; normally empty.
	RoleStays string
	// LastTry says why the role did not move at the last request; empty if it moved, or if there was no request.
	LastTry string
}

// Reason says why a decision is what it is.
type Reason = v1alpha1.Reason

// Decision says what may be done now.
type Decision struct {
	// Create lists the sites whose objects may be made.
	Create []string
	// Update is the one site whose pod may be replaced; empty if none.
	Update string
	// Leave is the site that should give away the role of the active site; empty if none.
	Leave string
	// Site is the one that the reason is about, if any.
	Site    string
	Reason  Reason
	Message string
}

// Done is true if nothing is left to do.
func (d Decision) Done() bool { return d.Reason == v1alpha1.ReasonUpToDate }

// Next says what may be done now.
func Next(g Group) Decision {
	d := next(g)
	for _, s := range g.Sites {
		if !s.Exists && !s.Refused {
			d.Create = append(d.Create, s.Name)
		}
	}
	if len(d.Create) > 0 && d.Update == "" {
		d.Reason, d.Site, d.Message = v1alpha1.ReasonCreating, "", fmt.Sprintf("creating %d of %d sites", len(d.Create), len(g.Sites))
	}
	return d
}

func next(g Group) Decision {
	if _, ok := find(g.Sites, outdated); !ok {
		if d, ok := unsettled(g.Sites); ok {
			return d
		}
		if s, ok := find(g.Sites, and(exists, not(upToDate))); ok {
			return wait(v1alpha1.ReasonPodKept, s.Name, "the pod of %s is not replaced: %s", s.Name, s.Kept)
		}
		return Decision{Reason: v1alpha1.ReasonUpToDate, Message: "every site is up to date"}
	}
	if d, ok := postponed(g); ok {
		return thirdSite(g, d)
	}
	// A site that waits for its data need not wait for other sites or for the end of a pause: its pod holds nothing to lose.
	if s, ok := find(g.Sites, and(outdated, uncloned, not(active))); ok && calm(g.Sites) {
		return update(v1alpha1.ReasonUpdating, s)
	}
	if g.Paused != "" {
		return pausedUntil(g)
	}
	// A pod that does not come up may need exactly this update; replacing it costs nothing.
	if s, ok := find(g.Sites, and(outdated, broken)); ok {
		return update(v1alpha1.ReasonRepairing, s)
	}
	// I30: where only the operator does not reach it, it serves, and with its pod would go what no other site has yet.
	if s, ok := find(g.Sites, and(exists, active, mayServe)); ok {
		return wait(v1alpha1.ReasonWaitingForSite, s.Name, "the active site %s does not answer, and may serve all the same: %s. The update waits until the operator "+
			"reaches the site again. Repair the network between them; if the node is off, taint it %s=nodeshutdown:NoExecute", s.Name, s.MayServe, v1alpha1.OutOfServiceTaint)
	}
	// One at a time: the site that was updated last must be back first. A site that waits for a person counts as back: its own
	// transactions came before the update, and the others would wait for that person too.
	if d, ok := unsettled(g.Sites); ok {
		return d
	}
	// A failover may be due, and any site that answers may be the one that it needs.
	if s, ok := find(g.Sites, and(exists, active, not(settled))); ok {
		return wait(v1alpha1.ReasonWaitingForSite, s.Name, "the active site %s is not open", s.Name)
	}
	// A replica that is not settled anyway goes before those that are.
	if s, ok := find(g.Sites, and(outdated, not(settled), not(active))); ok {
		return update(v1alpha1.ReasonUpdating, s)
	}
	if s, ok := find(g.Sites, and(outdated, not(active))); ok {
		return update(v1alpha1.ReasonUpdating, s)
	}
	return activeSite(g)
}

// thirdSite repairs, while the active site changes, a site that is neither the former nor the next one: the failover may wait for exactly
// this site to acknowledge it, and a pod that does not come up is of no use. I30: one that may serve may vouch for the former active site.
func thirdSite(g Group, d Decision) Decision {
	third := and(outdated, not(moving), not(active))
	if d.Reason != v1alpha1.ReasonFailoverInFlight {
		return d
	}
	if s, ok := find(g.Sites, and(third, broken)); ok && g.Paused == "" {
		return update(v1alpha1.ReasonRepairing, s)
	}
	if s, ok := find(g.Sites, and(third, mayServe)); ok {
		d.Message += fmt.Sprintf("; %s does not answer, and its pod is not replaced either: %s", s.Name, s.MayServe)
	}
	return d
}

// postponed says why no pod at all may be replaced now.
func postponed(g Group) (Decision, bool) {
	if _, ok := find(g.Sites, and(outdated, uncloned)); g.Paused != "" && !ok {
		return pausedUntil(g), true
	}
	// The work would be lost, and on the active site also the work of the site that clones from it.
	if s, ok := find(g.Sites, busy); ok {
		return wait(v1alpha1.ReasonLongWorkInFlight, s.Name, "long work runs on %s; the update continues afterwards", s.Name), true
	}
	// Hours of it would be lost. A load that has failed has nothing to lose, and may need just this update.
	if s, ok := find(g.Sites, and(outdated, loading)); ok {
		return wait(v1alpha1.ReasonLongWorkInFlight, s.Name, "a backup is being loaded onto %s; a new pod would start the load from zero. The update follows when the load ends; "+
			"to update now, delete the pod", s.Name), true
	}
	// A pod replaced now could be the one that the failover needs.
	if g.Transition {
		return wait(v1alpha1.ReasonFailoverInFlight, "", "the active site is changing; the update continues afterwards"), true
	}
	// A failover would need the others, and that they do not follow now proves nothing against them.
	if s, ok := find(g.Sites, and(exists, active, starting)); ok {
		return wait(v1alpha1.ReasonWaitingForSite, s.Name, "the pod of the active site %s is being replaced; the update continues when it is open", s.Name), true
	}
	return Decision{}, false
}

func pausedUntil(g Group) Decision {
	return wait(v1alpha1.ReasonPaused, "", "paused until %s; the update continues afterwards", g.Paused)
}

// calm is true while the active site is open and no other pod is starting.
func calm(sites []Site) bool {
	_, waits := find(sites, and(exists, active, not(settled)))
	_, begun := find(sites, and(exists, starting))
	return !waits && !begun
}

// unsettled stops at a site that has its new pod and is not settled.
func unsettled(sites []Site) (Decision, bool) {
	s, ok := find(sites, and(exists, not(outdated), not(settled), not(held)))
	if !ok {
		return Decision{}, false
	}
	trouble := ""
	if s.Trouble != "" {
		trouble = ": " + s.Trouble
	}
	if !s.Late {
		return wait(v1alpha1.ReasonWaitingForSite, s.Name, "%s is up to date, but not ready or not replicating yet%s", s.Name, trouble), true
	}
	behind := ""
	if _, left := find(sites, outdated); left {
		behind = "; no other site is updated before it is"
	}
	return wait(v1alpha1.ReasonSiteNotBack, s.Name, "%s has the pod that is specified, but does not come back%s%s. "+
		"Look at its pod and its state, or correct the specification", s.Name, trouble, behind), true
}

// activeSite decides when only the active site is left. That site gives its role away before its pod is replaced: then
// another site has all that it acknowledged, and clients wait for a moment instead of a restart.
func activeSite(g Group) Decision {
	s, _ := find(g.Sites, outdated)
	other := and(exists, candidate, not(active))
	if _, ok := find(g.Sites, other); !ok {
		if made, is := find(g.Sites, and(candidate, not(active), not(exists))); is {
			// For example, the specification replaced a site by another: the new one takes the role once it has the data.
			return wait(v1alpha1.ReasonWaitingForSite, made.Name, "only the active site %s is left to update: its pod is replaced when %s, which is being made, can take its role",
				s.Name, made.Name)
		}
		if s.Doomed != "" {
			return wait(v1alpha1.ReasonVolumeTerminating, s.Name, "the pod of the active site %s is not replaced: %s", s.Name, s.Doomed)
		}
		// There is no other choice, and all others are settled.
		return update(v1alpha1.ReasonUpdatingActive, s)
	}
	if g.RoleStays != "" {
		return wait(v1alpha1.ReasonRoleStays, s.Name, "only the active site %s is left to update, and its role is not moved away: %s", s.Name, g.RoleStays)
	}
	// A planned failover refuses a site whose volume goes with its pod, and would refuse it each time.
	if _, ok := find(g.Sites, and(other, not(doomed))); !ok {
		d, _ := find(g.Sites, other)
		return wait(v1alpha1.ReasonVolumeTerminating, s.Name, "only the active site %s is left to update, and its role does not move to %s: %s", s.Name, d.Name, d.Doomed)
	}
	// The role does not move to a candidate whose pod has the only copy of its keyring, nor to one that a person keeps fenced. Such a fence ends
	// again, so it is no reason to restart the active site, which nobody could replace meanwhile.
	if _, ok := find(g.Sites, and(other, settled, not(diverged), not(kept), not(fenced), not(doomed))); !ok {
		why := ""
		if k, is := find(g.Sites, and(other, kept)); is {
			why = "; " + k.Name + ": " + k.Kept
		} else if h, is := find(g.Sites, and(other, held, not(diverged))); is {
			why = "; " + h.Name + ": " + h.Trouble
		} else if f, is := find(g.Sites, and(other, fenced, settled, not(diverged))); is {
			why = "; " + f.Name + ": " + f.Fenced
		}
		return wait(v1alpha1.ReasonNoCandidate, s.Name, "only the active site %s is left to update, and no other site can take its role: "+
			"its pod is replaced when one can%s", s.Name, why)
	}
	d := wait(v1alpha1.ReasonMovingRole, s.Name, "only %s is left to update: its role of the active site is moved away first", s.Name)
	if g.LastTry != "" {
		d.Message += "; the last try: " + g.LastTry
	}
	d.Leave = s.Name
	return d
}

func wait(reason Reason, site, format string, args ...any) Decision {
	return Decision{Site: site, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func update(reason Reason, s Site) Decision {
	return Decision{Update: s.Name, Site: s.Name, Reason: reason, Message: "replacing the pod of " + s.Name}
}
