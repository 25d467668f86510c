// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Reasons of problems that no condition or site state names.
const (
	ReasonNotObserved     = "NotObserved"
	ReasonOperatorDown    = "OperatorDown"
	ReasonOperatorSilent  = "OperatorSilent"
	ReasonStale           = "Stale"
	ReasonNoActiveSite    = "NoActiveSite"
	ReasonActiveReadOnly  = "ActiveSiteReadOnly"
	ReasonSeveralWritable = "SeveralWritableSites"
	ReasonSidecarSilent   = "SidecarSilent"
	// ReasonEscrowMissing is that of the condition EncryptionAtRestReady while the escrow Secret of a site is gone.
	ReasonEscrowMissing = "KeyringEscrowMissing"
	reasonSitePrefix    = "Site"
	defaultPollInterval = 2 * time.Second
	staleAfterPolls     = 5
	staleAtLeast        = 10 * time.Second
)

// Fit is true if nothing speaks against the site.
func (s Site) Fit() bool {
	if s.Reachable != nil && !*s.Reachable {
		return false
	}
	return s.State == string(v1alpha1.SitePrimary) || s.State == string(v1alpha1.SiteReplica)
}

// problemsOf collects every reason against Healthy, the gravest first. Each check stands alone.
func problemsOf(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus, r MysqlFailoverGroupReport) []Problem {
	var found []Problem
	found = append(found, writers(r)...)
	found = append(found, operatorProblems(cr, view, live)...)
	if r.ActiveSite == "" && len(r.Conditions) > 0 {
		found = append(found, Problem{Reason: ReasonNoActiveSite, Message: "no site may accept writes yet"})
	}
	if t := r.Transition; t != nil {
		found = append(found, Problem{
			Reason:  string(v1alpha1.GroupFailingOver),
			Message: fmt.Sprintf("%s change of the active site to %s is under way (%s): %s", strings.ToLower(t.Kind), t.To, t.Step, t.Reason),
		})
	}
	found = append(found, conditionProblems(r)...)
	for _, s := range r.Sites {
		if s.Active && r.Transition != nil {
			continue // it is the target, and not open yet
		}
		if p, bad := s.problem(); bad {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		found = summingUp(r.Conditions)
	}
	return distinct(found)
}

// writers checks what matters most: exactly the active site accepts writes. Only live facts can tell.
func writers(r MysqlFailoverGroupReport) []Problem {
	var found []Problem
	var writable []string
	for _, s := range r.Sites {
		if s.Writable != nil && *s.Writable {
			writable = append(writable, s.Name)
		}
		// While the active site changes, its target is not open yet; where no MySQL answers, that is the problem.
		closed := s.Writable != nil && !*s.Writable && s.State != string(v1alpha1.SiteUnreachable)
		if s.Active && closed && r.Transition == nil {
			found = append(found, Problem{
				Reason: ReasonActiveReadOnly, Site: s.Name, Message: "is the active site but does not accept writes",
			})
		}
	}
	if len(writable) > 1 {
		found = append([]Problem{{
			Reason:  ReasonSeveralWritable,
			Message: "more than one site accepts writes: " + strings.Join(writable, ", ") + "; stop writing until only " + r.ActiveSite + " does",
		}}, found...)
	}
	return found
}

func operatorProblems(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus) []Problem {
	var found []Problem
	switch {
	case view.Down && cr.Status.Transition != nil:
		found = append(found, Problem{
			Reason: ReasonOperatorDown, Message: "no operator leads: the change of the active site that is under way stands still",
		})
	case view.Down:
		found = append(found, Problem{Reason: ReasonOperatorDown, Message: "no operator leads: nothing would fail over"})
	case live == nil && !view.Denied && len(cr.Status.Conditions) > 0:
		found = append(found, Problem{
			Reason: ReasonOperatorSilent, Message: "the operator says nothing of this group: how it is now is not known, nor whether it would fail over",
		})
	}
	if len(cr.Status.Conditions) == 0 {
		found = append(found, Problem{Reason: ReasonNotObserved, Message: "the operator has not looked at this group yet"})
	}
	if live == nil {
		return found
	}
	// Both times are of the operator's clock, so the clock of this machine does not matter.
	if age := view.Status.IssuedAt.Sub(live.ObservedAt); age > staleAfter(cr) {
		found = append(found, Problem{
			Reason: ReasonStale, Message: fmt.Sprintf("the operator last looked at this group %s ago", age.Round(time.Second)),
		})
	}
	return found
}

func staleAfter(cr *v1alpha1.MysqlFailoverGroup) time.Duration {
	poll := cr.Spec.Failover.PollInterval.Duration
	if poll <= 0 {
		poll = defaultPollInterval
	}
	return max(staleAtLeast, staleAfterPolls*poll)
}

// badCondition is a condition and the status in which it speaks against health.
type badCondition struct {
	kind   string
	status metav1.ConditionStatus
}

func conditionProblems(r MysqlFailoverGroupReport) []Problem {
	bad := []badCondition{
		{v1alpha1.ConditionFailoverBlocked, metav1.ConditionTrue},
		{v1alpha1.ConditionTLSReady, metav1.ConditionFalse},
		{v1alpha1.ConditionEncryptionReady, metav1.ConditionFalse},
		{v1alpha1.ConditionBackupReady, metav1.ConditionFalse},
		{v1alpha1.ConditionCacheReady, metav1.ConditionFalse},
	}
	if r.Transition == nil {
		bad = append(bad, badCondition{v1alpha1.ConditionAvailable, metav1.ConditionFalse})
	}
	return matching(r.Conditions, bad)
}

// summingUp are the conditions that say once more what a special one or a site says; they matter where none does.
func summingUp(conditions []Condition) []Problem {
	return matching(conditions, []badCondition{
		{v1alpha1.ConditionReplicationHealthy, metav1.ConditionFalse},
		{v1alpha1.ConditionDegraded, metav1.ConditionTrue},
		{v1alpha1.ConditionReady, metav1.ConditionFalse},
		{v1alpha1.ConditionReady, metav1.ConditionUnknown},
	})
}

func matching(conditions []Condition, bad []badCondition) []Problem {
	var found []Problem
	for _, b := range bad {
		for _, c := range conditions {
			if c.Type == b.kind && c.Status == string(b.status) {
				found = append(found, Problem{Reason: c.Reason, Message: messageOf(c)})
			}
		}
	}
	return found
}

func messageOf(c Condition) string {
	if c.Message == "" {
		return fmt.Sprintf("condition %s is %s", c.Type, c.Status)
	}
	return c.Message
}

// stateMessages say what a state means, for sites of which the operator says no more.
var stateMessages = map[v1alpha1.SiteState]string{
	v1alpha1.SitePending:     "has no data yet",
	v1alpha1.SiteFenced:      "is fenced: it accepts no writes and does not replicate",
	v1alpha1.SiteCloning:     "is being cloned",
	v1alpha1.SiteDiverged:    "has transactions that the active site lacks; it is fenced and held",
	v1alpha1.SiteUnreachable: "does not answer",
	v1alpha1.SiteDetached:    "does not replicate",
}

func (s Site) problem() (Problem, bool) {
	if s.Fit() {
		return s.sidecarProblem()
	}
	if s.State == "" && s.Reachable == nil {
		return Problem{}, false
	}
	state := v1alpha1.SiteState(s.State)
	if s.Reachable != nil && !*s.Reachable {
		switch state {
		case v1alpha1.SitePending, v1alpha1.SiteCloning, v1alpha1.SiteDiverged: // says more, and its MySQL may well be away
		default:
			state = v1alpha1.SiteUnreachable
		}
	}
	message := stateMessages[state]
	if s.Message != "" || message == "" {
		message = "is " + strings.ToLower(string(state))
	}
	if s.Message != "" {
		message += ": " + s.Message
	}
	return Problem{Reason: reasonSitePrefix + string(state), Site: s.Name, Message: message}, true
}

// sidecarProblem is that of a site which serves and could not be fenced.
func (s Site) sidecarProblem() (Problem, bool) {
	if s.SidecarReachable == nil || *s.SidecarReachable {
		return Problem{}, false
	}
	message := "has a sidecar that does not answer: the site could not take over"
	if s.Active {
		message = "has a sidecar that does not answer: the site cannot be fenced or moved in time"
	}
	return Problem{Reason: ReasonSidecarSilent, Site: s.Name, Message: message}, true
}

// distinct drops problems that say what an earlier one said.
func distinct(problems []Problem) []Problem {
	var out []Problem
	for _, p := range problems {
		said := slices.ContainsFunc(out, func(q Problem) bool { return q.Message == p.Message && q.Site == p.Site })
		if !said {
			out = append(out, p)
		}
	}
	return out
}

// judge sums up.
func judge(r MysqlFailoverGroupReport) (Health, Summary) {
	unavailable := slices.ContainsFunc(r.Conditions, func(c Condition) bool {
		return c.Type == v1alpha1.ConditionAvailable && c.Status == string(metav1.ConditionFalse)
	})
	activeBad := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Site != "" && p.Site == r.ActiveSite && p.Reason != ReasonSidecarSilent })
	switch {
	case len(r.Problems) == 0:
		return Healthy, SummaryReady
	case r.Transition != nil && r.Transition.Kind != string(v1alpha1.FailoverBootstrap):
		return Degraded, SummaryFailingOver
	case r.ActiveSite == "", r.Phase == string(v1alpha1.GroupBootstrapping):
		return Degraded, SummaryBootstrapping
	case unavailable, activeBad:
		return Degraded, SummaryUnavailable
	case len(r.Problems) == 1 && r.Problems[0].Reason == ReasonOperatorSilent:
		return Unknown, SummaryUnknown
	default:
		return Degraded, SummaryDegraded
	}
}

