// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestWhatTellsThatAPodHasEndedI1: its kubelet, and nobody else who writes its phase.
func TestWhatTellsThatAPodHasEndedI1(t *testing.T) {
	status := func(s corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: v1alpha1.ContainerSidecar, State: s}}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	collected := []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
	evicted := []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"deleted, told by its kubelet":     {corev1.PodStatus{Phase: corev1.PodSucceeded, InitContainerStatuses: status(ended), ContainerStatuses: status(ended)}, true},
		"evicted":                          {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: evicted, InitContainerStatuses: status(ended)}, true},
		"deleted by force":                 {corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: status(runs)}, false},
		"all ended, and may begin again":   {corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: status(ended)}, false},
		"the sidecar was told to run last": {corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: status(runs)}, false},
		"mysqld was told to run last":      {corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: status(ended), ContainerStatuses: status(runs)}, false},
		"collected":                        {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: collected, InitContainerStatuses: status(ended)}, false},
	} {
		var e EndedPods
		if e.Note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}, Status: tc.status}); e.has("p") != tc.want {
			t.Errorf("I1: %s: ended %t", name, e.has("p"))
		}
	}
	var e EndedPods
	for i := range 3 * endsKept {
		e.Note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}, Status: corev1.PodStatus{Phase: corev1.PodFailed}})
		for uid := range e.at {
			if i%endsKept == 0 {
				e.at[uid] = time.Now().Add(-2 * endsFor)
			}
		}
	}
	if len(e.at) > 2*endsKept {
		t.Errorf("%d pods are remembered", len(e.at))
	}
}

// TestWhatIsSeenOfMachinesI1: a name may lead to another machine by now, and a node that cannot be asked for is not one that is gone.
func TestWhatIsSeenOfMachinesI1(t *testing.T) {
	node := func(name, uid, system string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: system, MachineID: "image"},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		node("n1", "u1", "s1", corev1.ConditionTrue), node("n2", "u2", "", corev1.ConditionUnknown, corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}),
	).Build()
	pod := func(uid, on string, age time.Duration, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Spec: corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{Phase: phase}}
	}
	begun := pod("begun", "n1", time.Minute, corev1.PodRunning)
	begun.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerSidecar, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	seen := c.seenRuns(t.Context(), []*corev1.Pod{pod("waits", "", 0, corev1.PodPending), pod("new", "n1", 0, corev1.PodFailed), begun, pod("old", "n2", time.Hour, corev1.PodFailed)})
	want := []failover.SeenRun{{UID: "old", Node: "n2", Machine: "u2/image"}, {UID: "begun", Node: "n1", Machine: "u1/s1", Started: true}, {UID: "new", Node: "n1", Machine: "u1/s1", Ended: true}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("I1: pods (-want +got):\n%s", diff)
	}
	remembered := map[string][]failover.Run{"east": {{UID: "new", Node: "n3"}}}
	s := failover.Snapshot{Sites: []failover.Site{{Name: "east", Pod: failover.Pod{Runs: seen[1:]}}}, Status: failover.Durable{Runs: map[string][]failover.Run{"east": {{UID: "gone", Node: "n2"}}}}}
	c.Nodes(t.Context(), &s, remembered)
	nodes := map[string]failover.Node{"n1": {Machine: "u1/s1", Ready: true}, "n2": {Machine: "u2/image", OutOfService: true}, "n3": {Gone: true}}
	if diff := cmp.Diff(nodes, s.Nodes); diff != "" {
		t.Errorf("I1: nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"new": true}, s.EndedPods); diff != "" {
		t.Errorf("I1: ended (-want +got):\n%s", diff)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	c.Client = noNodes{c.Client}
	if node, known := c.nodeSeen(canceled, "n1"); known {
		t.Errorf("I1: a node that cannot be asked for counts as %+v", node)
	}
}

// noNodes cannot be asked.
type noNodes struct{ client.Reader }

func (noNodes) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.Canceled
}
