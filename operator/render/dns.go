// SPDX-License-Identifier: Apache-2.0

package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// DNSRecord is what a DNS name points to.
type DNSRecord struct {
	// Type is A, AAAA or CNAME.
	Type   string
	Target string
}

// defaultTTL is the time to live of a record whose group leaves it open, in seconds.
const defaultTTL = 30

// DNSEndpoint asks external-dns for the record of the active site. The group must have spec.dns.
func DNSEndpoint(in Input, record DNSRecord) *unstructured.Unstructured {
	dns, owner := in.Group.Spec.DNS, in.owner()
	ttl := int64(dns.TTLSeconds)
	if ttl <= 0 {
		ttl = defaultTTL
	}
	out := emptyDNSEndpoint(in)
	out.Object["metadata"] = map[string]any{
		"name":      out.GetName(),
		"namespace": out.GetNamespace(),
		"labels":    stringMap(GroupLabels(in.Group.Name)),
		"ownerReferences": []any{map[string]any{
			"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID),
			"controller": true, "blockOwnerDeletion": true,
		}},
	}
	out.Object["spec"] = map[string]any{"endpoints": []any{map[string]any{
		"dnsName": dns.Name, "recordType": record.Type, "recordTTL": ttl, "targets": []any{record.Target},
	}}}
	return out
}

// NoDNSEndpoint names the DNSEndpoint of a group that is to have none.
func NoDNSEndpoint(in Input) *unstructured.Unstructured { return emptyDNSEndpoint(in) }

func emptyDNSEndpoint(in Input) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "externaldns.k8s.io/v1alpha1",
		"kind":       "DNSEndpoint",
		"metadata":   map[string]any{"name": v1alpha1.DNSEndpointName(in.Group.Name), "namespace": in.Group.Namespace},
	}}
}

// inactiveToleration keeps the group's own taint from driving its pods off their nodes. It is there whether
// spec.taints is enabled or not: turning that on must not restart pods.
func inactiveToleration(in Input) corev1.Toleration {
	return corev1.Toleration{
		Key: v1alpha1.InactiveSiteTaint(in.Group.Namespace, in.Group.Name), Operator: corev1.TolerationOpExists,
	}
}
