// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// fencing continues a transition whose target may not be opened yet.
func fencing(s Snapshot, d Decision) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	if s.Order.Elsewhere(t.To) {
		return d.retarget(s, s.Order.To, v1alpha1.ReasonForced).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonForced,
			"a person ordered %s to take over and accepted the loss", s.Order.To)
	}
	if t.Moves() {
		return moving(s, d)
	}
	if back, whole := returnedWhole(s, d.Memory, target); whole {
		return d.retarget(s, back.Name, v1alpha1.ReasonReturnedWhole).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonReturnedWhole,
			"%s is back, fenced, and holds more than %s: it is opened again and nothing is lost", back.Name, t.To)
	}
	c := change{s: s, d: d, t: t, target: target, gate: AskGate(s, d.Memory)}
	for _, step := range steps {
		if wait, waits := step.await(c); waits {
			return wait
		}
	}
	return pass(s, d, target, c.gate)
}

// change is a transition whose target may not be opened yet, and which is not a planned failover.
type change struct {
	s      Snapshot
	d      Decision
	t      *Transition
	target Site
	gate   Gate
}

// steps are the conditions for opening the target, in this order. A decision waits for the first that is not met; an explanation
// lists all that have words for people.
var steps = []struct {
	name string
	// await says what to do while the step is not met; false if it is met.
	await func(change) (Decision, bool)
}{
	{promotion.RuleTarget, change.awaitTarget},
	{promotion.RuleDrain, change.awaitDrain},
	{promotion.RuleGate, change.awaitGate},
	{promotion.RuleLossBudget, change.awaitBudget},
	{"VolumeNoted", change.awaitVolume},
}

// Steps names the conditions for opening the target of a change, in the order in which Decide checks them.
func Steps() []string {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.name
	}
	return names
}

// Readiness says whether the target of a change can be opened, as far as that depends on the target.
type Readiness int

// The values of Readiness.
const (
	TargetReady   Readiness = iota
	TargetSilent            // it missed an answer; the operator waits for it
	TargetRefused           // a guard is against it
	TargetIgnores           // it has not acknowledged the epoch within its time
	TargetBehind            // it has not acknowledged the epoch yet
)

// ReadinessOf says whether the target of the change under way can be opened, and which guard is against it.
func ReadinessOf(s Snapshot, m Memory) (Readiness, promotion.Unfit) {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	return change{s: s, d: Decision{Memory: m}, t: t, target: target}.readiness()
}

// readiness checks the target, and says which guard is against it.
func (c change) readiness() (Readiness, promotion.Unfit) {
	refused, patience := targetUnfit(c.s, c.d.Memory, c.target)
	behind := c.target.Sidecar.Report.Epoch < c.s.Status.Epoch
	switch {
	case patience > 0:
		return TargetSilent, refused
	case refused.By != "":
		return TargetRefused, refused
	case behind && late(c.s, c.d.Memory.DrainSince):
		return TargetIgnores, refused
	case behind:
		return TargetBehind, refused
	}
	return TargetReady, refused
}

func (c change) awaitTarget() (Decision, bool) {
	waits := c.d.then(Announce{Fence: fenceTargets(c.t)}).within(c.s.Policy.PollInterval / 4)
	switch ready, refused := c.readiness(); ready {
	case TargetSilent:
		return waits.say(TopologyTransition, VerdictWait, v1alpha1.ReasonTargetSilent, "%s is to be opened but %s", c.t.To, refused.Why), true
	case TargetRefused:
		return targetLost(c.s, c.d, refused.Why), true
	case TargetIgnores:
		return targetLost(c.s, c.d, fmt.Sprintf("does not acknowledge epoch %d (%s)", c.s.Status.Epoch, c.target.Sidecar.Report.Message)), true
	case TargetBehind:
		return waits.say(TopologyTransition, VerdictWait, v1alpha1.ReasonAwaitingFenceProof, "%s has not acknowledged epoch %d yet", c.t.To, c.s.Status.Epoch), true
	case TargetReady:
	}
	return c.d, false
}

func (c change) awaitDrain() (Decision, bool) { return drained(c.s, c.d, c.target) }

func (c change) awaitGate() (Decision, bool) {
	if c.gate.Passed {
		return c.d, false
	}
	return gateClosed(c.s, c.d, c.gate), true
}

