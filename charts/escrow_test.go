// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The escrow listener is there as a whole or not at all: arguments, port, certificate, Service, and the way to it.
func TestEscrowListener(t *testing.T) {
	for values, want := range map[string]bool{
		"crds: {enabled: false}\nnetworkPolicy: {enabled: true}":                                                             false,
		"crds: {enabled: false}\nnetworkPolicy: {enabled: true}\nauxiliary: {escrowTLS: {existingSecret: x}}":                false,
		"crds: {enabled: false}\nnetworkPolicy: {enabled: true}\nauxiliary: {escrowTLS: {enabled: true, existingSecret: x}}": true,
	} {
		all := objects(t, render(t, operatorChart, values))
		pod := only[appsv1.Deployment](t, all).Spec.Template.Spec
		c := pod.Containers[0]
		has := map[string]bool{
			"address":     slices.Contains(c.Args, "--escrow-bind-address=:8443"),
			"URL":         slices.Contains(c.Args, "--escrow-url=https://mfg-auxiliary.mfg-system.svc:8443"),
			"port":        slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "escrow" && p.ContainerPort == 8443 }),
			"certificate": len(pod.Volumes) == 1 && pod.Volumes[0].Secret.SecretName == "x" && len(c.VolumeMounts) == 1 && c.VolumeMounts[0].ReadOnly,
		}
		for _, object := range all {
			switch o := object.(type) {
			case *corev1.Service:
				if o.Name == "mfg-auxiliary" {
					has["service"] = slices.ContainsFunc(o.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == 8443 && p.TargetPort.String() == "escrow" })
				}
			case *networkingv1.NetworkPolicy:
				has["network policy"] = slices.ContainsFunc(o.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
					return r.Ports[0].Port.String() == "escrow" && len(r.From) == 1 && r.From[0].PodSelector != nil
				})
			}
		}
		for what, there := range has {
			if there != want {
				t.Errorf("%s\n%s is there: %v, want %v", values, what, there, want)
			}
		}
	}
}

// A certificate that is missing must not keep the operator from starting: no failover would happen in any group.
func TestOperatorStartsWithoutItsEscrowCertificate(t *testing.T) {
	pod := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, matrix["mfg-escrow"].values))).Spec.Template.Spec
	if s := pod.Volumes[0].Secret; s.Optional == nil || !*s.Optional {
		t.Error("the pod waits for the Secret")
	}
}

// The policy in the chart speaks of the names in the code. What it refuses is shown against an API server, in
// operator/escrow.
func TestEscrowProtection(t *testing.T) {
	tests := map[string]struct {
		values     string
		namespaces []string
		operators  string
	}{
		"everywhere":      {`crds: {enabled: false}`, nil, `["system:serviceaccount:mfg-system:mfg-operator"]`},
		"namespaced":      {matrix["mfg-namespaced"].values, []string{"shop", "billing"}, `["system:serviceaccount:mfg-system:mfg-operator"]`},
		"another release": {matrix["mfg-escrow"].values, nil, `["system:serviceaccount:mfg-system:mfg-operator","system:serviceaccount:mfg-blue:mfg-operator"]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := objects(t, render(t, operatorChart, tc.values))
			policy := only[admissionv1.ValidatingAdmissionPolicy](t, all)
			binding := only[admissionv1.ValidatingAdmissionPolicyBinding](t, all)
			if binding.Spec.PolicyName != policy.Name || !slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
				t.Errorf("binding %+v", binding.Spec)
			}
			// What is kept by half protects nothing.
			for _, annotations := range []map[string]string{policy.Annotations, binding.Annotations} {
				if annotations["helm.sh/resource-policy"] != "keep" {
					t.Errorf("it goes with the chart, and the keyrings stay: %v", annotations)
				}
			}
			var namespaces []string
			if s := policy.Spec.MatchConstraints.NamespaceSelector; s != nil {
				namespaces = s.MatchExpressions[0].Values
			}
			if diff := cmp.Diff(tc.namespaces, namespaces); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
			if got := policy.Spec.MatchConstraints.ObjectSelector.MatchLabels; got[v1alpha1.LabelName] != v1alpha1.NameKeyring {
				t.Errorf("selects %v", got)
			}
			if got, want := policy.Spec.MatchConditions[0].Expression, "!(request.userInfo.username in "+tc.operators+")"; got != want {
				t.Errorf("the operators: %s, want %s", got, want)
			}
			text := policy.String()
			for _, name := range []string{
				v1alpha1.LabelName, v1alpha1.LabelManagedBy, v1alpha1.LabelGroup, v1alpha1.LabelSite, v1alpha1.LabelKeyringVersion,
				v1alpha1.AnnotationKeyringDigest, v1alpha1.LabelAllowDeletion,
			} {
				if !strings.Contains(text, "'"+name+"'") && !strings.Contains(text, name) {
					t.Errorf("the policy does not know %s", name)
				}
			}
		})
	}
	if out := render(t, operatorChart, "crds: {enabled: false}\nescrowProtection: {keep: false}"); strings.Contains(out, "resource-policy") {
		t.Error("it is kept although it is not to be")
	}
	if out := render(t, operatorChart, "crds: {enabled: false}\nescrowProtection: {enabled: false}"); strings.Contains(out, "ValidatingAdmission") {
		t.Error("the policy cannot be switched off")
	}
}
