// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// telling maps the reasons of a waiting container that need a person's action to the reason that is shown. Some of them
// alternate.
var telling = map[string]string{
	"ErrImagePull": "ImagePullBackOff", "ImagePullBackOff": "ImagePullBackOff", "InvalidImageName": "InvalidImageName",
	"ErrImageNeverPull": "ErrImageNeverPull", "CrashLoopBackOff": "CrashLoopBackOff", "RunContainerError": "RunContainerError",
	"CreateContainerConfigError": "CreateContainerConfigError", "CreateContainerError": "CreateContainerError",
}

// crashLoop is after how many restarts a container counts as one that does not start.
const crashLoop = 3

// PodTrouble says what keeps a pod from running and a person should know; empty if nothing is known.
func PodTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "its pod cannot be scheduled: " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		why := ""
		switch {
		case c.State.Waiting != nil:
			why = telling[c.State.Waiting.Reason]
		case !c.Ready && c.RestartCount >= crashLoop:
			// Between two waits the container runs for a moment.
			why = "CrashLoopBackOff"
		}
		if why != "" {
			return "container " + c.Name + " of image " + c.Image + ": " + why
		}
	}
	return ""
}
