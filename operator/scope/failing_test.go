// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// I30: only what the site's own node reports shows that a site which the operator does not reach does not serve either.
func TestMayServeI30(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	node := func(status corev1.ConditionStatus, since time.Duration) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, // before, so that it is not taken for the other
			{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))},
		}}}
	}
	// The node controller takes only this condition back when a node falls silent.
	pod := func(mysql ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
			ContainerStatuses: append([]corev1.ContainerStatus{{Name: "other", Ready: true}}, mysql...),
		}}
	}
	ready := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	up := pod(corev1.ContainerStatus{Name: "mysql", Ready: true, State: running})
	stuck := pod(corev1.ContainerStatus{Name: "mysql", State: running})
	crashing := pod(corev1.ContainerStatus{Name: "mysql", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}})
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		node    *corev1.Node
		sidecar bool
		says    string
	}{
		"no pod":                           {nil, nil, false, ""},
		"on no node":                       {&corev1.Pod{}, nil, false, ""},
		"its pod is ready again":           {&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: ready}, nil, false, "its pod is ready"},
		"the node is silent":               {up, node(corev1.ConditionUnknown, time.Hour), false, "node n is not Ready"},
		"the node says that it is unwell":  {crashing, node(corev1.ConditionFalse, time.Hour), false, "node n is not Ready"},
		"the node is gone":                 {crashing, nil, false, "node n is not known"},
		"the node has just come back":      {crashing, node(corev1.ConditionTrue, BrokenAfter-time.Second), true, "until now"},
		"ready, and not reached":           {up, node(corev1.ConditionTrue, BrokenAfter), false, "is ready"},
		"ready, and only the sidecar says": {up, node(corev1.ConditionTrue, BrokenAfter), true, "is ready"},
		"runs, and not reached":            {stuck, node(corev1.ConditionTrue, BrokenAfter), false, "neither MySQL nor the sidecar"},
		"runs, and the sidecar answers":    {stuck, node(corev1.ConditionTrue, BrokenAfter), true, ""},
		"crashes":                          {crashing, node(corev1.ConditionTrue, BrokenAfter), false, ""},
		"never began":                      {pod(), node(corev1.ConditionTrue, BrokenAfter), false, ""},
	} {
		s := &Scope{Now: now, Pods: map[string]*corev1.Pod{}, Nodes: map[string]*corev1.Node{}, Facts: GroupFacts{Sites: map[string]SiteFacts{"a": {Reachable: tc.sidecar}}}}
		if tc.pod != nil {
			s.Pods["a"] = tc.pod
		}
		if tc.node != nil {
			s.Nodes["n"] = tc.node
		}
		if got := MayServe(s, "a"); (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
