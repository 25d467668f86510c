// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The policies in the chart speak of the names in the code, and of the accounts that the values name. What they refuse is shown against an
// API server, in operator/controller.
func TestPodProtection(t *testing.T) {
	const values = `
crds: {enabled: false}
escrowProtection: {enabled: false}
watchNamespaces: [shop, billing]
podProtection: {enabled: true, actions: [Warn, Audit], replicaSetControllers: [makes-pods], deploymentControllers: [makes-sets], operators: [another]}`
	var policies []*admissionv1.ValidatingAdmissionPolicy
	bindings := map[string][]admissionv1.ValidationAction{}
	for _, object := range objects(t, render(t, operatorChart, values)) {
		switch o := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			policies = append(policies, o)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			bindings[o.Spec.PolicyName] = o.Spec.ValidationActions
		}
	}
	if len(policies) != 2 || len(bindings) != 2 {
		t.Fatalf("%d policies, %d bindings", len(policies), len(bindings))
	}
	for _, policy := range policies {
		if diff := cmp.Diff([]admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}, bindings[policy.Name]); diff != "" {
			t.Errorf("%s: actions (-want +got):\n%s", policy.Name, diff)
		}
		if got := policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values; !slices.Equal(got, []string{"shop", "billing"}) {
			t.Errorf("%s: namespaces %v", policy.Name, got)
		}
		text, controller := policy.String(), "makes-pods"
		if strings.HasSuffix(policy.Name, "-templates") {
			controller = "makes-sets"
		}
		for _, name := range []string{
			v1alpha1.LabelName, v1alpha1.LabelGroup, v1alpha1.LabelSite, v1alpha1.LabelRole, v1alpha1.LabelHealthy, v1alpha1.LabelReadable,
			v1alpha1.LabelProtected, v1alpha1.LabelCacheRole, v1alpha1.LabelCacheTraffic, "another", controller,
			"system:serviceaccount:mfg-system:mfg-operator",
		} {
			if !strings.Contains(text, "'"+name+"'") && !strings.Contains(text, `"`+name+`"`) {
				t.Errorf("%s does not know %s", policy.Name, name)
			}
		}
		// A deletion is never held up, and neither is what it takes: nobody's failover may depend on this policy.
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Equal(rule.Operations, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}) {
				t.Errorf("%s looks at %v", policy.Name, rule.Operations)
			}
		}
	}
	if out := render(t, operatorChart, "crds: {enabled: false}\nescrowProtection: {enabled: false}"); strings.Contains(out, "ValidatingAdmission") {
		t.Error("it is on although nobody asked for it")
	}
}