func (c change) awaitBudget() (Decision, bool) {
	over := OverBudgetOf(c.s, c.d.Memory)
	if over == "" {
		return c.d, false
	}
	return c.d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonLossBudget, "%s; %s", over, promotion.HowToOrder(c.t.To)), true
}

// OverBudgetOf says how the change under way would lose more than the loss budget allows; empty if it would not, or if the budget does not
// apply. It is checked again before the target is opened: by then the relay log is applied, and the target may be another site.
func OverBudgetOf(s Snapshot, m Memory) string {
	t := s.Status.Transition
	if target, _ := s.Site(t.To); t.Replaces() && !s.Order.Accepted {
		return promotion.OverBudget(s, knownOf(t, s, m, target), target)
	}
	return ""
}

func (c change) awaitVolume() (Decision, bool) {
	if !isUnnoted(c.target) {
		return c.d, false
	}
	// The poll loop learns when it does. With a thousand new groups, looking more often cost half of the processor time.
	return c.d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonVolumeNotNoted, "%s is opened once status holds the name of its data volume", c.t.To), true
}

// isUnnoted is true for a site that is opened for the first time, on a volume whose name is not durable yet. If that volume were
// replaced then, the operator could not tell, and would open the new, empty one in its place (I12). The controller notes the name.
func isUnnoted(target Site) bool { return !target.Provisioned && target.Unnoted }

func fenceTargets(t *Transition) []string {
	if !t.Replaces() {
		return nil
	}
	return []string{t.From}
}

// returnedWhole returns the old active site if it is back, fenced under the present epoch, and has more than the target.
func returnedWhole(s Snapshot, m Memory, target Site) (Site, bool) {
	t := s.Status.Transition
	from, known := s.Site(t.From)
	switch {
	case !known || !t.Replaces() || s.Order.Accepted || t.OverDisk():
		return Site{}, false
	case !from.Sidecar.Answered || !from.Sidecar.Report.FencedUnder(s.Status.Epoch) || !from.Fenced():
		return Site{}, false
	case promotion.IsRemoved(s, m, from) != "" || promotion.IsDiverged(s, m, from) != "":
		return Site{}, false // as a target it would be refused in the next poll, and the two would swap places for ever
	case from.KeptFenced:
		return Site{}, false
	case promotion.IsDROnly(s, m, from) != "" || lineage.IsNotProvisioned(s, m, from) != "" || promotion.IsBusy(s, m, from) != "" || promotion.IsUnescrowed(s, m, from) != "":
		return Site{}, false
	}
	more := !from.All().Subtract(target.All()).IsEmpty()
	lacks, _ := lineage.Missing(s, m, from)
	return from, more && lacks.IsEmpty()
}

// targetUnfit says why the target cannot be opened. If it merely does not answer, the operator waits until the
// threshold, or every lost packet would cost an epoch; patience is how much of that wait is left.
func targetUnfit(s Snapshot, m Memory, target Site) (why promotion.Unfit, patience time.Duration) {
	if why = promotion.UnfitOf(s, m, target); s.Order.Accepted {
		why = promotion.UnfitByOrder(s, m, target)
	}
	if why.By != promotion.GuardSilent {
		return why, 0
	}
	return why, promotion.Patience(s, m, target)
}

func targetLost(s Snapshot, d Decision, why string) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	next, found := promotion.Choose(s, d.Memory, t.To)
	if !found {
		return d.say(TopologyTransition, VerdictBlocked, promotion.LostFor(s, d.Memory, target), "%s %s, and %s; %s", t.To, why, promotion.WhyNobody(s, d.Memory), promotion.LostWayOut(s, d.Memory, target)).
			then(Announce{Fence: fenceTargets(t)})
	}
	if no := promotion.FirstAgainst(promotion.Permissions, promotion.Ask(s, d.Memory, next, true)); no.Reason != "" && t.Change() == facts.ChangeReopen {
		// No failover was begun: the active site is being opened again after a planned one. If it dies meanwhile, the usual
		// rules decide who replaces it. Otherwise it is opened as soon as it is back.
		return d.say(TopologyTransition, VerdictBlocked, no.Reason, "%s is to be opened again, but %s; %s; %s",
			t.To, why, no.Message, promotion.WayOut(s, d.Memory, next, true))
	}
	if lacks := t.FromExecuted.Subtract(next.All); t.Change() == facts.ChangeFirst && !lacks.IsEmpty() {
		// The first active site was chosen because it holds all that any site held. It is silent now, but still holds that (I7).
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonTargetLost, "%s %s, and %s lacks %s, which it held; bring it back; %s",
			t.To, why, next.Site.Name, lacks, promotion.HowToOrder(next.Site.Name)).then(Announce{Fence: fenceTargets(t)})
	}
	return d.retarget(s, next.Site.Name, v1alpha1.ReasonTargetLost).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonTargetLost,
		"%s %s; %s takes its place", t.To, why, next.Site.Name)
}

