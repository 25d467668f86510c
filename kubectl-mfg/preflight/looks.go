// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
)

// MinMinor is the oldest Kubernetes 1.x that the charts accept. A test compares it with them.
const MinMinor = 33

func kubernetesVersion(_ context.Context, _ *Op, w world) []doctor.Finding {
	v, err := w.kube.Discovery().ServerVersion()
	if err != nil {
		return unseen(err, "the version of the API server")
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	switch {
	case err != nil || v.Major != "1":
		return one(found(doctor.Unknown, wire.Remedy{}, "its version %q is not understood; 1.%d or newer is needed", v.GitVersion, MinMinor))
	case minor < MinMinor:
		return one(found(doctor.Fail, wire.Remedy{Text: "update Kubernetes to 1." + strconv.Itoa(MinMinor) + " or newer"}, "its version %s is too old: 1.%d or newer is needed", v.GitVersion, MinMinor))
	}
	return one(found(doctor.OK, wire.Remedy{}, "version %s", v.GitVersion))
}

// needed are the rights that an install takes beyond those in one namespace.
var needed = []authorizationv1.ResourceAttributes{
	{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
}

func rights(ctx context.Context, op *Op, w world) []doctor.Finding {
	var missing []string
	for _, a := range append(needed[:len(needed):len(needed)], authorizationv1.ResourceAttributes{Verb: "create", Group: "apps", Resource: "deployments", Namespace: op.OperatorNamespace}) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := w.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return one(found(doctor.Unknown, wire.Remedy{}, "not asked: %v", err))
		}
		if !answer.Status.Allowed {
			missing = append(missing, a.Resource+"."+a.Group)
		}
	}
	if len(missing) > 0 {
		return one(found(doctor.Fail, wire.Remedy{Text: "have a person with more rights install the chart mfg; groups take no more than rights in their namespace"},
			"you may not create %s, which the chart mfg does", strings.Join(missing, ", ")))
	}
	return one(found(doctor.OK, wire.Remedy{}, "you may install definitions, roles and the operator"))
}

func installed(_ context.Context, _ *Op, w world) []doctor.Finding {
	_, err := w.kube.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return one(found(doctor.OK, wire.Remedy{}, "not yet"))
	case err != nil:
		return one(found(doctor.Unknown, wire.Remedy{}, "%v", err))
	}
	return one(found(doctor.Warn, wire.Remedy{Text: "see which release there is", Command: "helm list -A"}, "mfg is installed already, or was: an install now would be an update"))
}

// defaultClass marks the class of volumes that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

func storage(ctx context.Context, _ *Op, w world) []doctor.Finding {
	list, err := w.kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return unseen(err, "storageclasses.storage.k8s.io")
	}
	if len(list.Items) == 0 {
		return one(found(doctor.Fail, wire.Remedy{Text: "install a storage driver, or make volumes by hand"}, "there is no StorageClass: no site would get a volume"))
	}
	var names []string
	var out []doctor.Finding
	for _, c := range list.Items {
		names = append(names, c.Name)
		if c.Annotations[defaultClass] == "true" {
			out = append(out, ofDefault(c)...)
		}
	}
	if out == nil {
		return one(found(doctor.Warn, wire.Remedy{Text: "name one for each site: spec.sites[].storage.storageClassName"}, "no StorageClass is the default; there are %s", strings.Join(names, ", ")))
	}
	return out
}

func ofDefault(c storagev1.StorageClass) []doctor.Finding {
	var out []doctor.Finding
	if c.VolumeBindingMode == nil || *c.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		out = append(out, found(doctor.Warn, wire.Remedy{Text: "use a class with volumeBindingMode: WaitForFirstConsumer"},
			"the default StorageClass %s binds volumes at once: one may be made in a zone where the site's node is not", c.Name))
	}
	if c.AllowVolumeExpansion == nil || !*c.AllowVolumeExpansion {
		out = append(out, found(doctor.Warn, wire.Remedy{Text: "use a class with allowVolumeExpansion: true"}, "volumes of the default StorageClass %s cannot grow", c.Name))
	}
	if c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		out = append(out, found(doctor.OK, wire.Remedy{}, "the default StorageClass %s deletes the data with the claim; the operator keeps claims unless deletionPolicy is Delete", c.Name))
	}
	if out == nil {
		out = one(found(doctor.OK, wire.Remedy{}, "the default StorageClass is %s", c.Name))
	}
	return out
}

// nodesMost bounds how much of a big cluster is read.
const nodesMost = 500

// siteMemory is about what mysqld with default settings and the sidecar take.
const siteMemory = 512 << 20

