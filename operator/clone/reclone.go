// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventRecloneAccepted = events.Normal(v1alpha1.ReasonRecloneAccepted, "Clone")
	eventRecloneRefused  = events.Warning(v1alpha1.ReasonRecloneRefused, "Refuse")
	eventRecloneWaits    = events.Warning(v1alpha1.ReasonRecloneWaits, "Hold")
)

const (
	// settlePatience is how long an order waits until the loss of a replaced active site is known.
	settlePatience = time.Minute
	// countPatience is how long the policy waits until lost rows are counted, before a clone deletes the binary logs that they are counted from.
	countPatience = 15 * time.Minute
)

// takeRequest reads the annotation reclone-site: it refuses the order, lets it wait, or returns it so that the site is
// marked. An order that status already has is under way.
func (r *Clones) takeRequest(ctx context.Context, s *scope.Scope) (request, error) {
	value := s.Group.Annotations[v1alpha1.AnnotationRecloneSite]
	if value == "" {
		return request{}, nil
	}
	q := parseRequest(value)
	if standing(s.Clones[q.site]).value == value && q.site != s.ActiveSite() {
		return request{}, nil
	}
	if why := r.whyWait(s, q); why != "" {
		s.Progress(scope.Moving(v1alpha1.ReasonProvisioning, fmt.Sprintf("reclone of %s waits: %s", q.site, why)), scope.WhenMoving)
		return request{}, nil
	}
	for _, refusal := range refusals {
		if why := refusal.guard(s, q); why != "" {
			return request{}, r.refuse(ctx, s, q, asks.Refused(refusal.reason, why))
		}
	}
	return q, nil
}

// whyWait says why an order cannot be judged yet. An order waits only for what passes without help: one that throws
// data away must not lie in wait for better times.
func (r *Clones) whyWait(s *scope.Scope, q request) string {
	switch {
	case !s.Known:
		return "nothing is known of the sites yet"
	case !scope.Steady(s):
		return "the active site is changing"
	case s.Facts.Sites[q.site].Diverged:
		return "" // what it alone has is already known
	case notSettled(s.Group, q.site) && r.Waits.Since(s, "settle", scope.ReplacedBy(s.Group, q.site)) < settlePatience:
		return "what it had as the active site is being compared"
	}
	return ""
}

// refusals is the chain of guards before an order is accepted: the first that objects says why, and what to do. Each
// guard is safe alone. Their facts are checked again before data is touched (examine).
var refusals = []struct {
	reason string
	guard  func(*scope.Scope, request) string
}{
	{v1alpha1.AnswerUnknownSite, isNoSite},
	{v1alpha1.AnswerIsActiveSite, isTheActiveSite},
	{v1alpha1.AnswerDonorNotOpen, donorIsNotOpen},
	{v1alpha1.AnswerDonorNotWhole, donorIsNotWhole},
	{v1alpha1.AnswerRoleMoving, isAboutToTakeOver},
	{v1alpha1.AnswerKeyringMissing, hasNoKeyring},
	{v1alpha1.AnswerSiteNeverStarts, neverStarts},
	{v1alpha1.AnswerSiteNotAnswering, doesNotAnswer},
	{v1alpha1.AnswerSiteNotFenced, isNotFenced},
	{v1alpha1.AnswerCloneUnderWay, isBeingCloned},
	{v1alpha1.AnswerDonorLosesRows, donorLosesRows},
	{v1alpha1.AnswerSiteDiverged, hasDiverged},
	{v1alpha1.AnswerLossUnknown, isNotSettled},
	{v1alpha1.AnswerOnlyOtherCopy, isOnlyOtherCopy},
	// Last: it advises to delete the pod, and with it the data that the three before protect.
	{v1alpha1.AnswerVolumeGoes, isOnAVolumeThatGoes},
}

// isRefused is true if any of the guards objects to the order.
func isRefused(s *scope.Scope, q request) bool {
	for _, refusal := range refusals {
		if refusal.guard(s, q) != "" {
			return true
		}
	}
	return false
}

func isNoSite(s *scope.Scope, q request) string {
	if _, known := s.Sites()[q.site]; known {
		return ""
	}
	return fmt.Sprintf("the group has no site %q: name one of %s, or %s%s", q.site, strings.Join(scope.Sorted(s.Sites()), ", "), "SITE", confirmed)
}

func isTheActiveSite(s *scope.Scope, q request) string {
	if q.site != s.ActiveSite() {
		return ""
	}
	return fmt.Sprintf("%s is the active site: move the role first (annotation %s)", q.site, v1alpha1.AnnotationPlannedFailover)
}

func donorIsNotOpen(s *scope.Scope, _ request) string {
	if s.Facts.Open && s.Facts.Sites[s.ActiveSite()].AdminAddr != "" {
		return ""
	}
	// The active site's copy may be the last whole one.
	return fmt.Sprintf("the active site %s does not accept writes, and no other site may be cloned from: order it again once it does", s.ActiveSite())
}

