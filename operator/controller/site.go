// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// encrypted is true for a group with data-at-rest encryption.
func encrypted(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.EncryptionAtRest != nil && group.Spec.EncryptionAtRest.Enabled
}

// keyringStatus is what is persisted of a site's keyring.
func keyringStatus(group *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.SiteKeyringStatus {
	if e := group.Status.EncryptionAtRest; e != nil {
		for _, st := range e.Sites {
			if st.Name == site {
				return st
			}
		}
	}
	return v1alpha1.SiteKeyringStatus{Name: site}
}

// steady is true if the facts are those of the active site that status names, and it is not changing.
func steady(s *scope) bool {
	return s.facts.ActiveSite == s.activeSite() && s.group.Status.Transition == nil
}

// replaced is true if a site is seen on another volume than the one it was provisioned on. One that is not known may
// be the same.
func replaced(s *scope, site string) bool {
	noted, seen := s.volumes[site], s.facts.Sites[site].VolumeID
	return noted != "" && seen != "" && noted != seen
}

// healthyCopy is true for a replica that holds the group's data and goes on receiving it.
func healthyCopy(s *scope, site string) bool {
	f := s.facts.Sites[site]
	return s.provisioned[site] && !replaced(s, site) && f.MysqlUp && f.Following && !f.Diverged && !f.Cloning && s.busy[site] == ""
}

// replacedBy is the record of the failover that took a site's role away; nil if it had none, or was active again later.
func replacedBy(group *v1alpha1.MysqlFailoverGroup, site string) *v1alpha1.FailoverRecord {
	for i, record := range group.Status.Failovers {
		if record.To == site {
			return nil
		}
		if record.From == site {
			return &group.Status.Failovers[i]
		}
	}
	return nil
}

// serves is true if the pod of the site's Deployment is ready and its MySQL answers, whatever its part in the group.
func serves(s *scope, name string) bool {
	pod, f := s.pods[name], s.facts.Sites[name]
	return pod != nil && pod.DeletionTimestamp == nil && podReady(pod) && s.known && f.MysqlUp &&
		pod.Annotations[v1alpha1.AnnotationSpecHash] == specHash(s.deployments[name]) && f.PodUID == string(pod.UID)
}

// settled is true if the pod of the site's Deployment is ready and does its part. The facts must be those of this very
// pod: those of its predecessor may be two seconds old and all well.
func settled(s *scope, name string) bool {
	f := s.facts.Sites[name]
	switch {
	case !serves(s, name):
		return false
	case s.activeSite() == "":
		// There is nothing to follow yet.
		return true
	case name == s.activeSite():
		return s.facts.Open && s.facts.ActiveSite == name
	}
	return s.provisioned[name] && f.Following
}

// beingReplaced is true from when a site's Deployment was changed, or its pod deleted, until the new pod does its part,
// for as long as such a replacement usually takes. After that the site has failed, and the others must not wait for it:
// one of them may need the update in order to take over.
func beingReplaced(s *scope, site string) bool {
	d, pod := s.deployments[site], s.pods[site]
	if d == nil || settled(s, site) {
		return false
	}
	if pod == nil || pod.DeletionTimestamp != nil || pod.Annotations[v1alpha1.AnnotationSpecHash] != specHash(d) {
		return s.now.Sub(unavailableSince(d, s.now)) < brokenAfter
	}
	return s.now.Sub(pod.CreationTimestamp.Time) < brokenAfter
}

// podReady is true for a pod that is ready.
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

// specHash names the template of a Deployment.
func specHash(d *appsv1.Deployment) string { return d.Annotations[v1alpha1.AnnotationSpecHash] }

// brokenAfter is how long a pod must have been unavailable before replacing it counts as taking nothing away. It is longer than a
// restart of mysqld with a recovery of usual length.
const brokenAfter = time.Minute

// mysqlImage is the image of the MySQL container of a pod.
func mysqlImage(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == render.ContainerMySQL {
			return c.Image
		}
	}
	return ""
}

// keeps is true for a group whose data outlives it.
func keeps(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.DeletionPolicy != v1alpha1.DeletionDelete
}
