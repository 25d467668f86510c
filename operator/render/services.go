// SPDX-License-Identifier: Apache-2.0

package render

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	portMySQL   = "mysql"
	portAdmin   = "admin"
	portSidecar = "sidecar"
)

// SiteService gives direct access to one site. It has the pod's address before the pod is ready: peers and the operator
// must reach a sidecar whose MySQL is down.
func SiteService(in Input, site v1alpha1.Site) *corev1.Service {
	s := service(in, v1alpha1.SiteName(in.Group.Name, site.Name), SiteLabels(in.Group.Name, site.Name))
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Selector = podSelector(in.Group.Name, site.Name)
	s.Spec.Ports = []corev1.ServicePort{
		port(portMySQL, wire.PortMySQL), port(portAdmin, wire.PortMySQLAdmin), port(portSidecar, wire.PortSidecar),
	}
	return s
}

// PrimaryService is where applications write. It comes without a selector: that belongs to the poll loop, under its own
// field manager, and follows the active site.
func PrimaryService(in Input) *corev1.Service {
	s := service(in, v1alpha1.PrimaryService(in.Group.Name), GroupLabels(in.Group.Name))
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Ports = []corev1.ServicePort{port(portMySQL, wire.PortMySQL)}
	return s
}

// ReplicasService is where applications read.
func ReplicasService(in Input) *corev1.Service {
	s := service(in, v1alpha1.ReplicasService(in.Group.Name), GroupLabels(in.Group.Name))
	s.Spec.Selector = map[string]string{
		// Cache pods have the group's label too.
		v1alpha1.LabelName:    v1alpha1.NameMySQL,
		v1alpha1.LabelGroup:   in.Group.Name,
		v1alpha1.LabelRole:    v1alpha1.RoleReplica,
		v1alpha1.LabelHealthy: v1alpha1.HealthyYes,
		// The poll loop takes it from replicas that lag more than spec.maxReadLag.
		v1alpha1.LabelReadable: v1alpha1.HealthyYes,
	}
	s.Spec.Ports = []corev1.ServicePort{port(portMySQL, wire.PortMySQL)}
	return s
}

func service(in Input, name string, labels map[string]string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: in.meta(name, labels),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP},
	}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intOrString(int(number))}
}

func intOrString(n int) intstr.IntOrString { return intstr.FromInt32(int32(n)) }

// DisruptionBudget lets voluntary disruptions take one MySQL pod at a time of those that are not protected. A pod that
// two budgets select cannot be evicted at all, so those that Protection selects are left out. Pods that are not ready may
// always be evicted: they serve nobody, and would block the drain of their node for ever.
func DisruptionBudget(in Input) *policyv1.PodDisruptionBudget {
	return budget(in, v1alpha1.DisruptionBudgetName(in.Group.Name), 1, metav1.LabelSelectorOpNotIn)
}

// Protection refuses the eviction of pods that must not go now: the active site's, from which the role is moved first,
// that of the only candidate that has caught up, and one whose memory has the only copy of its keyring. The poll loop labels
// them. It answers the drain of a node, which cordons it and asks again, until the role has moved.
func Protection(in Input) *policyv1.PodDisruptionBudget {
	return budget(in, v1alpha1.ProtectionName(in.Group.Name), 0, metav1.LabelSelectorOpIn)
}

func budget(in Input, name string, gone int32, protected metav1.LabelSelectorOperator) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: in.meta(name, GroupLabels(in.Group.Name)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(gone)),
			Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: in.Group.Name},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: v1alpha1.LabelProtected, Operator: protected, Values: []string{v1alpha1.HealthyYes}},
				},
			},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
