// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var eventAccountsMissing = events.Warning(v1alpha1.ReasonAccountsSecretMissing, "Wait")

// secrets makes what is generated once: the key that signs statements, and the passwords. operator/accounts replaces passwords.
func (r *Reconciler) secrets(ctx context.Context, s *scope.Scope) error {
	if err := r.authority(ctx, s); err != nil {
		return err
	}
	accounts, err := r.once(ctx, s, v1alpha1.AccountsSecret(s.Key.Name), func() (*corev1.Secret, error) {
		if s.Group.Status.Epoch > 0 {
			// New passwords would fit no server, and lock out the operator for good.
			return nil, fmt.Errorf("%w: it is missing, although the group has run", render.ErrSecretIncomplete)
		}
		return render.AccountsSecret(s.In, render.Passwords{
			Operator: rand.Text(), Replication: rand.Text(), Sidecar: rand.Text(), Clone: rand.Text(),
		}), nil
	})
	if err == nil {
		err = render.Accounts(accounts)
	}
	if errors.Is(err, render.ErrSecretIncomplete) {
		text := fmt.Sprintf("Secret %s: %v; restore it from a backup: it holds the passwords of the operator's accounts",
			v1alpha1.AccountsSecret(s.Key.Name), err)
		s.Progress(scope.Stuck(v1alpha1.ReasonSecretIncomplete, text), scope.WhenWaiting)
		r.base.Say(s, "", eventAccountsMissing, text)
		return scope.ErrStop
	}
	if err != nil {
		return err
	}
	s.Accounts = accounts
	if err := r.passwords.KeepRoot(ctx, s, r.once); err != nil {
		return err
	}
	return r.reportKeys(ctx, s)
}

// reportKeys makes the key with which each site authenticates its reports. It makes a deleted key again: the running pod gets the new
// one within a minute or two, and until then its sidecar counts as silent.
func (r *Reconciler) reportKeys(ctx context.Context, s *scope.Scope) error {
	for _, site := range s.Group.Spec.Sites {
		name := v1alpha1.ReportSecret(s.Key.Name, site.Name)
		secret, err := r.existing(ctx, s, name, func() (*corev1.Secret, error) {
			key := make([]byte, wire.ReportKeyBytes)
			_, _ = rand.Read(key) // it never fails
			return render.ReportSecret(s.In, site.Name, key), nil
		})
		if err == nil {
			err = r.adopt(ctx, s, render.ReportSecret(s.In, site.Name, nil), secret)
		}
		if err != nil {
			return err
		}
		if len(secret.Data[v1alpha1.ReportKey]) != wire.ReportKeyBytes {
			s.Progress(scope.Stuck(v1alpha1.ReasonSecretIncomplete, fmt.Sprintf("Secret %s has no key %q of %d bytes; delete it, and a new one is made",
				name, v1alpha1.ReportKey, wire.ReportKeyBytes)), scope.WhenWaiting)
			return scope.ErrStop
		}
	}
	return nil
}

// once returns a Secret, and makes it with make if it does not exist. It creates and never applies: an existing Secret,
// seen or not, keeps its content. Only the labels and owner follow the specification.
func (r *Reconciler) once(ctx context.Context, s *scope.Scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	secret, err := r.existing(ctx, s, name, make)
	if err != nil {
		return nil, err
	}
	return secret, r.adopt(ctx, s, render.RootSecret(s.In, ""), secret)
}

// existing returns a Secret unchanged, and makes it with make if it does not exist.
func (r *Reconciler) existing(ctx context.Context, s *scope.Scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: s.Key.Namespace, Name: name}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, key, make)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return secret, nil
}

func (r *Reconciler) create(ctx context.Context, key types.NamespacedName, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	secret, err := make()
	if err != nil {
		return nil, err
	}
	// The owner is applied afterwards, so that it can be removed again.
	secret.OwnerReferences = nil
	err = r.Client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagerController))
	if apierrors.IsAlreadyExists(err) {
		secret = &corev1.Secret{}
		err = r.Live.Get(ctx, key, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("create secret %s: %w", key.Name, err)
	}
	return secret, nil
}

// adopt applies the labels and owner of bare, and no content. The uid keeps the apply from making a Secret without content if it
// was deleted just now.
func (r *Reconciler) adopt(ctx context.Context, s *scope.Scope, bare, secret *corev1.Secret) error {
	bare.Name, bare.UID, bare.Data, bare.Type = secret.Name, secret.UID, nil, ""
	return r.apply.ApplyOver(ctx, s.Group, bare, secret)
}
