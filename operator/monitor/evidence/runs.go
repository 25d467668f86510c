// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// What Kubernetes shows of the incarnations of a site: its pods, the machines that they are on, and how those that are gone have ended.

// seenRuns returns the pods of a site that have a node, the oldest first.
func (c Cluster) seenRuns(ctx context.Context, pods []*corev1.Pod) []failover.SeenRun {
	var out []failover.SeenRun
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		node := c.node(ctx, pod.Spec.NodeName)
		out = append(out, failover.SeenRun{
			UID: string(pod.UID), Node: pod.Spec.NodeName, Machine: machineOf(node), Lease: leaseOf(pod), Started: hasStarted(pod),
			Ended: c.Ends.has(pod.UID) || nodeReady(node) && c.Ends.Note(pod),
		})
	}
	slices.SortFunc(out, func(a, b failover.SeenRun) int { return created(pods, a.UID).Compare(created(pods, b.UID)) })
	return out
}

func created(pods []*corev1.Pod, uid string) time.Time {
	for _, pod := range pods {
		if string(pod.UID) == uid {
			return pod.CreationTimestamp.Time
		}
	}
	return time.Time{}
}

// Nodes adds to a snapshot the nodes of all runs that may be left, and which of their pods are known to have ended. remembered holds the
// runs that status does not have yet.
func (c Cluster) Nodes(ctx context.Context, s *failover.Snapshot, remembered map[string][]failover.Run) {
	s.Nodes, s.EndedPods = map[string]failover.Node{}, map[string]bool{}
	take := func(name, uid string) {
		if _, has := s.Nodes[name]; !has && name != "" {
			if node, known := c.nodeSeen(ctx, name); known {
				s.Nodes[name] = node
			}
		}
		if uid != "" && c.Ends.has(types.UID(uid)) {
			s.EndedPods[uid] = true
		}
	}
	for _, site := range s.Sites {
		for _, p := range site.Pod.Runs {
			take(p.Node, "")
		}
		for _, of := range []map[string][]failover.Run{s.Status.Runs, remembered} {
			for _, r := range of[site.Name] {
				take(r.Node, r.UID)
			}
		}
	}
}

// nodeSeen returns false if the API server does not tell.
func (c Cluster) nodeSeen(ctx context.Context, name string) (failover.Node, bool) {
	ctx, cancel := context.WithTimeout(ctx, failover.AskTimeout)
	defer cancel()
	node := &corev1.Node{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy)
	if err != nil {
		return failover.Node{Gone: true}, apierrors.IsNotFound(err)
	}
	return failover.Node{Machine: machineOf(node), Ready: nodeReady(node), OutOfService: outOfService(node)}, true
}

// machineOf names the machine behind the name of a node. It differs for a node object that was created again and for a machine that
// took another's name, but not after a reboot.
func machineOf(node *corev1.Node) string {
	if node.UID == "" {
		return ""
	}
	return string(node.UID) + "/" + cmp.Or(node.Status.NodeInfo.SystemUUID, node.Status.NodeInfo.MachineID)
}

// hasStarted is false if no kubelet has told that the pod's sidecar ever began.
func hasStarted(pod *corev1.Pod) bool {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == v1alpha1.ContainerSidecar {
			return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
		}
	}
	return false
}

// toldEnded is true if the kubelet has told that none of the pod's containers runs or ever starts again. The garbage collector
// of pods says so too, but it knows nothing: it leaves the containers as last told.
func toldEnded(pod *corev1.Pod) bool {
	byCollector := func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	}
	runs := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	return isOver(pod) && !slices.ContainsFunc(pod.Status.Conditions, byCollector) &&
		!slices.ContainsFunc(pod.Status.InitContainerStatuses, runs) && !slices.ContainsFunc(pod.Status.ContainerStatuses, runs)
}

// EndedPods remembers pods that have ended, for longer than a look at them takes. It locks itself.
type EndedPods struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// endsKept is how many it remembers at least, endsFor how long.
const (
	endsKept = 4096
	endsFor  = time.Hour
)

func (e *EndedPods) has(uid types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, has := e.at[uid]
	return has
}

// Note remembers a pod that has ended.
func (e *EndedPods) Note(pod *corev1.Pod) bool {
	if !toldEnded(pod) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.at == nil {
		e.at = map[types.UID]time.Time{}
	}
	if len(e.at) >= endsKept {
		for uid, at := range e.at {
			if now.Sub(at) > endsFor {
				delete(e.at, uid)
			}
		}
	}
	e.at[pod.UID] = now
	return true
}
