// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// Explanation says why a decision was taken; see wire.Explanation.
type Explanation = wire.Explanation

// Explain says why d was decided. d must be Decide(s, m): the rules are asked again by the functions that decide, each
// on its own, so that a person sees also what would stand in the way next.
func Explain(s Snapshot, m Memory, d Decision) Explanation {
	s, _ = withRuns(onKnownVolumes(believed(s), m), m)
	x := explained{s: s, m: d.Memory, d: d}
	x.active, _ = s.Site(s.Status.ActiveSite)
	x.best, x.found = choose(s, x.m, s.Status.ActiveSite)
	e := Explanation{
		At: s.Now, Topology: string(d.Topology), Verdict: string(d.Verdict), Reason: string(d.Reason), Message: d.Message,
		Rules: x.rules(), Candidates: x.candidates(), Loss: x.loss(),
	}
	e.Now = d.Verdict == VerdictFailover || d.Verdict == VerdictPromote || d.Verdict == VerdictBootstrap
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
	s      Snapshot
	m      Memory
	d      Decision
	active Site
	best   Candidate
	found  bool
}

func (x explained) rules() []wire.ExplainedRule {
	if _, behind := behindTheSites(x.s); behind || x.s.Status.Epoch == 0 {
		first := against(RuleActiveKnown, x.d.Message, x.d.Reason, advice("bring MySQL of every primary-candidate up"))
		if x.d.Reason == v1alpha1.ReasonKeyringNotEscrowed {
			first.Remedies = []Remedy{notEscrowedRemedy}
		}
		return []wire.ExplainedRule{first}
	}
	known := wire.ExplainedRule{Name: RuleActiveKnown, Verdict: wire.RuleFor,
		Input: fmt.Sprintf("%s under epoch %d", x.s.Status.ActiveSite, x.s.Status.Epoch)}
	if x.s.Status.Transition != nil {
		return append([]wire.ExplainedRule{known}, x.underWay()...)
	}
	rules := append([]wire.ExplainedRule{known}, x.ordered()...)
	rules = append(rules, x.seen()...)
	rules = append(rules, x.allowed()...)
	for _, r := range endings {
		if never := r.explain(x); never.Verdict == wire.RuleAgainst {
			return append(rules, never)
		}
	}
	return append(rules, x.gateForecast())
}

// ordered is a person's order to accept loss, if there is one.
func (x explained) ordered() []wire.ExplainedRule {
	to := x.s.Policy.ForceTo
	switch {
	case to == "":
		return nil
	case !ordered(x.s):
		return []wire.ExplainedRule{{Name: RuleOrder, Verdict: wire.RuleOpen, Input: to + " was ordered and cannot be promoted at all"}}
	case x.active.Writable():
		return []wire.ExplainedRule{{Name: RuleOrder, Verdict: wire.RuleOpen, Input: to + " was ordered; refused while " + x.active.Name + " accepts writes"}}
	}
	return []wire.ExplainedRule{{Name: RuleOrder, Verdict: wire.RuleFor, Input: "a person orders " + to + ": mode, pause, cooldown and loss budget do not count"}}
}

// seen are the rules that find out whether a failover is due.
func (x explained) seen() []wire.ExplainedRule {
	a, rules := x.active, []wire.ExplainedRule{x.acceptsWrites()}
	down := x.s.Now.Sub(orNow(x.m.Of(a.Name).DownSince, x.s.Now))
	silent := x.m.Of(x.s.Status.ActiveSite).SilentPolls
	if a.Writable() || ordered(x.s) && x.s.Policy.ForceTo != x.s.Status.ActiveSite {
		return rules // all below is asked only of an active site that does not accept writes and is not overruled
	}
	switch {
	case a.Sidecar.Answered && a.SQLAnswers():
		return append(rules, x.returned())
	case a.Sidecar.Answered:
		r := wire.ExplainedRule{Name: RuleCrashGrace, Verdict: wire.RuleFor,
			Input: fmt.Sprintf("MySQL of %s is down for %s; crashGrace is %s", a.Name, seconds(down), x.s.Policy.CrashGrace)}
		if down < x.s.Policy.CrashGrace {
			r = against(r.Name, r.Input, v1alpha1.ReasonWaitingForRestart, advice("wait: it may restart in place, which loses nothing"))
		}
		return append(rules, r)
	}
	wanted := time.Duration(x.s.Policy.Threshold-1) * x.s.Policy.PollInterval
	r := wire.ExplainedRule{Name: RuleThreshold, Verdict: wire.RuleFor, Input: fmt.Sprintf("%s is silent for %d polls and %s; needed are %d and %s",
		x.s.Status.ActiveSite, silent, seconds(down), x.s.Policy.Threshold, wanted)}
	if silent < x.s.Policy.Threshold || down < wanted {
		r = against(r.Name, r.Input, v1alpha1.ReasonBelowThreshold, waitForMore)
	}
	return append(rules, r, x.anySite())
}