// notesOf is worth knowing and no reason against health.
func notesOf(cr *v1alpha1.MysqlFailoverGroup) []string {
	var notes []string
	if cr.DeletionTimestamp != nil {
		notes = append(notes, "the group is being deleted")
	}
	if seen := cr.Status.ObservedGeneration; seen > 0 && seen < cr.Generation {
		notes = append(notes, "the newest change of the spec was not taken up yet")
	}
	if mode := cr.Spec.Failover.Mode; mode != "" && mode != v1alpha1.FailoverAuto {
		notes = append(notes, fmt.Sprintf("failover mode is %s: no emergency failover happens by itself", mode))
	}
	if until := pausedUntil(cr); until != nil {
		notes = append(notes, fmt.Sprintf("paused until %s: a lost active site is not replaced; to end it: kubectl mfg resume %s -n %s",
			until.Format(time.RFC3339), cr.Name, cr.Namespace))
	}
	if to := cr.Annotations[v1alpha1.AnnotationForceFailover]; to != "" {
		notes = append(notes, fmt.Sprintf("%s is ordered to take over, whatever is lost, and the order is pending; to withdraw it: kubectl mfg failover %s -n %s --abort",
			to, cr.Name, cr.Namespace))
	}
	for _, c := range cr.Status.Conditions {
		if c.Type == v1alpha1.ConditionUnbuiltFeatures && c.Status == metav1.ConditionTrue {
			notes = append(notes, c.Message)
		}
	}
	return notes
}

