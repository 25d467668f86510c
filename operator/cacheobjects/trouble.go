// SPDX-License-Identifier: Apache-2.0

package cacheobjects

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/render"
)

// ErrForeign is in what Apply returns for an object that belongs to somebody else.
var ErrForeign = errors.New("belongs to somebody else")

// Settle is the reason of an error that a person has to settle; empty for one that goes away.
func Settle(err error) v1alpha1.Reason {
	switch {
	case errors.Is(err, ErrForeign):
		return v1alpha1.ReasonForeignObject
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return v1alpha1.ReasonObjectRefused
	}
	return ""
}

// Trouble is what a person has to settle before the cache works. The condition CacheReady, which operator/cache writes, is false with it.
type Trouble struct {
	Reason  v1alpha1.Reason
	Message string
}

// Troubles are those of all groups. It may be used by several goroutines.
type Troubles struct {
	mu sync.Mutex
	of map[types.NamespacedName]Trouble
}

// Of is the trouble of a group's cache; empty if there is none.
func (t *Troubles) Of(key types.NamespacedName) (reason v1alpha1.Reason, message string) {
	reason, message, _ = t.Known(key)
	return reason, message
}

// Known is the trouble of a group's cache, empty if there is none, and whether this process has looked for one at all: one that has just
// begun must not say that all is well.
func (t *Troubles) Known(key types.NamespacedName) (reason v1alpha1.Reason, message string, looked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	trouble, looked := t.of[key]
	return trouble.Reason, trouble.Message, looked
}

// Forget drops what is kept of a group that is gone, or has no cache.
func (t *Troubles) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

func (t *Troubles) set(key types.NamespacedName, trouble Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[types.NamespacedName]Trouble{}
	}
	t.of[key] = trouble
}

// checkTLS checks that the group's certificate is good for the cache, too. MySQL runs without that.
func (o *Objects) checkTLS(ctx context.Context, in render.Input) (Trouble, error) {
	if !render.CacheTLS(in.Group) {
		return Trouble{}, nil
	}
	name := in.Group.Spec.TLS.Secret(in.Group.Name)
	secret, err := o.secret(ctx, in.Group, name)
	switch {
	case err != nil:
		return Trouble{}, err
	case secret == nil:
		return Trouble{v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %s of spec.tls does not exist; the cache waits for it", name)}, nil
	}
	err = access.CheckTLS(secret, render.CacheHosts(in.Group), time.Now())
	switch {
	case errors.Is(err, access.ErrTLSNames):
		return Trouble{v1alpha1.ReasonWrongNames, fmt.Sprintf("Secret %s: %v; issue the certificate for the cache's Services, too, or set spec.cache.tls.enabled to false", name, err)}, nil
	case err != nil:
		return Trouble{v1alpha1.ReasonSecretUnusable, fmt.Sprintf("Secret %s: %v", name, err)}, nil
	}
	return Trouble{}, nil
}
