// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RenewTLS puts another certificate of the lab's authority into the group's Secret, as cert-manager does.
func (g *Group) RenewTLS(ctx context.Context) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	if group.Spec.TLS == nil {
		return errors.New("renew certificate: the group has no TLS")
	}
	authority, err := g.labAuthority(ctx)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: g.Namespace, Name: group.Spec.TLS.SecretName}
	if err := g.Kube.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	if secret.Data, err = authority.issue(g.serviceNames(group.Spec)); err != nil {
		return fmt.Errorf("renew certificate: %w", err)
	}
	if err := g.Kube.Update(ctx, secret); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}
