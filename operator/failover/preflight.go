// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// move is a planned failover that is asked about: from the active site to another.
type move struct {
	s            Snapshot
	m            Memory
	to           string
	from, target Site
}

// preflights are the rules that a planned failover has to pass before it begins, in the order in which a person would want to know.
// A refusal changes nothing.
var preflights = []struct {
	name string
	// ask says what the rule has against the move; without a reason it has nothing.
	ask    func(move) (Reason, string)
	remedy func(move) []Remedy
}{
	{"KnownSite", toUnknownSite, func(v move) []Remedy {
		return []Remedy{remedy("see which sites there are", v.s.Group.Command("status", "", ""))}
	}},
	{RuleMode, whileObserving, func(v move) []Remedy { return []Remedy{remedy("to let the operator act", letAct(v.s.Group))} }},
	{RulePause, whilePaused, func(v move) []Remedy { return []Remedy{remedy("to go on", v.s.Group.Command("resume", "", ""))} }},
	{RuleCandidate, toUnfit, func(v move) []Remedy { return unfit(v.s, v.m, v.target).cure(v.s.Group, v.to) }},
	{"TargetStays", toLeaving, move.theTarget},
	{"SourceAnswers", fromSilent, move.everyRule},
	{"TargetReplicates", toDetached, move.theTarget},
	{"OneWriter", besideWriter, move.everyRule},
	{"NoWorkUnderWay", besideWork, func(v move) []Remedy { return waitAndAsk(v.s.Group, "see how far the work on its data is", v.to) }},
}

func (v move) theTarget() []Remedy { return theSite(v.s.Group, v.to) }
func (v move) everyRule() []Remedy { return everyRule(v.s.Group) }

// preflight says why a planned failover to a site may not begin, and what to do about it.
func preflight(s Snapshot, m Memory, a Site, to string) Refusal {
	v := move{s: s, m: m, to: to, from: a}
	v.target, _ = s.Site(to)
	for _, rule := range preflights {
		if why, message := rule.ask(v); why != "" {
			return Refusal{why, message, rule.remedy(v)}
		}
	}
	return Refusal{}
}

func toUnknownSite(v move) (Reason, string) {
	var names []string
	for _, site := range v.s.Sites {
		if site.Name == v.to {
			return "", ""
		}
		names = append(names, site.Name)
	}
	return v1alpha1.ReasonUnknownSite, fmt.Sprintf("the group has no site %q; its sites are %s", v.to, strings.Join(names, ", "))
}

func whileObserving(v move) (Reason, string) {
	if v.s.Policy.Mode != v1alpha1.FailoverObserve {
		return "", ""
	}
	return v1alpha1.ReasonModeObserve, "spec.failover.mode is Observe; set it to Manual or Auto"
}

func whilePaused(v move) (Reason, string) {
	if !v.s.Paused() {
		return "", ""
	}
	return v1alpha1.ReasonPaused, pausedMessage(v.s)
}

func toUnfit(v move) (Reason, string) {
	refused := unfit(v.s, v.m, v.target)
	if refused.By == "" {
		return "", ""
	}
	return v1alpha1.ReasonNotFit, fmt.Sprintf("%s: %s", v.to, refused.Why)
}

func toLeaving(v move) (Reason, string) {
	if v.target.Leaving == "" {
		return "", ""
	}
	return v1alpha1.ReasonNotFit, fmt.Sprintf("%s is about to go itself: %s", v.to, v.target.Leaving)
}

func fromSilent(v move) (Reason, string) {
	if v.from.Sidecar.Answered && v.from.MySQL.Direct {
		return "", ""
	}
	return v1alpha1.ReasonNotHealthy, "the active site " + v.from.Name + " does not answer in full, so it could not be fenced in time"
}

func toDetached(v move) (Reason, string) {
	if v.target.Follows(v.from) {
		return "", ""
	}
	return v1alpha1.ReasonNotReplicating, fmt.Sprintf("%s does not replicate from %s: %s", v.to, v.from.Name, detachedMessage(v.target))
}

func besideWriter(v move) (Reason, string) {
	writer := writableElsewhere(v.s, v.from.Name)
	if writer == "" {
		return "", ""
	}
	return v1alpha1.ReasonForeignWriter, writer + " accepts writes too; it is being fenced"
}

func besideWork(v move) (Reason, string) {
	for _, site := range v.s.Sites {
		if site.Busy != "" && v.from.Leaving == "" {
			return v1alpha1.ReasonCloneInProgress, fmt.Sprintf("%s is busy (%s) with the data of %s; ask again when it is done", site.Name, site.Busy, v.from.Name)
		}
	}
	return "", ""
}

// isClose is true if a replica needs so little more that writes may be stopped for it. A lag that is not known is none.
func isClose(a, target Site) (bool, string) {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	if target.MySQL.LagSeconds == nil {
		return false, fmt.Sprintf("is %d transactions behind, for how long is not known", count)
	}
	lag := *target.MySQL.LagSeconds
	return lag <= closeLag && count <= closeCount, fmt.Sprintf("is %d transactions (%.1f s) behind", count, lag)
}

// atHand is true if a replica needs so little more that applying it takes no time that a client would notice.
func atHand(a, target Site) bool {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	lag := target.MySQL.LagSeconds
	return count <= handCount && lag != nil && *lag <= handLag
}

// passing is true for a refusal whose cause may be over at the next poll.
func passing(why Reason) bool {
	return why == v1alpha1.ReasonNotFit || why == v1alpha1.ReasonNotHealthy || why == v1alpha1.ReasonNotReplicating || why == v1alpha1.ReasonCloneInProgress || why == v1alpha1.ReasonForeignWriter
}

func pausedMessage(s Snapshot) string {
	return fmt.Sprintf("paused until %s; to go on sooner, take the annotation %s off the group",
		s.Policy.PausedUntil.UTC().Format(time.RFC3339), v1alpha1.AnnotationPauseUntil)
}
