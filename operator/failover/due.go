// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// due begins an emergency failover unless something forbids it; then it says what, and the next poll asks again.
func due(s Snapshot, d Decision, seen Topology, why Reason) Decision {
	forced := why == v1alpha1.ReasonForced
	best, found := choose(s, d.Memory, s.Status.ActiveSite)
	if forced {
		target, known := s.Site(s.Policy.ForceTo)
		best, found = Candidate{Site: target, All: target.All()}, known && forcible(s, target)
	}
	ask := takeover{s, d.Memory, best, found}
	if no := refusal(permissions, ask); no.reason != "" && !(forced && found) {
		d.Status.Records = s.Status.Records // nothing ends yet, so there is nothing to record
		return d.say(seen, VerdictBlocked, no.reason, "%s (%s): %s; %s", why, s.Status.ActiveSite, no.message, wayOut(s, d.Memory, best, found))
	}
	if never := refusal(endings, ask); why == v1alpha1.ReasonActiveSiteSilent && never.reason != "" {
		d.Status.Records = s.Status.Records
		if d = d.say(seen, VerdictBlocked, never.reason, "%s: %s", why, never.message); never.reason == v1alpha1.ReasonBelowThreshold {
			d.Verdict = VerdictWait // it is about to be known
			return d.within(s.Policy.PollInterval / 4)
		}
		return d
	}
	kind := v1alpha1.FailoverEmergency
	if forced {
		kind = v1alpha1.FailoverForced
	}
	d = d.begin(s, kind, best.Site.Name, why)
	return d.say(seen, VerdictFailover, why, "failover %s -> %s under epoch %d", s.Status.ActiveSite, best.Site.Name, d.Status.Epoch)
}

// vouchedFor names the sites that are silent for as long as the active site must be, and could vouch for it: the gate could not be
// passed by time. Of sites that have just lost an answer it says BelowThreshold: soon they answer, or are among the others. It is empty
// if there may be proof, for which the failover has to begin.
func vouchedFor(s Snapshot, m Memory, target string) (names string, why Reason) {
	a, known := s.Site(s.Status.ActiveSite)
	if !known || a.Reachable() || a.Gone() || a.Pod.OutOfService {
		return "", ""
	}
	var all, long []string
	for _, name := range silentVouchers(s, m, target) {
		all = append(all, name)
		if site, _ := s.Site(name); isLongSilent(s, m, name) || site.Sidecar.Answered {
			long = append(long, name)
		}
	}
	if len(long) == 0 {
		return named(s, all), v1alpha1.ReasonBelowThreshold
	}
	return named(s, long), v1alpha1.ReasonSiteMayStillVouch
}

// isLongSilent is true for a site that has not answered for as long as an active site must not.
func isLongSilent(s Snapshot, m Memory, site string) bool {
	down := s.Now.Sub(orNow(m.Of(site).DownSince, s.Now))
	return m.Of(site).SilentPolls >= s.Policy.Threshold && down >= time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval
}

// overBudget says how a promotion would lose more than the loss budget allows, or "". A loss that is not known is over
// every budget.
func overBudget(s Snapshot, from gtid.Set, to Site) string {
	if s.Policy.MaxLost == nil {
		return ""
	}
	if from.IsEmpty() {
		return fmt.Sprintf("what the old active site had is not known, and spec.failover.maxLostTransactions is %d", *s.Policy.MaxLost)
	}
	if lost := from.Subtract(to.All()).Count(); lost > *s.Policy.MaxLost {
		return fmt.Sprintf("%s lacks at least %d transactions, spec.failover.maxLostTransactions is %d", to.Name, lost, *s.Policy.MaxLost)
	}
	return ""
}

func whyNobody(s Snapshot, m Memory) string {
	var each []string
	for _, c := range candidates(s, m) {
		if c.Site.Name != s.Status.ActiveSite {
			each = append(each, c.Site.Name+": "+c.Unfit.Why)
		}
	}
	return "no site is fit (" + strings.Join(each, ", ") + ")"
}

// begin states the intent: the next epoch, its target, and that nobody may open yet.
func (d Decision) begin(s Snapshot, kind v1alpha1.FailoverKind, to string, why Reason) Decision {
	detected := orNow(d.Memory.Of(s.Status.ActiveSite).DownSince, s.Now)
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
