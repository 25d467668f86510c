// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventSiteRemoved         = events.Normal(v1alpha1.ReasonSiteRemoved, "Remove")
	eventConfigRestored      = events.Warning(v1alpha1.ReasonConfigRestored, "Restore")
	eventObjectRefused       = events.Warning(v1alpha1.ReasonObjectRefused, "Retry")
	eventForeignObjectInPlay = events.Warning(v1alpha1.ReasonForeignObject, "Refuse")
)

// objects applies the objects that restart no pod. It leaves out ConfigMaps: a mounted one reaches running pods, so a
// site's ConfigMap changes only when it is the site's turn.
func (r *Reconciler) objects(ctx context.Context, s *scope.Scope) error {
	wanted := []client.Object{
		render.PrimaryService(s.In), render.ReplicasService(s.In), render.DisruptionBudget(s.In), render.Protection(s.In),
	}
	for _, obj := range wanted {
		if err := r.apply.Apply(ctx, s.Group, obj); err != nil {
			return r.refused(s, err)
		}
	}
	for _, site := range s.Group.Spec.Sites {
		err := r.apply.Apply(ctx, s.Group, render.SiteService(s.In, site))
		if err == nil {
			err = r.volume(ctx, s, site)
		}
		if err := r.refusedOf(s, site.Name, err); err != nil {
			return err
		}
	}
	return nil
}

// tellRestored reports that someone changed the configuration of a site. It may be a mistake, or someone may be trying what that
// allows: docs/security.md.
func (r *Reconciler) tellRestored(group *v1alpha1.MysqlFailoverGroup, obj client.Object) {
	if config, is := obj.(*corev1.ConfigMap); is {
		r.Recorder.Emit(group, config, eventConfigRestored, "ConfigMap %s was changed by another program or person; the operator restored it", config.Name)
	}
}

// refused turns errors that a person must resolve into a condition, and returns all others.
func (r *Reconciler) refused(s *scope.Scope, err error) error {
	switch {
	case errors.Is(err, apply.ErrForeign):
		s.Progress(scope.Stuck(v1alpha1.ReasonForeignObject, err.Error()), scope.WhenWaiting)
		r.base.Say(s, "", eventForeignObjectInPlay, err.Error())
		return scope.ErrStop
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		r.base.Say(s, "", eventObjectRefused, err.Error())
	}
	return err
}

// refusedOf does the same for an object of a site. A new site is left out meanwhile, since the sites that run need nothing of it: their
// keyrings, clones and updates go on, and so does a removal that may free just what the new site lacks.
func (r *Reconciler) refusedOf(s *scope.Scope, site string, err error) error {
	if !apply.NeedsAPerson(err) || !scope.IsNew(s, site) {
		return r.refused(s, err)
	}
	s.Refused[site] = true
	e := eventObjectRefused
	if errors.Is(err, apply.ErrForeign) {
		e = eventForeignObjectInPlay
	}
	text := fmt.Sprintf("site %s is not made: %v", site, err)
	s.Progress(scope.Stuck(e.Reason, text), scope.WhenWaiting)
	r.base.Say(s, site, e, text)
	return nil
}

// removeSites removes the objects of sites that left the specification. The active site stays: without it no site takes writes,
// and its data may be the newest. While the role moves both ends stay: the old one may hold what the new one lacks, and the
// promotion gate asks its sidecar for the proof. A pod stays if the volume that it leaves needs its keyring. While no site is open every
// site stays: what is lost with the active one may be on this one alone, and a person may put it back to promote it.
func (r *Reconciler) removeSites(ctx context.Context, s *scope.Scope) error {
	keep := s.Sites()
	all, err := withObjects(ctx, r.Client, s)
	if err != nil {
		return err
	}
	s.Leaving = map[string]bool{}
	for _, site := range all {
		_, listed := keep[site]
		s.Leaving[site] = !listed
	}
	for _, site := range all {
		if _, ok := keep[site]; ok {
			r.base.Waits.Over(s, encryption.WaitForKeyring(site))
			continue
		}
		if why := whyKept(s, site); why != "" {
			text := fmt.Sprintf("site %s left the specification, but %s", site, why)
			s.Progress(scope.Stuck(v1alpha1.ReasonActiveSiteKept, text), scope.WhenWaiting)
			r.base.Say(s, site, encryption.EventSiteRemovalRefused, text)
			continue
		}
		if isPeer(s, site) {
			// While it runs it acknowledges every epoch. Once gone it could not, and a failover by the end of a lease would wait for
			// a person. The update that replaces those pods says how far it is.
			s.Again = min(s.Again, scope.WhenMoving)
			continue
		}
		if awaitsCopy(s, site) || !s.Group.IsNew() && !s.Facts.Open {
			r.tellKept(s, site)
			continue
		}
		if waits, err := r.encryption.RemovalWaits(ctx, s, site); err != nil {
			return fmt.Errorf("remove %s: %w", site, err)
		} else if waits {
			continue
		}
		if err := r.removeSite(ctx, s, site); err != nil {
			return fmt.Errorf("remove %s: %w", site, err)
		}
	}
	return nil
}

// whyKept says why a site must not be removed; empty if it may be.
func whyKept(s *scope.Scope, site string) string {
	moving := s.Group.Status.Transition
	switch {
	case moving != nil && (site == moving.From || site == moving.To):
		return "the role of the active site is moving to or from it: it is kept until that has ended"
	case site == s.ActiveSite():
		return "is the active site: move the role away first"
	}
	return ""
}

