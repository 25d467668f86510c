// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// Decide answers what to do about one snapshot.
func Decide(s Snapshot, old Memory) Decision {
	s, known := memory.WithRuns(memory.OnKnownVolumes(memory.Believed(s), old), old)
	s = promotion.WithOrder(s)
	d := Decision{Status: s.Status, Memory: memory.Remember(s, old), Hold: true}
	d.Memory.Runs = known
	writer, behind := BehindTheSites(s)
	unproven := NeverPassed(s.Status)
	if behind || unproven {
		known.Open()
	}
	switch {
	case behind && writer != "":
		d = catchUp(s, d, writer)
	case s.Status.Epoch == 0, behind, unproven:
		d = bootstrap(s, d)
	case s.Status.Transition != nil && s.Status.Transition.Step == v1alpha1.TransitionFencing:
		d = fencing(s, d)
	case s.Status.Transition != nil:
		d = opening(s, d)
	default:
		d = steady(s, d, old)
	}
	d = settlePlanned(s, d).noteOutlived(s).noteFiltered(s).noteRows(s).noteRuns(s, known)
	if last := d.lastCandidate(s); last != "" {
		d.Memory.At(last).LastCandidateAt = s.Now
	}
	d.Views = views.Of(s, d.decided())
	if d.Topology == TopologyHealthy {
		d.Forecast = promotion.Foresee(s, d.Memory)
	}
	d = d.sayUnwritable(s)
	d.urgent = !d.Blocked() && (d.Status.Transition.Urgent(s.Now, s.Policy) || s.Status.Transition.Urgent(s.Now, s.Policy))
	if err := d.check(s); err != nil {
		// A decision that breaks an invariant is a bug in this package. Doing nothing and holding is always safe.
		return Decision{Topology: d.Topology, Verdict: VerdictAlert, Reason: v1alpha1.ReasonInvariantViolated, Message: err.Error(),
			Status: s.Status, Memory: d.Memory, Hold: true, Views: d.Views}
	}
	return d
}

// say sets what the poll saw and what the operator does about it.
func (d Decision) say(t Topology, v Verdict, r Reason, format string, args ...any) Decision {
	d.Topology, d.Verdict, d.Reason, d.Message = t, v, r, fmt.Sprintf(format, args...)
	return d
}

func (d Decision) then(effects ...Effect) Decision {
	d.Effects = append(d.Effects, effects...)
	return d
}

func (d Decision) within(next time.Duration) Decision {
	if next > 0 && (d.Next == 0 || next < d.Next) {
		d.Next = next
	}
	return d
}

// steady looks after a group with an active site and no transition.
func steady(s Snapshot, d Decision, old Memory) Decision {
	a, _ := s.Site(s.Status.ActiveSite)
	if a.Writable() || !(a.Sidecar.Answered && a.SQLAnswers()) {
		d.Memory.ReopenSince = time.Time{}
	}
	down := s.Now.Sub(memory.OrNow(d.Memory.Of(s.Status.ActiveSite).DownSince, s.Now))
	silent := d.Memory.Of(s.Status.ActiveSite).SilentPolls
	switch {
	case a.Writable():
		// An order to accept loss is for a group that is down; a healthy group moves by planned failover. I16, I29: an open site
		// stays open under a hold. If it restarts between two looks, it waits for its escrow, or for a person.
		d.Hold = maySoonClose(s, d.Memory, a)
		if a.OtherVolume {
			d.Hold = true // a person opened it by hand: its sidecar closes it, and must not open it again on this look (I12)
		}
		return plan(s, healthy(s, d, a), a)
	case s.Order.Elsewhere(s.Status.ActiveSite):
		return due(s, d, TopologyActiveDown, v1alpha1.ReasonForced)
	case a.Sidecar.Answered && a.SQLAnswers():
		return returned(s, d, a, old)
	case a.Sidecar.Answered && down < s.Policy.CrashGrace:
		return d.say(TopologyActiveDown, VerdictWait, v1alpha1.ReasonWaitingForRestart,
			"MySQL of %s is down; it may restart in place for %s", a.Name, s.Policy.CrashGrace).within(s.Policy.CrashGrace - down)
	case a.Sidecar.Answered:
		return due(s, d, TopologyActiveDown, v1alpha1.ReasonActiveSiteDown)
	case !memory.IsLongSilent(s, d.Memory, s.Status.ActiveSite):
		// An active site whose sidecar alone is silent waits here too: without its sidecar it cannot be opened again.
		return d.say(TopologyActiveSilent, VerdictWait, v1alpha1.ReasonBelowThreshold,
			"%s does not answer (%d of %d polls)", s.Status.ActiveSite, silent, s.Policy.Threshold).
			within(time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval - down)
	case memory.EverySiteSilent(s):
		return d.say(TopologyAllUnreachable, VerdictAlert, v1alpha1.ReasonEverySiteUnreachable, "no site answers, so nothing is done; look at their nodes, and at the operator's own network: it may be what is cut off")
	}
	return due(s, d, TopologyActiveSilent, v1alpha1.ReasonActiveSiteSilent)
}