// hintsOf names the next command.
func hintsOf(r MysqlFailoverGroupReport) []Hint {
	var hints []Hint
	name, ns := r.Metadata.Name, r.Metadata.Namespace
	for _, p := range r.Problems {
		if p.Reason == ReasonEscrowMissing {
			hints = append(hints, escrowHints(r)...)
			continue
		}
		var h Hint
		switch p.Reason {
		case ReasonOperatorDown, ReasonOperatorSilent, ReasonNotObserved, ReasonStale:
			// A pod that runs need not lead, and only the one that leads fails over.
			h.Message = "see whether an operator leads: who holds the lease, and when it was renewed last"
			h.Command = "kubectl get leases -A --field-selector metadata.name=mfg-operator -o custom-columns=HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime"
		case reasonSitePrefix + string(v1alpha1.SiteUnreachable), reasonSitePrefix + string(v1alpha1.SitePending), ReasonSidecarSilent:
			if p.Reason == reasonSitePrefix+string(v1alpha1.SitePending) && r.cloning() {
				continue // it waits for its turn, or is about to begin
			}
			h.Message = "see whether the pod of " + p.Site + " runs, and on which node"
			h.Command = fmt.Sprintf("kubectl get pods -o wide -n %s -l %s=%s,%s=%s",
				ns, v1alpha1.LabelGroup, name, v1alpha1.LabelSite, p.Site)
		case reasonFailoverBlocked(r, p.Reason):
			h.Message = "see what keeps the failover from happening, and the way out"
			h.Command = fmt.Sprintf("kubectl mfg explain %s -n %s", name, ns)
		case reasonSitePrefix + string(v1alpha1.SiteDiverged):
			hints = append(hints, Hint{Message: "see which rows only " + p.Site + " has, as far as they were counted", Command: fmt.Sprintf("kubectl mfg history %s -n %s", name, ns)})
			h.Message = "then throw them away and copy the data of " + p.Site + " anew; it shows the plan and asks"
			h.Command = fmt.Sprintf("kubectl mfg reclone %s %s -n %s", name, p.Site, ns)
		default:
			continue
		}
		if !slices.Contains(hints, h) {
			hints = append(hints, h)
		}
	}
	return hints
}

