// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// overtaken turns a planned failover whose source is lost into an emergency failover to the same target, as soon as the
// rules of one would act. To open a lost site again, as a failed move does otherwise, would only cost another wait. dying is
// true while the source is down and not yet long enough: then neither happens.
func overtaken(s Snapshot, d Decision, from, target Site) (over Decision, dying, lost bool) {
	if !from.unusable() || s.Policy.AbortPlanned || unfit(s, d.Memory, target) != "" {
		return d, false, false // the source can be opened again, or must be: the target cannot be opened
	}
	blocked, _, _ := forbidden(s, d.Memory, Candidate{Site: target, All: target.All()}, true)
	if blocked || overBudget(s, d.Memory.Executed[from.Name], target) != "" {
		return d, false, false // an emergency failover would not be begun now either
	}
	why, message := lostBy(s, d.Memory, from)
	if why == "" {
		return d, true, false
	}
	t := *s.Status.Transition
	t.Kind, t.Reason, t.StartedAt, t.FromExecuted = v1alpha1.FailoverEmergency, why, s.Now, d.Memory.Executed[from.Name]
	// The epoch stays: it names the target already, and what was acknowledged under it goes on to count for the gate.
	d.Status.Transition = &t
	d.Memory.DrainSince = s.Now
	d.Persist, d.Hold = true, true
	d = d.say(TopologyTransition, VerdictFailover, why, "%s while the role was moving to %s: it takes over without what cannot be fetched any more", message, t.To)
	return d.then(Select{Site: t.To}, Announce{Fence: fenceTargets(&t), Drain: t.To}).within(time.Millisecond), false, true
}

// lostBy names the rule by which an active site that is down would be replaced now, or "": the same as in steady.
func lostBy(s Snapshot, m Memory, site Site) (Reason, string) {
	down := s.Now.Sub(orNow(m.DownSince[site.Name], s.Now))
	polls := m.SilentPolls[site.Name]
	switch {
	case site.Sidecar.Answered && down >= s.Policy.CrashGrace:
		return v1alpha1.ReasonActiveSiteDown, fmt.Sprintf("MySQL of %s went down", site.Name)
	case !site.Sidecar.Answered && polls >= s.Policy.Threshold && down >= time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval:
		return v1alpha1.ReasonActiveSiteSilent, fmt.Sprintf("%s stopped answering", site.Name)
	}
	return "", ""
}
