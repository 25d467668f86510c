// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// recordsKept is how many changes of the active site stay in status.
const recordsKept = 10

// fencing goes on with a transition whose target may not be opened yet.
func fencing(s Snapshot, d Decision) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	if ordered(s) && s.Policy.ForceTo != t.To {
		return d.retarget(s, s.Policy.ForceTo, v1alpha1.ReasonForced).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonForced,
			"a person ordered %s to take over and accepted the loss", s.Policy.ForceTo)
	}
	if planned(t) {
		return moving(s, d)
	}
	if back, whole := returnedWhole(s, d.Memory, target); whole {
		return d.retarget(s, back.Name, v1alpha1.ReasonReturnedWhole).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonReturnedWhole,
			"%s is back, fenced, and holds more than %s: it is opened again and nothing is lost", back.Name, t.To)
	}
	if why, patience := targetUnfit(s, d.Memory, target); patience > 0 {
		return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonTargetSilent, "%s is to be opened but %s", t.To, why).
			then(Announce{Fence: fenceTargets(t)}).within(s.Policy.PollInterval / 4)
	} else if why != "" {
		return targetLost(s, d, why)
	}
	if target.Sidecar.Report.Epoch < s.Status.Epoch {
		if late(s, d.Memory.DrainSince) {
			return targetLost(s, d, fmt.Sprintf("does not acknowledge epoch %d (%s)", s.Status.Epoch, target.Sidecar.Report.Message))
		}
		return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonAwaitingFenceProof, "%s has not acknowledged epoch %d yet", t.To, s.Status.Epoch).
			then(Announce{Fence: fenceTargets(t)}).within(s.Policy.PollInterval / 4)
	}
	if wait, waiting := drained(s, d, target); waiting {
		return wait
	}
	g := gate(s, d.Memory)
	if !g.Passed {
		return gateClosed(s, d, g)
	}
	if over := overBudget(s, t.known(s, d.Memory, target), target); over != "" && t.From != "" && t.From != t.To && !forced(s) {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonLossBudget, "%s; %s", over, override(t.To))
	}
	if isUnnoted(target) {
		// Whoever polls is told when it does. With a thousand new groups, looking more often cost half of the processor time.
		return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonVolumeNotNoted, "%s is opened once status holds the name of its data volume", t.To)
	}
	return pass(s, d, target, g)
}

// isUnnoted: a site that is opened for the first time, on a volume whose name is not durable. Were the volume replaced then,
// nobody could tell, and the new one, which is empty, would be opened for it (I12). The controller notes the name.
func isUnnoted(target Site) bool { return !target.Provisioned && target.Unnoted }

// forced is true if a person ordered this very target and accepted the loss.
func forced(s Snapshot) bool {
	return s.Policy.ForceTo != "" && s.Status.Transition != nil && s.Policy.ForceTo == s.Status.Transition.To
}

func fenceTargets(t *Transition) []string {
	if t.From == "" || t.From == t.To {
		return nil
	}
	return []string{t.From}
}

// returnedWhole finds the old active site back, fenced under the present epoch, with more than the target has.
func returnedWhole(s Snapshot, m Memory, target Site) (Site, bool) {
	t := s.Status.Transition
	from, known := s.Site(t.From)
	switch {
	case !known || t.From == t.To || forced(s) || t.overDisk():
		return Site{}, false
	case !from.Sidecar.Answered || !from.Sidecar.Report.FencedUnder(s.Status.Epoch) || !from.Fenced():
		return Site{}, false
	case isRemoved(s, m, from) != "" || isDiverged(s, m, from) != "":
		return Site{}, false // as a target it would be refused in the next poll, and change places with the present one for ever
	case isDROnly(s, m, from) != "" || isNotProvisioned(s, m, from) != "" || isBusy(s, m, from) != "" || isUnescrowed(s, m, from) != "":
		return Site{}, false
	}
	more := !from.All().Subtract(target.All()).IsEmpty()
	lacks, _ := missing(s, m, from)
	return from, more && lacks.IsEmpty()
}

