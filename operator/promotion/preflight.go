// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// move is the planned failover that the rules judge: from the active site to another.
type move struct {
	s            facts.Snapshot
	m            facts.Memory
	to           string
	from, target facts.Site
}

// preflights are the rules that a planned failover has to pass before it begins, in the order in which a person would want to know.
// A refusal changes nothing.
var preflights = []struct {
	name string
	// ask says what the rule has against the move; without a reason it has nothing.
	ask    func(move) (facts.Reason, string)
	remedy func(move) []facts.Remedy
}{
	{"KnownSite", toUnknownSite, func(v move) []facts.Remedy {
		return []facts.Remedy{remedy.New("see which sites there are", v.s.Group.Command("status", "", ""))}
	}},
	{RuleMode, whileObserving, func(v move) []facts.Remedy {
		return []facts.Remedy{remedy.New("to let the operator act", remedy.LetAct(v.s.Group))}
	}},
	{RulePause, whilePaused, func(v move) []facts.Remedy {
		return []facts.Remedy{remedy.New("to go on", v.s.Group.Command("resume", "", ""))}
	}},
	{RuleCandidate, toUnfit, func(v move) []facts.Remedy { return UnfitOf(v.s, v.m, v.target).Cure(v.s.Group, v.to) }},
	{"TargetStays", toLeaving, move.theTarget},
	{"TargetVolumeStays", toVolumeThatGoes, func(v move) []facts.Remedy { return remedy.NewVolume(v.s.Group, v.to) }},
	{"SourceAnswers", fromSilent, move.everyRule},
	{"SourceSetFits", fromTooLong, func(v move) []facts.Remedy { return remedy.LongSet(v.s.Group, v.from.Name) }},
	{"TargetReplicates", toDetached, move.theTarget},
	{"OneWriter", besideWriter, move.everyRule},
	{"NoWorkUnderWay", besideWork, func(v move) []facts.Remedy { return remedy.WaitForWork(v.s.Group, v.to) }},
	{"NoLargeChange", amidLargeChange, func(v move) []facts.Remedy { return remedy.EndOrAwaitChange(v.s.Group, v.from.Name) }},
}

func (v move) theTarget() []facts.Remedy { return remedy.TheSite(v.s.Group, v.to) }
func (v move) everyRule() []facts.Remedy { return remedy.EveryRule(v.s.Group) }

// Preflight says why a planned failover to a site may not begin, and what to do about it.
func Preflight(s facts.Snapshot, m facts.Memory, a facts.Site, to string) Refusal {
	v := move{s: s, m: m, to: to, from: a}
	v.target, _ = s.Site(to)
	for _, rule := range preflights {
		if why, message := rule.ask(v); why != "" {
			return Refusal{why, message, rule.remedy(v)}
		}
	}
	return Refusal{}
}

func toUnknownSite(v move) (facts.Reason, string) {
	var names []string
	for _, site := range v.s.Sites {
		if site.Name == v.to {
			return "", ""
		}
		names = append(names, site.Name)
	}
	return v1alpha1.ReasonUnknownSite, fmt.Sprintf("the group has no site %q; its sites are %s", v.to, strings.Join(names, ", "))
}

func whileObserving(v move) (facts.Reason, string) {
	if v.s.Policy.Mode != v1alpha1.FailoverObserve {
		return "", ""
	}
	return v1alpha1.ReasonModeObserve, "spec.failover.mode is Observe; set it to Manual or Auto"
}

func whilePaused(v move) (facts.Reason, string) {
	if !v.s.Paused() {
		return "", ""
	}
	return v1alpha1.ReasonPaused, pausedMessage(v.s)
}

func toUnfit(v move) (facts.Reason, string) {
	refused := UnfitOf(v.s, v.m, v.target)
	if refused.By == "" {
		return "", ""
	}
	if refused.By == GuardKeptFenced { // only a person ends it, so nothing waits for its end
		return v1alpha1.ReasonKeptFenced, fmt.Sprintf("%s: %s", v.to, refused.Why)
	}
	if refused.By == GuardBusy { // nothing is wrong with it, and there is nothing to do but wait
		return v1alpha1.ReasonCloneInProgress, fmt.Sprintf("%s %s; ask again when it is done", v.to, refused.Why)
	}
	if refused.By == GuardSilent && Patience(v.s, v.m, v.target) > 0 { // the next look may find it well
		return v1alpha1.ReasonTargetSilent, fmt.Sprintf("%s: %s", v.to, refused.Why)
	}
	if refused.By == GuardVolumeFailing {
		return v1alpha1.ReasonVolumeTakesNoWrites, fmt.Sprintf("%s: %s", v.to, refused.Why)
	}
	return v1alpha1.ReasonNotFit, fmt.Sprintf("%s: %s", v.to, refused.Why)
}

