// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// What a group adds to its pods reaches the pods, and neither the Deployment nor what selects them.
func TestWhatAGroupAddsToItsPods(t *testing.T) {
	plain := input()
	in := input(func(in *render.Input) {
		spec := &in.Group.Spec
		spec.PriorityClassName = "databases"
		spec.PodLabels = map[string]string{"team": "payments"}
		spec.PodAnnotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
		spec.TopologySpreadConstraints = []v1alpha1.TopologySpread{
			{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule},
			{TopologyKey: corev1.LabelHostname, MaxSkew: 2, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}
	})
	site := in.Group.Spec.Sites[0]
	d, before := render.Deployment(in, site), render.Deployment(plain, site)
	template := d.Spec.Template
	if template.Spec.PriorityClassName != "databases" || template.Labels["team"] != "payments" ||
		template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false" {
		t.Errorf("priority class %q, labels %v, annotations %v", template.Spec.PriorityClassName, template.Labels, template.Annotations)
	}
	if _, is := d.Labels["team"]; is {
		t.Error("the label is on the Deployment")
	}
	if diff := cmp.Diff(before.Spec.Selector, d.Spec.Selector); diff != "" {
		t.Errorf("a selector cannot change (-want +got):\n%s", diff)
	}
	pods := &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: in.Group.Name}}
	if diff := cmp.Diff([]corev1.TopologySpreadConstraint{
		{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: pods},
		{TopologyKey: corev1.LabelHostname, MaxSkew: 2, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: pods},
	}, template.Spec.TopologySpreadConstraints); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	if d.Annotations[v1alpha1.AnnotationSpecHash] == before.Annotations[v1alpha1.AnnotationSpecHash] {
		t.Error("the pod would not be replaced")
	}
}

// Even where admission lets such keys through: what Services, policies and the operator select by stays, and what the operator gives later.
func TestNothingIsPutOverWhatPodsAreFoundBy(t *testing.T) {
	site := input().Group.Spec.Sites[0]
	plain := render.Deployment(input(), site).Spec.Template
	labels, annotations := maps.Clone(plain.Labels), maps.Clone(plain.Annotations)
	for key := range labels {
		labels[key] = "evil"
	}
	for key := range annotations {
		annotations[key] = "evil"
	}
	labels[v1alpha1.LabelRole], labels["x."+v1alpha1.Domain+"/y"], annotations[v1alpha1.AnnotationAuthority] = "primary", "evil", "evil"
	got := render.Deployment(input(func(in *render.Input) { in.Group.Spec.PodLabels, in.Group.Spec.PodAnnotations = labels, annotations }), site).Spec.Template
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A platform that assigns users refuses pods that name one; all else of their confinement stays.
func TestThePlatformMayAssignUsers(t *testing.T) {
	assigned := func(in *render.Input) { in.Install.PlatformAssignsIDs = true }
	pods := func(options ...option) map[string]corev1.PodSpec {
		in := input(append(options, cache(v1alpha1.CacheValkey))...)
		return map[string]corev1.PodSpec{"mysql": pod(in), "cache": render.CacheStatefulSet(in, in.Group.Spec.Sites[0]).Spec.Template.Spec}
	}
	for name, spec := range pods() {
		if s := spec.SecurityContext; s.RunAsUser == nil || *s.RunAsUser != 999 || s.RunAsGroup == nil || s.FSGroup == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for name, spec := range pods(assigned) {
		if s := spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil {
			t.Errorf("%s names a user or a group: %+v", name, s)
		}
		for _, c := range containers(spec) {
			if s := c.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil {
				t.Errorf("container %s of %s names a user or a group", c.Name, name)
			}
		}
		restricted(t, spec)
	}
}