// targetUnfit names why the target cannot be opened. One that merely does not answer is waited for until the threshold,
// or every lost packet would cost an epoch; patience is how much of that is left.
func targetUnfit(s Snapshot, m Memory, target Site) (why string, patience time.Duration) {
	guards := unfitness
	if forced(s) {
		guards = unforgivable // a person has seen the rest and ordered it
	}
	for _, guard := range guards {
		if why = guard(s, m, target); why != "" {
			break
		}
	}
	if why == "" || why != isSilent(s, m, target) {
		return why, 0
	}
	grace := time.Duration(s.Policy.Threshold-1) * s.Policy.PollInterval
	since := orNow(m.IndirectSince[target.Name], s.Now)
	if !target.Sidecar.Answered {
		since = orNow(m.DownSince[target.Name], since)
	}
	return why, max(0, grace-s.Now.Sub(since))
}

func targetLost(s Snapshot, d Decision, why string) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	next, found := choose(s, d.Memory, t.To)
	if !found {
		return d.say(TopologyTransition, VerdictBlocked, lostFor(s, d.Memory, target), "%s %s, and %s; %s", t.To, why, whyNobody(s, d.Memory), lostWayOut(s, d.Memory, target)).
			then(Announce{Fence: fenceTargets(t)})
	}
	if blocked, reason, message := forbidden(s, d.Memory, next, true); blocked && t.From == t.To {
		// No failover was begun: the active site is opened again after a planned one, and one that dies meanwhile is replaced
		// under the rules of any other time. It is opened as soon as it is back.
		return d.say(TopologyTransition, VerdictBlocked, reason, "%s is to be opened again, but %s; %s; %s",
			t.To, why, message, wayOut(s, d.Memory, next, true))
	}
	if lacks := t.FromExecuted.Subtract(next.All); t.From == "" && !lacks.IsEmpty() {
		// The first active site was chosen because it holds what any site held; silent as it is now, it holds that still (I7).
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonTargetLost, "%s %s, and %s lacks %s, which it held; bring it back; %s",
			t.To, why, next.Site.Name, lacks, override(next.Site.Name)).then(Announce{Fence: fenceTargets(t)})
	}
	return d.retarget(s, next.Site.Name, v1alpha1.ReasonTargetLost).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonTargetLost,
		"%s %s; %s takes its place", t.To, why, next.Site.Name)
}

// late is true once a step of a transition took longer than drainTimeout.
func late(s Snapshot, since time.Time) bool {
	return !since.IsZero() && s.Now.Sub(since) > s.Policy.DrainTimeout
}

