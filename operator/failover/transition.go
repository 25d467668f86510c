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
		return d.retarget(s, s.Policy.ForceTo, ReasonForced).say(TopologyTransition, VerdictFailover, ReasonForced,
			"a person ordered %s to take over and accepted the loss", s.Policy.ForceTo)
	}
	if back, whole := returnedWhole(s, d.Memory, target); whole {
		return d.retarget(s, back.Name, ReasonReturnedWhole).say(TopologyTransition, VerdictFailover, ReasonReturnedWhole,
			"%s is back, fenced, and holds more than %s: it is opened again and nothing is lost", back.Name, t.To)
	}
	if why, patience := targetUnfit(s, d.Memory, target); patience > 0 {
		return d.say(TopologyTransition, VerdictWait, ReasonTargetSilent, "%s is to be opened but %s", t.To, why).
			then(Announce{Fence: fenceTargets(t)}).within(s.Policy.PollInterval / 4)
	} else if why != "" {
		return targetLost(s, d, why)
	}
	if target.Sidecar.Report.Epoch < s.Status.Epoch {
		if late(s, d.Memory.DrainSince) {
			return targetLost(s, d, fmt.Sprintf("does not acknowledge epoch %d (%s)", s.Status.Epoch, target.Sidecar.Report.Message))
		}
		return d.say(TopologyTransition, VerdictWait, ReasonAwaitingFence, "%s has not acknowledged epoch %d yet", t.To, s.Status.Epoch).
			then(Announce{Fence: fenceTargets(t)}).within(s.Policy.PollInterval / 4)
	}
	if wait, waiting := drained(s, d, target); waiting {
		return wait
	}
	g := gate(s, d.Memory)
	if !g.Passed {
		return gateClosed(s, d, g)
	}
	if over := overBudget(s, t.FromExecuted, target); over != "" && t.From != "" && t.From != t.To && !forced(s) {
		return d.say(TopologyTransition, VerdictBlocked, ReasonLossBudget, "%s", over)
	}
	return pass(s, d, target, g)
}

// forced is true if a person ordered this very target and accepted the loss.
func forced(s Snapshot) bool {
	return s.Policy.ForceTo != "" && s.Policy.ForceTo == s.Status.Transition.To
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
	case !known || t.From == t.To || forced(s):
		return Site{}, false
	case !from.Sidecar.Answered || !from.Sidecar.Report.FencedUnder(s.Status.Epoch) || !from.Fenced():
		return Site{}, false
	case isDROnly(s, m, from) != "" || isNotProvisioned(s, m, from) != "" || isBusy(s, m, from) != "":
		return Site{}, false
	}
	more := !from.All().Subtract(target.All()).IsEmpty()
	lacks, _ := missing(s, m, from)
	return from, more && lacks.IsEmpty()
}

