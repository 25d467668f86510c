// SPDX-License-Identifier: Apache-2.0

// Package certificates is the shell around operator/certs: it keeps the authorities and certificates that the operator makes itself, those
// of groups with tls: {} and that of the escrow listener, in Secrets.
package certificates

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certs"
)

// mostSteps bounds the steps of one look. A lost authority of a new site takes four.
const mostSteps = 8

// errForeign means that a Secret with a needed name was not made for this.
var errForeign = errors.New("is there already and was not made for this")

// pair is the two Secrets of an authority and of what it signs.
type pair struct {
	client client.Client
	live   client.Reader

	namespace, authority, server string
	// labels are on both, and tell them from Secrets of others.
	labels map[string]string
	// authorityHeld and serverHeld are the Secrets as read; nil if one does not exist.
	authorityHeld, serverHeld *corev1.Secret
}

// read reads both. One that is not the operator's own is never touched.
func (p *pair) read(ctx context.Context) error {
	for name, into := range map[string]**corev1.Secret{p.authority: &p.authorityHeld, p.server: &p.serverHeld} {
		*into = nil
		secret := &corev1.Secret{}
		err := p.live.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read secret %s: %w", name, err)
		}
		*into = secret
	}
	return nil
}

// foreign returns the name of an existing Secret that is not the operator's own; empty if there is none.
func (p *pair) foreign() string {
	for _, secret := range []*corev1.Secret{p.authorityHeld, p.serverHeld} {
		if secret != nil && !isOwn(secret, p.labels) {
			return secret.Name
		}
	}
	return ""
}

// isOwn is true for a Secret with the labels that mark the operator's own.
func isOwn(secret *corev1.Secret, labels map[string]string) bool {
	for _, key := range []string{v1alpha1.LabelManagedBy, v1alpha1.LabelGroup, v1alpha1.LabelName} {
		if secret.Labels[key] != labels[key] {
			return false
		}
	}
	return true
}

// keep takes steps until nothing is left to do. It tells of each once that is durable.
func (p *pair) keep(ctx context.Context, state certs.State, tell func(certs.Decision)) (certs.Decision, error) {
	if err := p.read(ctx); err != nil {
		return certs.Decision{}, err
	}
	if name := p.foreign(); name != "" {
		return certs.Decision{}, fmt.Errorf("secret %s: %w", name, errForeign)
	}
	for range mostSteps {
		state.Authority, state.Server = dataOf(p.authorityHeld), dataOf(p.serverHeld)
		d := certs.Decide(state)
		if d.Step == certs.Nothing {
			return d, nil
		}
		data, err := state.Carry(d, rand.Reader)
		if errors.Is(err, certs.ErrUseless) {
			d.Step, d.Broken = certs.Nothing, err.Error()
			return d, nil
		}
		if err != nil {
			return d, fmt.Errorf("%s: %w", d.Step, err)
		}
		if err := p.write(ctx, d.Step.OfAuthority(), data); err != nil {
			return d, err
		}
		tell(d)
	}
	return certs.Decision{}, errors.New("the steps of a certificate come to no end")
}

// dataOf is nil only for a Secret that does not exist.
func dataOf(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	if secret.Data == nil {
		return map[string][]byte{}
	}
	return secret.Data
}

// write makes a Secret, or changes exactly the one that was read.
func (p *pair) write(ctx context.Context, ofAuthority bool, data map[string][]byte) error {
	name, held, kind := p.server, &p.serverHeld, corev1.SecretTypeTLS
	if ofAuthority {
		name, held, kind = p.authority, &p.authorityHeld, corev1.SecretTypeOpaque
	}
	if *held == nil {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: maps.Clone(p.labels)}, Type: kind, Data: data,
		}
		if err := p.client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagerController)); err != nil {
			return fmt.Errorf("create secret %s: %w", name, err)
		}
		*held = secret
		return nil
	}
	changed := (*held).DeepCopy()
	changed.Data = data
	patch := client.MergeFromWithOptions(*held, client.MergeFromWithOptimisticLock{})
	if err := p.client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.ManagerController)); err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	*held = changed
	return nil
}

// overtaken is true if another writer was faster: then the decision starts from what is stored.
func overtaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
