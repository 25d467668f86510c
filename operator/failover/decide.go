// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Decide answers what to do about one snapshot.
func Decide(s Snapshot, old Memory) Decision {
	s, known := withRuns(onKnownVolumes(believed(s), old), old)
	d := Decision{Status: s.Status, Memory: remember(s, old), Hold: true}
	d.Memory.Runs = known
	writer, behind := behindTheSites(s)
	if behind {
		known.open()
	}
	switch {
	case behind && writer != "":
		d = catchUp(s, d, writer)
	case s.Status.Epoch == 0, behind:
		d = bootstrap(s, d)
	case s.Status.Transition != nil && s.Status.Transition.Step == v1alpha1.TransitionFencing:
		d = fencing(s, d)
	case s.Status.Transition != nil:
		d = opening(s, d)
	default:
		d = steady(s, d, old)
	}
	d = settlePlanned(s, d).noteOutlived(s).noteRows(s).noteRuns(s, known)
	if hope := d.onlyHope(s); hope != "" {
		d.Memory.HopeAt[hope] = s.Now
	}
	d.Views, d.Forecast = views(s, d), forecast(s, d)
	d = d.sayUnwritable(s)
	d.urgent = !d.Blocked() && (d.Status.Transition.Urgent(s.Now, s.Policy) || s.Status.Transition.Urgent(s.Now, s.Policy))
	if err := d.check(s); err != nil {
		// A decision that breaks an invariant is a bug of this package. Doing nothing and holding is always safe.
		return Decision{Topology: d.Topology, Verdict: VerdictAlert, Reason: v1alpha1.ReasonInvariantViolated, Message: err.Error(),
			Status: s.Status, Memory: d.Memory, Hold: true, Views: d.Views}
	}
	return d
}

// say sets what is seen and done.
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

// behindTheSites is true if a site of the group has adopted an epoch that status does not know: the status was restored
// from a backup or edited. A site that is open and that the highest epoch names, as it says itself, is the active one. Any other
// that accepts writes was opened by hand, and may lack what the one that is named has acknowledged. Volumes that are not part
// of the group may remember anything.
func behindTheSites(s Snapshot) (writer string, behind bool) {
	highest := s.Status.Epoch
	var writers []string
	for _, site := range s.Sites {
		r := site.Sidecar.Report
		if !site.Sidecar.Answered || r.Epoch <= s.Status.Epoch || r.Epoch < highest || site.OtherVolume || site.Removed || s.Status.Epoch > 0 && !site.Provisioned {
			continue
		}
		if r.Epoch > highest {
			highest, writers = r.Epoch, nil
		}
		if r.Answered && r.Writable && r.ActiveSite == site.Name && site.MySQL.ReplicaHost == "" {
			writers = append(writers, site.Name)
		}
	}
	if len(writers) == 1 {
		writer = writers[0]
	}
	return writer, highest > s.Status.Epoch
}

// catchUp takes the site that is open under the highest epoch for the active one, under the epoch after it: it stays open.
func catchUp(s Snapshot, d Decision, writer string) Decision {
	site, _ := s.Site(writer)
	d.Status.Epoch, d.Status.ActiveSite, d.Status.Transition = site.Sidecar.Report.Epoch+1, writer, nil
	d.Status.ActiveSince, d.Persist, d.Hold = s.Now, true, true
	return d.say(TopologyUninitialised, VerdictComplete, v1alpha1.ReasonStatusBehind, "%s is open under epoch %d, which status did not know", writer,
		site.Sidecar.Report.Epoch).then(Select{Site: writer}, Announce{}).within(time.Millisecond)
}

