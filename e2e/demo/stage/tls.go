// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Certify makes the Secret of the group's certificate. Clients that the stage starts use TLS as before, or none.
func (g *Group) Certify(ctx context.Context, spec v1alpha1.MysqlFailoverGroupSpec) error {
	used := g.ca
	err := g.ensureTLS(ctx, spec)
	g.ca = used
	return err
}

// UseTLS has clients that the stage starts from now on use TLS.
func (g *Group) UseTLS(ctx context.Context, spec v1alpha1.MysqlFailoverGroupSpec) error {
	return g.ensureTLS(ctx, spec)
}

// NotSecure says why a group has not come to a step of TLS, with its pods; nil if it has.
func NotSecure(group *v1alpha1.MysqlFailoverGroup, phase v1alpha1.TLSPhase) error {
	if t := group.Status.TLS; t == nil || t.Phase != phase {
		why := errors.New("the operator says nothing of TLS")
		if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionTLSRequired); c != nil {
			why = errors.New(c.Message)
		}
		return fmt.Errorf("status.tls %+v, want phase %s: %w", t, phase, why)
	}
	return errors.Join(NotUpdated(group), notReady(group))
}
