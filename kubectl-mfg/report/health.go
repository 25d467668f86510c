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

// How old what the operator saw may be.
const (
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

// problemsOf collects every reason against Healthy, the gravest first. Each check is independent.
func problemsOf(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus, r MysqlFailoverGroupReport) []Problem {
	var found []Problem
	found = append(found, writers(r)...)
	found = append(found, operatorProblems(cr, view, live)...)
	if r.ActiveSite == "" && len(r.Conditions) > 0 {
		found = append(found, Problem{Reason: v1alpha1.ReasonNoActiveSite, Message: "no site may accept writes yet"})
	}
	if t := r.Transition; t != nil {
		found = append(found, Problem{
			Reason:  v1alpha1.ReasonFailingOver,
			Message: fmt.Sprintf("%s change of the active site to %s is under way (%s): %s", strings.ToLower(t.Kind), t.To, t.Step, t.Reason),
		})
	}
	var ofSites []Problem
	for _, s := range r.Sites {
		if s.Active && r.opening() {
			continue // it is the target, and not open yet
		}
		if p, bad := s.problem(); bad && !r.meant(p) {
			ofSites = append(ofSites, p)
		}
	}
	first, others := r.byCause(ofSites)
	found = append(found, first...)
	found = append(found, conditionProblems(r)...)
	found = append(found, others...)
	// These prevent no failover, so they stay below the sites: during an outage the first lines say what is down.
	found = append(found, cacheProblems(r)...)
	found = append(found, backupProblems(r)...)
	found = append(found, pitrProblems(r)...)
	if len(found) == 0 {
		found = summingUp(r.Conditions)
	}
	return distinct(found)
}

// writers checks what matters most: exactly the active site accepts writes.
func writers(r MysqlFailoverGroupReport) []Problem {
	var found []Problem
	for _, s := range r.Sites {
		// If no MySQL answers, that is the problem.
		closed := s.Writable != nil && !*s.Writable && s.State != string(v1alpha1.SiteUnreachable)
		if s.Active && closed && !r.opening() {
			found = append(found, Problem{
				Reason: v1alpha1.ReasonActiveSiteReadOnly, Site: s.Name, Message: "is the active site but does not accept writes",
			})
		}
	}
	if writable := r.writable(); len(writable) > 1 {
		found = append([]Problem{{Reason: v1alpha1.ReasonSeveralWritableSites, Message: severalWritable(r, writable)}}, found...)
	}
	return found
}

// lookAge bounds how much older the operator's look at the sites may be than the opening of the active site, and still explain why the look
// shows that site closed. Beyond it the clocks of two operators differ.
const lookAge = 10 * time.Second

// opening is true while the active site changes, and as long as the newest look at the sites is from before the end of that: status reaches
// a reader some time before the next look does.
func (r MysqlFailoverGroupReport) opening() bool {
	if r.Transition != nil {
		return true
	}
	last, looked := r.LastFailover, r.Facts.ObservedAt
	return last != nil && looked != nil && last.Epoch == r.Epoch && last.OpenedAt.After(*looked) && last.OpenedAt.Sub(*looked) < lookAge
}

func severalWritable(r MysqlFailoverGroupReport, writable []string) string {
	words := "more than one site accepts writes: " + strings.Join(writable, ", ")
	if r.Facts.Source == LastKnown {
		words = "more than one site accepted writes when the status was written last: " + strings.Join(writable, ", ")
	}
	if r.ActiveSite == "" {
		return words + "; none of them is the active site"
	}
	return words + "; only " + r.ActiveSite + " may"
}

// writable returns the sites that accept clients' writes. For the active site, the status alone tells it by the state.
func (r MysqlFailoverGroupReport) writable() []string {
	var writable []string
	for _, s := range r.Sites {
		open := s.State == string(v1alpha1.SitePrimary)
		if s.Writable != nil {
			open = *s.Writable
		}
		if s.Foreign || s.Active && open {
			writable = append(writable, s.Name)
		}
	}
	return writable
}

// foreign returns the sites that accept writes and must not.
func (r MysqlFailoverGroupReport) foreign() []string {
	var foreign []string
	for _, s := range r.Sites {
		if s.Foreign {
			foreign = append(foreign, s.Name)
		}
	}
	return foreign
}

func operatorProblems(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus) []Problem {
	var found []Problem
	switch {
	case view.Down && cr.Status.Transition != nil:
		found = append(found, Problem{
			Reason: v1alpha1.ReasonOperatorDown, Message: "no operator leads: the change of the active site that is under way stands still",
		})
	case view.Down:
		found = append(found, Problem{Reason: v1alpha1.ReasonOperatorDown, Message: "no operator leads: nothing would fail over"})
	case live == nil && !view.Denied && len(cr.Status.Conditions) > 0:
		found = append(found, Problem{
			Reason: v1alpha1.ReasonOperatorSilent, Message: "the operator does not report on this group: its state is not known, nor whether it would fail over",
		})
	}
	if len(cr.Status.Conditions) == 0 {
		found = append(found, Problem{Reason: v1alpha1.ReasonNotObserved, Message: "the operator has not looked at this group yet"})
	}
	if live == nil {
		return found
	}
	return append(found, stale(cr, view, live)...)
}

// badCondition is a condition and the status with which it counts against health.
type badCondition struct {
	kind   string
	status metav1.ConditionStatus
}

func conditionProblems(r MysqlFailoverGroupReport) []Problem {
	bad := []badCondition{
		{v1alpha1.ConditionFailoverBlocked, metav1.ConditionTrue},
		{v1alpha1.ConditionTLSReady, metav1.ConditionFalse},
		{v1alpha1.ConditionEncryptionReady, metav1.ConditionFalse},
	}
	if r.Transition == nil {
		bad = append(bad, badCondition{v1alpha1.ConditionAvailable, metav1.ConditionFalse})
	}
	return matching(r.Conditions, bad)
}

// summingUp are the conditions that repeat what a special one or a site says; they matter if none does.
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

// stateProblems say what a state means, for sites about which the operator says no more.
var stateProblems = map[v1alpha1.SiteState]Problem{
	v1alpha1.SitePending:     {Reason: v1alpha1.ReasonSitePending, Message: "has no data yet"},
	v1alpha1.SiteFenced:      {Reason: v1alpha1.ReasonSiteFenced, Message: "is fenced: it accepts no writes and does not replicate"},
	v1alpha1.SiteCloning:     {Reason: v1alpha1.ReasonSiteCloning, Message: "is being cloned"},
	v1alpha1.SiteDiverged:    {Reason: v1alpha1.ReasonSiteDiverged, Message: "has transactions that the active site lacks; it is fenced and held"},
	v1alpha1.SiteUnreachable: {Reason: v1alpha1.ReasonSiteUnreachable, Message: "does not answer"},
	v1alpha1.SiteDetached:    {Reason: v1alpha1.ReasonSiteDetached, Message: "does not replicate"},
}

func (s Site) problem() (Problem, bool) {
	if s.Foreign {
		return s.foreignProblem(), true
	}
	if s.Fit() {
		if p, bad := s.sidecarProblem(); bad {
			return p, true
		}
		return s.unfitCopy()
	}
	if s.State == "" && s.Reachable == nil {
		return Problem{}, false
	}
	state := v1alpha1.SiteState(s.State)
	if s.Reachable != nil && !*s.Reachable {
		switch state {
		case v1alpha1.SitePending, v1alpha1.SiteCloning, v1alpha1.SiteDiverged: // the state says more, and its MySQL may well be away
		default:
			state = v1alpha1.SiteUnreachable
		}
	}
	p, known := stateProblems[state]
	if !known {
		p.Reason = v1alpha1.ReasonSiteUnfit
	}
	if s.Message != "" || !known {
		p.Message = "is " + strings.ToLower(string(state))
	}
	if s.Message != "" {
		p.Message += ": " + s.Message
		p.OfSite = true
	}
	p.Site = s.Name
	return p, true
}

// foreignProblem is the problem of a site that the operator calls Fenced because it should be: it is open, so that word is left out.
func (s Site) foreignProblem() Problem {
	p := Problem{Reason: v1alpha1.ReasonForeignWriter, Site: s.Name, Message: s.Message, OfSite: true}
	if s.Message == "" {
		p.Message, p.OfSite = "is writable although it is not active", false
	}
	return p
}

// sidecarProblem is the problem of a site that serves and could not be fenced.
func (s Site) sidecarProblem() (Problem, bool) {
	if s.SidecarReachable == nil || *s.SidecarReachable {
		return Problem{}, false
	}
	message := "has a sidecar that does not answer: the site could not take over"
	if s.Active {
		message = "has a sidecar that does not answer: the site cannot be fenced or moved in time"
	}
	return Problem{Reason: v1alpha1.ReasonSidecarSilent, Site: s.Name, Message: message}, true
}

// unfitCopy is the problem of a replica that replicates and still cannot take over: it lacks rows, or its volume takes none.
func (s Site) unfitCopy() (Problem, bool) {
	if s.Active || s.Message == "" || s.Reason != v1alpha1.ReasonReplicationFiltered && s.Reason != v1alpha1.ReasonVolumeTakesNoWrites {
		return Problem{}, false
	}
	return Problem{Reason: s.Reason, Site: s.Name, Message: s.Message, OfSite: true}, true
}

// distinct drops problems that repeat an earlier one.
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

// judge sums up. Two writers are graver than an outage: what they acknowledge meanwhile can never be merged.
func judge(r MysqlFailoverGroupReport) (Health, Summary) {
	unavailable := slices.ContainsFunc(r.Conditions, func(c Condition) bool {
		return c.Type == v1alpha1.ConditionAvailable && c.Status == string(metav1.ConditionFalse)
	})
	activeBad := slices.ContainsFunc(r.Problems, func(p Problem) bool {
		return p.Site != "" && p.Site == r.ActiveSite && p.Reason != v1alpha1.ReasonSidecarSilent
	})
	switch {
	case len(r.Problems) == 0:
		return Healthy, SummaryReady
	case slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Reason == v1alpha1.ReasonSeveralWritableSites }):
		return SplitBrain, SummarySplitBrain
	case r.Transition != nil && r.Transition.Kind != string(v1alpha1.FailoverBootstrap):
		return Degraded, SummaryFailingOver
	case r.ActiveSite == "", r.Phase == string(v1alpha1.GroupBootstrapping):
		return Degraded, SummaryBootstrapping
	case unavailable, activeBad:
		return Degraded, SummaryUnavailable
	case len(r.Problems) == 1 && r.Problems[0].Reason == v1alpha1.ReasonOperatorSilent:
		return Unknown, SummaryUnknown
	default:
		return Degraded, SummaryDegraded
	}
}

