// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// underWay are the rules of a change that has begun, in the order of fencing and opening.
func (x explained) underWay() []wire.ExplainedRule {
	t := x.s.Status.Transition
	target, _ := x.s.Site(t.To)
	move := wire.ExplainedRule{Name: promotion.RuleMove, Verdict: verdictOf(x.d), Input: x.d.Message, Reason: string(x.d.Reason)}
	switch {
	case t.Step != v1alpha1.TransitionFencing:
		gate := wire.ExplainedRule{Name: promotion.RuleGate, Verdict: wire.RuleFor, Input: "passed: " + strings.Join(t.Evidence, "; ")}
		return []wire.ExplainedRule{gate, move}
	case t.Moves():
		return append(x.ordered(), move)
	}
	all := x.ordered()
	for _, step := range failover.Steps() {
		if explain, told := stepsTold[step]; told {
			all = append(all, explain(x, target))
		}
	}
	return all
}

// stepsTold are the steps of a change that have words for people, by name; their order is the decision's.
var stepsTold = map[string]func(explained, facts.Site) wire.ExplainedRule{
	promotion.RuleTarget:     explained.target,
	promotion.RuleDrain:      explained.drain,
	promotion.RuleGate:       explained.gate,
	promotion.RuleLossBudget: explained.transitionBudget,
}

func (x explained) target(target facts.Site) wire.ExplainedRule {
	t, epoch := x.s.Status.Transition, x.s.Status.Epoch
	switch ready, refused := failover.ReadinessOf(x.s, x.m); ready {
	case failover.TargetSilent:
		return promotion.Against(promotion.RuleTarget, t.To+": "+refused.Why, v1alpha1.ReasonTargetSilent, remedy.WaitForMore)
	case failover.TargetRefused:
		if refused.By == promotion.GuardKeptFenced {
			return promotion.Against(promotion.RuleTarget, t.To+": "+refused.Why, v1alpha1.ReasonKeptFenced, refused.Cure(x.s.Group, t.To)...)
		}
		return promotion.Against(promotion.RuleTarget, t.To+": "+refused.Why, promotion.LostFor(x.s, x.m, target), remedy.Advice("none needed if another candidate is fit; otherwise bring %s back", t.To))
	case failover.TargetIgnores:
		return promotion.Against(promotion.RuleTarget, fmt.Sprintf("%s does not acknowledge epoch %d", t.To, epoch), v1alpha1.ReasonTargetLost, remedy.New("see the log of its sidecar", remedy.SidecarLog(x.s.Group, t.To)))
	case failover.TargetBehind:
		return promotion.Against(promotion.RuleTarget, fmt.Sprintf("%s has not acknowledged epoch %d yet", t.To, epoch), v1alpha1.ReasonAwaitingFenceProof, remedy.Advice("wait"))
	case failover.TargetReady:
	}
	return wire.ExplainedRule{Name: promotion.RuleTarget, Verdict: wire.RuleFor, Input: fmt.Sprintf("%s is fit and knows epoch %d", t.To, epoch)}
}

func (x explained) drain(target facts.Site) wire.ExplainedRule {
	if wait, waits := failover.DrainedOf(x.s, x.m); waits {
		return promotion.Against(promotion.RuleDrain, wait.Message, wait.Reason, remedy.Advice("wait up to drainTimeout %s", x.s.Policy.DrainTimeout))
	}
	return wire.ExplainedRule{Name: promotion.RuleDrain, Verdict: wire.RuleFor, Input: target.Name + " holds all that can be fetched, applied"}
}

// gate asks the promotion gate itself.
func (x explained) gate(facts.Site) wire.ExplainedRule {
	g, from := failover.AskGate(x.s, x.m), x.s.Status.Transition.From
	who := memory.Named(x.s, g.Blockers)
	switch {
	case g.Passed:
		return wire.ExplainedRule{Name: promotion.RuleGate, Verdict: wire.RuleFor, Input: strings.Join(g.Evidence, "; ")}
	case g.Writer != "":
		return promotion.Against(promotion.RuleGate, g.Writer+" accepts writes; it is being fenced", v1alpha1.ReasonForeignWriter, remedy.Advice("wait"))
	case from == "":
		return promotion.Against(promotion.RuleGate, who+" must acknowledge the epoch fenced", v1alpha1.ReasonAwaitingFenceProof, x.asked().OrOrder("or order it", remedy.Advice("wait, or bring %s back", who))...)
	case len(g.Blockers) > 0:
		return promotion.Against(promotion.RuleGate, fmt.Sprintf("no proof that %s is fenced, and %s may still vouch for it", from, who), v1alpha1.ReasonSiteMayStillVouch,
			x.asked().OrOrder("or order it", remedy.BringBackOrTaint(who))...)
	}
	if g.Outlived != "" {
		return promotion.Against(promotion.RuleGate, fmt.Sprintf("no proof that %s is fenced: %s", from, g.Outlived), v1alpha1.ReasonLeaseOutlived, x.asked().OrOrder("or order it", remedy.Outlived(from))...)
	}
	rule := promotion.Against(promotion.RuleGate, fmt.Sprintf("no proof that %s is fenced; its lease runs out at %s (%s left)", from,
		g.ReadyAt.UTC().Format(time.RFC3339), promotion.Seconds(g.ReadyAt.Sub(x.s.Now))), v1alpha1.ReasonAwaitingFenceProof, remedy.Advice("wait"))
	rule.Until = g.ReadyAt
	return rule
}

// transitionBudget asks what the decision asks.
func (x explained) transitionBudget(facts.Site) wire.ExplainedRule {
	t, over := x.s.Status.Transition, failover.OverBudgetOf(x.s, x.m)
	if over == "" {
		return wire.ExplainedRule{Name: promotion.RuleLossBudget, Verdict: wire.RuleFor, Input: "the loss budget allows it"}
	}
	return promotion.Against(promotion.RuleLossBudget, over, v1alpha1.ReasonLossBudget, x.asked().OrOrder("or accept the loss", remedy.Advice("wait until %s is back and fenced, which loses nothing", t.From))...)
}

// verdictOf turns a decision about a change under way into the verdict of a rule.
func verdictOf(d failover.Decision) wire.RuleVerdict {
	if d.Verdict == failover.VerdictWait || d.Blocked() {
		return wire.RuleAgainst
	}
	return wire.RuleFor
}
