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
	all := x.ordered()
	for _, step := range steps {
		if step.explain != nil {
			all = append(all, step.explain(x, target))
		}
	}
	return all
}

func (x explained) target(target Site) wire.ExplainedRule {
	t, epoch := x.s.Status.Transition, x.s.Status.Epoch
	switch ready, refused := (change{s: x.s, d: Decision{Memory: x.m}, t: t, target: target}).readiness(); ready {
	case targetReady:
	case targetSilent:
		return against(RuleTarget, t.To+": "+refused.Why, v1alpha1.ReasonTargetSilent, waitForMore)
	case targetRefused:
		return against(RuleTarget, t.To+": "+refused.Why, lostFor(x.s, x.m, target), advice("none needed if another candidate is fit; otherwise bring %s back", t.To))
	case targetIgnores:
		return against(RuleTarget, fmt.Sprintf("%s does not acknowledge epoch %d", t.To, epoch), v1alpha1.ReasonTargetLost, remedy("see the log of its sidecar", sidecarLog(x.s.Group, t.To)))
	case targetBehind:
		return against(RuleTarget, fmt.Sprintf("%s has not acknowledged epoch %d yet", t.To, epoch), v1alpha1.ReasonAwaitingFenceProof, advice("wait"))
	}
	return wire.ExplainedRule{Name: RuleTarget, Verdict: wire.RuleFor, Input: fmt.Sprintf("%s is fit and knows epoch %d", t.To, epoch)}
}

func (x explained) drain(target Site) wire.ExplainedRule {
	if wait, waits := drained(x.s, Decision{Memory: x.m}, target); waits {
		return against(RuleDrain, wait.Message, wait.Reason, advice("wait up to drainTimeout %s", x.s.Policy.DrainTimeout))
	}
	return wire.ExplainedRule{Name: RuleDrain, Verdict: wire.RuleFor, Input: target.Name + " holds all that can be fetched, applied"}
}

// gate asks the promotion gate itself.
func (x explained) gate(Site) wire.ExplainedRule {
	g, from := askGate(x.s, x.m), x.s.Status.Transition.From
	who := named(x.s, g.Blockers)
	switch {
	case g.Passed:
		return wire.ExplainedRule{Name: RuleGate, Verdict: wire.RuleFor, Input: strings.Join(g.Evidence, "; ")}
	case g.Writer != "":
		return against(RuleGate, g.Writer+" accepts writes; it is being fenced", v1alpha1.ReasonForeignWriter, advice("wait"))
	case from == "":
		return against(RuleGate, who+" must acknowledge the epoch fenced", v1alpha1.ReasonAwaitingFenceProof, x.orOrder("or order it", advice("wait, or bring %s back", who))...)
	case len(g.Blockers) > 0:
		return against(RuleGate, fmt.Sprintf("no proof that %s is fenced, and %s may still vouch for it", from, who), v1alpha1.ReasonSiteMayStillVouch,
			x.orOrder("or order it", bringBackOrTaint(who))...)
	}
	if g.Outlived != "" {
		return against(RuleGate, fmt.Sprintf("no proof that %s is fenced: %s", from, g.Outlived), v1alpha1.ReasonLeaseOutlived, x.orOrder("or order it", outlivedRemedy(from))...)
	}
	return against(RuleGate, fmt.Sprintf("no proof that %s is fenced; its lease has run out at %s (%s left)", from,
		g.ReadyAt.UTC().Format(time.RFC3339), seconds(g.ReadyAt.Sub(x.s.Now))), v1alpha1.ReasonAwaitingFenceProof, advice("wait"))
}

// transitionBudget asks once more what would be lost: the relay log is applied now, and the target may be another.
func (x explained) transitionBudget(target Site) wire.ExplainedRule {
	t := x.s.Status.Transition
	over := overBudget(x.s, t.FromExecuted, target)
	if over == "" || !t.Replaces() || forced(x.s) {
		return wire.ExplainedRule{Name: RuleLossBudget, Verdict: wire.RuleFor, Input: "the loss budget allows it"}
	}
	return against(RuleLossBudget, over, v1alpha1.ReasonLossBudget, x.orOrder("or accept the loss", advice("wait until %s is back and fenced, which loses nothing", t.From))...)
}

// verdictOf is what a decision about a change under way says to it.
func verdictOf(d Decision) wire.RuleVerdict {
	if d.Verdict == VerdictWait || d.Blocked() {
		return wire.RuleAgainst
	}
	return wire.RuleFor
}
