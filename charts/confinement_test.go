// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The policies speak of the names in the code. What they refuse is shown against an API server, in operator/controller.
func TestConfinement(t *testing.T) {
	const values = `
crds: {enabled: false}
escrowProtection: {enabled: false}
watchNamespaces: [shop, billing]
dataLossProtection: {enabled: true}
operatorConfinement: {enabled: true, actions: [Audit]}`
	knows := map[string][]string{
		"mfg-operator-mfg-system-data-loss":   {v1alpha1.AnnotationForceFailover, v1alpha1.AnnotationRecloneSite, "billing"},
		"mfg-operator-mfg-system-confinement": {v1alpha1.LabelGroup, "system:serviceaccount:mfg-system:mfg-operator"},
	}
	actions := map[string]admissionv1.ValidationAction{"mfg-operator-mfg-system-data-loss": admissionv1.Deny, "mfg-operator-mfg-system-confinement": admissionv1.Audit}
	right := false
	for _, object := range objects(t, render(t, operatorChart, values)) {
		switch o := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			for _, name := range knows[o.Name] {
				if text := o.String(); !strings.Contains(text, "'"+name+"'") && !strings.Contains(text, name) {
					t.Errorf("%s does not know %s", o.Name, name)
				}
			}
			delete(knows, o.Name)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			if len(o.Spec.ValidationActions) != 1 || o.Spec.ValidationActions[0] != actions[o.Spec.PolicyName] {
				t.Errorf("%s: %v", o.Name, o.Spec.ValidationActions)
			}
			delete(actions, o.Spec.PolicyName)
		case *rbacv1.ClusterRole:
			for _, rule := range o.Rules {
				for _, verb := range rule.Verbs {
					if verb == "accept-data-loss" {
						right = true
						if len(o.Rules) != 1 || len(rule.Verbs) != 1 {
							t.Errorf("the right to give transactions up comes with others: %s", o.Name)
						}
						for label := range o.Labels {
							if strings.Contains(label, "aggregate") {
								t.Errorf("%s is added to another role: %s", o.Name, label)
							}
						}
					}
				}
			}
		}
	}
	if len(knows) > 0 || len(actions) > 0 || !right {
		t.Errorf("missing: %v, %v, the right: %t", knows, actions, right)
	}
	if out := render(t, operatorChart, "crds: {enabled: false}\nescrowProtection: {enabled: false}"); strings.Contains(out, "ValidatingAdmission") || strings.Contains(out, "accept-data-loss") {
		t.Error("it is on although nobody asked for it")
	}
}

// A platform that assigns users refuses pods that name one.
func TestThePlatformMayAssignUsers(t *testing.T) {
	for values, want := range map[string]bool{"{}": true, "platformAssignsIDs: true": false} {
		context := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, values))).Spec.Template.Spec.SecurityContext
		if got := context.RunAsUser != nil || context.RunAsGroup != nil; got != want || context.RunAsNonRoot == nil || !*context.RunAsNonRoot {
			t.Errorf("%s: %+v", values, context)
		}
		args := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, values))).Spec.Template.Spec.Containers[0].Args
		if told := slices.Contains(args, "--platform-assigns-ids=true"); told == want {
			t.Errorf("%s: the operator is told to name no users in pods of MySQL: %t", values, told)
		}
	}
}