func donorIsNotWhole(s *scope.Scope, _ request) string {
	active := s.ActiveSite()
	if s.Provisioned[active] && !scope.Replaced(s, active) {
		return ""
	}
	return fmt.Sprintf("the active site %s is not known to be on the volume that holds the group's data: a clone would leave no healthy copy", active)
}

func isAboutToTakeOver(s *scope.Scope, q request) string {
	p := s.Group.Status.PlannedFailover
	if p == nil || p.To != q.site || p.Phase != v1alpha1.PlannedWaiting && p.Phase != v1alpha1.PlannedMoving {
		return ""
	}
	return fmt.Sprintf("a planned failover to %s is under way: wait for it, or give it up (annotation %s)", q.site, v1alpha1.AnnotationAbortFailover)
}

// hasNoKeyring: the clone begins with an unsealed pod, and the present pod has the only copy of the keyring. That pod is replaced only
// on an order that gives the data up, so any other order would wait for ever, and the site would no longer count as a copy.
func hasNoKeyring(s *scope.Scope, q request) string {
	if q.confirmed || !s.Keyrings.Missing[q.site] {
		return ""
	}
	return fmt.Sprintf("the escrow Secret of the keyring of %s is gone, and at most its pod has the keyring still: bring it back with "+
		"kubectl mfg recover-keyring %s %s -n %s, or order %s%s, which throws away what is on its volume",
		q.site, s.Key.Name, q.site, s.Key.Namespace, q.site, confirmed)
}

func neverStarts(s *scope.Scope, q request) string {
	if q.confirmed || !scope.NeverOpens(s, q.site) {
		return ""
	}
	return fmt.Sprintf("mysqld ends at every start of %s, and its keyring is sealed: look at its log; if the keyring does not open the data, name the "+
		"version that does (docs/keyring-runbook.md), or order %s%s, which throws away what is on its volume", q.site, q.site, confirmed)
}

func doesNotAnswer(s *scope.Scope, q request) string {
	if f := s.Facts.Sites[q.site]; f.MysqlUp && f.AdminAddr != "" {
		return ""
	}
	if q.confirmed && (s.Keyrings.Unreadable[q.site] || scope.NeverOpens(s, q.site)) {
		return "" // it starts again with a fresh keyring, and is then cloned
	}
	return fmt.Sprintf("the MySQL of %s does not answer, and a clone needs one that runs: get its pod %s to run; if its volume is lost, delete the "+
		"PersistentVolumeClaim %s and the pod, and the operator clones the site on a new one",
		q.site, v1alpha1.SiteName(s.Key.Name, q.site), v1alpha1.DataVolumeName(s.Key.Name, q.site))
}

func isNotFenced(s *scope.Scope, q request) string {
	if !s.Facts.Sites[q.site].Writable {
		return ""
	}
	return fmt.Sprintf("%s accepts writes although it is not the active site, and is being fenced: order it again once it is", q.site)
}

func isBeingCloned(s *scope.Scope, q request) string {
	if !s.Facts.Sites[q.site].Cloning && s.Busy[q.site] == "" {
		return ""
	}
	return fmt.Sprintf("%s is being cloned already: see status.sites", q.site)
}

// isOnAVolumeThatGoes: what a clone brought there would be gone with the site's pod, and until then the site would have no whole copy.
func isOnAVolumeThatGoes(s *scope.Scope, q request) string {
	if !s.Terminating[q.site] {
		return ""
	}
	return fmt.Sprintf("%s: %s", q.site, volumeGoes(s.Group, q.site))
}

// volumeGoes says why nothing is cloned to a site whose volume claim is being deleted, and how the site gets its data.
func volumeGoes(group *v1alpha1.MysqlFailoverGroup, site string) string {
	return fmt.Sprintf("its volume claim %s is being deleted; to give it a new volume, to which the operator clones the data: kubectl delete pods -n %s -l %s",
		v1alpha1.DataVolumeName(group.Name, site), group.Namespace, v1alpha1.MySQLPods(group.Name, site))
}

// donorLosesRows protects the rows that a clone would not copy, unless a person gives them up on this site.
func donorLosesRows(s *scope.Scope, q request) string {
	if q.confirmed {
		return ""
	}
	if why := rowsLost(s.ActiveSite(), s.Facts); why != "" {
		return fmt.Sprintf("%s; or order %s%s, which leaves %s without them", why, q.site, confirmed, q.site)
	}
	return ""
}

func hasDiverged(s *scope.Scope, q request) string {
	if q.confirmed || !s.Facts.Sites[q.site].Diverged {
		return ""
	}
	return fmt.Sprintf("%s has transactions that no other site has (status.sites): save what you need of them, then order %s%s, which deletes them",
		q.site, q.site, confirmed)
}

func isNotSettled(s *scope.Scope, q request) string {
	if q.confirmed || !notSettled(s.Group, q.site) || s.Facts.Sites[q.site].Diverged {
		return ""
	}
	return fmt.Sprintf("%s was the active site, and what it alone has is not known: order %s%s if it may be thrown away", q.site, q.site, confirmed)
}

