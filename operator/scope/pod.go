// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// Serves is true if the pod of the site's Deployment is ready and its MySQL answers, whatever its role in the group.
func Serves(s *Scope, name string) bool {
	pod, f := s.Pods[name], s.Facts.Sites[name]
	return pod != nil && pod.DeletionTimestamp == nil && PodReady(pod) && s.Known && f.MysqlUp &&
		pod.Annotations[v1alpha1.AnnotationSpecHash] == SpecHash(s.Deployments[name]) && f.PodUID == string(pod.UID)
}

// Settled is true if the pod of the site's Deployment is ready and plays its role. The facts must be from this very
// pod: those of its predecessor may be two seconds old and look fine.
func Settled(s *Scope, name string) bool {
	f := s.Facts.Sites[name]
	switch {
	case !Serves(s, name):
		return false
	case s.ActiveSite() == "":
		// There is nothing to follow yet.
		return true
	case name == s.ActiveSite():
		return s.Facts.Open && s.Facts.ActiveSite == name
	}
	return s.Provisioned[name] && f.Following
}

// BeingReplaced is true from a change of a site's Deployment, or the deletion of its pod, until the new pod is settled,
// but only for as long as a replacement usually takes. After that the site has failed, and the others must not wait for
// it: one of them may need the update to take over.
func BeingReplaced(s *Scope, site string) bool {
	d, pod := s.Deployments[site], s.Pods[site]
	if d == nil || Settled(s, site) {
		return false
	}
	if pod == nil || pod.DeletionTimestamp != nil || pod.Annotations[v1alpha1.AnnotationSpecHash] != SpecHash(d) {
		return s.Now.Sub(UnavailableSince(d, s.Now)) < BrokenAfter
	}
	return s.Now.Sub(pod.CreationTimestamp.Time) < BrokenAfter
}

// PodReady is true for a pod that is ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// UnavailableSince returns since when a Deployment has had no ready pod; now if it has one.
func UnavailableSince(d *appsv1.Deployment, now time.Time) time.Time {
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

// SpecHash identifies the template of a Deployment.
func SpecHash(d *appsv1.Deployment) string { return d.Annotations[v1alpha1.AnnotationSpecHash] }

// BrokenAfter is how long a pod must have been unavailable before replacing it counts as harmless. It is longer than a restart of
// mysqld with a recovery of usual length.
const BrokenAfter = time.Minute

// MySQLImage is the image of the MySQL container of a pod.
func MySQLImage(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == render.ContainerMySQL {
			return c.Image
		}
	}
	return ""
}
