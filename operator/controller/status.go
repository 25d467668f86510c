// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/accounts"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/restoring"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/securing"
)

// ownConditions are the conditions that the controller writes; the others are the monitor's and the cache's loop's.
var ownConditions = []string{
	v1alpha1.ConditionProgressing, v1alpha1.ConditionTLSReady, v1alpha1.ConditionTLSRequired, v1alpha1.ConditionUnbuiltFeatures, v1alpha1.ConditionSpecRefused,
	v1alpha1.ConditionEncryptionReady, v1alpha1.ConditionRestoreReady,
	v1alpha1.ConditionDNSReady, v1alpha1.ConditionTaintsReady, v1alpha1.ConditionUpgradePending,
	v1alpha1.ConditionApplicationReady,
}

// writeStatus applies all of the controller's part of status: a field that is left out is removed.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope.Scope, failure error) error {
	conditions := stampedConditions(s, failure)
	sites := siteStatuses(s)
	if s.Group.Status.ObservedGeneration == s.Group.Generation && sameConditions(s, conditions) && sameSites(s, sites) &&
		equality.Semantic.DeepEqual(s.Passwords, s.Group.Status.Passwords) && equality.Semantic.DeepEqual(s.Restore, s.Group.Status.Restore) &&
		equality.Semantic.DeepEqual(s.TLS, s.Group.Status.TLS) && equality.Semantic.DeepEqual(s.Application, s.Group.Status.Application) && s.Upgrade.Same(s.Group) {
		return nil
	}
	status := applyv1alpha1.MysqlFailoverGroupStatus().WithObservedGeneration(s.Group.Generation)
	for _, c := range conditions {
		status.WithConditions(applymetav1.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	for _, site := range sites {
		status.WithSites(siteApply(site))
	}
	if s.Passwords != nil {
		status.WithPasswords(accounts.Apply(s.Passwords))
	}
	if s.Application != nil {
		status.WithApplication(accounts.ApplyApplication(s.Application))
	}
	if s.Restore != nil {
		status.WithRestore(restoring.Apply(s.Restore))
	}
	if s.TLS != nil {
		status.WithTLS(securing.Apply(s.TLS))
	}
	s.Upgrade.Apply(s.Group, status)
	// The uid keeps the apply from making a group again that was deleted just now. The version keeps an operator that hung
	// since it read the group from overwriting what its successor found (I12, I15; simulation, seed 661).
	config := applyv1alpha1.MysqlFailoverGroup(s.Key.Name, s.Key.Namespace).WithUID(s.Group.UID).
		WithResourceVersion(s.Group.ResourceVersion).WithStatus(status)
	err := r.Client.Status().Apply(ctx, config, client.FieldOwner(v1alpha1.ManagerControllerStatus), client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

func siteApply(site v1alpha1.SiteStatus) *applyv1alpha1.SiteStatusApplyConfiguration {
	out := applyv1alpha1.SiteStatus().WithName(site.Name)
	if site.Provisioned {
		out.WithProvisioned(true)
	}
	if site.VolumeID != "" {
		out.WithVolumeID(site.VolumeID)
	}
	if site.Unlisted {
		out.WithUnlisted(true)
	}
	if site.Node != "" {
		out.WithNode(site.Node)
	}
	if site.Clone != nil {
		out.WithClone(cloneApply(site.Clone))
	}
	if site.Image != "" {
		out.WithImage(site.Image)
	}
	if site.Version != "" {
		out.WithVersion(site.Version)
	}
	return out
}

func cloneApply(clone *v1alpha1.CloneProgress) *applyv1alpha1.CloneProgressApplyConfiguration {
	out := applyv1alpha1.CloneProgress()
	if clone.Source != "" {
		out.WithSource(clone.Source)
	}
	if clone.Stage != "" {
		out.WithStage(clone.Stage)
	}
	if clone.Percent != 0 {
		out.WithPercent(clone.Percent)
	}
	if clone.ETASeconds != nil {
		out.WithETASeconds(*clone.ETASeconds)
	}
	if clone.Order != "" {
		out.WithOrder(clone.Order)
	}
	if clone.StartedAt != nil {
		out.WithStartedAt(*clone.StartedAt)
	}
	return out
}

// stampedConditions returns the controller's conditions for status, sorted by type. After a failure, conditions that no
// phase reached stay unchanged.
func stampedConditions(s *scope.Scope, failure error) []metav1.Condition {
	wanted := append(slices.Clone(s.Conditions), progressCondition(s, failure))
	var out []metav1.Condition
	for _, c := range wanted {
		out = append(out, conditions.Stamp(s.Group.Status.Conditions, c, s.Group.Generation, s.Now))
	}
	if failure != nil || s.Stopped {
		for _, old := range s.Group.Status.Conditions {
			if slices.Contains(ownConditions, old.Type) && meta.FindStatusCondition(out, old.Type) == nil {
				out = append(out, old)
			}
		}
	}
	slices.SortFunc(out, func(a, b metav1.Condition) int {
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	return out
}

func progressCondition(s *scope.Scope, failure error) conditions.Condition {
	kept := strings.Join(s.Kept, "; ")
	switch {
	case failure != nil && s.Progressing == nil:
		return scope.Moving(v1alpha1.ReasonReconcileError, failure.Error())
	case s.Progressing != nil && kept != "":
		c := *s.Progressing
		c.Message += "; " + kept
		return c
	case s.Progressing != nil:
		return *s.Progressing
	case kept != "":
		return scope.Stuck(v1alpha1.ReasonLeavingSiteKept, kept)
	}
	return scope.Stuck(v1alpha1.ReasonAsExpected, "everything is as specified")
}

func sameConditions(s *scope.Scope, stamped []metav1.Condition) bool {
	count := 0
	for _, old := range s.Group.Status.Conditions {
		if slices.Contains(ownConditions, old.Type) {
			count++
		}
	}
	return count == len(stamped) && !slices.ContainsFunc(stamped, func(c metav1.Condition) bool {
		old := meta.FindStatusCondition(s.Group.Status.Conditions, c.Type)
		return conditions.Changed(s.Group.Status.Conditions, c) || old.ObservedGeneration != c.ObservedGeneration
	})
}

// siteStatuses returns the controller's fields of each site of the specification, and of sites that left it and are kept. The marks of a
// site go with its objects: put back before that, it may still be promoted.
func siteStatuses(s *scope.Scope) []v1alpha1.SiteStatus {
	before := map[string]v1alpha1.SiteStatus{}
	for _, old := range s.Group.Status.Sites {
		before[old.Name] = old
	}
	names := make([]string, 0, len(s.Group.Spec.Sites))
	for _, site := range s.Group.Spec.Sites {
		names = append(names, site.Name)
	}
	for _, old := range s.Group.Status.Sites {
		if !slices.Contains(names, old.Name) && (whyKept(s, old.Name) != "" || keepsMarks(s, old)) {
			names = append(names, old.Name)
		}
	}
	out := nodesInSight(s, names)
	for _, name := range names {
		old := before[name]
		status := v1alpha1.SiteStatus{
			Name: name, Provisioned: s.Provisioned[name], VolumeID: s.Volumes[name], Unlisted: s.In.Unlisted[name] && !s.Provisioned[name],
			Node: old.Node, Image: old.Image, Version: old.Version, Clone: s.Clones[name],
		}
		if pod := s.Pods[name]; pod != nil {
			if node := pod.Spec.NodeName; node != "" && sidecarStarted(pod) && holdsTheData(s, name, pod) {
				status.Node = node
			}
			status.Image = scope.MySQLImage(pod)
			if f := s.Facts.Sites[name]; f.PodUID == string(pod.UID) && f.Version != "" {
				status.Version = f.Version
			}
		}
		out = append(out, status)
	}
	return out
}

// keepsMarks is true for a site that has left with data until its objects are gone. A look that ended before it saw them proves nothing.
func keepsMarks(s *scope.Scope, old v1alpha1.SiteStatus) bool {
	return (old.Provisioned || old.VolumeID != "") && (s.Leaving == nil || s.Leaving[old.Name])
}

// nodesInSight returns the nodes of sites other than these that the poll loop keeps in sight: the pod of one may still run and
// vouch, and a taint of that node is what proves that it does not (I4).
func nodesInSight(s *scope.Scope, but []string) []v1alpha1.SiteStatus {
	var out []v1alpha1.SiteStatus
	for _, old := range s.Group.Status.Sites {
		if !slices.Contains(but, old.Name) && old.State != "" && (old.Node != "" || old.Unlisted) {
			out = append(out, v1alpha1.SiteStatus{Name: old.Name, Node: old.Node, Unlisted: old.Unlisted})
		}
	}
	return out
}

// holdsTheData is false for a pod on another volume than the noted one, and until its volume is known: the pod that held
// the data may still run on its node, and a person's taint refers to that node.
func holdsTheData(s *scope.Scope, name string, pod *corev1.Pod) bool {
	noted, f := s.Volumes[name], s.Facts.Sites[name]
	return noted == "" || f.PodUID == string(pod.UID) && f.VolumeID == noted
}

// sidecarStarted is true if the sidecar of a pod has ever started. It starts once it holds the lock of the volume, which
// proves that no other pod of the site runs. Until then the site's last pod may still run on its node, so a replacement
// that was only scheduled must not remove that node from status.
func sidecarStarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		started := c.Started != nil && *c.Started
		return c.Name == render.ContainerSidecar &&
			(started || c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil)
	})
}

func sameSites(s *scope.Scope, sites []v1alpha1.SiteStatus) bool {
	before := map[string]v1alpha1.SiteStatus{}
	for _, old := range s.Group.Status.Sites {
		before[old.Name] = v1alpha1.SiteStatus{
			Name: old.Name, Provisioned: old.Provisioned, VolumeID: old.VolumeID, Unlisted: old.Unlisted,
			Node: old.Node, Image: old.Image, Version: old.Version, Clone: old.Clone,
		}
	}
	for _, site := range sites {
		old, ok := before[site.Name]
		if !ok || !equality.Semantic.DeepEqual(old, site) {
			return false
		}
		delete(before, site.Name)
	}
	for _, gone := range before {
		// The site left the specification: the controller's fields of it must go.
		if !equality.Semantic.DeepEqual(gone, v1alpha1.SiteStatus{Name: gone.Name}) {
			return false
		}
	}
	return true
}
