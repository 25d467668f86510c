// SPDX-License-Identifier: Apache-2.0

package cacheobjects

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// password makes the operator's own Secret hold what people ask for: the password of their Secret, or of the generated one itself. The pods
// mount the operator's and no other, in the engine's own words. When it changes, the one before stays beside it: the loop has each engine
// take the new one, without a restart, and has to get in with the old.
func (o *Objects) password(ctx context.Context, in render.Input) (Trouble, error) {
	name := v1alpha1.CacheAuthSecret(in.Group.Name)
	own, err := o.secret(ctx, in.Group, name)
	if err != nil {
		return Trouble{}, err
	}
	wanted, trouble, err := o.wanted(ctx, in, own)
	if err != nil || trouble != (Trouble{}) {
		return trouble, err
	}
	before := ""
	if own != nil {
		before = string(own.Data[render.CacheKeyKnown])
		if before == wanted {
			before = string(own.Data[v1alpha1.CachePasswordPrevious])
		}
	}
	if err := o.Apply(ctx, in.Group, render.CacheSecret(in, wanted, before)); err != nil {
		if why := Settle(err); why != "" {
			return Trouble{why, err.Error()}, nil
		}
		return Trouble{}, fmt.Errorf("apply secret %s: %w", name, err)
	}
	return Trouble{}, nil
}

// wanted is the password that people ask for. A generated Secret that is new gets one; one that is broken has to be put right by the person who
// broke it, or deleted.
func (o *Objects) wanted(ctx context.Context, in render.Input, own *corev1.Secret) (string, Trouble, error) {
	from, name := own, v1alpha1.CacheAuthSecret(in.Group.Name)
	theirs := in.Group.Spec.Cache.Auth.SecretName
	if theirs != "" && theirs != name {
		if v1alpha1.IsGeneratedSecret(theirs) {
			// Pods of an image that the group names would be given the password of MySQL, also that of another group.
			return "", Trouble{v1alpha1.ReasonSecretNotMeant, fmt.Sprintf("Secret %s has a name under which the operator keeps passwords of MySQL: make one for the cache, "+
				"and name it in spec.cache.auth.secretName", theirs)}, nil
		}
		var err error
		if from, err = o.secret(ctx, in.Group, theirs); err != nil {
			return "", Trouble{}, err
		}
		if name = theirs; from == nil {
			return "", Trouble{v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %s of spec.cache.auth does not exist: create it with the key %s", name, v1alpha1.CachePassword)}, nil
		}
	}
	if from == nil {
		return rand.Text(), Trouble{}, nil
	}
	password := string(from.Data[v1alpha1.CachePassword])
	if !render.ValidCachePassword(password) {
		return "", Trouble{v1alpha1.ReasonSecretUnusable, fmt.Sprintf("Secret %s: the key %s has to hold 8 to 128 letters, digits, '-', '_' and '.', and no end of line; "+
			"until then the cache keeps the password that it has", name, v1alpha1.CachePassword)}, nil
	}
	return password, Trouble{}, nil
}

// secret reads a Secret of the group's namespace; nil if there is none.
func (o *Objects) secret(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, name string) (*corev1.Secret, error) {
	out := &corev1.Secret{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return out, nil
}
