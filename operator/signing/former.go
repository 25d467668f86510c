// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Former returns the key that an operator before this one kept beside the group; false if there is none. Who may make Secrets there
// could have put it there, so it must be asked for only of a group whose pods still trust such a key.
func (k *Keys) Former(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (Key, bool, error) {
	secret, err := k.former(ctx, group)
	if secret == nil {
		return Key{}, false, err
	}
	private, err := Parse(secret.Data[v1alpha1.AuthorityPrivateKey])
	if err != nil {
		return Key{}, false, fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return Key{Private: private}.alone(), true, nil
}

// DropFormer deletes the key beside the group once the operator's own Secret is seen to hold the same. Any other one is left alone.
func (k *Keys) DropFormer(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	secret, err := k.former(ctx, group)
	if secret == nil {
		return err
	}
	private, err := Parse(secret.Data[v1alpha1.AuthorityPrivateKey])
	if err != nil {
		return nil //nolint:nilerr // nobody knows what it is
	}
	kept, err := k.Read(ctx, group)
	if err != nil {
		return err
	}
	if !kept.Private.Equal(private) {
		return nil
	}
	uid, version := secret.UID, secret.ResourceVersion
	if err := k.Client.Delete(ctx, secret, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the former key: %w", err)
	}
	return nil
}

func (k *Keys) former(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Live.Get(ctx, types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.FormerAuthoritySecret(group.Name)}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the former key: %w", err)
	}
	return secret, nil
}
