// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// Explanation says why a decision was taken; see wire.Explanation.
type Explanation = wire.Explanation

// Explain says why d was decided. d must be Decide(s, m): the functions that decide ask the rules again, each on its
// own, so that a person also sees what would stand in the way next.
func Explain(s facts.Snapshot, m facts.Memory, d failover.Decision) Explanation {
	s, _ = memory.WithRuns(memory.OnKnownVolumes(memory.Believed(s), m), m)
	x := explained{s: promotion.WithOrder(s), m: d.Memory, d: d}
	x.active, _ = s.Site(s.Status.ActiveSite)
	x.best, x.found = promotion.Choose(s, x.m, s.Status.ActiveSite)
	e := Explanation{
		At: s.Now, Topology: string(d.Topology), Verdict: string(d.Verdict), Reason: string(d.Reason), Message: d.Message,
		Rules: x.rules(), Candidates: x.candidates(), Loss: x.loss(),
	}
	e.Now = d.Verdict == failover.VerdictFailover || d.Verdict == failover.VerdictPromote || d.Verdict == failover.VerdictBootstrap
	for i, r := range e.Rules {
		e.Rules[i].Remedy = wire.InWords(r.Remedies)
		if r.Verdict == wire.RuleAgainst && !e.Now && e.DecidedBy == "" {
			e.DecidedBy = r.Name
		}
	}
	e.Blockers = x.blockers()
	return e
}

// explained is what the rules are asked about.
type explained struct {
	s      facts.Snapshot
	m      facts.Memory
	d      failover.Decision
	active facts.Site
	best   promotion.Candidate
	found  bool
}

// asked is the takeover about which the rules are asked.
func (x explained) asked() promotion.Takeover { return promotion.Ask(x.s, x.m, x.best, x.found) }

func (x explained) rules() []wire.ExplainedRule {
	if _, behind := failover.BehindTheSites(x.s); behind || x.s.Status.Epoch == 0 || failover.NeverPassed(x.s.Status) {
		return []wire.ExplainedRule{promotion.Against(promotion.RuleActiveKnown, x.d.Message, x.d.Reason, x.firstRemedies()...)}
	}
	known := wire.ExplainedRule{Name: promotion.RuleActiveKnown, Verdict: wire.RuleFor,
		Input: fmt.Sprintf("%s under epoch %d", x.s.Status.ActiveSite, x.s.Status.Epoch)}
	if x.s.Status.Transition != nil {
		return append([]wire.ExplainedRule{known}, x.underWay()...)
	}
	rules := append([]wire.ExplainedRule{known}, x.ordered()...)
	rules = append(rules, x.seen()...)
	rules = append(rules, x.allowed()...)
	for _, r := range promotion.Endings {
		if never := r.Explain(x.asked()); never.Verdict == wire.RuleAgainst {
			return append(rules, never)
		}
	}
	return append(rules, x.gateForecast())
}

// firstRemedies are what a person can do while there is no active site, or status does not know it.
func (x explained) firstRemedies() []facts.Remedy {
	switch x.d.Reason { //nolint:exhaustive // the others are told below
	case v1alpha1.ReasonFirstSite, v1alpha1.ReasonStatusBehind:
		return []facts.Remedy{remedy.Advice("none needed: the operator continues")}
	case v1alpha1.ReasonRestoring:
		return []facts.Remedy{remedy.New("see how far the backup is", x.s.Group.Command("status", "", "-w"))}
	case v1alpha1.ReasonKeyringNotEscrowed:
		return []facts.Remedy{remedy.NotEscrowed}
	case v1alpha1.ReasonKeptFenced:
		return x.endFences()
	}
	var all []facts.Remedy
	for _, site := range x.s.Sites {
		if site.Role == v1alpha1.PrimaryCandidate && !site.Removed && !(site.Sidecar.Answered && site.MySQL.Direct) {
			all = append(all, remedy.TheSite(x.s.Group, site.Name)...)
		}
	}
	if len(all) == 0 { // the decision says what is missing, and the way out
		all = []facts.Remedy{remedy.New("see the sites", x.s.Group.Command("status", "", ""))}
	}
	return all
}

// ordered is a person's order to accept loss, if there is one.
func (x explained) ordered() []wire.ExplainedRule {
	to := x.s.Policy.ForceTo
	switch {
	case to == "":
		return nil
	case x.s.Order.To == "":
		return []wire.ExplainedRule{{Name: promotion.RuleOrder, Verdict: wire.RuleOpen, Input: to + " was ordered and cannot be promoted at all"}}
	case x.active.Writable():
		return []wire.ExplainedRule{{Name: promotion.RuleOrder, Verdict: wire.RuleOpen, Input: to + " was ordered; refused while " + x.active.Name + " accepts writes"}}
	}
	return []wire.ExplainedRule{{Name: promotion.RuleOrder, Verdict: wire.RuleFor, Input: "a person orders " + to + ": mode, pause, cooldown and loss budget do not count"}}
}

