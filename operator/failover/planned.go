// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

const (
	// handTime is how long a move waits for a good moment (AtHand), because every transaction left to apply costs the clients time; after
	// that the limits of IsClose must do.
	handTime = 20 * time.Second
	// leavingPatience is how long a move waits for such a moment when the active site is about to go: its pod may have 10 s.
	leavingPatience = 2 * time.Second
	// leavingStands is how long a site that is about to go keeps its role before the operator tells people.
	leavingStands = 10 * time.Second
	// leavingRetry is how long after a reverted move of a leaving site the next one begins: each costs the clients a pause,
	// so the wait doubles, up to leavingRetryMost.
	leavingRetry     = 15 * time.Second
	leavingRetryMost = 10 * time.Minute
	// leavingHaste is how long the operator checks more often whether a candidate has caught up: a pod that is ended is gone by then.
	leavingHaste = time.Minute
)

// advise adds what a person can do about an outcome, if a person asked for the move. Otherwise the operator tries again.
func (d Decision) advise(all ...Remedy) Decision {
	if p := d.Status.Planned; p.Cause == v1alpha1.ReasonRequested {
		p.Remedies = all
	}
	return d
}

// end notes the outcome of the planned failover in the decision.
func (d Decision) end(p Planned, now time.Time, phase v1alpha1.PlannedPhase, why Reason, format string, args ...any) Decision {
	p.Phase, p.Reason, p.Message, p.Remedies, p.FinishedAt = phase, why, fmt.Sprintf(format, args...), nil, now
	p.Answered = p.Cause != v1alpha1.ReasonRequested
	d.Status.Planned, d.Persist = &p, true
	return d
}

// settlePlanned keeps the note of the planned failover true, whatever was decided: a request that cannot be carried out
// is refused, and one that an emergency has overtaken is over.
func settlePlanned(s Snapshot, d Decision) Decision {
	p, request := d.Status.Planned, s.Policy.PlannedTo
	moving := d.Status.Transition != nil && d.Status.Transition.Kind == v1alpha1.FailoverPlanned
	switch {
	case p != nil && p.Phase == v1alpha1.PlannedMoving && !moving:
		return d.end(*p, s.Now, v1alpha1.PlannedReverted, v1alpha1.ReasonEmergencyFailover, "an emergency failover took over: %s", d.Message).
			advise(remedy.New("see what took over, and why", s.Group.Command("history", "", "")))
	case p != nil && p.Phase == v1alpha1.PlannedWaiting && d.Topology != TopologyHealthy && !moving && !blip(s, d, p):
		return d.end(*p, s.Now, v1alpha1.PlannedRefused, v1alpha1.ReasonNotHealthy, "nothing was changed: %s; ask again once the group is healthy", d.Message).
			advise(remedy.EveryRule(s.Group)...)
	case p != nil && p.Over() && !p.Answered && request != p.To: // withdrawn, or another site is asked for by now
		answered := *p
		answered.Answered = true
		d.Status.Planned, d.Persist = &answered, true
	case request != "" && (p == nil || p.Over() && p.Answered) && d.Topology != TopologyHealthy && d.Topology != TopologyTransition && !missed(d):
		// A request that waited for the end of an outage would move the role when people no longer expect it.
		return d.end(Planned{From: s.Status.ActiveSite, To: request, Cause: v1alpha1.ReasonRequested, StartedAt: s.Now}, s.Now,
			v1alpha1.PlannedRefused, v1alpha1.ReasonNotHealthy, "nothing was changed: %s; ask again once the group is healthy", d.Message).
			advise(remedy.EveryRule(s.Group)...)
	}
	return d
}

// blip is true while the trouble that holds up a waiting planned failover may be over at the next poll.
func blip(s Snapshot, d Decision, p *Planned) bool {
	return (d.Verdict == VerdictWait || d.Verdict == VerdictReopen) && d.Status.Transition == nil && s.Led(p.StartedAt) <= s.Policy.PlannedLagTimeout
}

// missed is true while the active site has missed too few answers to count as silent: the order stays, and the next looks answer it.
func missed(d Decision) bool {
	return d.Verdict == VerdictWait && d.Reason == v1alpha1.ReasonBelowThreshold
}

