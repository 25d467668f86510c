// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// place lets a pod run where those of a site do: databases often have nodes of their own, and a cluster may have no others. It prefers
// those nodes and demands none: where they have no room beside MySQL, it runs elsewhere.
func (b Job) place(spec *corev1.PodSpec) {
	site := b.placedAs()
	// The group taints the nodes of its inactive sites, and those are the ones that are copied.
	inactive := corev1.Toleration{Key: v1alpha1.InactiveSiteTaint(b.Group.Namespace, b.Group.Name), Operator: corev1.TolerationOpExists}
	spec.Tolerations = append(slices.Clone(site.Tolerations), inactive)
	if b.Profile.Storage.Volume != nil {
		return // the volume may have a place of its own, where no site is
	}
	if near := preferred(site); len(near) > 0 {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: near}}
	}
}

// preferredMost is the greatest weight that Kubernetes takes.
const preferredMost = 100

// preferred are the nodes of a site. What keeps the pods of MySQL apart does not count here.
func preferred(site v1alpha1.Site) (near []corev1.PreferredSchedulingTerm) {
	var labels corev1.NodeSelectorTerm
	for _, key := range slices.Sorted(maps.Keys(site.NodeSelector)) {
		labels.MatchExpressions = append(labels.MatchExpressions,
			corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{site.NodeSelector[key]}})
	}
	if len(labels.MatchExpressions) > 0 {
		near = append(near, corev1.PreferredSchedulingTerm{Weight: preferredMost, Preference: labels})
	}
	if a := site.Affinity; a != nil && a.NodeAffinity != nil {
		if must := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; must != nil {
			for _, term := range must.NodeSelectorTerms {
				near = append(near, corev1.PreferredSchedulingTerm{Weight: preferredMost, Preference: *term.DeepCopy()})
			}
		}
		for _, term := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			near = append(near, *term.DeepCopy())
		}
	}
	return near
}

// placedAs is the site as whose pod the Job's is placed: the one that it works on, or else the active site, or else the first.
func (b Job) placedAs() v1alpha1.Site {
	sites := b.Group.Spec.Sites
	for _, name := range []string{b.Site.Name, b.Active, b.Group.Status.ActiveSite} {
		if at := slices.IndexFunc(sites, func(s v1alpha1.Site) bool { return s.Name == name }); at >= 0 {
			return sites[at]
		}
	}
	if len(sites) > 0 {
		return sites[0]
	}
	return v1alpha1.Site{}
}
