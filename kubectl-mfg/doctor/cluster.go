// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// leaseName is the Lease by which one operator leads.
const leaseName = "mfg-operator"

func leader(ctx context.Context, w World) []Finding {
	if c := w.Group.Status.Claim; c != nil && c.Lease != "" && c.Lease != w.OperatorNamespace+"/"+leaseName {
		namespace, _, _ := strings.Cut(c.Lease, "/")
		return one(Warn, wire.Remedy{Command: "kubectl mfg doctor " + w.Group.Name + " -n " + w.Group.Namespace + " --operator-namespace " + namespace},
			"another release operates the group, under the Lease %s; the operator in namespace %s leaves it alone", c.Lease, w.OperatorNamespace)
	}
	lease, err := w.Kube.CoordinationV1().Leases(w.OperatorNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	remedy := wire.Remedy{Command: "kubectl get pods -n " + w.OperatorNamespace + " -l app.kubernetes.io/name=mfg"}
	switch {
	case apierrors.IsNotFound(err):
		return one(Fail, remedy, "no Lease %s in namespace %s: no operator ever led there", leaseName, w.OperatorNamespace)
	case err != nil:
		return cannotSee(err, "get", "leases.coordination.k8s.io", w.OperatorNamespace)
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
		return one(Fail, remedy, "no operator holds the Lease %s", leaseName)
	}
	term := 15 * time.Second
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		term = time.Duration(*s) * time.Second
	}
	age := w.clock().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	if age > term {
		return one(Fail, remedy, "the Lease %s was renewed %s ago, it lasts %s: no operator leads", leaseName, age, term)
	}
	return one(OK, wire.Remedy{}, "%s leads", *lease.Spec.HolderIdentity)
}

// podsOfSites returns the group's pods by site, or why they cannot be seen.
func podsOfSites(ctx context.Context, w World) (map[string]corev1.Pod, []Finding) {
	selector := v1alpha1.LabelGroup + "=" + w.Group.Name + "," + v1alpha1.LabelName + "=" + v1alpha1.NameMySQL
	list, err := w.Kube.CoreV1().Pods(w.Group.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, cannotSee(err, "list", "pods", w.Group.Namespace)
	}
	found := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue // it has ended, and stays only to be looked at: an evicted one, or one of a node that ended
		}
		site := pod.Labels[v1alpha1.LabelSite]
		if have, is := found[site]; is && have.DeletionTimestamp == nil {
			continue // a pod that is being deleted says less than its replacement
		}
		found[site] = pod
	}
	return found, nil
}

// hosts returns the nodes of the group's pods.
func hosts(ctx context.Context, w World) (map[string]*corev1.Node, []Finding) {
	all, unseen := podsOfSites(ctx, w)
	if unseen != nil {
		return nil, unseen
	}
	found := map[string]*corev1.Node{}
	for site, pod := range all {
		if pod.Spec.NodeName == "" {
			continue
		}
		node, err := w.Kube.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, cannotSee(err, "get", "nodes", "")
		}
		found[site] = node
	}
	return found, nil
}

