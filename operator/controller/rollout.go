// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/rollout"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventSiteUpdating     = events.Normal(v1alpha1.ReasonSiteUpdating, "Update")
	eventSiteAskedToLeave = events.Normal(v1alpha1.ReasonSiteAskedToLeave, "Update")
	eventSiteNotBack      = events.Warning(v1alpha1.ReasonSiteNotBack, "Wait")
	eventPauseUnreadable  = events.Warning(v1alpha1.ReasonPauseUnreadable, "Ignore")
)

// leavingForUpdate is the reason with which the controller asks a site to give its role away. The poll loop knows the
// text, as failover.LeavingForUpdate, and makes it the cause of the planned failover.
const leavingForUpdate = "its pod is to be updated"

// rollOut makes missing pods, and replaces at most one that is out of date.
func (r *Reconciler) rollOut(ctx context.Context, s *scope.Scope) error {
	if !s.TLSReady {
		r.Work.AskToLeave(s.Key, "", "")
		s.Progress(scope.Stuck(v1alpha1.ReasonWaitingForTLS, "pods wait for a usable certificate; see condition TLSReady"), scope.WhenWaiting)
		return nil
	}
	want, err := r.wanted(ctx, s)
	if err != nil {
		return err
	}
	maps.DeleteFunc(want, func(site string, _ *appsv1.Deployment) bool { return s.RestorePending && site != s.RestoreSite })
	d := rollout.Next(r.rolloutGroup(s, want))
	s.TellUpgrade()
	if r.Work.AskToLeave(s.Key, d.Leave, leavingForUpdate) {
		r.Recorder.Emit(s.Group, r.base.Related(s, d.Leave), eventSiteAskedToLeave,
			"Only the active site %s is left to update; its role is moved away before its pod is replaced", d.Leave)
	}
	for _, site := range s.Group.Spec.Sites {
		current := s.Deployments[site.Name]
		if want[site.Name] == nil {
			continue
		}
		upToDate := current != nil && scope.SpecHash(current) == scope.SpecHash(want[site.Name])
		if !upToDate && d.Update != site.Name && !slices.Contains(d.Create, site.Name) {
			continue
		}
		made, err := r.makePod(ctx, s, site, d, want[site.Name])
		if err != nil || !made && !s.Refused[site.Name] {
			return err
		}
	}
	r.rolloutProgress(s, d)
	if !r.Limits.AllowsImage(s.Group.Spec.Image) {
		s.Progress(scope.Stuck(v1alpha1.ReasonImageNotAllowed, "the image of the specification is not allowed; see condition SpecRefused"), scope.WhenWaiting)
	}
	return nil
}

// makePod makes the pod of a site, or replaces it. It returns false if the present pod must stay after all: the next look says why.
func (r *Reconciler) makePod(ctx context.Context, s *scope.Scope, site v1alpha1.Site, d rollout.Decision, want *appsv1.Deployment) (bool, error) {
	if d.Update == site.Name {
		if gone, err := r.encryption.EscrowIsGone(ctx, s, site.Name); err != nil || gone {
			s.Again = min(s.Again, scope.WhenMoving)
			return false, err
		}
		r.base.Say(s, site.Name, eventSiteUpdating, fmt.Sprintf("The pod of site %s is replaced (%s, template %s)", site.Name, d.Reason, scope.SpecHash(want)))
	}
	for _, obj := range []client.Object{render.ConfigMap(s.In, site), want} {
		if err := r.apply.Apply(ctx, s.Group, obj); err != nil {
			return false, r.refusedOf(s, site.Name, err)
		}
	}
	s.Deployments[site.Name] = want
	return true, nil
}