// drained waits until the target receives no more, has applied all it received, and has fetched what other reachable
// sites have. Detaching it before would throw away what had arrived.
func drained(s Snapshot, d Decision, target Site) (Decision, bool) {
	lacks, where := missing(s, d.Memory, target)
	if late(s, d.Memory.DrainSince) {
		// What only the relay log of a broken applier has can be had from nobody. It has had its time: a candidate that is whole
		// otherwise is opened, and what is left behind is counted and told, and stays where it is (I7, I8, decision 0012).
		lacks, where = obtainable(s, d.Memory, target)
	}
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	if forced(s) {
		lacks = gtid.Set{} // accepted by a person; what the site itself has received is applied all the same
	}
	receiving := target.MySQL.ReplicaHost != "" && !target.MySQL.ReceiverStopped
	if lacks.IsEmpty() && left.IsEmpty() && !receiving {
		return d, false
	}
	if left.IsEmpty() && !lacks.IsEmpty() && unsettled(s, d.Memory, where) {
		// It may be fetched from nobody: with what is good, what was written off would come too (I10).
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonMissingTransactions, "%s lacks %s, which only %s has, together with what may have been written off; bring back %s; %s",
			target.Name, lacks, where, s.Status.Transition.From, override(target.Name)).then(Announce{Fence: fenceTargets(s.Status.Transition)}), true
	}
	effects, reason := []Effect{Drain{Site: target.Name}}, v1alpha1.ReasonDrainingRelayLog
	message := fmt.Sprintf("%s has %d transactions left to apply", target.Name, left.Count())
	if left.IsEmpty() && !lacks.IsEmpty() && (!receiving || target.MySQL.ReplicaOf == where) {
		// Only with an empty relay log that nothing is added to: another source would throw away what is in it (I8).
		effects, reason = []Effect{Follow{Site: target.Name, Source: where}}, v1alpha1.ReasonMissingTransactions
		if source, _ := s.Site(where); source.MySQL.ReplicaHost != "" {
			effects = append([]Effect{Drain{Site: where}}, effects...)
		}
		message = fmt.Sprintf("%s lacks %s and fetches it from %s", target.Name, lacks, where)
	}
	d = d.then(Announce{Fence: fenceTargets(s.Status.Transition)}).then(effects...).within(s.Policy.PollInterval / 8)
	if late(s, d.Memory.DrainSince) && forced(s) && !receiving {
		return d, false // a person ordered it, and what is left cannot be applied
	}
	if next, found := unbroken(s, d.Memory, target); found && late(s, d.Memory.DrainSince) {
		return d.retarget(s, next, v1alpha1.ReasonTargetLost).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonTargetLost,
			"%s cannot apply what it has received (%s); %s takes its place", target.Name, target.MySQL.SQLError, next), true
	}
	if late(s, d.Memory.DrainSince) {
		// Going on would lose what is known to exist; a person may order that, the system does not.
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonDrainTimeout, "%s, for longer than drainTimeout %s; %s",
			message, s.Policy.DrainTimeout, override(target.Name)), true
	}
	return d.say(TopologyTransition, VerdictWait, reason, "%s", message), true
}

// unbroken is the candidate that takes the place of a target whose applier is broken, if there is one.
func unbroken(s Snapshot, m Memory, target Site) (string, bool) {
	t := s.Status.Transition
	if !brokenApplier(target) || t.From == "" || t.From == t.To {
		return "", false // the first active site is the one that holds what any held (I7); one that is opened again has no source
	}
	for _, c := range candidates(s, m) {
		if c.Unfit == "" && c.Site.Name != t.To && !brokenApplier(c.Site) {
			return c.Site.Name, true
		}
	}
	return "", false
}

// known is what the old active site is known to have had: at the last look that it answered, also one since the failover began, and
// what it gave to a site that cannot apply it.
func (t *Transition) known(s Snapshot, m Memory, target Site) gtid.Set {
	if t.From == "" {
		return t.FromExecuted // there was none
	}
	behind, _ := leftBehind(s, m, target)
	if t.FromExecuted.IsEmpty() && m.Executed[t.From].IsEmpty() {
		return gtid.Set{} // not known; a part of it would pass for all
	}
	return t.FromExecuted.Union(m.Executed[t.From]).Union(behind)
}

