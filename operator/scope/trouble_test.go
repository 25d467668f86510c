// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodTrouble(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "mysql", Image: "mysql:9.8", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"nothing yet": {waiting("ContainerCreating"), ""},
		"pulling":     {waiting("ErrImagePull"), "container mysql of image mysql:9.8: ImagePullBackOff"},
		"backing off": {waiting("ImagePullBackOff"), "container mysql of image mysql:9.8: ImagePullBackOff"},
		"crashing":    {waiting("CrashLoopBackOff"), "container mysql of image mysql:9.8: CrashLoopBackOff"},
		"crashing, and running for a moment": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "mysql", Image: "mysql:9.8", RestartCount: crashLoop, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}, "container mysql of image mysql:9.8: CrashLoopBackOff"},
		"crashed once": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", Ready: true, RestartCount: 9}}}, ""},
		"nowhere to run": {corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available",
		}}}, "its pod cannot be scheduled: 0/3 nodes are available"},
	} {
		if got := PodTrouble(&corev1.Pod{Status: tc.status}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
