// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// leaving says why a site is about to go, or "".
func (l *loop) leaving(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	if node := l.node(ctx, pods[0].Spec.NodeName); node.Spec.Unschedulable {
		return "node " + node.Name + " is cordoned"
	}
	if pods[0].DeletionTimestamp != nil {
		return "pod " + pods[0].Name + " is being deleted"
	}
	if reason, wanted := l.m.LongWork.Leaving(group.Namespace, group.Name, site); wanted {
		return reason
	}
	return ""
}

// podsOf returns the pods of each site: the one that holds the data volume first, then one that is not going away, then
// the newest. A pod that is being deleted holds the volume until its containers have ended; its successor waits for that.
func (l *loop) podsOf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string][]*corev1.Pod {
	var list corev1.PodList
	// By an index and without a copy: this is asked several times a pass, for every group. Nobody changes what comes back.
	err := l.m.Client.List(ctx, &list, client.InNamespace(group.Namespace), client.MatchingFields{v1alpha1.IndexGroup: group.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		l.log.Error("list pods", "error", err)
	}
	all := map[string][]*corev1.Pod{}
	for i := range list.Items {
		site := list.Items[i].Labels[v1alpha1.LabelSite]
		all[site] = append(all[site], &list.Items[i])
	}
	for _, pods := range all {
		slices.SortFunc(pods, newestFirst)
	}
	return all
}

// pods returns the newest pod of each site.
func (l *loop) pods(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string]*corev1.Pod {
	newest := map[string]*corev1.Pod{}
	for site, pods := range l.podsOf(ctx, group) {
		newest[site] = pods[0]
	}
	return newest
}

func newestFirst(a, b *corev1.Pod) int {
	if holdsVolume(a) != holdsVolume(b) {
		if holdsVolume(a) {
			return -1
		}
		return 1
	}
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		if a.DeletionTimestamp == nil {
			return -1
		}
		return 1
	}
	return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
}

// evidence is what Kubernetes proves about a site. A NotReady node, a vanished pod object or an old status prove nothing,
// and neither does a pod that never came so far that it held the volume: one before it may still run.
func (l *loop) evidence(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pods []*corev1.Pod) failover.Pod {
	out := failover.Pod{Exists: len(pods) > 0}
	for _, known := range group.Status.Sites {
		if known.Name == site {
			out.Node = known.Node
		}
	}
	if len(pods) > 0 {
		out.Name, out.UID, out.Lease = pods[0].Name, string(pods[0].UID), leaseOf(pods[0])
		if out.Node == "" {
			out.Node = pods[0].Spec.NodeName
		}
	}
	out.Runs = l.seenRuns(ctx, pods)
	out.Ended = len(pods) == 1 && ended(pods[0]) && nodeReady(l.node(ctx, pods[0].Spec.NodeName))
	// The volume may be on another node by now, before status says so: a pod there is as good as the site itself (I1).
	out.OutOfService = outOfService(l.node(ctx, out.Node)) && !l.runsElsewhere(pods, out.Node)
	out.Unplaced = out.Node == "" && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	return out
}

// runsElsewhere is true if a pod of a site on another node than that one may have been spoken to, as it must be before it opens or
// vouches. A pod without an address was not; one that ended did, told by the kubelet of a Ready node (seenRuns notes it). The lock of a
// later pod proves nothing of one on another machine.
func (l *loop) runsElsewhere(pods []*corev1.Pod, than string) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.Spec.NodeName != than && pod.Status.PodIP != "" && !l.m.ends.has(pod.UID)
	})
}

// node returns a node. One that cannot be had is empty: it is neither Ready nor tainted, so nothing is proven by it.
func (l *loop) node(ctx context.Context, name string) *corev1.Node {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	node := &corev1.Node{}
	// Without a copy, as the pods: every site's node is asked for several times a pass, and nobody changes it.
	_ = l.m.Client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy)
	return node
}

// ended is true for a pod whose containers never start again, and that had come so far that it took the volume's lock
// from every pod before it.
func ended(pod *corev1.Pod) bool { return isOver(pod) && hadTheLock(pod) }

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// hadTheLock is true for a pod whose bootstrap has ended well: it took the volume's lock, so every pod before it had ended.
func hadTheLock(pod *corev1.Pod) bool {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == v1alpha1.ContainerBootstrap {
			return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		}
	}
	return false
}

// holdsVolume is true for a pod whose sidecar runs, as far as its kubelet says: it has the lock of the data volume.
func holdsVolume(pod *corev1.Pod) bool {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == v1alpha1.ContainerSidecar {
			return c.State.Running != nil
		}
	}
	return false
}

// leaseOf is the lease and the fence's deadline that a pod's sidecar was started with.
func leaseOf(pod *corev1.Pod) time.Duration {
	var sum time.Duration
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil && (e.Name == v1alpha1.EnvLeaseTimeout || e.Name == v1alpha1.EnvFenceTimeout) {
				d, _ := time.ParseDuration(e.Value)
				sum += d
			}
		}
	}
	return sum
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func outOfService(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.OutOfServiceTaint && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return true
		}
	}
	return false
}
