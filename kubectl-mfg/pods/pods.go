// SPDX-License-Identifier: Apache-2.0

// Package pods finds the pods of a group, and says what runs in them.
package pods

import (
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Selector finds the pods of a group, or of one site.
func Selector(group, site string) string {
	set := labels.Set{v1alpha1.LabelGroup: group, v1alpha1.LabelName: v1alpha1.NameMySQL}
	if site != "" {
		set[v1alpha1.LabelSite] = site
	}
	return set.String()
}

// Runs is true for a pod that is up, as far as the API server knows, and not about to go.
func Runs(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// Ready is true for a pod that passes its probes, on a node that reports.
func Ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Where MySQL runs in a pod, and where its socket is there.
const (
	ContainerMySQL = "mysql"
	MysqlSocket    = "/run/mfg/mysqld.sock"
)

// Execution is a command in a container.
type Execution struct {
	Namespace, Pod, Container string
	Command                   []string
	In                        io.Reader
	Out, ErrOut               io.Writer
	TTY                       bool
	Resize                    remotecommand.TerminalSizeQueue
}
