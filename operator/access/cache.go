// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Cache returns how to reach the caches of a group: the passwords that a cache may accept, first the one that all should accept, and for
// a site the TLS settings, nil without TLS. A cache serves the group's certificate, so it is verified by the name of the site's MySQL,
// which is in any certificate of the group.
func (a *Access) Cache(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) (passwords []string, config *tls.Config, err error) {
	name := types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.CacheAuthSecret(group.Name)}
	secret, err := a.secret(ctx, a.generated, group, name)
	if err != nil {
		return nil, nil, fmt.Errorf("read the cache's password: %w", err)
	}
	// The pods are made with the operator's copy; the other one may be a person's wish that the operator has not read yet.
	for _, key := range []string{v1alpha1.CachePassword + v1alpha1.PasswordKnown, v1alpha1.CachePassword, v1alpha1.CachePasswordPrevious} {
		if p := string(secret.Data[key]); p != "" && !slices.Contains(passwords, p) {
			passwords = append(passwords, p)
		}
	}
	if len(passwords) == 0 {
		return nil, nil, fmt.Errorf("%w: %s has no key %q", ErrSecretIncomplete, name, v1alpha1.CachePassword)
	}
	if !group.CacheTLS() {
		return passwords, nil, nil
	}
	config, err = a.clientTLS(ctx, group, site)
	return passwords, config, err
}

// CacheCertificate returns the certificate (DER) that the caches of a group must serve, as it is in the Secret now; nil without TLS, or
// if the Secret has none.
func (a *Access) CacheCertificate(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]byte, error) {
	if !group.CacheTLS() {
		return nil, nil
	}
	secret, err := a.secret(ctx, a.given, group, types.NamespacedName{Namespace: group.Namespace, Name: group.Spec.TLS.Secret(group.Name)})
	if err != nil {
		return nil, fmt.Errorf("read certificate of the group: %w", err)
	}
	block, _ := pem.Decode(secret.Data[keyCert])
	if block == nil {
		return nil, nil
	}
	return block.Bytes, nil
}