func gateClosed(s Snapshot, d Decision, g Gate) Decision {
	t := s.Status.Transition
	if t.Change() == facts.ChangeFirst && g.Writer == "" {
		verdict, message := VerdictWait, fmt.Sprintf("%s must acknowledge epoch %d fenced before %s is opened", memory.Named(s, g.Blockers), s.Status.Epoch, t.To)
		if late(s, d.Memory.DrainSince) {
			verdict, message = VerdictBlocked, message+"; bring it back; "+promotion.HowToOrder(t.To)
		}
		return d.say(TopologyTransition, verdict, v1alpha1.ReasonAwaitingFenceProof, "%s", message).then(Announce{Fence: g.Blockers}).within(s.Policy.PollInterval / 8)
	}
	if g.Writer != "" {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonForeignWriter, "%s accepts writes; it is being fenced, and %s is opened once it is; see the log of its sidecar if that lasts", g.Writer, t.To).
			then(Announce{Fence: []string{g.Writer}}).within(s.Policy.PollInterval / 8)
	}
	if from, _ := s.Site(t.From); from.Reachable() {
		// Every poll pushes to a silent site anyway; waiting for it here would only make the gate open late.
		d = d.then(Announce{Fence: fenceTargets(t)})
	}
	if len(g.Blockers) > 0 {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonSiteMayStillVouch,
			"no proof that %s is fenced, and %s may still tell it that it is active; bring it back, or, if its node is off: kubectl taint node NODE %s=nodeshutdown:NoExecute; %s",
			t.From, memory.Named(s, g.Blockers), v1alpha1.OutOfServiceTaint, promotion.HowToOrder(t.To))
	}
	if g.Outlived != "" {
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonLeaseOutlived, "no proof that %s is fenced: %s; %s; %s",
			t.From, g.Outlived, remedy.Outlived(t.From), promotion.HowToOrder(t.To))
	}
	left := g.ReadyAt.Sub(s.Now)
	if from, _ := s.Site(t.From); !from.Reachable() {
		// The next look waits for the silent site, so it starts early and ends when the lease has run out.
		if look := t.Patience(t.From, true, s.Now, s.Policy); left > look {
			left -= look
		}
	}
	return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonAwaitingFenceProof,
		"no proof that %s is fenced yet; its lease runs out at %s", t.From, g.ReadyAt.UTC().Format(time.RFC3339)).within(left)
}

func pass(s Snapshot, d Decision, target Site, g Gate) Decision {
	t := *s.Status.Transition
	t.Step, t.GatePassedAt, t.Evidence, t.ToExecuted = v1alpha1.TransitionOpening, s.Now, g.Evidence, target.MySQL.Executed
	if behind, where := lineage.LeftBehind(s, d.Memory, target); t.Change() != facts.ChangeFirst && !t.Moves() && !behind.IsEmpty() {
		if !s.Order.Accepted { // by order, a site's own transactions are left behind too: the old active site never had them
			t.FromExecuted = t.FromExecuted.Union(behind)
		}
		t.Evidence = append(slices.Clone(t.Evidence), fmt.Sprintf("left behind: %s, which %s has", behind, strings.Join(where, ", ")))
	}
	for _, why := range []string{promotion.IsWithoutRows(s, d.Memory, target), promotion.IsFiltered(s, d.Memory, target)} {
		if why != "" {
			t.Evidence = append(slices.Clone(t.Evidence), t.To+" "+why)
		}
	}
	d.Status.Transition = &t
	d = d.noteEpoch(s, t)
	d.Persist, d.Hold = true, false
	return d.say(TopologyTransition, VerdictPromote, v1alpha1.ReasonGatePassed, "%s is opened: %s", t.To, strings.Join(t.Evidence, "; ")).
		then(Select{Site: t.To}, Detach{Site: t.To}, Open{Site: t.To}).within(time.Millisecond)
}