// bootstrap chooses the first active site. All candidates must have been seen: a group that was created anew over
// retained volumes has a history that only the sites know.
func bootstrap(s Snapshot, d Decision) Decision {
	var best Candidate
	highest, unseen := int64(0), int64(0)
	for _, site := range s.Sites {
		if site.Role == v1alpha1.PrimaryCandidate && !site.Removed && !(site.Sidecar.Answered && site.MySQL.Direct) {
			if unseen = unseenEpochs; !ordered(s) {
				return awaitCandidate(s, d, site)
			}
		}
		highest = max(highest, site.Sidecar.Report.Epoch)
		c := Candidate{Site: site, All: site.All()}
		if site.Role == v1alpha1.PrimaryCandidate && !site.Removed && !site.OtherVolume && (best.Site.Name == "" || better(c, best) < 0) {
			best = c
		}
	}
	if best.Site.Name == "" {
		return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonNoFitCandidate, "the group has no primary-candidate on the volume that holds its data; bring one back on that volume, or make another site a primary-candidate in spec.sites")
	}
	if ordered(s) {
		best.Site, _ = s.Site(s.Policy.ForceTo)
		best.All = best.Site.All()
	}
	for _, site := range s.Sites {
		_, diverged := d.Memory.Diverged[site.Name]
		lacks := site.All().Subtract(best.All)
		if site.SQLAnswers() && !lacks.IsEmpty() && !ordered(s) && !diverged && !site.Removed && !site.OtherVolume {
			return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonMissingTransactions,
				"no site holds all transactions: %s has %s, which %s lacks; a person must choose; %s", site.Name, lacks, best.Site.Name, wayOut(s, d.Memory, best, forcible(s, best.Site)))
		}
	}
	if why := isUnescrowed(s, d.Memory, best.Site); why != "" {
		return d.say(TopologyUninitialised, VerdictWait, v1alpha1.ReasonKeyringNotEscrowed, "%s is to be the first active site, and %s", best.Site.Name, why).
			within(s.Policy.PollInterval / 4)
	}
	d = d.begin(s, v1alpha1.FailoverBootstrap, best.Site.Name, v1alpha1.ReasonFirstSite)
	d.Status.Epoch, d.Status.Transition.From = max(highest, s.Status.Epoch)+unseen+1, ""
	d.Status.Transition.FromExecuted = best.All // whoever takes its place before it was opened must hold that too
	return d.say(TopologyUninitialised, VerdictBootstrap, v1alpha1.ReasonFirstSite, "%s becomes active; the sites have seen epoch %d",
		best.Site.Name, highest)
}

// unseenEpochs is left out when a person orders the first opening although a candidate was not seen, which may know a later epoch
// than the others: none of those may be used for two sites (I1).
const unseenEpochs = 1_000_000

// firstPatience is how long a candidate of a group without an active site may take to come up before people are told.
const firstPatience = 10 * time.Minute

// awaitCandidate waits for a candidate that was not seen: it may be the one that has the data.
func awaitCandidate(s Snapshot, d Decision, site Site) Decision {
	since := d.Memory.IndirectSince[site.Name]
	if since.IsZero() || s.Now.Sub(since) < firstPatience {
		return d.say(TopologyUninitialised, VerdictWait, v1alpha1.ReasonWaitingForSites,
			"waiting for MySQL of candidate %s before the first active site is chosen", site.Name)
	}
	return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonWaitingForSites, "MySQL of candidate %s does not come up, for more than %s: "+
		"which site has the data is not known without it; look at its pod and at the other conditions, and %s", site.Name, firstPatience, withoutCandidate(s, d.Memory, ""))
}