func toLeaving(v move) (facts.Reason, string) {
	if v.target.Leaving == "" {
		return "", ""
	}
	return v1alpha1.ReasonNotFit, fmt.Sprintf("%s is about to go itself: %s", v.to, v.target.Leaving)
}

// toVolumeThatGoes keeps the role off a site whose claim is being deleted: with the next end of its pod the newest data would be gone. If the pod
// of the active site is being deleted, that ends anyway, and an emergency failover would move the role there too, with a loss: then the
// site is as good as any, unless another one's volume stays.
func toVolumeThatGoes(v move) (facts.Reason, string) {
	if !v.target.Pod.VolumeGoes || v.from.Pod.Deleted && !staysElsewhere(v) {
		return "", ""
	}
	return v1alpha1.ReasonVolumeTerminating, fmt.Sprintf("the volume claim %s is being deleted, so the data of %s is gone as soon as its pod ends",
		v1alpha1.DataVolumeName(v.s.Group.Name, v.to), v.to)
}

// staysElsewhere is true if a site whose volume stays could take over now. The pod that is being deleted waits for no other.
func staysElsewhere(v move) bool {
	return slices.ContainsFunc(Rank(v.s, v.m), func(c Candidate) bool {
		near, _ := IsClose(v.from, c.Site)
		return c.Unfit.By == "" && c.Site.Name != v.from.Name && !c.Site.Pod.VolumeGoes && near && c.Site.Follows(v.from)
	})
}

func fromSilent(v move) (facts.Reason, string) {
	if v.from.Sidecar.Answered && v.from.MySQL.Direct {
		return "", ""
	}
	return v1alpha1.ReasonNotHealthy, "the active site " + v.from.Name + " does not answer in full, so it could not be fenced in time"
}

// fromTooLong asks whether the source can say what it holds once it is fenced. If it cannot, nothing proves that the target has all of it
// (I13): the move would keep writes out for plannedPauseTimeout and be reverted, each time.
func fromTooLong(v move) (facts.Reason, string) {
	if v.from.Sidecar.Report.GTIDExecuted != wire.GTIDTooLong {
		return "", ""
	}
	return v1alpha1.ReasonSetTooLong, fmt.Sprintf("the gtid_executed of %s is too long for the report of its sidecar (%d KiB), so %s could not prove that it has all of it",
		v.from.Name, wire.MaxReportBytes>>10, v.to)
}

func toDetached(v move) (facts.Reason, string) {
	if v.target.Follows(v.from) {
		return "", ""
	}
	return v1alpha1.ReasonNotReplicating, fmt.Sprintf("%s does not replicate from %s: %s", v.to, v.from.Name, DetachedMessage(v.target))
}

func besideWriter(v move) (facts.Reason, string) {
	writer := writableElsewhere(v.s, v.from.Name)
	if writer == "" {
		return "", ""
	}
	return v1alpha1.ReasonForeignWriter, writer + " accepts writes too; it is being fenced"
}

func besideWork(v move) (facts.Reason, string) {
	for _, site := range v.s.Sites {
		if site.Busy != "" && v.from.Leaving == "" {
			return v1alpha1.ReasonCloneInProgress, fmt.Sprintf("%s is busy (%s) with the data of %s; ask again when it is done", site.Name, site.Busy, v.from.Name)
		}
	}
	return "", ""
}

// largeChange is how many changed rows of one open transaction keep the role where it is. Fencing ends the transaction, and MySQL takes no
// super_read_only before it has put the rows back: 217,000 took it half a second, and after seven eighths of fenceTimeout (2 s) the
// fence kills mysqld.
const largeChange = 500_000

func amidLargeChange(v move) (facts.Reason, string) {
	rows := v.from.Sidecar.Report.OpenChange
	if rows == nil || *rows < largeChange || v.from.Pod.Deleted { // a pod that is being deleted ends anyway: sooner is better
		return "", ""
	}
	return v1alpha1.ReasonLargeChange, fmt.Sprintf("an open transaction on %s has changed %d rows: to move the role now would roll it back, which can stop writes for long or get mysqld killed", v.from.Name, *rows)
}

