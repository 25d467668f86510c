// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// Names of the rules of an explanation, in the order in which they are asked.
const (
	RuleActiveKnown    = wire.RuleActiveSiteKnown
	RuleOrder          = "Order"
	RuleActiveWrites   = "ActiveSiteAcceptsWrites"
	RuleActiveReturned = "ActiveSiteReturned"
	RuleCrashGrace     = "CrashGrace"
	RuleThreshold      = "Threshold"
	RuleAnySite        = "AnySiteAnswers"
	RuleMode           = "Mode"
	RulePause          = "Pause"
	RuleCandidate      = "Candidate"
	RuleCooldown       = "Cooldown"
	RuleLossBudget     = "LossBudget"
	RuleTarget         = "Target"
	RuleDrain          = "Drain"
	RuleVouchers       = "SilentVouchers"
	RuleGate           = "Gate"
	RuleMove           = "Move"
)

// Takeover is the emergency failover that the rules judge: from the active site to the best candidate, if one was found.
type Takeover struct {
	s     facts.Snapshot
	m     facts.Memory
	best  Candidate
	found bool
}

// Ask returns the takeover about which the rules are asked.
func Ask(s facts.Snapshot, m facts.Memory, best Candidate, found bool) Takeover {
	return Takeover{s: s, m: m, best: best, found: found}
}

// Answer is what a rule says about a takeover.
type Answer struct {
	// Reason is what the rule has against it; empty if nothing.
	Reason facts.Reason
	// Message is how a decision says that.
	Message string
	// looked is what an explanation says was looked at; it may change with every look. If it is empty, Message takes its place.
	looked string
	// open is true if the rule cannot be asked now.
	open bool
}

// Rule is one question that is asked before the role moves. A decision stops at the first that refuses; an explanation asks them all.
type Rule struct {
	name   string
	ask    func(Takeover) Answer
	remedy func(Takeover, Answer) []facts.Remedy
}

// Permissions are the rules that may forbid an emergency failover that is due, in the order in which a person would want to know.
var Permissions = []Rule{
	{RuleMode, Takeover.mode, func(t Takeover, _ Answer) []facts.Remedy {
		return t.OrOrder("or order the failover", remedy.New("let the operator fail over", remedy.LetFailOver(t.s.Group)))
	}},
	{RulePause, Takeover.pause, func(t Takeover, _ Answer) []facts.Remedy {
		return []facts.Remedy{{Command: t.s.Group.Command("resume", "", "")}}
	}},
	{RuleCandidate, Takeover.candidate, func(t Takeover, _ Answer) []facts.Remedy { return t.remediesWithoutCandidate() }},
	{RuleCooldown, Takeover.cooldown, func(t Takeover, _ Answer) []facts.Remedy {
		return t.OrOrder("or order the failover", remedy.Advice("wait"))
	}},
	{RuleLossBudget, Takeover.budget, func(t Takeover, _ Answer) []facts.Remedy {
		return t.OrOrder("or accept the loss", remedy.New("wait until it has caught up, and watch it", t.s.Group.Command("status", "", "-w")))
	}},
}

// Endings are the rules that find a failover away from a silent site that could be begun but not ended: none is begun then.
var Endings = []Rule{
	{RuleVouchers, Takeover.vouchers, func(t Takeover, a Answer) []facts.Remedy {
		if a.Reason == v1alpha1.ReasonBelowThreshold {
			return []facts.Remedy{remedy.WaitForMore}
		}
		return t.OrOrder("or order the failover", remedy.BringBackOrTaint("either"))
	}},
	{RuleGate, Takeover.lease, func(t Takeover, _ Answer) []facts.Remedy {
		return t.OrOrder("or order the failover", remedy.Outlived(t.s.Status.ActiveSite))
	}},
}

// FirstAgainst returns the answer of the first rule that is against the takeover; empty if none is.
func FirstAgainst(rules []Rule, t Takeover) Answer {
	for _, r := range rules {
		if a := r.ask(t); a.Reason != "" {
			return a
		}
	}
	return Answer{}
}