// steady looks after a group with an active site and no transition.
func steady(s Snapshot, d Decision, old Memory) Decision {
	a, _ := s.Site(s.Status.ActiveSite)
	if a.Writable() || !(a.Sidecar.Answered && a.SQLAnswers()) {
		d.Memory.ReopenSince = time.Time{}
	}
	down := s.Now.Sub(orNow(d.Memory.DownSince[s.Status.ActiveSite], s.Now))
	silent := d.Memory.SilentPolls[s.Status.ActiveSite]
	switch {
	case a.Writable():
		// A person's order to accept loss is for a group that is down; a healthy one moves by planned failover.
		// I16: open, it stays open under a hold; should it restart between two looks, it waits for its escrow.
		d.Hold = isUnescrowed(s, d.Memory, a) != ""
		if a.OtherVolume {
			d.Hold = true // somebody opened it by hand: its sidecar closes it, and must not open it again on this look (I12)
		}
		return plan(s, healthy(s, d, a), a)
	case ordered(s) && s.Policy.ForceTo != s.Status.ActiveSite:
		return due(s, d, TopologyActiveDown, v1alpha1.ReasonForced)
	case a.Sidecar.Answered && a.SQLAnswers():
		return returned(s, d, a, old)
	case a.Sidecar.Answered && down < s.Policy.CrashGrace:
		return d.say(TopologyActiveDown, VerdictWait, v1alpha1.ReasonWaitingForRestart,
			"MySQL of %s is down; it may restart in place for %s", a.Name, s.Policy.CrashGrace).within(s.Policy.CrashGrace - down)
	case a.Sidecar.Answered:
		return due(s, d, TopologyActiveDown, v1alpha1.ReasonActiveSiteDown)
	case !isLongSilent(s, d.Memory, s.Status.ActiveSite):
		// Also an active site whose sidecar alone is silent waits here: without its sidecar it cannot be opened again.
		return d.say(TopologyActiveSilent, VerdictWait, v1alpha1.ReasonBelowThreshold,
			"%s does not answer (%d of %d polls)", s.Status.ActiveSite, silent, s.Policy.Threshold).
			within(time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval - down)
	case everySiteSilent(s):
		return d.say(TopologyAllUnreachable, VerdictAlert, v1alpha1.ReasonEverySiteUnreachable, "no site answers, so nothing is done; look at their nodes, and at the operator's own network: it may be what is cut off")
	}
	return due(s, d, TopologyActiveSilent, v1alpha1.ReasonActiveSiteSilent)
}

func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

func everySiteSilent(s Snapshot) bool {
	for _, site := range s.Sites {
		if site.Reachable() {
			return false
		}
	}
	return true
}

// healthy keeps everything around a writable active site right.
func healthy(s Snapshot, d Decision, a Site) Decision {
	d = d.say(TopologyHealthy, VerdictNothing, v1alpha1.ReasonHealthy, "%s is active", a.Name).then(Select{Site: a.Name})
	var foreign []string
	for _, site := range s.Sites {
		if site.Name != a.Name && site.Writable() && site.Busy == "" {
			foreign = append(foreign, site.Name)
		}
	}
	if len(foreign) > 0 {
		d = d.then(Announce{Fence: foreign})
	}
	d.Status.Records = settleLoss(s, d.Memory, a)
	for _, site := range s.Sites {
		if unsettled(s, d.Memory, site.Name) && site.MySQL.Direct && site.MySQL.ReplicaHost != "" && !site.MySQL.ReceiverStopped {
			d = d.then(Drain{Site: site.Name}) // what it alone has can be counted only while nothing arrives
		}
		if shouldFollow(s, d.Memory, site, a) {
			d = d.then(Follow{Site: site.Name, Source: a.Name})
		}
	}
	d.Persist = recordsDiffer(d.Status.Records, s.Status.Records)
	return d
}

// shouldFollow is true for a site that may be attached to the active site and is not.
func shouldFollow(s Snapshot, m Memory, site, a Site) bool {
	_, diverged := m.Diverged[site.Name]
	switch {
	case site.Name == a.Name, !site.Provisioned, site.OtherVolume, site.Busy != "", diverged, site.Removed:
		return false
	case !site.MySQL.Direct, !a.MySQL.Direct, !site.Fenced():
		return false // never CHANGE REPLICATION SOURCE on a site that might accept writes, or that was not compared
	case unsettled(s, m, site.Name):
		return false // what it alone has is counted first
	case !site.All().Subtract(a.MySQL.Executed).IsEmpty():
		// Not comparable in this poll, or diverged: attaching would mix histories.
		return site.MySQL.ReplicaOf == a.Name && site.MySQL.ReceiverStopped
	}
	return site.MySQL.ReplicaOf != a.Name || site.MySQL.ReceiverStopped || !site.MySQL.SQLRunning
}

// returned handles an active site that answers but is read-only: it restarted, or fenced itself when it was isolated.
func returned(s Snapshot, d Decision, a Site, old Memory) Decision {
	if ordered(s) {
		return reopened(s, d, a) // it is this site that was ordered: what it lacks was accepted, and all else is asked of every order
	}
	if lacks, where := missing(s, d.Memory, a); !lacks.IsEmpty() {
		d = due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
		d.Message = fmt.Sprintf("%s came back without %s, which %s has: %s", a.Name, lacks, where, d.Message)
		return d
	}
	if known := old.Executed[a.Name]; !known.Subtract(a.MySQL.Executed).IsEmpty() || a.OtherVolume {
		// What it had is gone: its volume was replaced or rolled back. Opened now, it would be a copy from the past.
		d.Memory.Executed[a.Name] = known
		d = due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
		d.Message = fmt.Sprintf("%s %s: %s", a.Name, lostItself(a, known), d.Message)
		return d
	}
	if isBusy(s, d.Memory, a) != "" {
		return due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
	}
	return reopened(s, d, a)
}

