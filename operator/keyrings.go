// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certificates"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/escrow"
	"github.com/mysql-mfg/mfg/operator/keyring"
)

// keyringsOf hands the store of keyrings to the controller, in the controller's words.
type keyringsOf struct{ *escrow.Store }

// newKeyrings makes the controller's store, which only reads, prunes and makes tokens; nil without an escrow listener:
// then the operator has no right to list Secrets.
func newKeyrings(mgr ctrl.Manager, s settings, own *certificates.Escrow) encryption.Escrow {
	if s.escrowAddr == "" {
		return nil
	}
	o := escrow.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	if own != nil {
		o.Authorities = own.Bundle
	}
	return keyringsOf{escrow.New(o)}
}

// Versions implements encryption.Escrow. A Secret that is being deleted counts as gone.
func (k keyringsOf) Versions(ctx context.Context, namespace, group, site string) ([]keyring.Version, error) {
	all, err := k.Store.Versions(ctx, namespace, group, site)
	if err != nil {
		return nil, err
	}
	var out []keyring.Version
	for _, v := range all {
		if v.Deleting {
			continue
		}
		digest, size, err := k.measure(ctx, namespace, v.Secret)
		if err != nil {
			return nil, err
		}
		if digest != "" {
			out = append(out, keyring.Version{Name: v.Secret, Number: v.Number, Digest: digest, Annotated: v.Digest, Size: size})
		}
	}
	return out, nil
}

// Prune implements encryption.Escrow. A version that is still in use, for example by a pod that is being deleted, is pruned later.
func (k keyringsOf) Prune(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, name string) error {
	err := k.Store.Prune(ctx, group, site, name)
	if errors.Is(err, escrow.ErrInUse) {
		return nil
	}
	return err
}

// Digest implements encryption.Escrow.
func (k keyringsOf) Digest(ctx context.Context, namespace, name string) (string, error) {
	digest, _, err := k.measure(ctx, namespace, name)
	return digest, err
}

// measure returns Digest, and the length of the content.
func (k keyringsOf) measure(ctx context.Context, namespace, name string) (digest string, size int, err error) {
	digest, size, err = k.Measure(ctx, namespace, name)
	if errors.Is(err, escrow.ErrMissing) {
		return "", 0, nil
	}
	return digest, size, err
}
