// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// moving continues a planned failover whose target may not be opened yet: fence, capture, apply, open. If anything goes
// wrong on the way, the operator opens the old active site again, unless that is lost.
func moving(s Snapshot, d Decision) Decision {
	t := s.Status.Transition
	from, _ := s.Site(t.From)
	target, _ := s.Site(t.To)
	again := Handover{From: t.From, To: t.To}
	step, reason, effect := "", v1alpha1.ReasonAwaitingFenceProof, Effect(again)
	captured, fenced := capturedSet(s, from)
	needed := captured.Union(target.MySQL.Retrieved)
	lacks := needed.Subtract(target.MySQL.Executed)
	elsewhere, where := lineage.Missing(s, d.Memory, target)
	refused := promotion.UnfitOf(s, d.Memory, target) // the move waits for no cure: writes are kept out
	over, dying, lost := overtaken(s, d, from, target)
	switch {
	case lost:
		return over
	case s.Policy.AbortPlanned:
		return d.revert(s, v1alpha1.PlannedAborted, v1alpha1.ReasonAborted, "a person gave it up", remedy.New("to try again", remedy.MoveTo(s.Group, t.To)))
	case refused.By != "":
		return d.revert(s, v1alpha1.PlannedReverted, v1alpha1.ReasonTargetLost, fmt.Sprintf("%s: %s", t.To, refused.Why), refused.Cure(s.Group, target.Name)...)
	case !fenced:
		step = fmt.Sprintf("%s has not reported itself fenced under epoch %d yet", t.From, s.Status.Epoch)
	case target.Sidecar.Report.Epoch < s.Status.Epoch:
		step = fmt.Sprintf("%s has not acknowledged epoch %d yet", t.To, s.Status.Epoch)
	case !lacks.IsEmpty():
		step, reason, effect = fmt.Sprintf("%s has %s left to apply", t.To, gtid.Transactions(lacks.Count())), v1alpha1.ReasonDrainingRelayLog, Apply{Site: t.To, Set: needed}
	case !elsewhere.IsEmpty():
		step, reason = fmt.Sprintf("%s lacks %s, which %s has", t.To, elsewhere, where), v1alpha1.ReasonMissingTransactions
	}
	if g := AskGate(s, d.Memory); step == "" && g.Passed {
		moved, whole := s, *t
		whole.FromExecuted = captured // all that the old active site holds
		moved.Status.Transition = &whole
		return pass(moved, d, target, g)
	} else if step == "" {
		step = fmt.Sprintf("the gate is closed (%s)", strings.Join(append(g.Blockers, g.Writer), " "))
	}
	// Not from StartedAt: that may be of an earlier leader, by whose clock the move would be given up at once, or writes kept out for as long
	// as the clocks differ. Memory knows since when this process has worked at it; a new leader gives the move its whole time again (I9).
	since := gate.Later(d.Memory.DrainSince, s.LeaderSince)
	if !dying && s.Now.Sub(since) > s.Policy.PlannedPauseTimeout {
		return d.revert(s, v1alpha1.PlannedReverted, v1alpha1.ReasonPauseTimeout,
			fmt.Sprintf("%s, for longer than plannedPauseTimeout %s", step, s.Policy.PlannedPauseTimeout),
			remedy.New("find out what holds it up (a long transaction, a lag of "+t.To+")", s.Group.Command("events", "", "--since 10m")),
			remedy.New("then", remedy.MoveTo(s.Group, t.To)))
	}
	return d.say(TopologyTransition, VerdictWait, reason, "%s", step).then(effect).within(time.Millisecond)
}

// capturedSet is all that the old active site holds, once nothing can be added (I13). Its sidecar reads the flags and the
// set in this order in one statement, after the fence: MySQL blocks commits before it shows super_read_only as ON.
func capturedSet(s Snapshot, from Site) (gtid.Set, bool) {
	r := from.Sidecar.Report
	if !from.Sidecar.Answered || from.OtherVolume || !r.Answered || !r.SuperReadOnly || !r.FencedUnder(s.Status.Epoch) || from.Writable() {
		return gtid.Set{}, false // a set that may still grow, or is not known, cannot be compared
	}
	set, err := gtid.Parse(r.GTIDExecuted)
	if err != nil {
		return gtid.Set{}, false
	}
	return set, true
}

// revert opens the old active site again, under another new epoch: the target may have heard of the present one.
func (d Decision) revert(s Snapshot, phase v1alpha1.PlannedPhase, why Reason, message string, remedies ...Remedy) Decision {
	t := s.Status.Transition
	p := Planned{From: t.From, To: t.To, Cause: v1alpha1.ReasonRequested, StartedAt: t.StartedAt}
	if s.Status.Planned != nil {
		p = *s.Status.Planned
	}
	d = d.retarget(s, t.From, v1alpha1.ReasonPlannedReverted)
	d = d.end(p, s.Now, phase, why, "%s; %s is opened again", message, t.From).advise(remedies...)
	return d.say(TopologyTransition, VerdictFailover, v1alpha1.ReasonPlannedReverted, "the planned failover to %s ends: %s; %s is opened again", t.To, message, t.From)
}

// overtaken turns a planned failover whose source is lost into an emergency failover to the same target, as soon as the
// rules of an emergency would act. Opening a lost site again, as a failed move does otherwise, would only cost another wait.
// dying is true while the source is down, but not for long enough yet: then neither happens.
func overtaken(s Snapshot, d Decision, from, target Site) (over Decision, dying, lost bool) {
	if !from.Unusable() || s.Policy.AbortPlanned || promotion.UnfitOf(s, d.Memory, target).By != "" {
		return d, false, false // the source can be opened again, or must be: the target cannot be opened
	}
	if no := promotion.FirstAgainst(promotion.Permissions, promotion.Ask(s, d.Memory, promotion.Candidate{Site: target, All: target.All()}, true)); no.Reason != "" || promotion.OverBudget(s, d.Memory.Of(from.Name).Executed, target) != "" {
		return d, false, false // an emergency failover would not be begun now either
	}
	why, message := lostBy(s, d.Memory, from)
	if why == "" {
		return d, true, false
	}
	t := *s.Status.Transition
	t.Kind, t.Reason, t.StartedAt, t.FromExecuted = v1alpha1.FailoverEmergency, why, s.Now, d.Memory.Of(from.Name).Executed
	// The epoch stays: it names the target already, and acknowledgements of it still count for the gate.
	d.Status.Transition = &t
	d.Memory.DrainSince = s.Now
	d.Persist, d.Hold = true, true
	d = d.say(TopologyTransition, VerdictFailover, why, "%s while the role was moving to %s: it takes over without what cannot be fetched any more", message, t.To)
	return d.then(Select{Site: t.To}, Announce{Fence: fenceTargets(&t), Drain: t.To}).within(time.Millisecond), false, true
}

// lostBy names the rule that would now replace an active site that is down, or "". The rules are those of steady.
func lostBy(s Snapshot, m Memory, site Site) (Reason, string) {
	down := s.Now.Sub(memory.OrNow(m.Of(site.Name).DownSince, s.Now))
	switch {
	case site.Sidecar.Answered && down >= s.Policy.CrashGrace:
		return v1alpha1.ReasonActiveSiteDown, fmt.Sprintf("MySQL of %s went down", site.Name)
	case !site.Sidecar.Answered && memory.IsLongSilent(s, m, site.Name):
		return v1alpha1.ReasonActiveSiteSilent, fmt.Sprintf("%s stopped answering", site.Name)
	}
	return "", ""
}