func (r *Reconciler) rolloutProgress(s *scope.Scope, d rollout.Decision) {
	r.sayNotBack(s, d)
	switch {
	case d.Done():
	case len(d.Create) > 0:
		s.Progress(scope.Moving(v1alpha1.ReasonCreating, d.Message), scope.WhenMoving)
	case d.Update != "":
		s.Progress(scope.Moving(v1alpha1.ReasonUpdating, d.Message), scope.WhenMoving)
	case d.Leave != "":
		s.Progress(scope.Moving(v1alpha1.ReasonMovingRole, d.Message), scope.WhenMoving)
	case d.Reason == v1alpha1.ReasonWaitingForSite && !s.Provisioned[d.Site]:
		// Provisioning says more about it.
		s.Again = min(s.Again, scope.WhenMoving)
	case stopped[d.Reason] != "":
		// That may be in a week. An event lets the update continue, and each look costs some reads of the API server.
		s.Progress(scope.Stuck(stopped[d.Reason], d.Message), scope.WhenWaiting)
	default:
		s.Progress(scope.Moving(v1alpha1.ReasonWaitingForSite, d.Message), scope.WhenMoving)
	}
}

// stopped has the reasons with which an update continues only after something else happens, often done by a person.
var stopped = map[v1alpha1.Reason]v1alpha1.Reason{
	v1alpha1.ReasonPaused:      v1alpha1.ReasonPaused,
	v1alpha1.ReasonSiteNotBack: v1alpha1.ReasonSiteNotBack,
	v1alpha1.ReasonRoleStays:   v1alpha1.ReasonRoleStays,
	v1alpha1.ReasonNoCandidate: v1alpha1.ReasonNoCandidate,
	v1alpha1.ReasonPodKept:     v1alpha1.ReasonKeyringKept,

	v1alpha1.ReasonVolumeTerminating: v1alpha1.ReasonVolumeTerminating,
}

// sayNotBack reports each site at which the update stopped, once.
func (r *Reconciler) sayNotBack(s *scope.Scope, d rollout.Decision) {
	for _, site := range s.Group.Spec.Sites {
		text := ""
		if d.Reason == v1alpha1.ReasonSiteNotBack && d.Site == site.Name {
			text = d.Message
		}
		r.base.Say(s, site.Name, eventSiteNotBack, text)
	}
}

// rolloutGroup collects the facts that the decision rests on.
func (r *Reconciler) rolloutGroup(s *scope.Scope, want map[string]*appsv1.Deployment) rollout.Group {
	g := rollout.Group{Transition: s.Group.Status.Transition != nil, Paused: r.pausedUntil(s)}
	for _, site := range s.Group.Spec.Sites {
		if want[site.Name] != nil {
			g.Sites = append(g.Sites, r.rolloutSite(s, site, want[site.Name]))
		}
	}
	// The active site may have left the specification, and stays until the role has moved. It gets no new pod, but while it is down no other
	// site may lose its own (I30).
	if active := s.ActiveSite(); s.Sites()[active].Name == "" && s.Deployments[active] != nil {
		g.Sites = append(g.Sites, r.rolloutSite(s, v1alpha1.Site{Name: active}, s.Deployments[active]))
	}
	if s.Group.Spec.Failover.Mode == v1alpha1.FailoverObserve {
		g.RoleStays = "spec.failover.mode is Observe; set it to Manual or Auto"
	}
	if p := s.Group.Status.PlannedFailover; p != nil && p.From == s.ActiveSite() && p.Cause == v1alpha1.ReasonOrderedUpdate && p.Phase != v1alpha1.PlannedSucceeded {
		g.LastTry = p.Message
	}
	return g
}

// pausedUntil says until when a person keeps the operator from replacing pods; empty if there is no pause. A value that
// is no time pauses nothing: a mistake must not stop the operator for ever.
func (r *Reconciler) pausedUntil(s *scope.Scope) string {
	text, set := s.Group.Annotations[v1alpha1.AnnotationPauseUntil]
	until, err := time.Parse(time.RFC3339, text)
	said := ""
	if set && err != nil {
		said = fmt.Sprintf("The annotation %s holds %q, which is no time such as 2026-11-20T18:00:00Z: the group is not paused",
			v1alpha1.AnnotationPauseUntil, text)
	}
	r.base.Say(s, "", eventPauseUnreadable, said)
	if err != nil || !until.After(s.Now) {
		return ""
	}
	s.Again = min(s.Again, until.Sub(s.Now)+time.Second)
	return until.UTC().Format(time.RFC3339)
}