const (
	// closeLag (in seconds) and closeCount are how far behind a target may be when writes are stopped: the rest is
	// applied while they are kept out.
	closeLag   = 0.5
	closeCount = 500
	// handLag (in seconds) and handCount are how far behind a target may be at a good moment.
	handLag   = 0.1
	handCount = 20
)

// IsClose is true if a replica needs so little more that writes may be stopped for it. It is false if the lag is not known.
func IsClose(a, target facts.Site) (bool, string) {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	if target.MySQL.LagSeconds == nil {
		return false, fmt.Sprintf("is %d transactions behind, for how long is not known", count)
	}
	lag := *target.MySQL.LagSeconds
	return lag <= closeLag && count <= closeCount, fmt.Sprintf("is %d transactions (%.1f s) behind", count, lag)
}

// LagCause says why a replica that is not close is behind, as far as its numbers tell; empty if they tell nothing. A replica commits in the
// order of the active site: all others wait behind one long transaction or DDL, and DDL takes as long there as it took on the active site.
func LagCause(a, target facts.Site) string {
	count, lag := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count(), target.MySQL.LagSeconds
	switch {
	case lag == nil:
		return ""
	case count <= handCount && *lag > closeLag:
		return "what it applies is probably one large transaction or DDL (ALTER TABLE), which takes as long there as it did on " + a.Name
	case count > closeCount:
		return "either one large transaction or DDL (ALTER TABLE) holds up those behind it, or " + a.Name + " commits faster than they are applied there"
	}
	return ""
}

// AtHand is true if a replica needs so little more that no client would notice the time to apply it.
func AtHand(a, target facts.Site) bool {
	count := a.MySQL.Executed.Subtract(target.MySQL.Executed).Count()
	lag := target.MySQL.LagSeconds
	return count <= handCount && lag != nil && *lag <= handLag
}

// Passing is true for a refusal whose cause may be over at the next poll.
func Passing(why facts.Reason) bool {
	switch why {
	case v1alpha1.ReasonNotFit, v1alpha1.ReasonNotHealthy, v1alpha1.ReasonNotReplicating, v1alpha1.ReasonCloneInProgress, v1alpha1.ReasonForeignWriter,
		v1alpha1.ReasonVolumeTakesNoWrites, v1alpha1.ReasonLargeChange, v1alpha1.ReasonTargetSilent:
		return true
	default:
		return false // it stands until a person does something, so nothing waits for its end
	}
}

// Awaited is true for a refusal for which even a new order waits: it will be over, or become another refusal, without a person.
func Awaited(why facts.Reason) bool {
	return why == v1alpha1.ReasonLargeChange || why == v1alpha1.ReasonTargetSilent
}

// Patience is how much longer a target that does not answer is waited for before it counts as lost: threshold polls from its
// first missed answer, or every lost packet would cost an epoch or an order. It is 0 if that is over.
func Patience(s facts.Snapshot, m facts.Memory, target facts.Site) time.Duration {
	grace := time.Duration(s.Policy.Threshold-1) * s.Policy.PollInterval
	since := memory.OrNow(m.Of(target.Name).IndirectSince, s.Now)
	if !target.Sidecar.Answered {
		since = memory.OrNow(m.Of(target.Name).DownSince, since)
	}
	return max(0, grace-s.Now.Sub(since))
}

func pausedMessage(s facts.Snapshot) string {
	return fmt.Sprintf("paused until %s; to end the pause: %s", s.Policy.PausedUntil.UTC().Format(time.RFC3339), s.Group.Command("resume", "", ""))
}

// DetachedMessage says why a replica does not replicate.
func DetachedMessage(site facts.Site) string {
	switch {
	case site.MySQL.SQLError != "":
		return "applier stopped: " + site.MySQL.SQLError
	case site.MySQL.IOError != "":
		return "receiver stopped: " + site.MySQL.IOError
	case site.MySQL.Delayed:
		return "applies what it receives with a delay that somebody set (SOURCE_DELAY); the operator ends it"
	}
	return "does not replicate from the active site yet"
}

// Refusal says why something is not done, and what a person can do about it. If Reason is empty, nothing is against it.
type Refusal struct {
	Reason   facts.Reason
	Message  string
	Remedies []facts.Remedy
}

func writableElsewhere(s facts.Snapshot, target string) string {
	for _, site := range s.Sites {
		if site.Name != target && site.Writes() {
			return site.Name
		}
	}
	return ""
}