// lostItself says what an active site that came back has lost.
func lostItself(a Site, known gtid.Set) string {
	if a.OtherVolume {
		return "is on another volume than the one that holds its data"
	}
	return fmt.Sprintf("came back without %s, which it had", known.Subtract(a.MySQL.Executed))
}

// reopened opens the active site again, under the same epoch.
func reopened(s Snapshot, d Decision, a Site) Decision {
	if r, may := a.writesBeside(a.Pod.UID); may {
		return anew(s, d, a, r)
	}
	if d.Memory.ReopenSince.IsZero() {
		d.Memory.ReopenSince = s.Now
	}
	stuck := late(s, d.Memory.ReopenSince)
	if stuck {
		if next := due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteCannotOpen); next.Verdict != VerdictBlocked {
			return next
		}
	}
	if why := isUnescrowed(s, d.Memory, a); why != "" {
		return d.keptShut(s, TopologyActiveReadOnly, a.Name, why)
	}
	d.Hold = false
	why, message := v1alpha1.ReasonReturnedWhole, fmt.Sprintf("%s is back and holds everything seen; it is opened again under epoch %d", a.Name, s.Status.Epoch)
	if ordered(s) {
		why, message = v1alpha1.ReasonForced, fmt.Sprintf("a person ordered %s, and accepted what it lacks; it is opened again under epoch %d", a.Name, s.Status.Epoch)
	}
	d = d.say(TopologyActiveReadOnly, VerdictReopen, why, "%s", message)
	if stuck {
		d = d.triedOn(s, a) // nobody else may take over
	}
	return d.then(Select{Site: a.Name}).then(toOpen(s, a)...).within(s.Policy.PollInterval / 4)
}

// anew opens a site that has the role under an epoch of its own, behind the promotion gate, because an earlier pod of it may be open
// under the present one. The next epoch is left out: a site that is named again under the very next one goes on (I1, I2).
func anew(s Snapshot, d Decision, a Site, earlier Run) Decision {
	d = d.begin(s, v1alpha1.FailoverEmergency, a.Name, v1alpha1.ReasonEarlierPodMayRun)
	d.Status.Epoch++
	d.Effects = []Effect{Select{Site: a.Name}, Announce{}}
	return d.say(TopologyActiveReadOnly, VerdictFailover, v1alpha1.ReasonEarlierPodMayRun, "%s is back in another pod, and %s: it is opened under epoch %d once that one is proven fenced",
		a.Name, earlier, d.Status.Epoch)
}

// triedOn says of a site that does not open why nobody takes its place, and what a person can do; opening it is tried on.
func (d Decision) triedOn(s Snapshot, site Site) Decision {
	trouble := ""
	if said := site.Sidecar.Report.Message; said != "" {
		trouble = " (" + said + ")"
	}
	best, found := choose(s, d.Memory, site.Name)
	_, _, forbids := forbidden(s, d.Memory, best, found)
	out := withoutCandidate(s, d.Memory, site.Name)
	if found {
		out = override(best.Site.Name)
	}
	return d.say(d.Topology, VerdictBlocked, v1alpha1.ReasonActiveSiteCannotOpen, "%s does not open%s, which is tried on, and nobody takes its place: %s; %s",
		site.Name, trouble, forbids, out)
}

