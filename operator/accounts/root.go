// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var eventRootSecretMissing = events.Warning(v1alpha1.ReasonRootSecretMissing, "Wait")

var errRootIsGone = errors.New("the password of root@localhost is gone")

// Once returns a Secret of the group, and makes it with make if it does not exist.
type Once func(ctx context.Context, s *scope.Scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error)

// KeepRoot makes the password of root@localhost for a new group. For one that has run it makes none: another one would fit no server, and
// a person who needs root would learn of it only then. Nothing waits for it: pods of sites with data start without that Secret.
func (r *Passwords) KeepRoot(ctx context.Context, s *scope.Scope, once Once) error {
	name := v1alpha1.RootSecret(s.Key.Name)
	secret, err := once(ctx, s, name, func() (*corev1.Secret, error) {
		if s.Group.Status.Epoch > 0 {
			return nil, errRootIsGone
		}
		return render.RootSecret(s.In, rand.Text()), nil
	})
	gone := errors.Is(err, errRootIsGone)
	if err != nil && !gone {
		return err
	}
	text := ""
	if gone || len(secret.Data[render.KeyRootPassword]) == 0 {
		text = fmt.Sprintf("Secret %s is missing or has no key %q: restore it from a backup, or write there the password of root@localhost that the sites have. "+
			"No new one is made, which no site would take. Only a site that makes a new data directory waits for it", name, render.KeyRootPassword)
	}
	r.Say(s, "", eventRootSecretMissing, text)
	return nil
}