func (x explained) acceptsWrites() wire.ExplainedRule {
	a := x.active
	r := wire.ExplainedRule{Name: RuleActiveWrites, Verdict: wire.RuleFor, Input: x.s.Status.ActiveSite + " " + seenAs(a)}
	if a.Writable() {
		r = against(r.Name, r.Input, v1alpha1.ReasonHealthy, advice("none needed"), remedy("to move the role without loss", moveTo(x.s.Group, "SITE")))
	}
	if u := x.d.Unwritable; u != nil {
		words, way := u.Message()
		r.Reason, r.Input, r.Remedies = string(u.Reason), words+x.stallRule(), []Remedy{way}
	}
	return r
}

// returned asks what is decided of an active site that answers and is read-only. Why it is not simply opened again is the
// decision's own word.
func (x explained) returned() wire.ExplainedRule {
	r := wire.ExplainedRule{Name: RuleActiveReturned, Verdict: wire.RuleFor, Input: x.d.Message}
	if x.d.Verdict == VerdictReopen {
		r = against(r.Name, r.Input, x.d.Reason, advice("none needed: it is opened again, which loses nothing"))
	}
	if x.d.Verdict == VerdictReopen && x.d.Reason == v1alpha1.ReasonForced {
		r.Remedies = []Remedy{advice("none needed: it is opened again, as was ordered")}
	}
	if x.d.Blocked() && x.d.Reason == v1alpha1.ReasonActiveSiteCannotOpen {
		r = against(r.Name, r.Input, x.d.Reason, advice("find out from its log why it does not open; what keeps others from its place is below"))
	}
	if x.d.Reason == v1alpha1.ReasonKeyringNotEscrowed && isUnescrowed(x.s, x.m, x.active) != "" {
		r = against(r.Name, r.Input, x.d.Reason, notEscrowedRemedy)
	}
	return r
}

func (x explained) anySite() wire.ExplainedRule {
	var answer []string
	for _, site := range x.s.Sites {
		if site.Reachable() {
			answer = append(answer, site.Name)
		}
	}
	if everySiteSilent(x.s) {
		return against(RuleAnySite, "no site answers", v1alpha1.ReasonEverySiteUnreachable, advice("check the nodes and the operator's own network: it may be the one that is cut off"))
	}
	return wire.ExplainedRule{Name: RuleAnySite, Verdict: wire.RuleFor, Input: "answering: " + strings.Join(answer, ", ")}
}

// allowed are the permissions, each asked on its own.
func (x explained) allowed() []wire.ExplainedRule {
	all := make([]wire.ExplainedRule, len(permissions))
	for i, r := range permissions {
		all[i] = r.explain(x)
	}
	return all
}

// gateForecast says what the promotion gate would ask for before a failover has begun.
func (x explained) gateForecast() wire.ExplainedRule {
	r := wire.ExplainedRule{Name: RuleGate, Verdict: wire.RuleOpen, Input: fmt.Sprintf(
		"asked once a failover has begun: proof that %s is fenced, or %s of silence acknowledged by every other site",
		x.s.Status.ActiveSite, longestLease(x.s, x.m, x.s.Status.ActiveSite)+LeaseMargin)}
	if silent := named(x.s, silentVouchers(x.s, x.m, x.best.Site.Name)); silent != "" {
		return against(RuleGate, fmt.Sprintf("by time alone it would not open: %s could still vouch for %s", silent, x.s.Status.ActiveSite),
			v1alpha1.ReasonSiteMayStillVouch, bringBackOrTaint(silent))
	} else if never := outlived(x.m, x.s.Status.ActiveSite, x.s.Now); never != "" {
		return against(RuleGate, never, v1alpha1.ReasonLeaseOutlived, outlivedRemedy(x.s.Status.ActiveSite))
	}
	return r
}

// serves is true while somebody is seen to accept writes whose role an order would take. It would be refused, or throw away what
// is being acknowledged.
func (x explained) serves() bool {
	if t := x.s.Status.Transition; t != nil {
		from, _ := x.s.Site(t.From)
		return x.active.Writable() || from.Writable()
	}
	return x.active.Writable()
}

