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
)

var eventAccountsMissing = events.Warning(v1alpha1.ReasonAccountsSecretMissing, "Wait")

// secrets makes what is generated once: the key that signs statements, and the passwords. How those are replaced: passwords.go.
func (r *Reconciler) secrets(ctx context.Context, s *scope) error {
	if err := r.authority(ctx, s); err != nil {
		return err
	}
	accounts, err := r.once(ctx, s, v1alpha1.AccountsSecret(s.key.Name), func() (*corev1.Secret, error) {
		if s.group.Status.Epoch > 0 {
			// New passwords would fit no server, and lock the operator out for good.
			return nil, fmt.Errorf("%w: it is missing, although the group has run", render.ErrSecretIncomplete)
		}
		return render.AccountsSecret(s.in, render.Passwords{
			Operator: rand.Text(), Replication: rand.Text(), Sidecar: rand.Text(), Clone: rand.Text(),
		}), nil
	})
	if err == nil {
		err = render.Accounts(accounts)
	}
	if errors.Is(err, render.ErrSecretIncomplete) {
		text := fmt.Sprintf("Secret %s: %v; restore it from a backup: it holds the passwords of the operator's accounts",
			v1alpha1.AccountsSecret(s.key.Name), err)
		s.progress(stuck(v1alpha1.ReasonSecretIncomplete, text), whenWaiting)
		r.base.say(s, "", eventAccountsMissing, text)
		return errStop
	}
	if err != nil {
		return err
	}
	s.accounts = accounts
	if _, err = r.once(ctx, s, v1alpha1.RootSecret(s.key.Name), func() (*corev1.Secret, error) {
		return render.RootSecret(s.in, rand.Text()), nil
	}); err != nil {
		return err
	}
	return r.reportKeys(ctx, s)
}

// reportKeys makes the key with which each site authenticates its reports. One that is deleted is made again: the running pod gets the
// new one within a minute or two, and until then its sidecar counts as silent.
func (r *Reconciler) reportKeys(ctx context.Context, s *scope) error {
	for _, site := range s.group.Spec.Sites {
		name := v1alpha1.ReportSecret(s.key.Name, site.Name)
		secret, err := r.existing(ctx, s, name, func() (*corev1.Secret, error) {
			key := make([]byte, wire.ReportKeyBytes)
			_, _ = rand.Read(key) // it never fails
			return render.ReportSecret(s.in, site.Name, key), nil
		})
		if err == nil {
			err = r.adopt(ctx, s, render.ReportSecret(s.in, site.Name, nil), secret)
		}
		if err != nil {
			return err
		}
		if len(secret.Data[v1alpha1.ReportKey]) != wire.ReportKeyBytes {
			s.progress(stuck(v1alpha1.ReasonSecretIncomplete, fmt.Sprintf("Secret %s has no key %q of %d bytes; delete it, and a new one is made",
				name, v1alpha1.ReportKey, wire.ReportKeyBytes)), whenWaiting)
			return errStop
		}
	}
	return nil
}

// once returns a Secret, made by make if it does not exist. It is created, never applied: an existing one, seen or not,
// keeps its content. Only its labels and owner follow the specification.
func (r *Reconciler) once(ctx context.Context, s *scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	secret, err := r.existing(ctx, s, name, make)
	if err != nil {
		return nil, err
	}
	return secret, r.adopt(ctx, s, render.RootSecret(s.in, ""), secret)
}

// existing returns a Secret as it is, made by make if it does not exist.
func (r *Reconciler) existing(ctx context.Context, s *scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: name}
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
	// The owner is applied afterwards, so that it can be taken away again.
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

// adopt applies labels and owner, those of bare, and nothing of the content. The uid keeps the apply from making a Secret without
// content if somebody has deleted it just now.
func (r *Reconciler) adopt(ctx context.Context, s *scope, bare, secret *corev1.Secret) error {
	bare.Name, bare.UID, bare.Data, bare.Type = secret.Name, secret.UID, nil, ""
	return r.apply.applyOver(ctx, s.group, bare, secret)
}
