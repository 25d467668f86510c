// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// ownRequests are the kinds of requests that the controller carries out; the others are the monitor's.
var ownRequests = []v1alpha1.RequestKind{v1alpha1.RequestRecloneSite, v1alpha1.RequestRotateKeyring, v1alpha1.RequestRotatePasswords,
	v1alpha1.RequestRotateCertificate}

// takeUpRequests gives every request an id before anything is done for it, and removes requests that an earlier operator answered.
func (r *Reconciler) takeUpRequests(ctx context.Context, s *scope.Scope) error {
	return r.base.Answers().Tidy(ctx, s.Group, ownRequests...)
}
