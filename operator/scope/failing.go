// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/operator/render"
)

// LookAtNodes notes the nodes of the pods that are not ready. A node that cannot be read is left out, and proves nothing.
func LookAtNodes(ctx context.Context, s *Scope, c client.Reader) {
	s.Nodes = map[string]*corev1.Node{}
	for _, pod := range s.Pods {
		name := pod.Spec.NodeName
		if name == "" || PodReady(pod) || s.Nodes[name] != nil {
			continue
		}
		node := &corev1.Node{}
		if c.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy) == nil {
			s.Nodes[name] = node
		}
	}
}

// MayServe says why a site that does not answer the operator may serve all the same, where only the operator cannot reach it; empty if
// the site's own node reports that it does not. A site behind a partition serves for as long as a peer vouches for it, and Kubernetes
// calls its pod not ready because the node is silent, not because MySQL is (I30).
func MayServe(s *Scope, name string) string {
	pod := s.Pods[name]
	if pod == nil || pod.Spec.NodeName == "" {
		return "" // nothing of it ever ran, or Kubernetes ends what runs, whatever is written here
	}
	if PodReady(pod) {
		return "its pod is ready"
	}
	node := s.Nodes[pod.Spec.NodeName]
	if node == nil {
		return fmt.Sprintf("node %s is not known, so it is not known whether MySQL runs there", pod.Spec.NodeName)
	}
	since, ready := readySince(node)
	if !ready {
		return fmt.Sprintf("node %s is not Ready, so it is not known whether MySQL runs there", node.Name)
	}
	if s.Now.Sub(since) < BrokenAfter {
		// What is known of the pod may be from before the node was silent.
		return fmt.Sprintf("node %s was not Ready until now, and has yet to report on its pods", node.Name)
	}
	switch c := mysqlStatus(pod); {
	case c.State.Running == nil:
		return "" // it cannot open again without an answer of the operator (I3)
	case c.Ready:
		return fmt.Sprintf("MySQL is ready as node %s reports it", node.Name)
	case !s.Facts.Sites[name].Reachable:
		return fmt.Sprintf("its container runs as node %s reports it, and the operator reaches neither MySQL nor the sidecar", node.Name)
	}
	return ""
}

// mysqlStatus is what the kubelet last reported of the MySQL container, and nobody else writes; empty if it reported nothing yet. The
// condition Ready of the pod is no such report: Kubernetes sets it to False when the node falls silent.
func mysqlStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == render.ContainerMySQL {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// readySince returns since when a node has been Ready; false if it is not.
func readySince(node *corev1.Node) (time.Time, bool) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