// Explain puts one rule and its answer into words for people.
func (r Rule) Explain(t Takeover) wire.ExplainedRule {
	a := r.ask(t)
	out := wire.ExplainedRule{Name: r.name, Verdict: wire.RuleFor, Input: a.Message, Reason: string(a.Reason)}
	if a.looked != "" {
		out.Input = a.looked
	}
	switch {
	case a.open:
		out.Verdict = wire.RuleOpen
	case a.Reason != "":
		out.Verdict, out.Remedies = wire.RuleAgainst, r.remedy(t, a)
	}
	return out
}

func (t Takeover) mode() Answer {
	out := Answer{Message: "spec.failover.mode is " + string(t.s.Policy.Mode)}
	switch t.s.Policy.Mode {
	case v1alpha1.FailoverObserve:
		out.Reason = v1alpha1.ReasonModeObserve
	case v1alpha1.FailoverManual:
		out.Reason = v1alpha1.ReasonModeManual
	default:
	}
	return out
}

func (t Takeover) pause() Answer {
	if t.s.Paused() {
		return Answer{Reason: v1alpha1.ReasonPaused, Message: pausedMessage(t.s)}
	}
	return Answer{Message: "not paused"}
}

func (t Takeover) candidate() Answer {
	if !t.found {
		return Answer{Reason: nobodyFit(t.s, t.m), Message: WhyNobody(t.s, t.m)}
	}
	return Answer{Message: t.best.Site.Name + " is fit and ranks first"}
}

func (t Takeover) cooldown() Answer {
	until := t.s.Status.CooldownUntil
	if !t.s.Now.Before(until) {
		return Answer{Message: "no cooldown"}
	}
	at := until.UTC().Format(time.RFC3339)
	return Answer{Reason: v1alpha1.ReasonCooldown, Message: "cooldown until " + at, looked: fmt.Sprintf("until %s (%s left)", at, Seconds(until.Sub(t.s.Now)))}
}

func (t Takeover) budget() Answer {
	if !t.found {
		return Answer{Message: "asked of a fit candidate only", open: true}
	}
	if over := OverBudget(t.s, t.m.Of(t.s.Status.ActiveSite).Executed, t.best.Site); over != "" {
		return Answer{Reason: v1alpha1.ReasonLossBudget, Message: over}
	}
	if most := t.s.Policy.MaxLost; most != nil {
		return Answer{Message: fmt.Sprintf("what was last seen is within spec.failover.maxLostTransactions %d", *most)}
	}
	return Answer{Message: "spec.failover.maxLostTransactions is not set"}
}

// vouchers asks whether a silent site could vouch for the active site.
func (t Takeover) vouchers() Answer {
	active := t.s.Status.ActiveSite
	silent, why := vouchedFor(t.s, t.m, t.best.Site.Name)
	if silent == "" {
		return Answer{}
	}
	out := Answer{Reason: why, looked: fmt.Sprintf("neither %s nor %s answers, which could vouch for it", active, silent)}
	if why == v1alpha1.ReasonBelowThreshold {
		out.Message = fmt.Sprintf("%s has lost an answer too: whether it could vouch for %s is about to be known", silent, active)
		return out
	}
	out.Message = fmt.Sprintf("%s may still be open, and %s, which does not answer either, may vouch for it: a failover could not be ended, so none is begun; "+
		"bring either back, or taint its node %s if it is down; %s", active, silent, v1alpha1.OutOfServiceTaint, HowToOrder(t.best.Site.Name))
	return out
}

// lease asks whether the lease of the active site can be counted on.
func (t Takeover) lease() Answer {
	never := memory.OutlivedAndSilent(t.s, t.m)
	if never == "" {
		return Answer{}
	}
	return Answer{Reason: v1alpha1.ReasonLeaseOutlived, looked: never, Message: fmt.Sprintf("%s; a failover could not be ended, so none is begun; %s; %s",
		never, remedy.Outlived(t.s.Status.ActiveSite), HowToOrder(t.best.Site.Name))}
}

// Against is the explanation of a rule that is against a failover.
func Against(name, input string, why facts.Reason, remedies ...facts.Remedy) wire.ExplainedRule {
	return wire.ExplainedRule{Name: name, Verdict: wire.RuleAgainst, Input: input, Reason: string(why), Remedies: remedies}
}

// Seconds is a duration as people read it, to a tenth of a second.
func Seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
