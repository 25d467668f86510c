// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
