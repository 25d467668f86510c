// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// ReadMadeAuthorities has clients that are made from now on believe what the operator says of a group with tls: {}, and returns that.
func (g *Group) ReadMadeAuthorities(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.MadeTLSSecret(g.Name)}, secret); err != nil {
		return nil, fmt.Errorf("read the certificate that the operator made: %w", err)
	}
	g.ca, g.made = secret.Data["ca.crt"], true
	return g.ca, nil
}

// tlsSecret is the Secret with the certificate of the group.
func (g *Group) tlsSecret() string {
	if g.made {
		return v1alpha1.MadeTLSSecret(g.Name)
	}
	return g.Name + "-tls"
}