// seen are the rules that find out whether a failover is due.
func (x explained) seen() []wire.ExplainedRule {
	a, rules := x.active, []wire.ExplainedRule{x.acceptsWrites()}
	down := x.s.Now.Sub(memory.OrNow(x.m.Of(a.Name).DownSince, x.s.Now))
	silent := x.m.Of(x.s.Status.ActiveSite).SilentPolls
	if a.Writable() || x.s.Order.Elsewhere(x.s.Status.ActiveSite) {
		return rules // all below is asked only of an active site that does not accept writes and is not overruled
	}
	switch {
	case a.Sidecar.Answered && a.SQLAnswers():
		return append(rules, x.returned())
	case a.Sidecar.Answered:
		r := wire.ExplainedRule{Name: promotion.RuleCrashGrace, Verdict: wire.RuleFor,
			Input: fmt.Sprintf("MySQL of %s is down for %s; crashGrace is %s", a.Name, promotion.Seconds(down), x.s.Policy.CrashGrace)}
		if down < x.s.Policy.CrashGrace {
			r = promotion.Against(r.Name, r.Input, v1alpha1.ReasonWaitingForRestart, remedy.Advice("wait: it may restart in place, which loses nothing"))
		}
		return append(rules, r)
	}
	wanted := time.Duration(x.s.Policy.Threshold-1) * x.s.Policy.PollInterval
	r := wire.ExplainedRule{Name: promotion.RuleThreshold, Verdict: wire.RuleFor, Input: fmt.Sprintf("%s is silent for %d polls and %s; needed are %d and %s",
		x.s.Status.ActiveSite, silent, promotion.Seconds(down), x.s.Policy.Threshold, wanted)}
	if silent < x.s.Policy.Threshold || down < wanted {
		r = promotion.Against(r.Name, r.Input, v1alpha1.ReasonBelowThreshold, remedy.WaitForMore)
	}
	return append(rules, r, x.anySite())
}

func (x explained) acceptsWrites() wire.ExplainedRule {
	a := x.active
	r := wire.ExplainedRule{Name: promotion.RuleActiveWrites, Verdict: wire.RuleFor, Input: x.s.Status.ActiveSite + " " + seenAs(a)}
	if a.Writable() {
		r = promotion.Against(r.Name, r.Input, v1alpha1.ReasonHealthy, remedy.Advice("none needed"), remedy.New("to move the role without loss", remedy.MoveTo(x.s.Group, "SITE")))
	}
	if u := x.d.Unwritable; u != nil {
		words, way := u.Message()
		r.Reason, r.Input, r.Remedies = string(u.Reason), words+x.stallRule(), []facts.Remedy{way}
	}
	return r
}

// returned says what is decided about an active site that answers but is read-only. The decision itself says why the site
// is not simply opened again.
func (x explained) returned() wire.ExplainedRule {
	r := wire.ExplainedRule{Name: promotion.RuleActiveReturned, Verdict: wire.RuleFor, Input: x.d.Message}
	if x.d.Verdict == failover.VerdictReopen {
		r = promotion.Against(r.Name, r.Input, x.d.Reason, remedy.Advice("none needed: it is opened again, which loses nothing"))
	}
	if x.d.Verdict == failover.VerdictReopen && x.d.Reason == v1alpha1.ReasonForced {
		r.Remedies = []facts.Remedy{remedy.Advice("none needed: it is opened again, as was ordered")}
	}
	if x.d.Blocked() && x.d.Reason == v1alpha1.ReasonActiveSiteCannotOpen {
		r = promotion.Against(r.Name, r.Input, x.d.Reason, remedy.New("see in the log of its sidecar why it does not open", remedy.SidecarLog(x.s.Group, x.active.Name)),
			remedy.Advice("what keeps others from its place is below"))
	}
	if x.active.KeptFenced { // it is not opened, so it is no reason against a failover
		r.Input, r.Remedies = x.active.Name+" "+promotion.IsKeptFenced(x.s, x.m, x.active), remedy.FenceOff(x.s.Group, x.active.Name)
	}
	if x.d.Reason == v1alpha1.ReasonKeyringNotEscrowed && promotion.IsUnescrowed(x.s, x.m, x.active) != "" {
		r = promotion.Against(r.Name, r.Input, x.d.Reason, remedy.NotEscrowed)
	}
	return r
}