func nodes(ctx context.Context, w World) []Finding {
	found, unseen := hosts(ctx, w)
	if unseen != nil {
		return unseen
	}
	var out []Finding
	for _, s := range w.Group.Spec.Sites {
		node, is := found[s.Name]
		switch {
		case !is:
			out = append(out, one(Fail, wire.Remedy{Command: fmt.Sprintf("kubectl describe pods -n %s -l %s", w.Group.Namespace, v1alpha1.MySQLPods(w.Group.Name, s.Name))},
				"site %s has no pod on a node", s.Name)...)
		case !nodeReady(node):
			out = append(out, one(Fail, wire.Remedy{Command: "kubectl describe node " + node.Name}, "node %s of site %s is not Ready", node.Name, s.Name)...)
		case node.Spec.Unschedulable:
			out = append(out, one(Warn, wire.Remedy{Command: "kubectl uncordon " + node.Name}, "node %s of site %s is cordoned: its pod cannot come back there", node.Name, s.Name)...)
		}
	}
	if out == nil {
		return one(OK, wire.Remedy{}, "every site has a node that is Ready")
	}
	return out
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// spread: sites on one node fail together.
func spread(ctx context.Context, w World) []Finding {
	all, unseen := podsOfSites(ctx, w)
	if unseen != nil {
		return unseen
	}
	sites := map[string][]string{}
	for _, s := range w.Group.Spec.Sites {
		if node := all[s.Name].Spec.NodeName; node != "" {
			sites[node] = append(sites[node], s.Name)
		}
	}
	var out []Finding
	for node, names := range sites {
		if len(names) > 1 {
			out = append(out, one(Fail, wire.Remedy{Text: "give the sites nodeSelectors or affinity that keep them apart"},
				"sites %s run on one node, %s, and are lost together", strings.Join(names, " and "), node)...)
		}
	}
	if out == nil {
		return one(OK, wire.Remedy{}, "every site has a node of its own")
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}

// swap: a mysqld that is swapped out misses its lease, and its memory is then on a disk.
func swap(ctx context.Context, w World) []Finding {
	found, unseen := hosts(ctx, w)
	if unseen != nil {
		return unseen
	}
	var with, unknown []string
	for _, s := range w.Group.Spec.Sites {
		node, is := found[s.Name]
		if !is {
			continue
		}
		switch info := node.Status.NodeInfo.Swap; {
		case info == nil || info.Capacity == nil:
			unknown = append(unknown, node.Name)
		case *info.Capacity > 0:
			with = append(with, node.Name)
		}
	}
	switch {
	case len(with) > 0:
		return one(Warn, wire.Remedy{Text: "switch swap off there, or see that memory.swapBehavior of the kubelet is NoSwap and the swap is encrypted"},
			"nodes with swap: %s; memory of mysqld, with keys in it, may reach their disks", strings.Join(with, ", "))
	case len(unknown) > 0:
		return one(Unknown, wire.Remedy{Text: "look there", Command: "swapon --show"}, "the kubelets of %s do not report swap", strings.Join(unknown, ", "))
	}
	return one(OK, wire.Remedy{}, "no node of a site has swap")
}

func eviction(ctx context.Context, w World) []Finding {
	var out []Finding
	for _, name := range []string{v1alpha1.DisruptionBudgetName(w.Group.Name), v1alpha1.ProtectionName(w.Group.Name)} {
		pdb, err := w.Kube.PolicyV1().PodDisruptionBudgets(w.Group.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, one(Fail, wire.Remedy{Text: "the operator makes it", Command: "kubectl mfg events " + w.Group.Name + " -n " + w.Group.Namespace + " --warnings"}, "no PodDisruptionBudget %s: a drain may take every site at once", name)...)
		case err != nil:
			return cannotSee(err, "get", "poddisruptionbudgets.policy", w.Group.Namespace)
		case pdb.Status.ExpectedPods == 0:
			out = append(out, one(Warn, wire.Remedy{}, "PodDisruptionBudget %s covers no pod", name)...)
		}
	}
	if out == nil {
		return one(OK, wire.Remedy{}, "budgets keep a drain from taking the active site before its role has moved")
	}
	return out
}

func volumes(ctx context.Context, w World) []Finding {
	var out []Finding
	classes := map[string]bool{}
	for _, s := range w.Group.Spec.Sites {
		name := v1alpha1.DataVolumeName(w.Group.Name, s.Name)
		pvc, err := w.Kube.CoreV1().PersistentVolumeClaims(w.Group.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, one(Warn, wire.Remedy{}, "site %s has no PersistentVolumeClaim %s", s.Name, name)...)
		case err != nil:
			return cannotSee(err, "get", "persistentvolumeclaims", w.Group.Namespace)
		case pvc.Spec.StorageClassName != nil && *pvc.Spec.StorageClassName != "":
			classes[*pvc.Spec.StorageClassName] = true
		}
	}
	for class := range classes {
		sc, err := w.Kube.StorageV1().StorageClasses().Get(ctx, class, metav1.GetOptions{})
		switch {
		case err != nil:
			out = append(out, cannotSee(err, "get", "storageclasses.storage.k8s.io", "")...)
		case sc.AllowVolumeExpansion == nil || !*sc.AllowVolumeExpansion:
			out = append(out, one(Warn, wire.Remedy{Text: "a full volume could only be replaced: choose a class with allowVolumeExpansion for new sites"}, "StorageClass %s cannot grow volumes", class)...)
		}
	}
	if out == nil {
		return one(OK, wire.Remedy{}, "every site has its volume, and all can grow")
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}