// plan handles planned failovers while the active site is healthy: one that was asked for, or one away from an
// active site that is about to go.
func plan(s Snapshot, d Decision, a Site) Decision {
	if d = stalled(s, d, a); d.Status.Transition != nil {
		return d
	}
	p, request := s.Status.Planned, s.Policy.PlannedTo
	switch {
	case p != nil && p.Phase == v1alpha1.PlannedWaiting:
		asked := waiting(s, d, a, *p)
		if a.Leaving == "" || asked.Status.Planned.Phase != v1alpha1.PlannedWaiting {
			return asked
		}
		// There is no time to wait for the requested site; the operator looks at the request again afterwards.
		sooner := evacuate(s, d, a)
		if sooner.Status.Transition != nil {
			return sooner
		}
		asked.Stays = sooner.Stays
		return asked
	case request != "" && (p == nil || p.Over() && p.Answered):
		return waiting(s, d, a, Planned{From: a.Name, To: request, Cause: v1alpha1.ReasonRequested, StartedAt: s.Now})
	case a.Leaving != "" && (p == nil || p.Over()):
		return evacuate(s, d, a)
	}
	return d
}

// waiting decides whether a planned failover may begin now, must wait for its target, or is refused. Until it begins
// nothing is changed.
func waiting(s Snapshot, d Decision, a Site, p Planned) Decision {
	withdrawn := p.Cause == v1alpha1.ReasonRequested && s.Policy.PlannedTo != p.To
	switch why := promotion.Preflight(s, d.Memory, a, p.To); {
	case s.Policy.AbortPlanned || withdrawn:
		return d.end(p, s.Now, v1alpha1.PlannedAborted, v1alpha1.ReasonAborted, "given up before anything was changed").
			advise(remedy.New("to try again", remedy.MoveTo(s.Group, p.To)))
	case a.Name == p.To:
		return d.end(p, s.Now, v1alpha1.PlannedRefused, v1alpha1.ReasonAlreadyActive, "nothing was changed: %s is active already", p.To).
			advise(remedy.New("see who is active", s.Group.Command("status", "", "")))
	case abides(s, p, why.Reason):
		d = d.waitsFor(p, why.Reason, why.Message)
		d.Message = fmt.Sprintf("%s is active; the planned failover waits: %s", a.Name, why.Message)
		return d
	case why.Reason != "":
		return d.end(p, s.Now, v1alpha1.PlannedRefused, why.Reason, "nothing was changed: %s", why.Message).advise(why.Remedies...)
	}
	target, _ := s.Site(p.To)
	near, distance := promotion.IsClose(a, target)
	if soon := s.Led(p.StartedAt) < handTime; near && soon && !promotion.AtHand(a, target) {
		near, distance = false, distance+", and may be nearer in a moment"
	}
	if !near {
		if s.Led(p.StartedAt) > s.Policy.PlannedLagTimeout {
			words := fmt.Sprintf("nothing was changed: %s %s, and did not catch up within plannedLagTimeout %s", p.To, distance, s.Policy.PlannedLagTimeout)
			if cause := promotion.LagCause(a, target); cause != "" {
				words += "; " + cause
			}
			return d.end(p, s.Now, v1alpha1.PlannedRefused, v1alpha1.ReasonTargetLags, "%s", words).advise(remedy.CatchUp(s.Group, p.To)...)
		}
		d = d.waitsFor(p, v1alpha1.ReasonTargetLags, p.To+" catches up")
		// The topology stays Healthy: everything else continues meanwhile.
		d.Message = fmt.Sprintf("%s is active; the planned failover waits: %s %s", a.Name, p.To, distance)
		return d.within(s.Policy.PollInterval / 20)
	}
	if asked, waits := awaitCache(s, d, p); waits {
		return asked
	}
	return d.move(s, p)
}

// abides is true if a request stays although something is against it now.
func abides(s Snapshot, p Planned, why Reason) bool {
	if p.Phase == "" || p.Reason == v1alpha1.ReasonTargetSilent { // it is new, or its target has not answered since it was
		return promotion.Awaited(why)
	}
	// The target was fit when the move was asked for: one lost answer does not end the request.
	return promotion.Passing(why) && s.Led(p.StartedAt) <= s.Policy.PlannedLagTimeout
}

// waitsFor notes what a planned failover waits for: the first reason; a large change when it begins or is over, or people would look for a
// transaction that is gone, and end another; and what follows when a silent target has answered. Other reasons come and go with every look.
func (d Decision) waitsFor(p Planned, why Reason, message string) Decision {
	large, silent := v1alpha1.ReasonLargeChange, v1alpha1.ReasonTargetSilent
	// A target that was fit when the move was asked for stays one that was: a lost answer later does not make it TargetSilent.
	if p.Phase == "" || p.Reason != why && (p.Reason == silent || why == large || p.Reason == large && why != silent) {
		p.Phase, p.Reason, p.Message = v1alpha1.PlannedWaiting, why, message+"; nothing was changed yet"
		d.Status.Planned, d.Persist = &p, true
	}
	return d
}