// due begins an emergency failover unless something forbids it; then it says what, and the next poll asks again.
func due(s Snapshot, d Decision, seen Topology, why Reason) Decision {
	forced := why == v1alpha1.ReasonForced
	best, found := choose(s, d.Memory, s.Status.ActiveSite)
	if forced {
		target, known := s.Site(s.Policy.ForceTo)
		best, found = Candidate{Site: target, All: target.All()}, known && forcible(s, target)
	}
	if blocked, reason, message := forbidden(s, d.Memory, best, found); blocked && !(forced && found) {
		d.Status.Records = s.Status.Records // nothing ends yet, so there is nothing to record
		return d.say(seen, VerdictBlocked, reason, "%s (%s): %s; %s", why, s.Status.ActiveSite, message, wayOut(s, d.Memory, best, found))
	}
	if silent, reason := vouchedFor(s, d.Memory, best.Site.Name); why == v1alpha1.ReasonActiveSiteSilent && silent != "" {
		d.Status.Records = s.Status.Records
		if reason == v1alpha1.ReasonBelowThreshold {
			return d.say(seen, VerdictWait, reason, "%s: %s has lost an answer too: whether it could vouch for %s is about to be known", why, silent, s.Status.ActiveSite).
				within(s.Policy.PollInterval / 4)
		}
		return d.say(seen, VerdictBlocked, reason, "%s: %s may still be open, and %s, which does not answer either, may vouch for it: a failover could not be ended, so none is begun; "+
			"bring either back, or taint its node %s if it is down; %s", why, s.Status.ActiveSite, silent, v1alpha1.OutOfServiceTaint, override(best.Site.Name))
	}
	if never := outlivedAndSilent(s, d.Memory); why == v1alpha1.ReasonActiveSiteSilent && never != "" {
		d.Status.Records = s.Status.Records
		return d.say(seen, VerdictBlocked, v1alpha1.ReasonLeaseOutlived, "%s: %s; a failover could not be ended, so none is begun; %s; %s", why, never,
			outlivedRemedy(s.Status.ActiveSite), override(best.Site.Name))
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
	if !known || a.Reachable() || a.gone() || a.Pod.OutOfService {
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
		return s.named(all), v1alpha1.ReasonBelowThreshold
	}
	return s.named(long), v1alpha1.ReasonSiteMayStillVouch
}

// isLongSilent is true for a site that has not answered for as long as an active site must not.
func isLongSilent(s Snapshot, m Memory, site string) bool {
	down := s.Now.Sub(orNow(m.DownSince[site], s.Now))
	return m.SilentPolls[site] >= s.Policy.Threshold && down >= time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval
}

// forbidden is what forbids an emergency failover, in the order in which a person would want to know.
func forbidden(s Snapshot, m Memory, best Candidate, found bool) (bool, Reason, string) {
	switch {
	case s.Policy.Mode == v1alpha1.FailoverObserve:
		return true, v1alpha1.ReasonModeObserve, "spec.failover.mode is Observe"
	case s.Policy.Mode == v1alpha1.FailoverManual:
		return true, v1alpha1.ReasonModeManual, "spec.failover.mode is Manual"
	case s.paused():
		return true, v1alpha1.ReasonPaused, pausedMessage(s)
	case !found:
		return true, nobodyFit(s, m), whyNobody(s, m)
	case s.Now.Before(s.Status.CooldownUntil):
		return true, v1alpha1.ReasonCooldown, fmt.Sprintf("cooldown until %s", s.Status.CooldownUntil.UTC().Format(time.RFC3339))
	}
	if over := overBudget(s, m.Executed[s.Status.ActiveSite], best.Site); over != "" {
		return true, v1alpha1.ReasonLossBudget, over
	}
	return false, "", ""
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
			each = append(each, c.Site.Name+": "+c.Unfit)
		}
	}
	return "no site is fit (" + strings.Join(each, ", ") + ")"
}

// begin states the intent: the next epoch, its target, and that nobody may open yet.
func (d Decision) begin(s Snapshot, kind v1alpha1.FailoverKind, to string, why Reason) Decision {
	detected := orNow(d.Memory.DownSince[s.Status.ActiveSite], s.Now)
	d.Status.Epoch = s.Status.Epoch + 1
	d.Status.ActiveSite = to
	d.Status.Transition = &Transition{
		Kind: kind, Step: v1alpha1.TransitionFencing, From: s.Status.ActiveSite, To: to, Reason: why,
		DetectedAt: detected, StartedAt: s.Now, FromExecuted: d.Memory.Executed[s.Status.ActiveSite],
		FromUUID: d.Memory.UUID[s.Status.ActiveSite],
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
