// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestWhatATaintProvesI1: a person taints the node that is down. The volume may be on another one by then, and status says so
// only later.
func TestWhatATaintProvesI1(t *testing.T) {
	const down, up, off = "node-1", "node-2", "node-3"
	pod := func(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: node}}
		p.Status.PodIP = "10.0.0.1"
		for _, c := range change {
			c(p)
		}
		return p
	}
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	begins := func(p *corev1.Pod) { p.Status.PodIP = "" }
	newer := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Now() }
	locked := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerBootstrap,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	}
	node := func(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		recorded        string
		pods            []*corev1.Pod
		proof, unplaced bool
	}{
		"its pod is there":                      {down, []*corev1.Pod{pod("a", down)}, true, false},
		"no pod is left":                        {down, nil, true, false},
		"its next pod waits for a node":         {down, []*corev1.Pod{pod("b", ""), pod("a", down)}, true, false},
		"its next pod is on another node":       {down, []*corev1.Pod{pod("b", up), pod("a", down)}, false, false},
		"it moved before status knew":           {down, []*corev1.Pod{pod("b", up)}, false, false},
		"its next pod has no address yet":       {down, []*corev1.Pod{pod("b", up, begins), pod("a", down)}, true, false},
		"an older one has ended on another":     {down, []*corev1.Pod{pod("a", down), pod("old", up, over)}, true, false},
		"an older one may run on another":       {down, []*corev1.Pod{pod("a", down, newer), pod("old", up)}, false, false},
		"a lock on another machine is no proof": {down, []*corev1.Pod{pod("a", down, newer, locked), pod("old", off, over)}, false, false},
		"a newer one is where nobody sees it":   {down, []*corev1.Pod{pod("b", off, newer, over), pod("a", down, locked)}, false, false},
		"it waits on a node, and never ran":     {"", []*corev1.Pod{pod("a", up, begins)}, false, false},
		"it is on a node that is up":            {up, []*corev1.Pod{pod("a", up)}, false, false},
		"it never was on a node":                {"", []*corev1.Pod{pod("a", "")}, false, true},
		"it never was on a node, has no pod":    {"", nil, false, true},
		"it is on a node that status knows not": {"", []*corev1.Pod{pod("b", ""), pod("a", up)}, false, false},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.m.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects([]client.Object{
			node(down, corev1.ConditionUnknown, corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}), node(up, corev1.ConditionTrue),
			node(off, corev1.ConditionUnknown),
		}...).Build()
		group := &v1alpha1.MysqlFailoverGroup{Status: v1alpha1.MysqlFailoverGroupStatus{Sites: []v1alpha1.SiteStatus{{Name: "east", Node: tc.recorded}}}}
		got := l.evidence(t.Context(), group, "east", tc.pods)
		if got.OutOfService != tc.proof || got.Unplaced != tc.unplaced {
			t.Errorf("I1, I4: %s: cannot run: %t, never ran: %t", name, got.OutOfService, got.Unplaced)
		}
	}
}
