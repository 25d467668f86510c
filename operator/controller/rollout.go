// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report"
	"github.com/mysql-mfg/mfg/operator/rollout"
)

// brokenAfter is how long a pod must have been unavailable before replacing it counts as taking nothing away. It is
// longer than a restart of mysqld with a recovery of usual length.
const brokenAfter = time.Minute

// rollOut makes the pods that are missing, and replaces at most one that is out of date.
func (r *Reconciler) rollOut(ctx context.Context, s *scope) error {
	if !s.tlsReady {
		s.progress(stuck(report.ReasonWaitingForTLS, "pods wait for a usable certificate; see condition TLSReady"), whenWaiting)
		return nil
	}
	want := map[string]*appsv1.Deployment{}
	var sites []rollout.Site
	for _, site := range s.group.Spec.Sites {
		want[site.Name] = render.Deployment(s.in, site)
		sites = append(sites, r.rolloutSite(s, site.Name, want[site.Name]))
	}
	d := r.sparing(s, rollout.Next(sites, s.group.Status.Transition != nil))
	for _, site := range s.group.Spec.Sites {
		current := s.deployments[site.Name]
		upToDate := current != nil && specHash(current) == specHash(want[site.Name])
		if !upToDate && d.Update != site.Name && !slices.Contains(d.Create, site.Name) {
			continue
		}
		if d.Update == site.Name {
			r.say(s, site.Name, report.SiteUpdating,
				fmt.Sprintf("The pod of site %s is replaced (%s, template %s)", site.Name, d.Reason, specHash(want[site.Name])))
		}
		if err := r.apply.apply(ctx, s.group, render.ConfigMap(s.in, site)); err != nil {
			return r.refused(s, err)
		}
		if err := r.apply.apply(ctx, s.group, want[site.Name]); err != nil {
			return r.refused(s, err)
		}
		s.deployments[site.Name] = want[site.Name]
	}
	r.rolloutProgress(s, d)
	return nil
}

func (r *Reconciler) rolloutProgress(s *scope, d rollout.Decision) {
	switch {
	case d.Done():
	case len(d.Create) > 0:
		s.progress(moving(report.ReasonCreating, d.Message), whenMoving)
	case d.Update != "":
		s.progress(moving(report.ReasonUpdating, d.Message), whenMoving)
	case d.Reason == rollout.WaitingForSite && !s.provisioned[d.Site]:
		// Provisioning has more to say about it.
		s.again = min(s.again, whenMoving)
	default:
		s.progress(moving(report.ReasonWaitingForSite, d.Message), whenMoving)
	}
}

func (r *Reconciler) rolloutSite(s *scope, name string, want *appsv1.Deployment) rollout.Site {
	_, busy := r.Work.Busy(s.key.Namespace, s.key.Name, name)
	site := rollout.Site{Name: name, Active: name == s.activeSite(), Busy: busy}
	current := s.deployments[name]
	if current == nil {
		return site
	}
	site.Exists = true
	site.UpToDate = specHash(current) == specHash(want)
	site.Settled = settled(s, name) && !busy
	site.Broken = !s.facts.Sites[name].MysqlUp && s.now.Sub(unavailableSince(current, s.now)) >= brokenAfter
	return site
}

// settled is true if the pod of the site's Deployment is ready and does its part. The facts must be those of this very
// pod: those of its predecessor may be two seconds old and all well.
func settled(s *scope, name string) bool {
	pod, f := s.pods[name], s.facts.Sites[name]
	if pod == nil || pod.DeletionTimestamp != nil || !podReady(pod) || !s.known {
		return false
	}
	if pod.Annotations[v1alpha1.AnnotationSpecHash] != specHash(s.deployments[name]) || f.PodUID != string(pod.UID) || !f.MysqlUp {
		return false
	}
	switch {
	case s.activeSite() == "":
		// There is nothing to follow yet.
		return true
	case name == s.activeSite():
		return s.facts.Open && s.facts.ActiveSite == name
	}
	return s.provisioned[name] && f.Following
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// unavailableSince is since when a Deployment has had no ready pod; now if it has one.
func unavailableSince(d *appsv1.Deployment, now time.Time) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentAvailable {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			return now
		}
		return c.LastTransitionTime.Time
	}
	return d.CreationTimestamp.Time
}

func specHash(d *appsv1.Deployment) string { return d.Annotations[v1alpha1.AnnotationSpecHash] }
