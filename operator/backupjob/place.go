// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// place puts a pod where those of a site may run: databases often have nodes of their own, which let in nothing else. The pod gets no priority,
// and takes no room from others.
func (b Job) place(spec *corev1.PodSpec) {
	site := b.placedAs()
	// The group taints the nodes of its inactive sites, and those are the ones that are copied.
	inactive := corev1.Toleration{Key: v1alpha1.InactiveSiteTaint(b.Group.Namespace, b.Group.Name), Operator: corev1.TolerationOpExists}
	spec.Tolerations = append(slices.Clone(site.Tolerations), inactive)
	if b.Profile.Storage.Volume != nil {
		return // the volume may have a place of its own, where no site is
	}
	spec.NodeSelector = maps.Clone(site.NodeSelector)
	// What keeps the pods of MySQL apart does not count here.
	if a := site.Affinity; a != nil && a.NodeAffinity != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity.DeepCopy()}
	}
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