// endFences are the commands that let sites open again that a person keeps fenced.
func (x explained) endFences() (all []facts.Remedy) {
	for _, site := range x.s.Sites {
		if site.KeptFenced {
			all = append(all, remedy.FenceOff(x.s.Group, site.Name)...)
		}
	}
	return all
}

func (x explained) anySite() wire.ExplainedRule {
	var answer []string
	for _, site := range x.s.Sites {
		if site.Reachable() {
			answer = append(answer, site.Name)
		}
	}
	if memory.EverySiteSilent(x.s) {
		return promotion.Against(promotion.RuleAnySite, "no site answers", v1alpha1.ReasonEverySiteUnreachable, remedy.Advice("check the nodes and the operator's own network: it may be the one that is cut off"))
	}
	return wire.ExplainedRule{Name: promotion.RuleAnySite, Verdict: wire.RuleFor, Input: "answering: " + strings.Join(answer, ", ")}
}

// allowed are the permissions, each asked on its own.
func (x explained) allowed() []wire.ExplainedRule {
	all := make([]wire.ExplainedRule, len(promotion.Permissions))
	for i, r := range promotion.Permissions {
		all[i] = r.Explain(x.asked())
	}
	return all
}

// gateForecast says what the promotion gate would ask for before a failover has begun.
func (x explained) gateForecast() wire.ExplainedRule {
	r := wire.ExplainedRule{Name: promotion.RuleGate, Verdict: wire.RuleOpen, Input: fmt.Sprintf(
		"checked during a failover: proof that %s is fenced, or %s of silence acknowledged by every other site",
		x.s.Status.ActiveSite, facts.LeaseEnd(memory.LongestLease(x.s, x.m, x.s.Status.ActiveSite)))}
	if silent := memory.Named(x.s, promotion.SilentVouchers(x.s, x.m, x.best.Site.Name)); silent != "" {
		return promotion.Against(promotion.RuleGate, fmt.Sprintf("by time alone it would not open: %s could still vouch for %s", silent, x.s.Status.ActiveSite),
			v1alpha1.ReasonSiteMayStillVouch, remedy.BringBackOrTaint(silent))
	} else if never := memory.Outlived(x.m, x.s.Status.ActiveSite, x.s.Now); never != "" {
		return promotion.Against(promotion.RuleGate, never, v1alpha1.ReasonLeaseOutlived, remedy.Outlived(x.s.Status.ActiveSite))
	}
	return r
}

// blockers are the rules that would keep the operator from an emergency failover.
func (x explained) blockers() []string {
	if x.s.Status.Epoch == 0 || x.s.Status.Transition != nil {
		if x.d.Blocked() {
			return []string{string(x.d.Reason)}
		}
		return nil
	}
	var all []string
	for _, r := range append(x.allowed(), x.gateForecast()) {
		if r.Verdict == wire.RuleAgainst {
			all = append(all, r.Reason)
		}
	}
	return all
}

// had is what the site that the role moves from, or would move from, is known to have had. While it moves, the active site is
// already the one that takes over, which loses nothing against itself.
func (x explained) had() gtid.Set {
	if t := x.s.Status.Transition; t != nil {
		return t.FromExecuted
	}
	return x.m.Of(x.s.Status.ActiveSite).Executed
}

// taker is the site that takes over, or would.
func (x explained) taker() (promotion.Candidate, bool) {
	t := x.s.Status.Transition
	if t == nil {
		return x.best, x.found
	}
	to, known := x.s.Site(t.To)
	return promotion.Candidate{Site: to, All: to.All()}, known && to.SQLAnswers() // what it has is not known otherwise
}

func (x explained) loss() *wire.ExplainedLoss {
	taker, found := x.taker()
	if t := x.s.Status.Transition; !found || t != nil && t.Change() == facts.ChangeFirst {
		return nil
	}
	l := &wire.ExplainedLoss{Site: taker.Site.Name, Seconds: taker.Site.MySQL.LagSeconds}
	from := x.had()
	if from.IsEmpty() {
		l.Message = "not known: nothing was seen of what the active site holds"
		return l
	}
	lost := from.Subtract(taker.All)
	count := lost.Count()
	l.Transactions, l.Set = &count, lost.String()
	known := "no known loss"
	if count > 0 {
		known = fmt.Sprintf("at least %d transactions", count)
	}
	l.Message = known + " at the last poll of the active site; later commits are not counted"
	return l
}