func gateClosed(s Snapshot, d Decision, g Gate) Decision {
	t := s.Status.Transition
	if t.From == "" && g.Writer == "" {
		verdict, message := VerdictWait, fmt.Sprintf("%s must acknowledge epoch %d fenced before %s is opened", s.named(g.Blockers), s.Status.Epoch, t.To)
		if late(s, d.Memory.DrainSince) {
			verdict, message = VerdictBlocked, message+"; bring it back; "+override(t.To)
		}
		return d.say(TopologyTransition, verdict, v1alpha1.ReasonAwaitingFenceProof, "%s", message).then(Announce{Fence: g.Blockers}).within(s.Policy.PollInterval / 8)
	}
	if g.Writer != "" {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonForeignWriter, "%s accepts writes; it is being fenced, and %s is opened once it is; see the log of its sidecar if that lasts", g.Writer, t.To).
			then(Announce{Fence: []string{g.Writer}}).within(s.Policy.PollInterval / 8)
	}
	if from, _ := s.Site(t.From); from.Reachable() {
		// A silent site is pushed to at every poll anyway; waiting for it here would only make the gate open late.
		d = d.then(Announce{Fence: fenceTargets(t)})
	}
	if len(g.Blockers) > 0 {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonSiteMayStillVouch,
			"no proof that %s is fenced, and %s may still tell it that it is active; bring it back, taint its node %s if it is down; %s",
			t.From, s.named(g.Blockers), v1alpha1.OutOfServiceTaint, override(t.To))
	}
	if g.Outlived != "" {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonLeaseOutlived, "no proof that %s is fenced: %s; %s; %s",
			t.From, g.Outlived, outlivedRemedy(t.From), override(t.To))
	}
	left := g.ReadyAt.Sub(s.Now)
	if from, _ := s.Site(t.From); !from.Reachable() {
		// The next look waits for the silent site, and ends when the lease has run out.
		if look := t.Patience(t.From, true, s.Now, s.Policy); left > look {
			left -= look
		}
	}
	return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonAwaitingFenceProof,
		"no proof that %s is fenced yet; its lease has run out at %s", t.From, g.ReadyAt.UTC().Format(time.RFC3339)).within(left)
}

func pass(s Snapshot, d Decision, target Site, g Gate) Decision {
	t := *s.Status.Transition
	t.Step, t.GatePassedAt, t.Evidence, t.ToExecuted = v1alpha1.TransitionOpening, s.Now, g.Evidence, target.MySQL.Executed
	if behind, where := leftBehind(s, d.Memory, target); t.From != "" && !planned(&t) && !behind.IsEmpty() {
		if !forced(s) { // by order also what a site has of its own is left behind: that was never the old active site's
			t.FromExecuted = t.FromExecuted.Union(behind)
		}
		t.Evidence = append(slices.Clone(t.Evidence), fmt.Sprintf("left behind: %s, which %s has", behind, strings.Join(where, ", ")))
	}
	if why := isWithoutRows(s, d.Memory, target); why != "" {
		t.Evidence = append(slices.Clone(t.Evidence), t.To+" "+why)
	}
	d.Status.Transition = &t
	d.Persist, d.Hold = true, false
	return d.say(TopologyTransition, VerdictPromote, v1alpha1.ReasonGatePassed, "%s is opened: %s", t.To, strings.Join(t.Evidence, "; ")).
		then(Select{Site: t.To}, Detach{Site: t.To}, Open{Site: t.To}).within(time.Millisecond)
}

// opening goes on with a transition whose gate was passed: nobody but the target can be open under this epoch or an
// older one, so the target is the active site in all but name.
func opening(s Snapshot, d Decision) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	down := s.Now.Sub(orNow(d.Memory.IndirectSince[t.To], s.Now))
	stuck := late(s, later(t.GatePassedAt, s.LeaderSince))
	switch {
	case target.Writable():
		d.Hold = isUnescrowed(s, d.Memory, target) != "" // I16: as in steady
		return complete(s, d)
	case ordered(s) && s.Policy.ForceTo != t.To:
		return due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonForced)
	case target.Sidecar.Answered && target.MySQL.Direct && (target.OtherVolume || !target.MySQL.Executed.Contains(t.ToExecuted)):
		if ordered(s) { // it is this site that was ordered
			return accepted(s, d, target)
		}
		// What it had when its gate was passed is gone: opened now, it would be a copy from the past (I7, I12).
		d.Memory.Executed[t.To] = t.ToExecuted
		return due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
	case target.Sidecar.Answered && target.MySQL.Direct:
		if r, may := target.writesBeside(target.Pod.UID); may {
			return anew(s, d.closed(s), target, r) // the pod that was let open is another one, and may be open
		}
		if next := due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteCannotOpen); stuck && next.Verdict != VerdictBlocked {
			return next
		}
		if why := isUnescrowed(s, d.Memory, target); why != "" {
			return d.keptShut(s, TopologyTransition, t.To, why)
		}
		d.Hold = false
		if d = reopening(s, d, target); stuck {
			return d.triedOn(s, target)
		}
		return d
	case target.Sidecar.Answered && down < s.Policy.CrashGrace, d.Memory.SilentPolls[t.To] < s.Policy.Threshold && !target.Sidecar.Answered:
		return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonOpening, "%s stopped answering while it was being opened", t.To)
	}
	return due(s, d.closed(s), TopologyActiveSilent, v1alpha1.ReasonActiveSiteSilent)
}