func nodes(ctx context.Context, _ *Op, w world) []doctor.Finding {
	list, err := w.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: nodesMost})
	if err != nil {
		return unseen(err, "nodes")
	}
	fit := 0
	for _, n := range list.Items {
		if n.Spec.Unschedulable || !ready(n) || tainted(n) {
			continue
		}
		if memory := n.Status.Allocatable.Memory(); memory != nil && memory.Value() >= siteMemory {
			fit++
		}
	}
	switch fit {
	case 0:
		return one(found(doctor.Fail, wire.Remedy{Command: "kubectl get nodes"}, "no node is Ready, takes pods and has room for a site (%d Mi)", siteMemory>>20))
	case 1:
		return one(found(doctor.Warn, wire.Remedy{Text: "add a node, so that the sites of a group do not share one"}, "only one node is fit for a site: a group does not survive the loss of it"))
	}
	return one(found(doctor.OK, wire.Remedy{}, "%d nodes are fit for sites", fit))
}

func ready(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// tainted is true for a node that accepts only pods with a toleration, such as one of the control plane.
func tainted(n corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			return true
		}
	}
	return false
}

// Bounds of how far a clock may be off. No decision compares clocks; but people compare records.
const (
	clockWarn = 3 * time.Second
	clockFail = 30 * time.Second
	// leaseAge is how old the Lease of a healthy node may be: kubelets renew it every 10 s.
	leaseAge = 40 * time.Second
	// leases is where kubelets say by their own clocks that they are alive.
	leases = "kube-node-lease"
)

func clocks(ctx context.Context, _ *Op, w world) []doctor.Finding {
	if w.clockErr != nil {
		return one(found(doctor.Unknown, wire.Remedy{}, "the API server's clock was not read: %v", w.clockErr))
	}
	ntp := wire.Remedy{Text: "see that the nodes keep time by NTP"}
	list, err := w.kube.CoordinationV1().Leases(leases).List(ctx, metav1.ListOptions{Limit: nodesMost})
	if err != nil {
		return unseen(err, "leases.coordination.k8s.io")
	}
	var out []doctor.Finding
	for _, l := range list.Items {
		if l.Spec.RenewTime == nil {
			continue
		}
		// The header has whole seconds: the cut-off part is added, so that no node wrongly looks ahead.
		ahead := l.Spec.RenewTime.Sub(w.server.Add(time.Second)).Round(time.Second)
		switch {
		case ahead > clockFail:
			out = append(out, found(doctor.Fail, ntp, "the clock of node %s is %s ahead of the API server's", l.Name, ahead))
		case ahead > clockWarn:
			out = append(out, found(doctor.Warn, ntp, "the clock of node %s is %s ahead of the API server's", l.Name, ahead))
		case -ahead > leaseAge:
			out = append(out, found(doctor.Warn, wire.Remedy{Command: "kubectl describe node " + l.Name}, "node %s was last heard of %s ago by its own clock: it is away, or its clock is behind", l.Name, -ahead))
		}
	}
	if own := w.now.Sub(w.server.Add(500 * time.Millisecond)).Abs().Round(time.Second); own > clockWarn {
		out = append(out, found(doctor.Warn, wire.Remedy{Text: "set the clock of this machine; times that you give or read are off by as much"}, "this machine's clock and the API server's differ by %s", own))
	}
	if out == nil {
		out = one(found(doctor.OK, wire.Remedy{}, "no node is ahead of the API server, and none of %d is far behind", len(list.Items)))
	}
	return out
}

// enforcers are parts of the names of network plugins that enforce policies.
var enforcers = []string{"calico", "cilium", "antrea", "weave", "kube-router", "ovn", "canal", "aws-node", "azure-npm", "kindnet"}

// networkPolicy can only guess: Kubernetes accepts policies even if no plugin enforces them.
func networkPolicy(ctx context.Context, _ *Op, w world) []doctor.Finding {
	list, err := w.kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{Limit: nodesMost})
	if err != nil {
		return unseen(err, "daemonsets.apps")
	}
	for _, d := range list.Items {
		for _, name := range enforcers {
			if strings.Contains(d.Name, name) {
				return one(found(doctor.OK, wire.Remedy{}, "the network plugin looks like %s (DaemonSet %s/%s), which can enforce policies", name, d.Namespace, d.Name))
			}
		}
	}
	return one(found(doctor.Unknown, wire.Remedy{Text: "ask who runs the network; without one, networkPolicy of the charts changes nothing, and anyone who reaches the pods reaches their ports"},
		"no network plugin was seen that is known to enforce policies"))
}

func certManager(_ context.Context, _ *Op, w world) []doctor.Finding {
	groups, err := w.kube.Discovery().ServerGroups()
	if err != nil {
		return unseen(err, "API groups")
	}
	for _, g := range groups.Groups {
		if g.Name == "cert-manager.io" {
			return one(found(doctor.OK, wire.Remedy{}, "it is there: spec.tls.issuerRef may name an issuer"))
		}
	}
	return one(found(doctor.OK, wire.Remedy{}, "it is not there, and not needed: with spec.tls: {} the operator makes and renews certificates"))
}