// move begins a planned failover: from here on writes are kept out.
func (d Decision) move(s Snapshot, p Planned) Decision {
	p.Phase, p.Reason, p.Message = v1alpha1.PlannedMoving, p.Cause, "writes are kept out while the role moves"
	d = d.begin(s, v1alpha1.FailoverPlanned, p.To, p.Cause)
	d.Status.Planned = &p
	d.Effects = []Effect{Handover{From: p.From, To: p.To}}
	return d.say(TopologyTransition, VerdictFailover, p.Cause, "planned failover %s -> %s under epoch %d", p.From, p.To, d.Status.Epoch)
}

// evacuate moves the role away from a site that is about to go. It is not an order: if something forbids the move,
// the operator says so, and the site goes when it must.
func evacuate(s Snapshot, d Decision, a Site) Decision {
	p := s.Status.Planned
	began := memory.OrNow(d.Memory.LeavingSince, s.Now)
	if p != nil && p.Over() && p.Phase != v1alpha1.PlannedSucceeded && p.Cause != v1alpha1.ReasonRequested && s.Age(p.FinishedAt) < retryAfter(s.Status.Records) {
		return d.stays(s, a, p.Reason, "the last attempt was given up, and the operator will try again: "+p.Message)
	}
	hurry := s.Now.Sub(began) >= leavingPatience
	catchingUp := false
	var advice []Remedy
	var each, lasting []string
	reason := v1alpha1.ReasonNoFitCandidate
	for _, c := range promotion.Rank(s, d.Memory) {
		why := promotion.Preflight(s, d.Memory, a, c.Site.Name)
		near, distance := promotion.IsClose(a, c.Site)
		near = near && (hurry || promotion.AtHand(a, c.Site))
		switch {
		case c.Site.Name == a.Name:
			continue
		case why.Reason != "":
			each, lasting = append(each, why.Message), append(lasting, lastingWords(a, why))
			if slices.Contains([]Reason{v1alpha1.ReasonModeObserve, v1alpha1.ReasonPaused, v1alpha1.ReasonLargeChange, v1alpha1.ReasonVolumeTerminating}, why.Reason) {
				reason, advice = why.Reason, why.Remedies
			}
		case !near:
			catchingUp = true
			each, lasting = append(each, c.Site.Name+" "+distance), append(lasting, c.Site.Name+" is behind")
		default:
			cause := v1alpha1.ReasonSiteLeaving
			if a.Leaving == LeavingForUpdate {
				cause = v1alpha1.ReasonOrderedUpdate
			}
			return d.move(s, Planned{From: a.Name, To: c.Site.Name, Cause: cause, StartedAt: s.Now})
		}
	}
	d.Message = fmt.Sprintf("%s is active and about to go (%s), and no site can take its place: %s", a.Name, a.Leaving, strings.Join(slices.Compact(each), ", "))
	if catchingUp {
		reason, advice = v1alpha1.ReasonTargetLags, nil
	}
	slices.Sort(lasting) // the ranking may change with every look
	d = d.stays(s, a, reason, strings.Join(slices.Compact(lasting), ", "))
	if d.Stays != nil && slices.Contains([]Reason{v1alpha1.ReasonLargeChange, v1alpha1.ReasonVolumeTerminating}, reason) {
		d.Stays.Remedies = advice // the wait has no end but COMMIT, or a person
	}
	if !catchingUp || s.Now.Sub(began) > leavingHaste {
		return d // a node may stay cordoned for days
	}
	return d.within(s.Policy.PollInterval / 20)
}

// lastingWords say why a site may not take over without what changes with every look.
func lastingWords(a Site, why promotion.Refusal) string {
	if why.Reason == v1alpha1.ReasonLargeChange {
		return "a large transaction on " + a.Name + " is not committed, and the operator waits for its end without a limit"
	}
	return why.Message
}

// stays says that the role stays on a site that is about to go, once that has lasted for leavingStands. The person who
// drains its node sees only that the eviction is refused.
func (d Decision) stays(s Snapshot, a Site, why Reason, message string) Decision {
	if s.Now.Sub(memory.OrNow(d.Memory.LeavingSince, s.Now)) < leavingStands {
		return d
	}
	if message == "" {
		message = "no other site may take it"
	}
	d.Stays = &Stays{Site: a.Name, Leaving: a.Leaving, Reason: why, Message: message}
	return d
}

// retryAfter is how long after a reverted move the next one begins; it doubles with every reverted move in a row.
func retryAfter(records []v1alpha1.FailoverRecord) time.Duration {
	wait := leavingRetry / 2
	for _, r := range records {
		if r.Kind != v1alpha1.FailoverPlanned || !lineage.Reopens(r) {
			break
		}
		wait *= 2
	}
	return min(max(wait, leavingRetry), leavingRetryMost)
}
