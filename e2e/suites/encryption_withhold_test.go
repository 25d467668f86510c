// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// withhold has the API server refuse every new version of the group's keyrings until lift is called: what MySQL makes
// meanwhile exists in the memory of its pod alone. Lifting it twice does nothing.
func (v *vault) withhold(t *testing.T) (lift func()) {
	t.Helper()
	name := "mfg-suite-withhold-" + v.Namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": v.Namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: `!object.metadata.name.matches('-keyring-v[0-9]+$')`, Message: "the lab withholds escrow",
				Reason: new(metav1.StatusReasonForbidden),
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	remove := func(ctx context.Context) error {
		return errors.Join(client.IgnoreNotFound(v.Kube.Delete(ctx, binding)), client.IgnoreNotFound(v.Kube.Delete(ctx, policy)))
	}
	// What a run that was ended left behind goes first.
	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Errorf("let keyrings into escrow again: %v", err)
		}
	})
	if err := errors.Join(v.Kube.Create(t.Context(), policy), v.Kube.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	v.awaitEscrow(t, "escrow to be withheld", true)
	return func() {
		t.Helper()
		if err := remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.awaitEscrow(t, "escrow to be open", false)
	}
}

// awaitEscrow waits until the API server refuses a new version, or takes it: it learns of a policy after a moment.
func (v *vault) awaitEscrow(t *testing.T, what string, withheld bool) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v1alpha1.KeyringSecret(v.Name, stage.Sites[0], 999999)}}
	err := stage.Poll(t.Context(), comeBack, what, func(ctx context.Context) error {
		err := v.Kube.Create(ctx, secret.DeepCopy(), client.DryRunAll)
		if refused := apierrors.IsForbidden(err); refused != withheld || err != nil && !refused {
			return fmt.Errorf("a new version on trial: %w", errors.Join(err, errors.New("it is not so yet")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
