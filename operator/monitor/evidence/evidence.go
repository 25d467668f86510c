// SPDX-License-Identifier: Apache-2.0

// Package evidence gathers what Kubernetes shows of the pods of a group's sites, their machines, and how pods that are gone have ended:
// what a fence proof may rest on. It only reads, and what it cannot read proves nothing.
package evidence

import (
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// LongWork says whether the controller wants the role moved away from a site, and why.
type LongWork interface {
	Leaving(namespace, group, site string) (reason string, wanted bool)
}

// Cluster reads what Kubernetes shows.
type Cluster struct {
	// Client reads from the cache.
	Client   client.Reader
	Ends     *EndedPods
	LongWork LongWork
	Log      *slog.Logger
}

// Leaving says why a site is about to go, or "".
func (c Cluster) Leaving(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	if node := c.node(ctx, pods[0].Spec.NodeName); node.Spec.Unschedulable {
		return "node " + node.Name + " is cordoned"
	}
	if pods[0].DeletionTimestamp != nil {
		return "pod " + pods[0].Name + " is being deleted"
	}
	if reason, wanted := c.LongWork.Leaving(group.Namespace, group.Name, site); wanted {
		return reason
	}
	return ""
}

// Pods returns the pods of each site: the one that holds the data volume first, then those that are not being deleted, then the newest. A pod that is
// being deleted holds the volume until its containers have ended; its successor waits for that.
func (c Cluster) Pods(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string][]*corev1.Pod {
	var list corev1.PodList
	// By an index and without a copy: every group asks this several times a pass. No caller changes the result.
	err := c.Client.List(ctx, &list, client.InNamespace(group.Namespace), client.MatchingFields{v1alpha1.IndexGroup: group.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		c.Log.Error("list pods", "error", err)
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

// Newest returns the newest pod of each site.
func (c Cluster) Newest(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string]*corev1.Pod {
	newest := map[string]*corev1.Pod{}
	for site, pods := range c.Pods(ctx, group) {
		newest[site] = pods[0]
	}
	return newest
}

func newestFirst(a, b *corev1.Pod) int {
	if HoldsVolume(a) != HoldsVolume(b) {
		if HoldsVolume(a) {
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

// Of is what Kubernetes proves about a site. A NotReady node, a vanished pod object or an old status proves nothing,
// and neither does a pod that never got to hold the volume: an earlier one may still run.
func (c Cluster) Of(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pods []*corev1.Pod) failover.Pod {
	out := failover.Pod{Exists: len(pods) > 0}
	for _, known := range group.Status.Sites {
		if known.Name == site {
			out.Node = known.Node
		}
	}
	if len(pods) > 0 {
		out.Name, out.UID, out.Lease = pods[0].Name, string(pods[0].UID), leaseOf(pods[0])
		out.Deleted, out.VolumeGoes = pods[0].DeletionTimestamp != nil, c.volumeGoes(ctx, group, site)
		if out.Node == "" {
			out.Node = pods[0].Spec.NodeName
		}
	}
	out.Runs = c.seenRuns(ctx, pods)
	out.Ended = len(pods) == 1 && ended(pods[0]) && nodeReady(c.node(ctx, pods[0].Spec.NodeName))
	// The volume may be on another node by now, before status says so: a pod there is as good as the site itself (I1).
	out.OutOfService = outOfService(c.node(ctx, out.Node)) && !c.runsElsewhere(pods, out.Node)
	out.Unplaced = out.Node == "" && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	return out
}

// runsElsewhere is true if a pod of a site on a node other than that one may have been reached, as it must be before it opens or
// vouches. A pod without an address was not, and one whose end the kubelet of a Ready node told (seenRuns notes it) runs no more. A
// later pod's lock proves nothing about a pod on another machine.
func (c Cluster) runsElsewhere(pods []*corev1.Pod, than string) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.Spec.NodeName != than && pod.Status.PodIP != "" && !c.Ends.has(pod.UID)
	})
}

// node returns a node. One that cannot be read is empty: it is neither Ready nor tainted, so it proves nothing.
func (c Cluster) node(ctx context.Context, name string) *corev1.Node {
	ctx, cancel := context.WithTimeout(ctx, failover.AskTimeout)
	defer cancel()
	node := &corev1.Node{}
	// Without a copy, like the pods: each pass reads every site's node several times, and no caller changes it.
	_ = c.Client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy)
	return node
}

// volumeGoes is true if the claim of a site's data volume is being deleted. A claim that cannot be read is not held against the site.
func (c Cluster) volumeGoes(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) bool {
	ctx, cancel := context.WithTimeout(ctx, failover.AskTimeout)
	defer cancel()
	claim, key := &corev1.PersistentVolumeClaim{}, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.DataVolumeName(group.Name, site)}
	err := c.Client.Get(ctx, key, claim, client.UnsafeDisableDeepCopy)
	return err == nil && claim.DeletionTimestamp != nil
}

// ended is true for a pod whose containers never start again, and that had taken the volume's lock after every pod
// before it.
func ended(pod *corev1.Pod) bool { return isOver(pod) && hadTheLock(pod) }

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// hadTheLock is true for a pod whose bootstrap succeeded: it took the volume's lock, so every pod before it had ended.
func hadTheLock(pod *corev1.Pod) bool {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == v1alpha1.ContainerBootstrap {
			return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		}
	}
	return false
}

// HoldsVolume is true for a pod whose sidecar runs, as far as its kubelet says: it has the lock of the data volume.
func HoldsVolume(pod *corev1.Pod) bool {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == v1alpha1.ContainerSidecar {
			return s.State.Running != nil
		}
	}
	return false
}

// leaseOf returns the lease plus the fence's deadline that a pod's sidecar was started with.
func leaseOf(pod *corev1.Pod) time.Duration {
	var sum time.Duration
	for _, s := range pod.Spec.InitContainers {
		for _, e := range s.Env {
			if s.RestartPolicy != nil && (e.Name == v1alpha1.EnvLeaseTimeout || e.Name == v1alpha1.EnvFenceTimeout) {
				d, _ := time.ParseDuration(e.Value)
				sum += d
			}
		}
	}
	return sum
}

func nodeReady(node *corev1.Node) bool {
	for _, s := range node.Status.Conditions {
		if s.Type == corev1.NodeReady {
			return s.Status == corev1.ConditionTrue
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
