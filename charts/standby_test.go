// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const withStandby = `
crds: {enabled: false}
replicas: 2`

func serviceNamed(t *testing.T, all []any, name string) *corev1.Service {
	t.Helper()
	for _, o := range all {
		if s, ok := o.(*corev1.Service); ok && s.Name == name {
			return s
		}
	}
	t.Fatalf("no Service %s", name)
	return nil
}

// TestOnlyTheLeaderIsAsked: what sidecars ask selects the leader if there are two operators, and every pod if there is one. The only one
// begins with the label, which it cannot give itself; of two none does. Metrics are read of both.
func TestOnlyTheLeaderIsAsked(t *testing.T) {
	for values, want := range map[string]string{`crds: {enabled: false}`: "", withStandby: v1alpha1.Leads} {
		all := objects(t, render(t, operatorChart, values))
		if got := serviceNamed(t, all, "mfg-auxiliary").Spec.Selector[v1alpha1.LabelLeader]; got != want {
			t.Errorf("%s: Service selects %s=%q, want %q", values, v1alpha1.LabelLeader, got, want)
		}
		if _, is := serviceNamed(t, all, "mfg-metrics").Spec.Selector[v1alpha1.LabelLeader]; is {
			t.Errorf("%s: metrics are read of the leader only", values)
		}
		d := only[appsv1.Deployment](t, all)
		if got := slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--hot-standby=true"); got != (want != "") {
			t.Errorf("%s: --hot-standby %t", values, got)
		}
		if got := d.Spec.Template.Labels[v1alpha1.LabelLeader] == v1alpha1.Leads; got != (want == "") {
			t.Errorf("%s: every pod begins as the leader: %t", values, got)
		}
		if _, is := d.Spec.Selector.MatchLabels[v1alpha1.LabelLeader]; is {
			t.Errorf("%s: the Deployment selects the leader only", values)
		}
		may := false
		for _, o := range all {
			if r, ok := o.(*rbacv1.Role); ok && r.Name == "mfg-operator-own" {
				may = slices.ContainsFunc(r.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Resources, "pods") && slices.Contains(r.Verbs, "patch") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "get")
				})
			}
		}
		if may != (want != "") {
			t.Errorf("%s: it may label its pods: %t", values, may)
		}
	}
}

// TestASecondReplicaCutsNobodyOff: between the upgrade to two replicas and the moment in which a second one leads, which may never come,
// sidecars still find the first one: the Service of two selects the pod of one, and the Deployment keeps that pod. On the way back the
// Service selects both, by labels that no upgrade changes.
func TestASecondReplicaCutsNobodyOff(t *testing.T) {
	one, two := objects(t, render(t, operatorChart, `crds: {enabled: false}`)), objects(t, render(t, operatorChart, withStandby))
	for name, way := range map[string]struct{ from, to []any }{"1 to 2": {one, two}, "2 to 1": {two, one}} {
		pod := labels.Set(only[appsv1.Deployment](t, way.from).Spec.Template.Labels)
		for key, value := range serviceNamed(t, way.to, "mfg-auxiliary").Spec.Selector {
			if pod[key] != value {
				t.Errorf("%s: the pods before the upgrade have %s=%q, and the Service selects %q", name, key, pod[key], value)
			}
		}
		if d := only[appsv1.Deployment](t, way.to); !labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(pod) {
			t.Errorf("%s: the Deployment leaves the pods before the upgrade alone: %v", name, d.Spec.Selector)
		}
	}
}

func TestReplicasKeepApart(t *testing.T) {
	all := objects(t, render(t, operatorChart, withStandby))
	pod := only[appsv1.Deployment](t, all).Spec
	anti := pod.Template.Spec.Affinity.PodAntiAffinity
	if r := anti.RequiredDuringSchedulingIgnoredDuringExecution; len(r) != 1 || r[0].TopologyKey != corev1.LabelHostname || len(r[0].LabelSelector.MatchLabels) != 2 {
		t.Errorf("two replicas may share a node: %+v", r)
	} else if !slices.Equal(r[0].MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey}) {
		t.Errorf("an update waits for ever for a node that is free, since the old one stays until the new one runs: %+v", r)
	}
	if len(anti.PreferredDuringSchedulingIgnoredDuringExecution) != 3 || len(pod.Template.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("neither sites nor zones are kept apart: %+v", pod.Template.Spec)
	}
	if s := pod.Strategy; s.Type != appsv1.RollingUpdateDeploymentStrategyType || s.RollingUpdate.MaxSurge.IntValue() != 0 {
		t.Errorf("strategy %+v: a third pod would have no node to go to", s)
	}
	budget := only[policyv1.PodDisruptionBudget](t, all)
	if budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("budget %+v", budget.Spec)
	}
	one := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, withStandby+"\nreplicasApart: false")))
	if a := one.Spec.Template.Spec.Affinity.PodAntiAffinity; len(a.RequiredDuringSchedulingIgnoredDuringExecution) != 0 || len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 3 {
		t.Errorf("replicasApart=false: %+v", a)
	}
	mine := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, withStandby+"\naffinity: {podAntiAffinity: {}}")))
	if a := mine.Spec.Template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 0 {
		t.Errorf("what the values say of pods does not win: %+v", a)
	}
	single := objects(t, render(t, operatorChart, `crds: {enabled: false}`))
	if s := only[appsv1.Deployment](t, single).Spec; s.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *s.Replicas != 1 {
		t.Errorf("one operator: %+v", s.Strategy)
	}
	for _, o := range single {
		if _, is := o.(*policyv1.PodDisruptionBudget); is {
			t.Error("a budget for the only operator holds drains up")
		}
	}
}