func (x explained) candidates() []wire.ExplainedCandidate {
	var others []promotion.Candidate
	for _, c := range promotion.Rank(x.s, x.m) {
		if c.Site.Name != x.s.Status.ActiveSite || x.s.Status.Transition != nil {
			others = append(others, c)
		}
	}
	all := make([]wire.ExplainedCandidate, 0, len(others))
	for i, c := range others {
		e := wire.ExplainedCandidate{Site: c.Site.Name, Fit: c.Unfit.By == "", Unfit: c.Unfit.Why, Transactions: c.All.Count(), ToApply: c.ToApply,
			Priority: c.Site.Priority, LagSeconds: c.Site.MySQL.LagSeconds}
		if from := x.had(); !from.IsEmpty() && c.Site.SQLAnswers() {
			lost := from.Subtract(c.All).Count()
			e.LostTransactions = &lost
		}
		switch {
		case i > 0:
			e.RankedBy, e.Because = rankedBy(others[i-1], c)
		case len(others) > 1:
			e.RankedBy, e.Because = rankedBy(c, others[1])
		default:
			e.RankedBy, e.Because = promotion.RankOnly, "the only other site"
		}
		why := x.plannable(c.Site.Name)
		e.PlannedBlockedBy, e.PlannedMessage, e.PlannedRemedies = string(why.Reason), why.Message, why.Remedies
		all = append(all, e)
	}
	return all
}

// plannable says why a planned failover to a site would not begin now.
func (x explained) plannable(to string) promotion.Refusal {
	switch t := x.s.Status.Transition; {
	case t != nil:
		return promotion.Refusal{Reason: v1alpha1.ReasonRoleIsMoving, Message: fmt.Sprintf("the role is moving to %s; ask again once that is open", t.To), Remedies: remedy.WaitAndAsk(x.s.Group, "watch it move", to)}
	case x.s.Status.Epoch == 0:
		return promotion.Refusal{Reason: v1alpha1.ReasonNotHealthy, Message: "no site is active yet; ask again once one is", Remedies: remedy.EveryRule(x.s.Group)}
	}
	return promotion.Preflight(x.s, x.m, x.active, to)
}

// rankedBy names the first rule of Better that tells two neighbours apart.
func rankedBy(a, b promotion.Candidate) (rule, because string) {
	switch {
	case a.Unfit.By == "" && b.Unfit.By != "":
		return promotion.RankFit, fmt.Sprintf("%s is fit, %s is not: %s", a.Site.Name, b.Site.Name, b.Unfit.Why)
	case a.All.Count() != b.All.Count():
		return promotion.RankMost, fmt.Sprintf("%s has %d transactions more than %s", a.Site.Name, a.All.Count()-b.All.Count(), b.Site.Name)
	case promotion.StaysLonger(a, b):
		return promotion.RankVolume, fmt.Sprintf("the volume claim of %s is being deleted, that of %s is not", b.Site.Name, a.Site.Name)
	case a.ToApply != b.ToApply:
		return promotion.RankLeast, fmt.Sprintf("%s has %d transactions less to apply than %s", a.Site.Name, b.ToApply-a.ToApply, b.Site.Name)
	case a.Site.Priority != b.Site.Priority:
		return promotion.RankPriority, fmt.Sprintf("priority %d of %s is above %d of %s", a.Site.Priority, a.Site.Name, b.Site.Priority, b.Site.Name)
	}
	return promotion.RankName, fmt.Sprintf("all else is equal, and %s comes before %s", a.Site.Name, b.Site.Name)
}

// seenAs is what was seen of a site, in words.
func seenAs(site facts.Site) string {
	switch {
	case site.Writable():
		return "accepts writes"
	case site.Fenced() && site.Sidecar.Answered:
		return "answers and is read-only"
	case site.Fenced():
		return "is read-only, and its sidecar does not answer"
	case site.Sidecar.Answered:
		return "has a sidecar that answers and a MySQL that does not"
	}
	return "does not answer at all"
}

// stallRule says for people how far a stall of the data volume has come.
func (x explained) stallRule() string {
	lasted := failover.StalledFor(x.s, x.m, x.active)
	switch {
	case lasted == 0:
		return ""
	case x.s.Policy.StallTimeout <= 0:
		return "; spec.failover.stallTimeout is 0s, so no other site takes over"
	}
	return fmt.Sprintf("; another site takes over after spec.failover.stallTimeout %s, of which %s have passed", x.s.Policy.StallTimeout, promotion.Seconds(lasted))
}