// notesOf returns what is worth knowing and no reason against health.
func notesOf(cr *v1alpha1.MysqlFailoverGroup, r MysqlFailoverGroupReport, now time.Time) []Note {
	var notes []Note
	note := func(format string, args ...any) { notes = append(notes, Note{Text: fmt.Sprintf(format, args...)}) }
	if cr.DeletionTimestamp != nil {
		note("the group is being deleted")
	}
	if seen := cr.Status.ObservedGeneration; seen > 0 && seen < cr.Generation {
		note("the newest change of the spec was not taken up yet")
	}
	if mode := cr.Spec.Failover.Mode; mode != "" && mode != v1alpha1.FailoverAuto {
		note("failover mode is %s: no emergency failover is automatic", mode)
	}
	if r.PausedUntil != nil {
		notes = append(notes, Note{Kind: NotePause, Text: r.pauseNote(now)})
	}
	if to := cr.Annotations[v1alpha1.AnnotationForceFailover]; to != "" {
		note("%s is ordered to take over at the price of data loss, and the order is pending; to withdraw it: kubectl mfg failover %s -n %s --abort",
			to, cr.Name, cr.Namespace)
	}
	for _, s := range r.Sites {
		if !s.KeptFenced && v1alpha1.KeptFenced(cr, s.Name) {
			note("%s is to be kept fenced, and no operator says yet that it is", s.Name)
		}
	}
	told := []string{v1alpha1.ConditionPlannedBlocked, v1alpha1.ConditionSitesKeptFenced, v1alpha1.ConditionUnbuiltFeatures, v1alpha1.ConditionSpecRefused}
	for _, c := range cr.Status.Conditions {
		if slices.Contains(told, c.Type) && c.Status == metav1.ConditionTrue {
			note("%s", c.Message)
		}
	}
	for _, text := range []string{tlsNote(cr), upgradeNote(cr)} {
		if text != "" {
			note("%s", text)
		}
	}
	return notes
}

// pauseNote is the note of a group that is paused. An operator that is silent when the time is over has not ended the pause.
func (r MysqlFailoverGroupReport) pauseNote(now time.Time) string {
	if !now.IsZero() && !r.PausedUntil.After(now) {
		return fmt.Sprintf("the time of the pause ended at %s, and no operator has ended the pause yet: until one does, none replaces a lost active site",
			r.PausedUntil.Format(time.RFC3339))
	}
	return fmt.Sprintf("paused until %s: a lost active site is not replaced; to end it: kubectl mfg resume %s -n %s",
		r.PausedUntil.Format(time.RFC3339), r.Metadata.Name, r.Metadata.Namespace)
}

// Fingerprint returns the report without the times that change on their own: equal ones look the same to a person.
func (r MysqlFailoverGroupReport) Fingerprint() MysqlFailoverGroupReport {
	r.Facts.ObservedAt = nil
	r.Sites = slices.Clone(r.Sites)
	for i := range r.Sites {
		r.Sites[i].LastSeen = nil
	}
	return r
}
