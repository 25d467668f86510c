// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/ed25519"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/signing"
)

var eventAuthorityReplaced = events.Warning(v1alpha1.ReasonAuthorityReplaced, "Create")

// authority keeps the key that signs statements, and decides which key each site trusts first. It makes a missing key again even
// for a group that has run: without it no lease can be renewed.
func (r *Reconciler) authority(ctx context.Context, s *scope.Scope) error {
	key, err := r.Keys.Read(ctx, s.Group)
	if apierrors.IsNotFound(err) {
		key, err = r.makeKey(ctx, s)
	}
	if errors.Is(err, signing.ErrIncomplete) {
		s.Progress(scope.Stuck(v1alpha1.ReasonSecretIncomplete, err.Error()+"; restore it, or delete it to have it made again"), scope.WhenWaiting)
		return scope.ErrStop
	}
	if err != nil {
		return err
	}
	if unanchored(s) {
		if err := r.Keys.DropFormer(ctx, s.Group); err != nil {
			return err
		}
	}
	if key, err = r.linkKey(ctx, s, key); err != nil {
		return err
	}
	s.In.Anchors = map[string]string{}
	names := s.Sites()
	for site := range s.Deployments {
		names[site] = v1alpha1.Site{Name: site} // also for a site that is about to go
	}
	for site := range names {
		s.In.Anchors[site] = wire.EncodeKey(anchor(s.Deployments[site], key, s.Facts.SignedBy))
	}
	return nil
}

// anchor is the key that the pod of a site trusts first. It stays the same as long as it leads to the key that signs, so that a change
// of the key replaces no pod. If it leads nowhere, because the former key was lost, the site gets another anchor with its next pod,
// when the update of the group reaches it.
func anchor(current *appsv1.Deployment, key signing.Key, signedBy ed25519.PublicKey) ed25519.PublicKey {
	if current != nil {
		if trusted, err := wire.ParseKey(current.Annotations[v1alpha1.AnnotationAuthority]); err == nil && key.Chain.Has(trusted) {
			return trusted
		}
	}
	if key.Chain.Has(signedBy) {
		return signedBy // the key that signs now; the key in the Secret may still wait for that
	}
	return key.Public()
}

// unanchored is true while a site has the pod of an older operator, which trusts the key in its ConfigMap.
func unanchored(s *scope.Scope) bool {
	for _, d := range s.Deployments {
		if _, is := d.Annotations[v1alpha1.AnnotationAuthority]; !is {
			return true
		}
	}
	return false
}

// makeKey gives a group its key: the one that an older operator kept beside the group, or a new one. Only a group none of whose
// pods has an anchor can get the old one: anyone who may make Secrets there could have put it there.
func (r *Reconciler) makeKey(ctx context.Context, s *scope.Scope) (signing.Key, error) {
	if allUnanchored(s) {
		former, found, err := r.Keys.Former(ctx, s.Group)
		if err != nil {
			return signing.Key{}, err
		}
		if found {
			return r.Keys.Create(ctx, s.Group, former)
		}
	}
	key, err := signing.New()
	if err != nil {
		return signing.Key{}, err
	}
	text := "the old signing key is lost, so no site accepts what the new one signs: the pods are replaced one after the other, " +
		"and if the active site is lost before that, no site takes over. A backup of the Secret ends this at once"
	if s.Facts.Vouch != nil {
		key.Chain = s.Facts.Vouch(key.Public())
		text = "the operator still has the former one and vouches for it, so every site takes it, and no pod is replaced"
	}
	kept, err := r.Keys.Create(ctx, s.Group, key)
	if err == nil && kept.Private.Equal(key.Private) && s.Group.Status.Epoch > 0 {
		r.Recorder.Emit(s.Group, nil, eventAuthorityReplaced, "Secret %s/%s was missing and was made again; %s",
			r.Keys.Namespace, v1alpha1.AuthoritySecret(s.Group.UID), text)
	}
	return kept, err
}

// allUnanchored is true for a group that has pods, all of which an older operator made.
func allUnanchored(s *scope.Scope) bool {
	for _, d := range s.Deployments {
		if _, is := d.Annotations[v1alpha1.AnnotationAuthority]; is {
			return false
		}
	}
	return len(s.Deployments) > 0
}

// linkKey lets the key that still signs vouch for a key that came into the Secret unvouched, for example because a person put it there.
func (r *Reconciler) linkKey(ctx context.Context, s *scope.Scope, key signing.Key) (signing.Key, error) {
	if s.Facts.Vouch == nil || key.Chain.Has(s.Facts.SignedBy) {
		return key, nil
	}
	key.Chain = s.Facts.Vouch(key.Public())
	return key, r.Keys.Link(ctx, s.Group, key)
}
