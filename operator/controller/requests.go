// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	asks "github.com/mysql-mfg/mfg/operator/request"
)

// ownRequests are the kinds of requests that the controller carries out; the others are the monitor's.
var ownRequests = []v1alpha1.RequestKind{v1alpha1.RequestRecloneSite, v1alpha1.RequestRotateKeyring, v1alpha1.RequestRotatePasswords}

func (r *Reconciler) answers() asks.Writer {
	return asks.Writer{Client: r.Client, Owner: v1alpha1.ManagerController}
}

// takeUpRequests has every request have a name before anything is done for it, and takes off what an operator before this one answered.
func (r *Reconciler) takeUpRequests(ctx context.Context, s *scope) error {
	return r.answers().Tidy(ctx, s.group, ownRequests...)
}

// answerOrder answers a request, if it is still the one with the value that was acted on.
func (r *Reconciler) answerOrder(ctx context.Context, s *scope, kind v1alpha1.RequestKind, value string, a asks.Answer) error {
	q, stands := asks.Of(s.group, kind)
	if !stands || q.Value != value {
		return nil
	}
	return r.answers().Answer(ctx, s.group, q, a)
}
