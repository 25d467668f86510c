// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Names of the rules of an explanation, in the order in which they are asked.
const (
	RuleActiveKnown    = "ActiveSiteKnown"
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

// takeover is an emergency failover that is asked about: from the active site to the best candidate, if one was found.
type takeover struct {
	s     Snapshot
	m     Memory
	best  Candidate
	found bool
}

// answer is what a rule says of a takeover.
type answer struct {
	// reason is what stands against it; empty if the rule has nothing against it.
	reason Reason
	// message is how a decision tells that.
	message string
	// looked is what an explanation says was looked at; it may change with every look. Empty is the message.
	looked string
	// open is true if the rule cannot be asked now.
	open bool
}

// rule is one question that is asked before the role moves. A decision stops at the first that refuses, an explanation asks them all.
type rule struct {
	name   string
	ask    func(takeover) answer
	remedy func(explained, answer) []Remedy
}

// permissions are the rules that may forbid an emergency failover that is due, in the order in which a person would want to know.
var permissions = []rule{
	{RuleMode, takeover.mode, func(x explained, _ answer) []Remedy {
		return x.orOrder("or order the failover", advice("set spec.failover.mode to Auto"))
	}},
	{RulePause, takeover.pause, func(x explained, _ answer) []Remedy {
		return []Remedy{{Command: x.s.Group.Command("resume", "", "")}}
	}},
	{RuleCandidate, takeover.candidate, func(x explained, _ answer) []Remedy { return x.withoutCandidate() }},
	{RuleCooldown, takeover.cooldown, func(x explained, _ answer) []Remedy { return x.orOrder("or order the failover", advice("wait")) }},
	{RuleLossBudget, takeover.budget, func(x explained, _ answer) []Remedy {
		return x.orOrder("or accept the loss", advice("wait until it has caught up"))
	}},
}

// endings are the rules by which a failover away from a silent site could be begun and not ended: none is begun then.
var endings = []rule{
	{RuleVouchers, takeover.vouchers, func(x explained, a answer) []Remedy {
		if a.reason == v1alpha1.ReasonBelowThreshold {
			return []Remedy{waitForMore}
		}
		return x.orOrder("or order the failover", bringBackOrTaint("either"))
	}},
	{RuleGate, takeover.lease, func(x explained, _ answer) []Remedy {
		return x.orOrder("or order the failover", outlivedRemedy(x.s.Status.ActiveSite))
	}},
}

// refusal is what the first rule says that is against it; empty if none is.
func refusal(rules []rule, t takeover) answer {
	for _, r := range rules {
		if a := r.ask(t); a.reason != "" {
			return a
		}
	}
	return answer{}
}

// explain asks one rule for people.
func (r rule) explain(x explained) wire.ExplainedRule {
	a := r.ask(takeover{x.s, x.m, x.best, x.found})
	out := wire.ExplainedRule{Name: r.name, Verdict: wire.RuleFor, Input: a.message, Reason: string(a.reason)}
	if a.looked != "" {
		out.Input = a.looked
	}
	switch {
	case a.open:
		out.Verdict = wire.RuleOpen
	case a.reason != "":
		out.Verdict, out.Remedies = wire.RuleAgainst, r.remedy(x, a)
	}
	return out
}

func (t takeover) mode() answer {
	out := answer{message: "spec.failover.mode is " + string(t.s.Policy.Mode)}
	switch t.s.Policy.Mode {
	case v1alpha1.FailoverObserve:
		out.reason = v1alpha1.ReasonModeObserve
	case v1alpha1.FailoverManual:
		out.reason = v1alpha1.ReasonModeManual
	default:
	}
	return out
}

func (t takeover) pause() answer {
	if t.s.Paused() {
		return answer{reason: v1alpha1.ReasonPaused, message: pausedMessage(t.s)}
	}
	return answer{message: "not paused"}
}

func (t takeover) candidate() answer {
	if !t.found {
		return answer{reason: nobodyFit(t.s, t.m), message: whyNobody(t.s, t.m)}
	}
	return answer{message: t.best.Site.Name + " is fit and ranks first"}
}

func (t takeover) cooldown() answer {
	until := t.s.Status.CooldownUntil
	if !t.s.Now.Before(until) {
		return answer{message: "no cooldown"}
	}
	at := until.UTC().Format(time.RFC3339)
	return answer{reason: v1alpha1.ReasonCooldown, message: "cooldown until " + at, looked: fmt.Sprintf("until %s (%s left)", at, seconds(until.Sub(t.s.Now)))}
}

func (t takeover) budget() answer {
	if !t.found {
		return answer{message: "asked of a fit candidate only", open: true}
	}
	if over := overBudget(t.s, t.m.Of(t.s.Status.ActiveSite).Executed, t.best.Site); over != "" {
		return answer{reason: v1alpha1.ReasonLossBudget, message: over}
	}
	if most := t.s.Policy.MaxLost; most != nil {
		return answer{message: fmt.Sprintf("what was last seen is within spec.failover.maxLostTransactions %d", *most)}
	}
	return answer{message: "spec.failover.maxLostTransactions is not set"}
}

// vouchers asks whether somebody silent could vouch for the active site.
func (t takeover) vouchers() answer {
	active := t.s.Status.ActiveSite
	silent, why := vouchedFor(t.s, t.m, t.best.Site.Name)
	if silent == "" {
		return answer{}
	}
	out := answer{reason: why, looked: fmt.Sprintf("neither %s nor %s answers, which could vouch for it", active, silent)}
	if why == v1alpha1.ReasonBelowThreshold {
		out.message = fmt.Sprintf("%s has lost an answer too: whether it could vouch for %s is about to be known", silent, active)
		return out
	}
	out.message = fmt.Sprintf("%s may still be open, and %s, which does not answer either, may vouch for it: a failover could not be ended, so none is begun; "+
		"bring either back, or taint its node %s if it is down; %s", active, silent, v1alpha1.OutOfServiceTaint, override(t.best.Site.Name))
	return out
}

// lease asks whether the lease of the active site can be counted on.
func (t takeover) lease() answer {
	never := outlivedAndSilent(t.s, t.m)
	if never == "" {
		return answer{}
	}
	return answer{reason: v1alpha1.ReasonLeaseOutlived, looked: never, message: fmt.Sprintf("%s; a failover could not be ended, so none is begun; %s; %s",
		never, outlivedRemedy(t.s.Status.ActiveSite), override(t.best.Site.Name))}
}