// reopening tries again to open a target.
func reopening(s Snapshot, d Decision, target Site) Decision {
	d = d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonOpening, "%s is being opened: %s", target.Name, target.Sidecar.Report.Message).
		then(Select{Site: target.Name}).within(s.Policy.PollInterval / 4)
	return d.then(toOpen(s, target)...)
}

// toOpen is what opens a site that has the role, after another look at its relay log: it is thrown away by Detach (I8). With
// a source, which a person or a status of another time may have left it, a sidecar opens no site.
func toOpen(s Snapshot, target Site) []Effect {
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	switch {
	case target.MySQL.ReplicaHost == "":
		return []Effect{Open{Site: target.Name}}
	case !left.IsEmpty() && !forced(s), !target.MySQL.ReceiverStopped:
		return []Effect{Drain{Site: target.Name}}
	}
	return []Effect{Detach{Site: target.Name}, Open{Site: target.Name}}
}

// closed keeps the record of a change whose target never opened, or failed before it was seen open, when the next change
// begins: what the first one lost must not be forgotten.
func (d Decision) closed(s Snapshot) Decision {
	t := *s.Status.Transition
	if t.Kind != v1alpha1.FailoverBootstrap {
		d.Status.Records = withRecord(s, t)
	}
	return d
}

// complete records the change once the target was seen open.
func complete(s Snapshot, d Decision) Decision {
	t := *s.Status.Transition
	if forced(s) {
		t.Kind = v1alpha1.FailoverForced
	}
	d.Status.Transition = nil
	d.Status.ActiveSince = s.Now
	if t.Kind == v1alpha1.FailoverEmergency && t.From != t.To {
		d.Status.CooldownUntil = s.Now.Add(s.Policy.Cooldown)
	}
	if t.Kind != v1alpha1.FailoverBootstrap {
		d.Status.Records = withRecord(s, t)
	}
	d.Persist = true
	if p := s.Status.Planned; planned(&t) && p != nil && !p.Over() {
		d = d.end(*p, s.Now, v1alpha1.PlannedSucceeded, v1alpha1.ReasonOpened, "%s is active, writes were kept out for %s",
			t.To, s.Now.Sub(t.StartedAt).Round(time.Millisecond))
		d.Status.Planned.WritePause = s.Now.Sub(t.StartedAt)
	}
	if p := d.Status.Planned; t.Kind == v1alpha1.FailoverPlanned && t.From == t.To && p != nil && p.WritePause == 0 {
		reverted := *p
		reverted.WritePause = s.Now.Sub(t.StartedAt)
		d.Status.Planned = &reverted
	}
	return d.say(TopologyTransition, VerdictComplete, v1alpha1.ReasonOpened, "%s is active under epoch %d", t.To, s.Status.Epoch).
		then(Select{Site: t.To}).within(time.Millisecond)
}

func withRecord(s Snapshot, t Transition) []v1alpha1.FailoverRecord {
	all := append([]v1alpha1.FailoverRecord{record(s, t)}, s.Status.Records...)
	return all[:min(len(all), recordsKept)]
}

