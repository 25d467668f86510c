// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// CertificateName is the name of the cert-manager Certificate of a group.
func CertificateName(group string) string { return "mysql-" + group }

// Certificate asks cert-manager for the group's certificate; nil when spec.tls.issuerRef is not set.
func Certificate(in Input) *unstructured.Unstructured {
	tls := in.Group.Spec.TLS
	if tls == nil || tls.IssuerRef == nil {
		return nil
	}
	issuerKind := tls.IssuerRef.Kind
	if issuerKind == "" {
		issuerKind = "Issuer"
	}
	owner := in.owner()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1",
		"kind":       "Certificate",
		"metadata": map[string]any{
			"name":      CertificateName(in.Group.Name),
			"namespace": in.Group.Namespace,
			"labels":    stringMap(GroupLabels(in.Group.Name)),
			"ownerReferences": []any{map[string]any{
				"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"secretName":     tls.SecretName,
			"secretTemplate": map[string]any{"labels": stringMap(GroupLabels(in.Group.Name))},
			"issuerRef":      map[string]any{"group": "cert-manager.io", "kind": issuerKind, "name": tls.IssuerRef.Name},
			"privateKey":     map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
			"usages":         []any{"digital signature", "server auth", "client auth"},
			"dnsNames":       anyList(CertificateNames(in.Group)),
		},
	}}
}

// CertificateNames are all names of every Service of the group. The operator and the replicas check Host.
func CertificateNames(group *v1alpha1.MysqlFailoverGroup) []string {
	var services, caches []string
	for _, site := range group.SitesThere() {
		services, caches = append(services, v1alpha1.SiteName(group.Name, site)), append(caches, v1alpha1.CacheSiteName(group.Name, site))
	}
	services = append(services, v1alpha1.PrimaryService(group.Name), v1alpha1.ReplicasService(group.Name))
	if CacheTLS(group) {
		services = append(append(services, v1alpha1.CacheService(group.Name)), caches...)
	}
	var names []string
	for _, s := range services {
		in := s + "." + group.Namespace
		names = append(names, s, in, in+".svc", in+".svc.cluster.local")
	}
	return names
}

func anyList(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func stringMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
