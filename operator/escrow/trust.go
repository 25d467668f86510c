// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// errNoAuthority means that no sidecar could trust the endpoint yet.
var errNoAuthority = errors.New("the operator has made no certificate for its escrow endpoint yet; its log says why if that lasts")

// trustInto puts the authorities of the endpoint's certificate beside a token, if the operator makes that certificate.
func (s *Store) trustInto(data map[string][]byte) error {
	if s.authorities == nil {
		return nil
	}
	authorities := s.authorities()
	if len(authorities) == 0 {
		return errNoAuthority
	}
	data[v1alpha1.KeyringTokenCA] = authorities
	return nil
}

// KeepTrust puts the authorities that a sidecar must trust now into the token Secret of a site. Without a token there is nothing to
// do.
func (s *Store) KeepTrust(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	secret, err := s.token(ctx, group, site, "trust beside the token")
	if err != nil || secret == nil {
		return err
	}
	before := secret.DeepCopy()
	secret.Data = maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if err := s.trustInto(secret.Data); err != nil {
		return err
	}
	if bytes.Equal(before.Data[v1alpha1.KeyringTokenCA], secret.Data[v1alpha1.KeyringTokenCA]) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return wrap("write authorities beside the escrow token", s.client.Patch(ctx, secret, patch, client.FieldOwner(v1alpha1.ManagerController)))
}
