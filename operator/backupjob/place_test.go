// SPDX-License-Identifier: Apache-2.0

package backupjob_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backupjob"
	"github.com/mysql-mfg/mfg/operator/render"
)

// onNodesOfItsOwn is a site whose nodes let in nothing else.
func onNodesOfItsOwn(name string) v1alpha1.Site {
	return v1alpha1.Site{
		Name: name, NodeSelector: map[string]string{"pool": name},
		Tolerations: []corev1.Toleration{{Key: "only-for", Value: name, Effect: corev1.TaintEffectNoSchedule}},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk-of", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
			}}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}},
		},
	}
}

// TestAPodIsPlacedWhereItsSiteIs: where every node is tainted, a pod that tolerates nothing never starts.
func TestAPodIsPlacedWhereItsSiteIs(t *testing.T) {
	made, verified := backupjob.Job.Make, backupjob.Job.Verify
	removed, swept := backupjob.Job.Delete, backupjob.Job.Sweep
	for name, tc := range map[string]struct {
		job                  func(backupjob.Job) *batchv1.Job
		site, active, status string
		want                 string
	}{
		"where the site is that is copied":       {made, "rome", "paris", "paris", "rome"},
		"where the site is that is asked":        {verified, "rome", "", "paris", "rome"},
		"a site that has left the specification": {verified, "gone", "", "rome", "rome"},
		"a removal, where the active site is":    {removed, "", "", "rome", "rome"},
		"a removal without an active site":       {removed, "", "", "", "paris"},
		"a sweep, where the active site is":      {swept, "", "", "rome", "rome"},
	} {
		job := backupJob(func(b *backupjob.Job) {
			b.Group.Spec.Sites = []v1alpha1.Site{onNodesOfItsOwn("paris"), onNodesOfItsOwn("rome")}
			b.Group.Spec.PriorityClassName = "databases"
			b.Site, b.Active, b.Group.Status.ActiveSite = v1alpha1.Site{Name: tc.site}, tc.active, tc.status
		})
		pod, site := tc.job(job).Spec.Template.Spec, onNodesOfItsOwn(tc.want)
		// It prefers the nodes of the site and demands none: a pod that ran elsewhere before must still find a place.
		near := func(label string) corev1.PreferredSchedulingTerm {
			return corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{tc.want}}}}}
		}
		want := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{near("pool"), near("disk-of")}}}
		if diff := cmp.Diff(want, pod.Affinity); diff != "" || pod.NodeSelector != nil {
			t.Errorf("%s: demands %v, affinity -want +got:\n%s", name, pod.NodeSelector, diff)
		}
		// With the taint of the group itself, as the pods of the site have it.
		mysql := render.Deployment(render.Input{Group: job.Group}, site).Spec.Template.Spec
		if diff := cmp.Diff(mysql.Tolerations, pod.Tolerations); diff != "" {
			t.Errorf("%s: tolerations -want +got:\n%s", name, diff)
		}
		if pod.PriorityClassName != "" {
			t.Errorf("%s: a backup drives out others", name)
		}
	}
}

// A volume that holds backups may be where no site is: it says itself which nodes reach it.
func TestAPodGoesWhereItsVolumeIs(t *testing.T) {
	pod := backupJob(func(b *backupjob.Job) {
		b.Group.Spec.Sites = []v1alpha1.Site{onNodesOfItsOwn("paris")}
		b.Profile.Storage = v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "nfs"}}
	}).Make().Spec.Template.Spec
	if pod.NodeSelector != nil || pod.Affinity != nil || len(pod.Tolerations) != 2 {
		t.Errorf("%+v", pod)
	}
}

// Without any sites, as of a group that was written by hand, it is placed anywhere.
func TestAPodOfAGroupWithoutSites(t *testing.T) {
	pod := backupJob(func(b *backupjob.Job) { b.Group.Spec.Sites = nil }).Delete().Spec.Template.Spec
	if pod.NodeSelector != nil || pod.Affinity != nil || len(pod.Tolerations) != 1 {
		t.Errorf("%+v", pod)
	}
}
