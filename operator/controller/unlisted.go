// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// unlisted are the sites of the specification that no other one is told of: they came to a group with data and have none yet. Such a
// site can keep nobody's lease, so no failover waits for it (I4, decision 0019). The others are told of it only after status, as it
// was read live at the beginning, has stopped to say so.
func unlisted(group *v1alpha1.MysqlFailoverGroup, pods []corev1.Pod) map[string]bool {
	known := map[string]v1alpha1.SiteStatus{}
	for _, site := range group.Status.Sites {
		known[site.Name] = site
	}
	out := map[string]bool{}
	for _, site := range group.Spec.Sites {
		status := known[site.Name]
		isNew := !status.Provisioned && status.VolumeID == "" && everyListSeen(group, site.Name, known, pods)
		// Also where status says so: one that was restored or edited may have forgotten that there are such pods.
		out[site.Name] = (status.Unlisted || isNew) && !isListed(group, site.Name, pods)
	}
	return out
}

// everyListSeen is true if each other site with data has a pod, and there is one: which sites it was told of is known then. In doubt a
// site counts as listed.
func everyListSeen(group *v1alpha1.MysqlFailoverGroup, site string, known map[string]v1alpha1.SiteStatus, pods []corev1.Pod) bool {
	withData := 0
	for _, other := range group.Spec.Sites {
		if other.Name == site || !known[other.Name].Provisioned {
			continue
		}
		withData++
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Labels[v1alpha1.LabelSite] == other.Name }) {
			return false
		}
	}
	return withData > 0
}

// isListed is true if a pod was started with the site as a peer.
func isListed(group *v1alpha1.MysqlFailoverGroup, site string, pods []corev1.Pod) bool {
	peer := render.PeerAddr(group.Namespace, group.Name, site)
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return slices.Contains(v1alpha1.Peers(&pod), peer) })
}
