// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report"
)

// secrets makes what is generated once and never changed: the key pair that signs statements, and the passwords.
func (r *Reconciler) secrets(ctx context.Context, s *scope) error {
	authority, err := r.authority(ctx, s)
	if err != nil {
		return err
	}
	s.in.AuthorityPublic = string(authority.Data[render.KeyAuthorityPublic])
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
		_, err = render.Accounts(accounts)
	}
	if errors.Is(err, render.ErrSecretIncomplete) {
		text := fmt.Sprintf("Secret %s: %v; restore it from a backup: it holds the passwords of the operator's accounts",
			v1alpha1.AccountsSecret(s.key.Name), err)
		s.progress(stuck(report.ReasonSecretIncomplete, text), whenWaiting)
		r.say(s, "", report.AccountsMissing, text)
		return errStop
	}
	if err != nil {
		return err
	}
	_, err = r.once(ctx, s, v1alpha1.RootSecret(s.key.Name), func() (*corev1.Secret, error) {
		return render.RootSecret(s.in, rand.Text()), nil
	})
	return err
}

// authority returns the Secret with the key pair. A missing one is made anew even for a group that has run: without it
// no lease can be renewed. The sites then get the new public key one after the other.
func (r *Reconciler) authority(ctx context.Context, s *scope) (*corev1.Secret, error) {
	made := false
	secret, err := r.once(ctx, s, v1alpha1.AuthoritySecret(s.key.Name), func() (*corev1.Secret, error) {
		made = true
		private, public, err := newAuthority()
		if err != nil {
			return nil, err
		}
		return render.AuthoritySecret(s.in, private, public), nil
	})
	if err != nil {
		return nil, err
	}
	if made && s.group.Status.Epoch > 0 {
		r.Recorder.Emit(s.group, nil, report.AuthorityReplaced,
			"Secret %s was missing and was made anew; sites fence themselves until they have the new key", secret.Name)
	}
	if len(secret.Data[render.KeyAuthorityPublic]) == 0 || len(secret.Data[render.KeyAuthorityPrivate]) == 0 {
		text := fmt.Sprintf("Secret %s is incomplete; restore it, or delete it to have it made anew", secret.Name)
		s.progress(stuck(report.ReasonSecretIncomplete, text), whenWaiting)
		return nil, errStop
	}
	return secret, nil
}

func newAuthority() (private, public []byte, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate authority: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode authority: %w", err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(publicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode authority: %w", err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	public = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})
	return private, public, nil
}

// once returns a Secret, made by make if it does not exist. It is created, never applied: an existing one, seen or not,
// keeps its content. Only its labels and owner follow the specification.
func (r *Reconciler) once(ctx context.Context, s *scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: name}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if secret, err = r.create(ctx, key, make); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return secret, r.adopt(ctx, s, secret)
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

// adopt applies labels and owner, and nothing of the content. The uid keeps the apply from making a Secret without
// content if somebody has deleted it just now.
func (r *Reconciler) adopt(ctx context.Context, s *scope, secret *corev1.Secret) error {
	bare := render.RootSecret(s.in, "")
	bare.Name, bare.UID, bare.Data, bare.Type = secret.Name, secret.UID, nil, ""
	return r.apply.applyOver(ctx, s.group, bare, secret)
}
