// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/rollout"
)

var (
	eventSiteUpdating     = events.Normal(v1alpha1.ReasonSiteUpdating, "Update")
	eventSiteAskedToLeave = events.Normal(v1alpha1.ReasonSiteAskedToLeave, "Update")
	eventSiteNotBack      = events.Warning(v1alpha1.ReasonSiteNotBack, "Wait")
	eventPauseUnreadable  = events.Warning(v1alpha1.ReasonPauseUnreadable, "Ignore")
)

// rollOut makes the pods that are missing, and replaces at most one that is out of date.
func (r *Reconciler) rollOut(ctx context.Context, s *scope) error {
	if !s.tlsReady {
		r.Work.askToLeave(s.key, "", "")
		s.progress(stuck(v1alpha1.ReasonWaitingForTLS, "pods wait for a usable certificate; see condition TLSReady"), whenWaiting)
		return nil
	}
	want, err := r.wanted(ctx, s)
	if err != nil {
		return err
	}
	d := rollout.Next(r.rolloutGroup(s, want))
	r.askToLeave(s, d)
	for _, site := range s.group.Spec.Sites {
		current := s.deployments[site.Name]
		if want[site.Name] == nil {
			continue
		}
		upToDate := current != nil && specHash(current) == specHash(want[site.Name])
		if !upToDate && d.Update != site.Name && !slices.Contains(d.Create, site.Name) {
			continue
		}
		if d.Update == site.Name {
			r.base.say(s, site.Name, eventSiteUpdating,
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
	if !r.Limits.AllowsImage(s.group.Spec.Image) {
		s.progress(stuck(v1alpha1.ReasonImageNotAllowed, "the image of the specification is not allowed; see condition SpecRefused"), whenWaiting)
	}
	return nil
}

// askToLeave passes on which site should give its role away, if any.
func (r *Reconciler) askToLeave(s *scope, d rollout.Decision) {
	if r.Work.askToLeave(s.key, d.Leave, leavingForUpdate) {
		r.Recorder.Emit(s.group, r.base.related(s, d.Leave), eventSiteAskedToLeave,
			"Only the active site %s is left to update; its role is moved away before its pod is replaced", d.Leave)
	}
}

func (r *Reconciler) rolloutProgress(s *scope, d rollout.Decision) {
	r.sayNotBack(s, d)
	switch {
	case d.Done():
	case len(d.Create) > 0:
		s.progress(moving(v1alpha1.ReasonCreating, d.Message), whenMoving)
	case d.Update != "":
		s.progress(moving(v1alpha1.ReasonUpdating, d.Message), whenMoving)
	case d.Leave != "":
		s.progress(moving(v1alpha1.ReasonMovingRole, d.Message), whenMoving)
	case d.Reason == v1alpha1.ReasonWaitingForSite && !s.provisioned[d.Site]:
		// Provisioning has more to say about it.
		s.again = min(s.again, whenMoving)
	case stopped[d.Reason] != "":
		// That may be in a week. What lets it go on is an event, and each look is some reads of the API server.
		s.progress(stuck(stopped[d.Reason], d.Message), whenWaiting)
	default:
		s.progress(moving(v1alpha1.ReasonWaitingForSite, d.Message), whenMoving)
	}
}

// stopped are the reasons with which an update goes on only when something else happens, often by a person.
var stopped = map[v1alpha1.Reason]v1alpha1.Reason{
	v1alpha1.ReasonPaused:      v1alpha1.ReasonPaused,
	v1alpha1.ReasonSiteNotBack: v1alpha1.ReasonSiteNotBack,
	v1alpha1.ReasonRoleStays:   v1alpha1.ReasonRoleStays,
	v1alpha1.ReasonNoCandidate: v1alpha1.ReasonNoCandidate,
	v1alpha1.ReasonPodKept:     v1alpha1.ReasonKeyringKept,
}

// sayNotBack tells once of each site at which the update stopped.
func (r *Reconciler) sayNotBack(s *scope, d rollout.Decision) {
	for _, site := range s.group.Spec.Sites {
		text := ""
		if d.Reason == v1alpha1.ReasonSiteNotBack && d.Site == site.Name {
			text = d.Message
		}
		r.base.say(s, site.Name, eventSiteNotBack, text)
	}
}

// rolloutGroup collects what the decision stands on.
func (r *Reconciler) rolloutGroup(s *scope, want map[string]*appsv1.Deployment) rollout.Group {
	g := rollout.Group{Transition: s.group.Status.Transition != nil, Paused: r.pausedUntil(s)}
	for _, site := range s.group.Spec.Sites {
		if want[site.Name] != nil {
			g.Sites = append(g.Sites, r.rolloutSite(s, site, want[site.Name]))
		}
	}
	if s.group.Spec.Failover.Mode == v1alpha1.FailoverObserve {
		g.RoleStays = "spec.failover.mode is Observe; set it to Manual or Auto"
	}
	if p := s.group.Status.PlannedFailover; p != nil && p.From == s.activeSite() && p.Cause == v1alpha1.ReasonOrderedUpdate && p.Phase != v1alpha1.PlannedSucceeded {
		g.LastTry = p.Message
	}
	return g
}

// pausedUntil is until when a person keeps the operator from replacing pods; empty if nobody does. What is no time pauses
// nothing: the operator must not stand still for ever because of a slip.
func (r *Reconciler) pausedUntil(s *scope) string {
	text, set := s.group.Annotations[v1alpha1.AnnotationPauseUntil]
	until, err := time.Parse(time.RFC3339, text)
	said := ""
	if set && err != nil {
		said = fmt.Sprintf("The annotation %s holds %q, which is no time such as 2026-11-20T18:00:00Z: the group is not paused",
			v1alpha1.AnnotationPauseUntil, text)
	}
	r.base.say(s, "", eventPauseUnreadable, said)
	if err != nil || !until.After(s.now) {
		return ""
	}
	s.again = min(s.again, until.Sub(s.now)+time.Second)
	return until.UTC().Format(time.RFC3339)
}
