// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// underWay are the rules of a change that has begun, in the order of fencing and opening.
func (x explained) underWay() []wire.ExplainedRule {
	t := x.s.Status.Transition
	target, _ := x.s.Site(t.To)
	move := wire.ExplainedRule{Name: RuleMove, Verdict: verdictOf(x.d), Input: x.d.Message, Reason: string(x.d.Reason)}
	switch {
	case t.Step != v1alpha1.TransitionFencing:
		gate := wire.ExplainedRule{Name: RuleGate, Verdict: wire.RuleFor, Input: "passed: " + strings.Join(t.Evidence, "; ")}
		return []wire.ExplainedRule{gate, move}
	case planned(t):
		return append(x.ordered(), move)
	}
	return append(x.ordered(), x.target(target), x.drain(target), x.gate(), x.transitionBudget(target))
}

func (x explained) target(target Site) wire.ExplainedRule {
	t := x.s.Status.Transition
	why, patience := targetUnfit(x.s, x.m, target)
	behind := target.Sidecar.Report.Epoch < x.s.Status.Epoch
	switch {
	case patience > 0:
		return against(RuleTarget, t.To+": "+why, v1alpha1.ReasonTargetSilent, "wait: one lost answer is no outage")
	case why != "":
		return against(RuleTarget, t.To+": "+why, lostFor(x.s, x.m, target), "none needed if another candidate is fit; otherwise bring "+t.To+" back")
	case behind && late(x.s, x.m.DrainSince):
		return against(RuleTarget, fmt.Sprintf("%s does not acknowledge epoch %d", t.To, x.s.Status.Epoch), v1alpha1.ReasonTargetLost, "see the log of its sidecar")
	case behind:
		return against(RuleTarget, fmt.Sprintf("%s has not acknowledged epoch %d yet", t.To, x.s.Status.Epoch), v1alpha1.ReasonAwaitingFenceProof, "wait")
	}
	return wire.ExplainedRule{Name: RuleTarget, Verdict: wire.RuleFor, Input: fmt.Sprintf("%s is fit and knows epoch %d", t.To, x.s.Status.Epoch)}
}

func (x explained) drain(target Site) wire.ExplainedRule {
	if wait, waits := drained(x.s, Decision{Memory: x.m}, target); waits {
		return against(RuleDrain, wait.Message, wait.Reason, "wait up to drainTimeout "+x.s.Policy.DrainTimeout.String())
	}
	return wire.ExplainedRule{Name: RuleDrain, Verdict: wire.RuleFor, Input: target.Name + " holds all that can be fetched, applied"}
}

// gate asks the promotion gate itself.
func (x explained) gate() wire.ExplainedRule {
	g, from := gate(x.s, x.m), x.s.Status.Transition.From
	who := x.s.named(g.Blockers)
	switch {
	case g.Passed:
		return wire.ExplainedRule{Name: RuleGate, Verdict: wire.RuleFor, Input: strings.Join(g.Evidence, "; ")}
	case g.Writer != "":
		return against(RuleGate, g.Writer+" accepts writes; it is being fenced", v1alpha1.ReasonForeignWriter, "wait")
	case from == "":
		return against(RuleGate, who+" must acknowledge the epoch fenced", v1alpha1.ReasonAwaitingFenceProof, "wait, or bring "+who+" back"+x.order("; or order it: "))
	case len(g.Blockers) > 0:
		return against(RuleGate, fmt.Sprintf("no proof that %s is fenced, and %s may still vouch for it", from, who), v1alpha1.ReasonSiteMayStillVouch,
			fmt.Sprintf("bring %s back, or taint its node %s if it is down", who, v1alpha1.OutOfServiceTaint)+x.order("; or order it: "))
	}
	if g.Outlived != "" {
		return against(RuleGate, fmt.Sprintf("no proof that %s is fenced: %s", from, g.Outlived), v1alpha1.ReasonLeaseOutlived, outlivedRemedy(from)+x.order("; or order it: "))
	}
	return against(RuleGate, fmt.Sprintf("no proof that %s is fenced; its lease has run out at %s (%s left)", from,
		g.ReadyAt.UTC().Format(time.RFC3339), seconds(g.ReadyAt.Sub(x.s.Now))), v1alpha1.ReasonAwaitingFenceProof, "wait")
}

// transitionBudget asks once more what would be lost: the relay log is applied now, and the target may be another.
func (x explained) transitionBudget(target Site) wire.ExplainedRule {
	t := x.s.Status.Transition
	over := overBudget(x.s, t.FromExecuted, target)
	if over == "" || t.From == "" || t.From == t.To || forced(x.s) {
		return wire.ExplainedRule{Name: RuleLossBudget, Verdict: wire.RuleFor, Input: "the loss budget allows it"}
	}
	return against(RuleLossBudget, over, v1alpha1.ReasonLossBudget, "wait until "+t.From+" is back and fenced, which loses nothing"+x.order("; or accept the loss: "))
}

// verdictOf is what a decision about a change under way says to it.
func verdictOf(d Decision) wire.RuleVerdict {
	if d.Verdict == VerdictWait || d.Blocked() {
		return wire.RuleAgainst
	}
	return wire.RuleFor
}