// targetUnfit names why the target cannot be opened. One that merely does not answer is waited for until the threshold,
// or every lost packet would cost an epoch; patience is how much of that is left.
func targetUnfit(s Snapshot, m Memory, target Site) (why string, patience time.Duration) {
	for _, guard := range unfitness {
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
	next, found := choose(s, d.Memory, t.To)
	if !found {
		return d.say(TopologyTransition, VerdictBlocked, ReasonTargetLost, "%s %s, and %s", t.To, why, whyNobody(s, d.Memory)).
			then(Announce{Fence: fenceTargets(t)})
	}
	return d.retarget(s, next.Site.Name, ReasonTargetLost).say(TopologyTransition, VerdictFailover, ReasonTargetLost,
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
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	if forced(s) {
		lacks = gtid.Set{} // accepted by a person; what the site itself has received is applied all the same
	}
	if target.Name == s.Status.Transition.From {
		return d, false
	}
	receiving := target.MySQL.ReplicaHost != "" && !target.MySQL.ReceiverStopped
	if lacks.IsEmpty() && left.IsEmpty() && !receiving {
		return d, false
	}
	effects, reason := []Effect{Drain{Site: target.Name}}, ReasonDraining
	message := fmt.Sprintf("%s has %d transactions left to apply", target.Name, left.Count())
	if left.IsEmpty() && !lacks.IsEmpty() {
		// Only with an empty relay log: another source would throw away what is in it (I8).
		effects, reason = []Effect{Follow{Site: target.Name, Source: where}}, ReasonMissingTransactions
		if source, _ := s.Site(where); source.MySQL.ReplicaHost != "" {
			effects = append([]Effect{Drain{Site: where}}, effects...)
		}
		message = fmt.Sprintf("%s lacks %s and fetches it from %s", target.Name, lacks, where)
	}
	d = d.then(Announce{Fence: fenceTargets(s.Status.Transition)}).then(effects...).within(s.Policy.PollInterval / 8)
	if late(s, d.Memory.DrainSince) && forced(s) && !receiving {
		return d, false // a person ordered it, and what is left cannot be applied
	}
	if late(s, d.Memory.DrainSince) {
		// Going on would lose what is known to exist; a person may order that, the system does not.
		return d.say(TopologyTransition, VerdictBlocked, ReasonDrainTimeout, "%s, for longer than drainTimeout %s", message, s.Policy.DrainTimeout), true
	}
	return d.say(TopologyTransition, VerdictWait, reason, "%s", message), true
}

func gateClosed(s Snapshot, d Decision, g Gate) Decision {
	t := s.Status.Transition
	if t.From == "" && g.Writer == "" {
		return d.say(TopologyTransition, VerdictWait, ReasonAwaitingFence, "%s must acknowledge epoch %d fenced before %s is opened",
			strings.Join(g.Blockers, ", "), s.Status.Epoch, t.To).then(Announce{Fence: g.Blockers}).within(s.Policy.PollInterval / 8)
	}
	if g.Writer != "" {
		return d.say(TopologyTransition, VerdictBlocked, ReasonForeignWriter, "%s accepts writes; it is being fenced", g.Writer).
			then(Announce{Fence: []string{g.Writer}}).within(s.Policy.PollInterval / 8)
	}
	if from, _ := s.Site(t.From); from.Reachable() {
		// A silent site is pushed to at every poll anyway; waiting for it here would only make the gate open late.
		d = d.then(Announce{Fence: fenceTargets(t)})
	}
	if len(g.Blockers) > 0 {
		return d.say(TopologyTransition, VerdictBlocked, ReasonVouched,
			"no proof that %s is fenced, and %s may still tell it that it is active; bring it back, taint its node %s if it is down, or annotate the group %s=%s to accept the loss",
			t.From, strings.Join(g.Blockers, ", "), v1alpha1.OutOfServiceTaint, v1alpha1.AnnotationForceFailover, t.To)
	}
	left := g.ReadyAt.Sub(s.Now)
	return d.say(TopologyTransition, VerdictWait, ReasonAwaitingFence,
		"no proof that %s is fenced yet; its lease has run out at %s", t.From, g.ReadyAt.UTC().Format(time.RFC3339)).within(left)
}

func pass(s Snapshot, d Decision, target Site, g Gate) Decision {
	t := *s.Status.Transition
	t.Step, t.GatePassedAt, t.Evidence, t.ToExecuted = v1alpha1.TransitionOpening, s.Now, g.Evidence, target.MySQL.Executed
	d.Status.Transition = &t
	d.Persist, d.Hold = true, false
	return d.say(TopologyTransition, VerdictPromote, ReasonGatePassed, "%s is opened: %s", t.To, strings.Join(g.Evidence, "; ")).
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
		d.Hold = false
		return complete(s, d)
	case ordered(s) && s.Policy.ForceTo != t.To:
		return due(s, d.closed(s), TopologyActiveReadOnly, ReasonForced)
	case target.Sidecar.Answered && target.MySQL.Direct:
		if next := due(s, d.closed(s), TopologyActiveReadOnly, ReasonCannotOpen); stuck && next.Verdict != VerdictBlocked {
			return next
		}
		d.Hold = false
		return reopening(s, d, target)
	case target.Sidecar.Answered && down < s.Policy.CrashGrace, d.Memory.SilentPolls[t.To] < s.Policy.Threshold && !target.Sidecar.Answered:
		return d.say(TopologyTransition, VerdictWait, ReasonOpening, "%s stopped answering while it was being opened", t.To)
	}
	return due(s, d.closed(s), TopologyActiveSilent, ReasonActiveSiteSilent)
}

// reopening tries again to open a target, after another look at its relay log: it is thrown away by Detach (I8).
func reopening(s Snapshot, d Decision, target Site) Decision {
	d = d.say(TopologyTransition, VerdictWait, ReasonOpening, "%s is being opened: %s", target.Name, target.Sidecar.Report.Message).
		then(Select{Site: target.Name}).within(s.Policy.PollInterval / 4)
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	switch {
	case target.MySQL.ReplicaHost == "":
		return d.then(Open{Site: target.Name})
	case !left.IsEmpty() && !forced(s), !target.MySQL.ReceiverStopped:
		return d.then(Drain{Site: target.Name})
	}
	return d.then(Detach{Site: target.Name}, Open{Site: target.Name})
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
	return d.say(TopologyTransition, VerdictComplete, ReasonOpened, "%s is active under epoch %d", t.To, s.Status.Epoch).
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
	if t.From == t.To {
		r.LossExact = lost.IsEmpty()
	}
	return r
}

// settleLoss makes the loss of a failover exact once its old active site is seen again as the server it was: only then
// is the whole of what it accepted known.
func settleLoss(s Snapshot, m Memory, a Site) []v1alpha1.FailoverRecord {
	records := s.Status.Records
	if !a.MySQL.Direct {
		return records
	}
	seen := map[string]bool{}
	for i, r := range records {
		if seen[r.From] || r.From == r.To {
			continue // only its newest change says what a site had that nobody else has
		}
		seen[r.From] = true
		from, known := s.Site(r.From)
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
	}
	return records
}

// receives is true if a site may get transactions from another.
func receives(site Site) bool { return site.MySQL.ReplicaHost != "" && !site.MySQL.ReceiverStopped }

func recordsDiffer(a, b []v1alpha1.FailoverRecord) bool {
	return !slices.EqualFunc(a, b, func(x, y v1alpha1.FailoverRecord) bool { return x.Epoch == y.Epoch && x.LossExact == y.LossExact })
}