func record(s Snapshot, t Transition) v1alpha1.FailoverRecord {
	since := func(at time.Time) int64 { return at.Sub(t.DetectedAt).Milliseconds() }
	lost := t.FromExecuted.Subtract(t.ToExecuted)
	r := v1alpha1.FailoverRecord{
		Epoch: s.Status.Epoch, Kind: t.Kind, From: t.From, To: t.To, Reason: t.Reason,
		DetectedAt: metav1.NewMicroTime(t.DetectedAt), StartedAt: metav1.NewMicroTime(t.StartedAt), OpenedAt: metav1.NewMicroTime(s.Now),
		Timeline: []v1alpha1.TimelineEntry{
			{Step: "detected", Millis: 0},
			{Step: "decided", Millis: since(t.StartedAt)},
			{Step: "gatePassed", Millis: since(t.GatePassedAt)},
			{Step: "opened", Millis: since(s.Now)},
		},
		Evidence: t.Evidence, FromExecuted: t.FromExecuted.String(), ToExecuted: t.ToExecuted.String(),
		LostTransactions: lost.Count(), LostSet: lost.String(), FromServerUUID: t.FromUUID,
	}
	if t.From == t.To || planned(&t) {
		r.LossExact = lost.IsEmpty()
	}
	if t.Kind == v1alpha1.FailoverPlanned {
		pause := s.Now.Sub(t.StartedAt).Milliseconds()
		r.WritePauseMillis = &pause
	}
	return r
}

// ServerReplaced stands in a record for the server UUID of an old active site whose data was replaced before it was compared.
const ServerReplaced = "replaced"

// settleLoss makes the loss of a failover exact once its old active site is seen again as the server it was: only then
// is the whole of what it accepted known.
func settleLoss(s Snapshot, m Memory, a Site) []v1alpha1.FailoverRecord {
	records := s.Status.Records
	if !a.MySQL.Direct || a.OtherVolume {
		return records
	}
	seen := map[string]bool{}
	for i, r := range records {
		if seen[r.From] || r.From == r.To {
			continue // only its newest change says what a site had that nobody else has
		}
		seen[r.From] = true
		from, known := s.Site(r.From)
		if known && !r.LossExact && (!from.Provisioned || from.thrownAway() || from.OtherVolume) && r.FromServerUUID != ServerReplaced {
			// Its data is being thrown away before it was compared. A server that was cloned by an earlier version keeps its UUID,
			// so what comes back would pass for what was there, and for a loss of nothing.
			records = slices.Clone(records)
			records[i].FromServerUUID = ServerReplaced
			continue
		}
		before, had := m.PreviousAll[r.From]
		if r.LossExact || !known || !had || !from.MySQL.Direct || !from.Fenced() || from.Busy != "" || receives(from) {
			continue // what it receives now would be taken for what it had accepted
		}
		if !sameServer(r, from.MySQL.ServerUUID) || from.OtherVolume {
			continue // its data was replaced: what it had accepted is not known any more
		}
		lost := before.Subtract(a.MySQL.Executed)
		records = slices.Clone(records)
		records[i].LostTransactions, records[i].LostSet, records[i].LossExact = lost.Count(), lost.String(), true
		if !lost.IsEmpty() {
			m.Diverged[r.From] = lost // not one poll later: the record stops to keep it from being a candidate now (I10)
		}
	}
	return records
}

// receives is true if a site may get transactions from another.
func receives(site Site) bool { return site.MySQL.ReplicaHost != "" && !site.MySQL.ReceiverStopped }

func recordsDiffer(a, b []v1alpha1.FailoverRecord) bool {
	return !slices.EqualFunc(a, b, func(x, y v1alpha1.FailoverRecord) bool {
		return x.Epoch == y.Epoch && x.LossExact == y.LossExact && x.FromServerUUID == y.FromServerUUID
	})
}
