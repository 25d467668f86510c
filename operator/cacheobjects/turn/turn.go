// SPDX-License-Identifier: Apache-2.0

// Package turn decides which cache pod is replaced next. It is pure. One pod goes at a time, replicas first; the master's pod is asked to
// leave, and goes when another one is the master.
package turn

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Pod is the cache pod of one site.
type Pod struct {
	Site string
	// Exists is false while the StatefulSet has no pod. Going is true while it is being deleted.
	Exists, Going bool
	// Current is true if it runs what the specification asks for.
	Current bool
	Ready   bool
	// Traffic is true if it carries the labels by which applications reach it.
	Traffic bool
	// Role is what it is, as it said at the operator's last look; empty if it did not answer. A process that hangs stays Ready, and the pod
	// of a lost node does for a while.
	Role v1alpha1.CacheRole
	// Linked is true for a replica whose link to its master is up, as far as status says.
	Linked bool
}

// Group is the cache of a group.
type Group struct {
	Pods []Pod
	// Master is the site of status.cache.activeSite; empty while there is none.
	Master string
	// Moving is true while the master changes, and To is where it goes.
	Moving bool
	To     string
	// Full is true while the master refuses new clients. A replica whose pod is replaced may not get in again, and its copy would be gone.
	Full bool
	// Paused is until when a person keeps pods from being replaced; empty if nobody does.
	Paused string
}

// Decision is at most one step.
type Decision struct {
	// Replace is the site whose pod is deleted now.
	Replace string
	// Leave is the site whose master is asked to go elsewhere.
	Leave string
	// Reason and Message say what it waits for or does; empty when all pods are as they should be.
	Reason  v1alpha1.Reason
	Message string
}

// Next decides.
func Next(g Group) Decision {
	old := outdated(g)
	if len(old) == 0 {
		return unsettled(g)
	}
	if g.Paused != "" {
		return Decision{Reason: v1alpha1.ReasonPaused, Message: fmt.Sprintf("cache pods are not replaced until %s: the group is paused", g.Paused)}
	}
	for _, p := range g.Pods {
		if p.Going || !p.Exists {
			return waits(p, "to be replaced")
		}
	}
	// One that does not work costs nobody anything, and may wait for just this change. One that missed a probe and answers does work.
	for _, p := range old {
		if !p.Ready && p.Role == "" && !g.holds(p) {
			return replaces(p)
		}
	}
	if d, wait := awaitsReplaced(g); wait {
		return d
	}
	if g.Full && len(g.Pods) > 1 {
		return Decision{Reason: v1alpha1.ReasonCacheFull, Message: fmt.Sprintf("no cache pod is replaced while the master of the cache, at %s, refuses new clients: "+
			"a replica that is replaced could not connect to it again; end connections of applications", g.Master)}
	}
	if g.Moving {
		return Decision{Reason: v1alpha1.ReasonMovingRole, Message: "the cache's master is moving; no cache pod is replaced meanwhile"}
	}
	for _, p := range old {
		if g.holds(p) {
			continue
		}
		// A master that does not work may not come back, and then this replica's copy is what takes over.
		if m, broken := g.brokenMaster(); broken {
			return waits(m, "to answer as the master, or for another one to be the master")
		}
		return replaces(p)
	}
	last := old[0]
	if len(g.Pods) == 1 {
		return replaces(last)
	}
	return Decision{Leave: last.Site, Reason: v1alpha1.ReasonMovingRole,
		Message: fmt.Sprintf("only the master of the cache, at %s, is left to update: it moves to another site first", last.Site)}
}

// awaitsReplaced waits for the pods that were replaced already.
func awaitsReplaced(g Group) (Decision, bool) {
	for _, p := range g.Pods {
		if !p.Ready && p.Current {
			return waits(p, "to be ready"), true
		}
		// The one that was replaced last must have every key again, or the next would take the last copy away.
		if p.Current && g.Master != "" && p.Site != g.Master && !p.Linked {
			return waits(p, "to have caught up with the master"), true
		}
	}
	return Decision{}, false
}

// holds is true for the pod that is the master, or is to be, or that applications reach.
func (g Group) holds(p Pod) bool {
	return p.Traffic || p.Site == g.Master || g.To != "" && p.Site == g.To
}

// brokenMaster is the master's pod if it is not ready, or did not answer as the master.
func (g Group) brokenMaster() (Pod, bool) {
	for _, p := range g.Pods {
		if p.Site == g.Master {
			return p, !p.Ready || p.Role != v1alpha1.CacheMaster
		}
	}
	return Pod{}, false
}

func outdated(g Group) []Pod {
	var out []Pod
	for _, p := range g.Pods {
		if p.Exists && !p.Going && !p.Current {
			out = append(out, p)
		}
	}
	return out
}

// unsettled says which pod is not there yet. That is no reason to do anything.
func unsettled(g Group) Decision {
	for _, p := range g.Pods {
		if p.Going || !p.Exists || !p.Ready {
			return waits(p, "to be ready")
		}
	}
	return Decision{}
}

func waits(p Pod, what string) Decision {
	return Decision{Reason: v1alpha1.ReasonWaitingForSite, Message: fmt.Sprintf("waiting for the cache of %s %s", p.Site, what)}
}

func replaces(p Pod) Decision {
	return Decision{Replace: p.Site, Reason: v1alpha1.ReasonUpdating, Message: fmt.Sprintf("the cache pod of %s is replaced", p.Site)}
}
