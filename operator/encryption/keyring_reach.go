// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/operator/scope"
)

// reachAgain is how long an endpoint that was out of reach counts as such: a check may take seconds, and other groups wait meanwhile.
const reachAgain = 15 * time.Second

// unreached says why the escrow endpoint was out of reach, and when.
type unreached struct {
	at  time.Time
	why string
}

// EscrowTrouble says why a sidecar of the group could not bring its keyring into escrow, as far as the operator can see; empty if it
// could. The operator checks only before it adopts a site: a site that is already encrypted must keep trying anyway.
func (r *Encryption) EscrowTrouble(ctx context.Context, s *scope.Scope) string {
	if r.ReachEscrow == nil {
		return ""
	}
	if last := r.escrows.unreached(s.Key); last.why != "" && s.Now.Sub(last.at) < reachAgain {
		return last.why
	}
	why := r.reach(ctx, s)
	r.escrows.reached(s.Key, unreached{s.Now, why})
	return why
}

func (r *Encryption) reach(ctx context.Context, s *scope.Scope) string {
	if r.OwnAuthorities != nil {
		if err := r.ReachEscrow(ctx, r.OwnAuthorities()); err != nil {
			return fmt.Sprintf("%v (asked as a sidecar would, with the authority that the operator made)", err)
		}
		return ""
	}
	var authorities []byte // without spec.tls, which the API requires, no endpoint is trusted
	if t := s.Group.Spec.TLS; t != nil {
		secret := &corev1.Secret{}
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: t.Secret(s.Key.Name)}, secret); err != nil {
			return fmt.Sprintf("read the authorities in Secret %s: %v", t.SecretName, err) // an unknown answer is no reason to begin
		}
		authorities = secret.Data["ca.crt"]
	}
	if err := r.ReachEscrow(ctx, authorities); err != nil {
		return fmt.Sprintf("%v (asked as a sidecar would, with ca.crt of the Secret of spec.tls)", err)
	}
	return ""
}