// isPeer is true while the pod of another site was started with this one as a peer. A pod that is gone, of a site with data, may still run
// on a lost node, or come back as it was: it counts as one that asks.
func isPeer(s *scope.Scope, site string) bool {
	for _, other := range s.Group.Spec.Sites {
		pod := s.Pods[other.Name]
		if pod == nil && s.Deployments[other.Name] != nil && s.Provisioned[other.Name] {
			return true
		}
		if pod != nil && slices.Contains(v1alpha1.Peers(pod), render.PeerAddr(s.Key.Namespace, s.Key.Name, site)) {
			return true
		}
	}
	return false
}

// tellKept says why the data of a site that leaves may be needed yet, and what ends that.
func (r *Reconciler) tellKept(s *scope.Scope, site string) {
	why := ""
	switch {
	case !s.Known:
		return // an operator that has just started does not know yet whether a site is open; it says so within seconds
	case !s.Group.IsNew() && !s.Facts.Open:
		why = fmt.Sprintf("no site is open, and what is lost with the active site may be on %s alone. The operator removes it when a site is open; "+
			"to let it take over, put it back into spec.sites", site)
	default:
		why = fmt.Sprintf("it may have the only other copy of the data, which %s still lacks. The operator removes it when two sites of the specification have the data, or all have it; "+
			"to see why one has none: kubectl mfg status %s -n %s", strings.Join(withoutData(s), ", "), s.Key.Name, s.Key.Namespace)
	}
	text := fmt.Sprintf("site %s left the specification, and stays: %s", site, why)
	s.Kept = append(s.Kept, text)
	s.Again = min(s.Again, scope.WhenWaiting)
	r.base.Say(s, site, encryption.EventSiteRemovalRefused, text)
}

// withoutData are the sites of the specification that have no copy of the data yet.
func withoutData(s *scope.Scope) (all []string) {
	for _, site := range s.Group.Spec.Sites {
		if s.Deployments[site.Name] == nil || !s.Provisioned[site.Name] {
			all = append(all, site.Name)
		}
	}
	return all
}

// awaitsCopy is true while a site of the specification lacks the data and fewer than two others have it: a site that leaves may have the
// only other copy. A pod alone is no copy yet. A site that never had the data may go, and a group that was never open has none to lose.
func awaitsCopy(s *scope.Scope, leaving string) bool {
	copies := 0
	for _, site := range s.Group.Spec.Sites {
		if s.Provisioned[site.Name] && !s.Terminating[site.Name] {
			copies++
		}
	}
	hasData := s.Provisioned[leaving] || s.Volumes[leaving] != ""
	return hasData && len(withoutData(s)) > 0 && copies < 2 && !s.Group.IsNew()
}

// withObjects are the sites with a Deployment or a Service, in order. The Service is removed last, so by it the operator finds a site of which
// something could not be removed.
func withObjects(ctx context.Context, c client.Reader, s *scope.Scope) ([]string, error) {
	var services corev1.ServiceList
	if err := c.List(ctx, &services, client.InNamespace(s.Key.Namespace), client.MatchingFields{v1alpha1.IndexGroup: s.Key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	found := map[string]bool{}
	for i := range services.Items {
		of := &services.Items[i]
		site := of.Labels[v1alpha1.LabelSite]
		if of.Name == v1alpha1.SiteName(s.Key.Name, site) && metav1.IsControlledBy(of, s.Group) {
			found[site] = true
		}
	}
	for site := range s.Deployments {
		found[site] = true
	}
	return scope.Sorted(found), nil
}

// removeSite removes the objects of a site: first its Deployment, and what its data needs only after that. A claim that is being deleted cannot be
// kept any more, nor its keyrings, and the site may come back into the specification while something else cannot be removed.
func (r *Reconciler) removeSite(ctx context.Context, s *scope.Scope, site string) error {
	gone := v1alpha1.Site{Name: site}
	var first, last []client.Object
	if d := s.Deployments[site]; d != nil {
		first = append(first, d)
	}
	first = append(first, render.ConfigMap(s.In, gone), render.ReportSecret(s.In, site, nil))
	kept := "its volume " + v1alpha1.DataVolumeName(s.Key.Name, site) + " stays"
	volume := render.DataVolume(s.In, gone)
	prepared, err := r.apply.Prepared(ctx, volume)
	if err != nil {
		return err
	}
	dataGoes := !prepared && !scope.Keeps(s.Group)
	if dataGoes {
		last = append(last, volume)
		kept = "its volume was deleted"
	}
	last = append(last, render.SiteService(s.In, gone))
	remove := func(all []client.Object) error {
		for _, obj := range all {
			if err := r.apply.Remove(ctx, s.Group, obj); err != nil {
				return err
			}
		}
		return nil
	}
	if err := remove(first); err != nil {
		return err
	}
	r.Work.ForgetSite(s.SiteKey(site))
	if err := r.encryption.RemoveKeyrings(ctx, s, site, dataGoes); err != nil {
		return err
	}
	if err := remove(last); err != nil {
		return err
	}
	metrics.ForgetSite(s.Key.Namespace, s.Key.Name, site)
	r.Recorder.Emit(s.Group, nil, eventSiteRemoved, "Site %s left the specification and was removed; %s", site, kept)
	delete(s.Deployments, site)
	delete(s.Leaving, site)
	return nil
}