// cloning is true while any site receives a copy.
func (r MysqlFailoverGroupReport) cloning() bool {
	return slices.ContainsFunc(r.Sites, func(s Site) bool { return s.Clone != nil || s.State == string(v1alpha1.SiteCloning) })
}

// escrowHints: each site whose escrow Secret is gone has the only copy of its keyring in the memory of its pod, also one that
// loses it while it is being sealed: its keyring is not written any more.
func escrowHints(r MysqlFailoverGroupReport) []Hint {
	var hints []Hint
	for _, s := range r.Sites {
		if k := s.Keyring; k != nil && k.Phase == string(v1alpha1.KeyringFailed) && (k.Work == "" || k.Stage == string(v1alpha1.KeyringSealing)) {
			hints = append(hints, Hint{Message: "do not delete or restart the pod of " + s.Name + ", it has the only copy of its keyring; bring that back into escrow",
				Command: fmt.Sprintf("kubectl mfg recover-keyring %s %s -n %s", r.Metadata.Name, s.Name, r.Metadata.Namespace)})
		}
	}
	if len(hints) == 0 {
		return []Hint{{Message: "see which keyring is missing", Command: fmt.Sprintf("kubectl mfg keyring verify %s -n %s", r.Metadata.Name, r.Metadata.Namespace)}}
	}
	return hints
}

// reasonFailoverBlocked is the given reason if it is that of the condition FailoverBlocked.
func reasonFailoverBlocked(r MysqlFailoverGroupReport, reason string) string {
	for _, c := range r.Conditions {
		if c.Type == v1alpha1.ConditionFailoverBlocked && c.Status == string(metav1.ConditionTrue) && c.Reason == reason {
			return reason
		}
	}
	return "-"
}

// Fingerprint is the report without the times that change by themselves: equal ones look the same to a person.
func (r MysqlFailoverGroupReport) Fingerprint() MysqlFailoverGroupReport {
	r.Facts.ObservedAt = nil
	r.Sites = slices.Clone(r.Sites)
	for i := range r.Sites {
		r.Sites[i].LastSeen = nil
	}
	return r
}
