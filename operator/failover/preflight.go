// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// preflight says why a planned failover to a site may not begin. Each refusal changes nothing, and says what to do about it.
func preflight(s Snapshot, m Memory, a Site, to string) Refusal {
	target, known := s.Site(to)
	if !known {
		var names []string
		for _, site := range s.Sites {
			names = append(names, site.Name)
		}
		return Refusal{v1alpha1.ReasonUnknownSite, fmt.Sprintf("the group has no site %q; its sites are %s", to, strings.Join(names, ", ")),
			[]Remedy{remedy("see which sites there are", s.Group.Command("status", "", ""))}}
	}
	if s.Policy.Mode == v1alpha1.FailoverObserve {
		return Refusal{v1alpha1.ReasonModeObserve, "spec.failover.mode is Observe; set it to Manual or Auto",
			[]Remedy{remedy("to let the operator act", s.Group.letAct())}}
	}
	if s.paused() {
		return Refusal{v1alpha1.ReasonPaused, pausedMessage(s), []Remedy{remedy("to go on", s.Group.Command("resume", "", ""))}}
	}
	for _, guard := range unfitness {
		if why := guard(s, m, target); why != "" {
			return Refusal{v1alpha1.ReasonNotFit, fmt.Sprintf("%s: %s", to, why), cure(s, m, target, why)}
		}
	}
	switch {
	case target.Leaving != "":
		return Refusal{v1alpha1.ReasonNotFit, fmt.Sprintf("%s is about to go itself: %s", to, target.Leaving), s.Group.theSite(to)}
	case !a.Sidecar.Answered || !a.MySQL.Direct:
		return Refusal{v1alpha1.ReasonNotHealthy, "the active site " + a.Name + " does not answer in full, so it could not be fenced in time", s.Group.everyRule()}
	case target.MySQL.ReplicaOf != a.Name || !target.MySQL.IORunning || !target.MySQL.SQLRunning:
		return Refusal{v1alpha1.ReasonNotReplicating, fmt.Sprintf("%s does not replicate from %s: %s", to, a.Name, detachedMessage(target)), s.Group.theSite(to)}
	case writableElsewhere(s, a.Name) != "":
		return Refusal{v1alpha1.ReasonForeignWriter, writableElsewhere(s, a.Name) + " accepts writes too; it is being fenced", s.Group.everyRule()}
	}
	for _, site := range s.Sites {
		if site.Busy != "" && a.Leaving == "" {
			return Refusal{v1alpha1.ReasonCloneInProgress, fmt.Sprintf("%s is busy (%s) with the data of %s; ask again when it is done", site.Name, site.Busy, a.Name),
				s.Group.waitAndAsk("see how far the work on its data is", to)}
		}
	}
	return Refusal{}
}

// cure is what a person can do about a site that is not fit, by the guard that says so.
func cure(s Snapshot, m Memory, site Site, why string) []Remedy {
	if why == isEscrowMissing(s, m, site) {
		return []Remedy{s.Group.restoreEscrow(site.Name), remedy("then", s.Group.moveTo(site.Name))}
	}
	return s.Group.theSite(site.Name)
}

// isClose is true if a replica needs so little more that writes may be stopped for it. A lag that is not known is none.
func isClose(a, target Site) (bool, string) {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	if target.MySQL.LagSeconds == nil {
		return false, fmt.Sprintf("is %d transactions behind, for how long is not known", count)
	}
	lag := *target.MySQL.LagSeconds
	return lag <= closeLag && count <= closeCount, fmt.Sprintf("is %d transactions (%.1f s) behind", count, lag)
}

// atHand is true if a replica needs so little more that applying it takes no time that a client would notice.
func atHand(a, target Site) bool {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	lag := target.MySQL.LagSeconds
	return count <= handCount && lag != nil && *lag <= handLag
}

// passing is true for a refusal whose cause may be over at the next poll.
func passing(why Reason) bool {
	return why == v1alpha1.ReasonNotFit || why == v1alpha1.ReasonNotHealthy || why == v1alpha1.ReasonNotReplicating || why == v1alpha1.ReasonCloneInProgress || why == v1alpha1.ReasonForeignWriter
}

// paused is true while a person keeps the operator from changing roles by itself.
func (s Snapshot) paused() bool { return s.Now.Before(s.Policy.PausedUntil) }

func pausedMessage(s Snapshot) string {
	return fmt.Sprintf("paused until %s; to go on sooner, take the annotation %s off the group",
		s.Policy.PausedUntil.UTC().Format(time.RFC3339), v1alpha1.AnnotationPauseUntil)
}
