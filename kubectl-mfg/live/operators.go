// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// ErrNoPod means that no pod of the operator runs: it is certain that none leads.
var ErrNoPod = errors.New("no pod of the operator runs")

// Operators returns the pods of the operator that run, at least one, the most promising first: the one that leads and is ready, those
// that are ready, the rest. A pod on a node that is lost runs on for the API server, but is not ready.
func Operators(all []corev1.Pod) ([]corev1.Pod, error) {
	running := slices.DeleteFunc(slices.Clone(all), func(pod corev1.Pod) bool { return !pods.Runs(pod) })
	if len(running) == 0 {
		return nil, ErrNoPod
	}
	slices.SortStableFunc(running, func(a, b corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	return running, nil
}

func rank(pod corev1.Pod) int {
	switch ready := pods.Ready(pod); {
	case ready && pod.Labels[v1alpha1.LabelLeader] == v1alpha1.Leads:
		return 0
	case ready:
		return 1
	default:
		return 2
	}
}
