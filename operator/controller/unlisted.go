// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// unlisted are the sites of the specification that no other site has as a peer: they came to a group with data and have none yet.
// Such a site can renew no lease, so no failover waits for it (I4, decision 0019). It is listed for the others only after status,
// read live at the beginning, no longer calls it unlisted.
func unlisted(group *v1alpha1.MysqlFailoverGroup, pods []corev1.Pod) map[string]bool {
	known := map[string]v1alpha1.SiteStatus{}
	for _, site := range group.Status.Sites {
		known[site.Name] = site
	}
	out := map[string]bool{}
	for _, site := range group.Spec.Sites {
		status := known[site.Name]
		isNew := !status.Provisioned && status.VolumeID == "" && everyListSeen(group, site.Name, known, pods)
		// Check this even if status says unlisted: a restored or edited status may not know that such pods exist.
		out[site.Name] = (status.Unlisted || isNew) && !isListed(group, site.Name, pods)
	}
	return out
}

// everyListSeen is true if there are other sites with data and each has a pod: then it is known which peers they have. In doubt a site
// counts as listed.
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
