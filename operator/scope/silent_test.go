// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

func TestEndsAtOnce(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	for name, tt := range map[string]struct {
		status corev1.ContainerStatus
		want   bool
	}{
		"runs":              {corev1.ContainerStatus{Name: render.ContainerMySQL}, false},
		"was killed":        {corev1.ContainerStatus{Name: render.ContainerMySQL, LastTerminationState: ended(137)}, false},
		"ended":             {corev1.ContainerStatus{Name: render.ContainerMySQL, State: ended(0)}, false},
		"gave up":           {corev1.ContainerStatus{Name: render.ContainerMySQL, State: ended(1)}, true},
		"gave up before":    {corev1.ContainerStatus{Name: render.ContainerMySQL, LastTerminationState: ended(1)}, true},
		"another container": {corev1.ContainerStatus{Name: "other", State: ended(1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endsAtOnce(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tt.status}}}); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// I14: the clock of the operator may be ahead of that of the API server. What a pod says counts only once this process itself has seen it
// for so long, whatever the age of the pod seems to be.
func TestSilenceIsMeasuredByOneClockI14(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var all Silences
	group := types.NamespacedName{Namespace: "shop", Name: "orders"}
	type at struct {
		after    time.Duration
		pod      types.UID
		ready    bool
		answers  bool
		runs     bool
		unknown  bool
		forgets  bool
		isSilent bool
	}
	for i, step := range []at{
		{after: 0, pod: "one"},
		{after: LostAfter - 1, pod: "one"},
		{after: LostAfter, pod: "one", unknown: true},
		{after: LostAfter, pod: "one", isSilent: true},
		{after: LostAfter, pod: "two"},
		{after: 2 * LostAfter, pod: "two", isSilent: true},
		{after: 2 * LostAfter, pod: "two", ready: true},
		{after: 3 * LostAfter, pod: "two"},
		{after: 4 * LostAfter, pod: "two", answers: true},
		{after: 4 * LostAfter, pod: "two"},
		{after: 5 * LostAfter, pod: "two", runs: true},
		{after: 5 * LostAfter, pod: "two"},
		{after: 6 * LostAfter, pod: "two", isSilent: true},
		{after: 6 * LostAfter, pod: "two", forgets: true},
		{after: 7 * LostAfter, pod: "two", isSilent: true},
	} {
		if step.forgets {
			(&all).forget(types.NamespacedName{Namespace: "shop", Name: "another"})
			(&all).forget(group)
		}
		ready, hash := corev1.ConditionFalse, map[string]string{v1alpha1.AnnotationSpecHash: "h"}
		if step.ready {
			ready = corev1.ConditionTrue
		}
		mysqld := corev1.ContainerStatus{Name: render.ContainerMySQL}
		if !step.runs {
			mysqld.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: SupervisorGaveUp}
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: step.pod, Annotations: hash, CreationTimestamp: metav1.NewTime(now.Add(-LostAfter))},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}, ContainerStatuses: []corev1.ContainerStatus{mysqld}},
		}
		s := &Scope{
			Key: group, Now: now.Add(step.after), Known: !step.unknown, Pods: map[string]*corev1.Pod{"c": pod},
			Deployments: map[string]*appsv1.Deployment{"c": {ObjectMeta: metav1.ObjectMeta{Annotations: hash}}},
			Facts:       GroupFacts{Sites: map[string]SiteFacts{"c": {MysqlUp: step.answers}}},
		}
		s.SilentFor = all.Look(s)
		if got := Silent(s, "c"); got != step.isSilent {
			t.Errorf("I14: step %d: silent %t for %s", i, got, s.SilentFor["c"])
		}
	}
}