// isOnlyOtherCopy protects the second healthy copy, unless a person accepts a single copy for a while.
func isOnlyOtherCopy(s *scope.Scope, q request) string {
	if q.confirmed || !scope.HealthyCopy(s, q.site) {
		return ""
	}
	if anotherCopy(s, q.site) {
		return ""
	}
	return fmt.Sprintf("%s is the only healthy copy beside the active site, and there would be one alone while it is cloned: "+
		"wait until another site replicates, or order %s%s", q.site, q.site, confirmed)
}

// anotherCopy is true if there is a healthy copy that lasts beside the active site and this one.
func anotherCopy(s *scope.Scope, site string) bool {
	return slices.ContainsFunc(s.Group.Spec.Sites, func(other v1alpha1.Site) bool {
		return other.Name != site && other.Name != s.ActiveSite() && scope.LastingCopy(s, other.Name)
	})
}

// policyWaits says why the policy leaves a diverged site to a person, and how that person goes on.
func policyWaits(site scope.SiteKey) string {
	return fmt.Sprintf("%s has diverged and is the only other copy: spec.failover.onDivergence waits until another site replicates; to clone it now "+
		"and lose what it alone has: kubectl mfg reclone %s %s -n %s --confirm-data-loss", site.Site, site.Group.Name, site.Site, site.Group.Namespace)
}

// notSettled is true if a site was replaced as the active site, and its own transactions are not known yet.
func notSettled(group *v1alpha1.MysqlFailoverGroup, site string) bool {
	record := scope.ReplacedBy(group, site)
	return record != nil && !record.LossExact
}

// accept marks a site for its reclone. This is durable before anything is done: a later reconcile finds the order in
// status and begins the clone. A site without the mark of provisioning is no candidate and no copy.
func (r *Clones) accept(s *scope.Scope, site string, o order) {
	s.Provisioned[site] = false
	s.Clones[site] = &v1alpha1.CloneProgress{
		Source: s.ActiveSite(), Order: o.value, StartedAt: &metav1.Time{Time: s.Now.UTC().Truncate(time.Second)},
	}
	// Results of earlier work say nothing about this order.
	r.Work.Drop(s.SiteKey(site))
	s.Again = min(s.Again, scope.WhenMoving)
	r.Recorder.Emit(s.Group, r.Related(s, site), eventRecloneAccepted, "Site %s is cloned again from %s: %s", site, s.ActiveSite(), o.why())
}

// refuse answers an order that is not carried out.
func (r *Clones) refuse(ctx context.Context, s *scope.Scope, q request, a asks.Answer) error {
	if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRecloneSite, q.value, a); err != nil {
		return err
	}
	r.Recorder.Emit(s.Group, r.Related(s, q.site), eventRecloneRefused, "Reclone of %s was refused: %s", q.site, a.Message)
	return nil
}

// policyReclones is true if spec.failover.onDivergence lets the operator clone a diverged site again now: its donor is
// open and whole, another site is a healthy copy, its loss is in a record, and its lost rows are counted, unless counting
// takes too long. No person is asked, so in doubt the site stays unchanged.
func (r *Clones) policyReclones(s *scope.Scope, site string) bool {
	spec, f := s.Group.Spec.Failover, s.Facts.Sites[site]
	if spec.OnDivergence != v1alpha1.DivergenceReclone || f.MysqlUp && !f.Diverged {
		r.Say(s, site, eventRecloneWaits, "") // if it diverges later, that is another story, to be told again
		return false
	}
	if spec.Mode == v1alpha1.FailoverObserve || r.paused(s) != "" {
		return false
	}
	q := request{site: site, confirmed: true}
	if f.Executed.Union(f.Retrieved).Intersect(f.Errant).IsEmpty() {
		return false // what the loop remembers is from before the last clone: one lost answer of the active site keeps it from looking again
	}
	if !f.MysqlUp {
		return false // only a person may give up data that the operator cannot read
	}
	if !s.Provisioned[site] || !f.Diverged || r.whyWait(s, q) != "" || notSettled(s.Group, site) {
		return false
	}
	if rowsLost(s.ActiveSite(), s.Facts) != "" {
		return false // no person has given up the rows that a clone does not copy
	}
	if isRefused(s, q) {
		return false
	}
	why := ""
	if !anotherCopy(s, site) {
		why = policyWaits(s.SiteKey(site))
	}
	if r.Say(s, site, eventRecloneWaits, why); why != "" {
		return false // a diverged site has most of the data: until it is cloned, the active site would be the only copy
	}
	if uncounted(s.Group, site) && r.Waits.Since(s, "count", scope.ReplacedBy(s.Group, site)) < countPatience {
		s.Again = min(s.Again, scope.WhenWaiting)
		return false
	}
	return true
}

// uncounted is true while the rows that a site's lost transactions changed are not counted.
func uncounted(group *v1alpha1.MysqlFailoverGroup, site string) bool {
	record := scope.ReplacedBy(group, site)
	return record != nil && record.LossExact && record.LostTransactions > 0 && record.LostRowsState == ""
}
