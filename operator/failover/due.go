// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// due begins an emergency failover. If something forbids it, due says what, and the next poll asks again.
func due(s Snapshot, d Decision, seen Topology, why Reason) Decision {
	forced, kind := why == v1alpha1.ReasonForced, v1alpha1.FailoverEmergency
	best, found := promotion.Choose(s, d.Memory, s.Status.ActiveSite)
	if forced {
		target, known := s.Site(s.Order.To)
		best, found, kind = promotion.Candidate{Site: target, All: target.All()}, known, v1alpha1.FailoverForced
	}
	ask := promotion.Ask(s, d.Memory, best, found)
	if no := promotion.FirstAgainst(promotion.Permissions, ask); no.Reason != "" && !(forced && found) {
		d.Status.Records = s.Status.Records // nothing ends yet, so there is nothing to record
		return d.say(seen, VerdictBlocked, no.Reason, "%s (%s): %s; %s", why, s.Status.ActiveSite, no.Message, promotion.WayOut(s, d.Memory, best, found))
	}
	if never := promotion.FirstAgainst(promotion.Endings, ask); why == v1alpha1.ReasonActiveSiteSilent && never.Reason != "" {
		d.Status.Records = s.Status.Records
		if d = d.say(seen, VerdictBlocked, never.Reason, "%s: %s", why, never.Message); never.Reason == v1alpha1.ReasonBelowThreshold {
			d.Verdict = VerdictWait // the next polls will show it
			return d.within(s.Policy.PollInterval / 4)
		}
		return d
	}
	d = d.begin(s, kind, best.Site.Name, why)
	return d.say(seen, VerdictFailover, why, "failover %s -> %s under epoch %d", s.Status.ActiveSite, best.Site.Name, d.Status.Epoch)
}

// begin states the intent: the next epoch, its target, and that no site may open yet.
func (d Decision) begin(s Snapshot, kind v1alpha1.FailoverKind, to string, why Reason) Decision {
	detected := memory.OrNow(d.Memory.Of(s.Status.ActiveSite).DownSince, s.Now)
	d.Status.Epoch = s.Status.Epoch + 1
	d.Status.ActiveSite = to
	d.Status.Transition = &Transition{
		Kind: kind, Step: v1alpha1.TransitionFencing, From: s.Status.ActiveSite, To: to, Reason: why,
		DetectedAt: detected, StartedAt: s.Now, FromExecuted: d.Memory.Of(s.Status.ActiveSite).Executed,
		FromUUID: d.Memory.Of(s.Status.ActiveSite).UUID,
	}
	d.Memory.DrainSince = s.Now
	d.Persist, d.Hold = true, true
	effects := []Effect{Select{Site: to}, Announce{Drain: to}}
	if from := s.Status.ActiveSite; from != "" {
		effects[1] = Announce{Fence: []string{from}, Drain: to}
	}
	return d.then(effects...).within(time.Millisecond)
}

// retarget names another target for a transition whose target was never opened. The old active site stays the one that
// must be proven fenced.
func (d Decision) retarget(s Snapshot, to string, why Reason) Decision {
	t := *s.Status.Transition
	t.To, t.Reason = to, why
	if t.Kind == v1alpha1.FailoverPlanned && why == v1alpha1.ReasonTargetLost {
		t.Kind = v1alpha1.FailoverEmergency // the old active site was to be opened again and is gone
	}
	if t.Kind == v1alpha1.FailoverPlanned && why == v1alpha1.ReasonForced {
		t.Kind = v1alpha1.FailoverForced // a person accepts the loss now: nothing is waited for as in a planned move
	}
	d.Status.Epoch, d.Status.ActiveSite, d.Status.Transition = s.Status.Epoch+1, to, &t
	d.Memory.DrainSince = s.Now
	d.Persist, d.Hold, d.Effects = true, true, nil
	return d.then(Select{Site: to}, Announce{Drain: to}).within(time.Millisecond)
}