// orOrder adds to a remedy how a person overrides, with words that join the two; not while a site serves.
func (x explained) orOrder(join string, first Remedy) []Remedy {
	if x.serves() {
		return []Remedy{first}
	}
	to := x.best.Site.Name
	if t := x.s.Status.Transition; t != nil {
		to = t.To
	}
	if to == "" {
		to = "SITE"
	}
	return []Remedy{first, remedy(join, forceTo(x.s.Group, to))}
}

// withoutCandidate is what a person can do while no site is fit.
func (x explained) withoutCandidate() []Remedy {
	if nobodyFit(x.s, x.m) == v1alpha1.ReasonKeyringNotEscrowed {
		return []Remedy{notEscrowedRemedy}
	}
	all := []Remedy{advice(bringBack)}
	if site, can := restorable(x.s, x.m); can {
		all = []Remedy{restoreEscrow(x.s.Group, site), advice("or " + bringBack)}
	}
	if to, can := orderable(x.s, x.m, ""); can && !x.serves() {
		all = append(all, remedy("or accept what may be lost", forceTo(x.s.Group, to)))
	}
	return all
}

// blockers are the rules that would keep an emergency failover from happening by itself.
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

// had is what is known of what the site had from which the role moves, or would move. While it moves, the active site is the one
// that takes over, which loses nothing against itself.
func (x explained) had() gtid.Set {
	if t := x.s.Status.Transition; t != nil {
		return t.FromExecuted
	}
	return x.m.Of(x.s.Status.ActiveSite).Executed
}

// taker is the site that takes over, or would.
func (x explained) taker() (Candidate, bool) {
	t := x.s.Status.Transition
	if t == nil {
		return x.best, x.found
	}
	to, known := x.s.Site(t.To)
	return Candidate{Site: to, All: to.All()}, known && to.SQLAnswers() // what it has is not known otherwise
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
	l.Message = fmt.Sprintf("at least %d transactions, as of the last look at the active site; what it accepted after that is not counted", count)
	return l
}

func (x explained) candidates() []wire.ExplainedCandidate {
	var others []Candidate
	for _, c := range candidates(x.s, x.m) {
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
			e.RankedBy, e.Because = rankOnly, "the only other site"
		}
		why := x.plannable(c.Site.Name)
		e.PlannedBlockedBy, e.PlannedMessage, e.PlannedRemedies = string(why.Reason), why.Message, why.Remedies
		all = append(all, e)
	}
	return all
}

// plannable says why a planned failover to a site would not begin now.
func (x explained) plannable(to string) Refusal {
	switch t := x.s.Status.Transition; {
	case t != nil:
		return Refusal{v1alpha1.ReasonRoleIsMoving, fmt.Sprintf("the role is moving to %s; ask again once that is open", t.To), waitAndAsk(x.s.Group, "watch it move", to)}
	case x.s.Status.Epoch == 0:
		return Refusal{v1alpha1.ReasonNotHealthy, "no site is active yet; ask again once one is", everyRule(x.s.Group)}
	}
	return preflight(x.s, x.m, x.active, to)
}

// rankedBy names the first rule of better that tells two neighbours apart.
func rankedBy(a, b Candidate) (rule, because string) {
	switch {
	case a.Unfit.By == "" && b.Unfit.By != "":
		return rankFit, fmt.Sprintf("%s is fit, %s is not: %s", a.Site.Name, b.Site.Name, b.Unfit.Why)
	case a.All.Count() != b.All.Count():
		return rankMost, fmt.Sprintf("%s has %d transactions more than %s", a.Site.Name, a.All.Count()-b.All.Count(), b.Site.Name)
	case a.ToApply != b.ToApply:
		return rankLeast, fmt.Sprintf("%s has %d transactions less to apply than %s", a.Site.Name, b.ToApply-a.ToApply, b.Site.Name)
	case a.Site.Priority != b.Site.Priority:
		return rankPriority, fmt.Sprintf("priority %d of %s is above %d of %s", a.Site.Priority, a.Site.Name, b.Site.Priority, b.Site.Name)
	}
	return rankName, fmt.Sprintf("all else is equal, and %s comes before %s", a.Site.Name, b.Site.Name)
}

func against(name, input string, why Reason, remedies ...Remedy) wire.ExplainedRule {
	return wire.ExplainedRule{Name: name, Verdict: wire.RuleAgainst, Input: input, Reason: string(why), Remedies: remedies}
}

// waitForMore is for what may be over at the next poll.
var waitForMore = advice("wait: one lost answer is no outage")

// seenAs is what was seen of a site, in words.
func seenAs(site Site) string {
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

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
