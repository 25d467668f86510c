// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which one site may be given a new pod now, and why no other. It is pure. Creating what is
// missing disturbs nobody and is always allowed; replacing a pod is allowed to one site at a time, replicas first and
// the active site last, and only while every other site holds the group's data and serves. See docs/design.md.
package rollout

import "fmt"

// Site is what the decision needs of one site.
type Site struct {
	Name string
	// Active is true for the active site, and for the site that is about to become it.
	Active bool
	// Exists is true if the site has a Deployment.
	Exists bool
	// UpToDate is true if its Deployment has the wished pod template.
	UpToDate bool
	// Settled is true if the site's pod is that of its Deployment, is ready, and does its part in the group.
	Settled bool
	// Broken is true if the pod has not been ready for so long that replacing it takes nothing away.
	Broken bool
	// Busy is true while long work runs on the site.
	Busy bool
}

// Reason is why a decision is what it is.
type Reason string

// The reasons.
const (
	UpToDate       Reason = "UpToDate"
	Creating       Reason = "Creating"
	Repairing      Reason = "Repairing"
	Updating       Reason = "Updating"
	UpdatingActive Reason = "UpdatingActive"

	FailoverInFlight Reason = "FailoverInFlight"
	LongWorkInFlight Reason = "LongWorkInFlight"
	WaitingForSite   Reason = "WaitingForSite"
)

// Decision is what may be done now.
type Decision struct {
	// Create lists the sites whose objects may be made.
	Create []string
	// Update is the one site whose pod may be replaced; empty means none.
	Update string
	// Site is the one that the reason is about, if any.
	Site    string
	Reason  Reason
	Message string
}

// Done is true if nothing is left to do.
func (d Decision) Done() bool { return d.Reason == UpToDate }

// Next decides. Sites come in the order of the specification; transition is true while the active site changes.
func Next(sites []Site, transition bool) Decision {
	d := next(sites, transition)
	for _, s := range sites {
		if !s.Exists {
			d.Create = append(d.Create, s.Name)
		}
	}
	if len(d.Create) > 0 && d.Update == "" {
		d.Reason, d.Site, d.Message = Creating, "", fmt.Sprintf("creating %d of %d sites", len(d.Create), len(sites))
	}
	return d
}

func next(sites []Site, transition bool) Decision {
	if _, ok := find(sites, outdated); !ok {
		if s, ok := find(sites, and(exists, not(settled))); ok {
			return wait(WaitingForSite, s.Name, "%s is up to date, but not ready or not replicating yet", s.Name)
		}
		return Decision{Reason: UpToDate, Message: "every site is up to date"}
	}
	// A pod replaced now could be the one that the failover needs.
	if transition {
		return wait(FailoverInFlight, "", "the active site is changing; the update goes on afterwards")
	}
	// The work would be lost, and on the active site also that of the site which clones from it.
	if s, ok := find(sites, busy); ok {
		return wait(LongWorkInFlight, s.Name, "long work runs on %s; the update goes on afterwards", s.Name)
	}
	// A pod that does not come up may need just this update; replacing it takes nothing away.
	if s, ok := find(sites, and(outdated, broken)); ok {
		return update(Repairing, s)
	}
	// One at a time: the site that was updated last must be back first.
	if s, ok := find(sites, and(exists, not(outdated), not(settled))); ok {
		return wait(WaitingForSite, s.Name, "%s is up to date, but not ready or not replicating yet", s.Name)
	}
	// A replica that does not do its part anyway goes before those that do.
	if s, ok := find(sites, and(outdated, not(settled), not(active))); ok {
		return update(Updating, s)
	}
	// Only the active site is left here: without it nobody knows who holds what.
	if s, ok := find(sites, and(exists, not(settled))); ok {
		return wait(WaitingForSite, s.Name, "the active site %s is not open", s.Name)
	}
	if s, ok := find(sites, and(outdated, not(active))); ok {
		return update(Updating, s)
	}
	s, _ := find(sites, outdated)
	return update(UpdatingActive, s)
}

func wait(reason Reason, site, format string, args ...any) Decision {
	return Decision{Site: site, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func update(reason Reason, s Site) Decision {
	return Decision{Update: s.Name, Site: s.Name, Reason: reason, Message: "replacing the pod of " + s.Name}
}

type fact func(Site) bool

func exists(s Site) bool   { return s.Exists }
func outdated(s Site) bool { return s.Exists && !s.UpToDate }
func settled(s Site) bool  { return s.Settled }
func broken(s Site) bool   { return s.Broken }
func busy(s Site) bool     { return s.Busy }
func active(s Site) bool   { return s.Active }

func not(f fact) fact { return func(s Site) bool { return !f(s) } }

func and(facts ...fact) fact {
	return func(s Site) bool {
		for _, f := range facts {
			if !f(s) {
				return false
			}
		}
		return true
	}
}

// find returns the first site of which a fact holds, the active site last.
func find(sites []Site, f fact) (Site, bool) {
	for _, last := range []bool{false, true} {
		for _, s := range sites {
			if s.Active == last && f(s) {
				return s, true
			}
		}
	}
	return Site{}, false
}
