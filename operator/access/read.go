// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// secret returns a Secret of a group as read at most SecretAge ago; if it cannot be read now, or not in time, as last read.
func (a *Access) secret(ctx context.Context, from client.Reader, group *v1alpha1.MysqlFailoverGroup, name types.NamespacedName) (*corev1.Secret, error) {
	at := place{client.ObjectKeyFromObject(group), group.UID, name}
	have, ok := a.known(at)
	if !ok || !time.Now().Before(have.until) {
		if err := a.readAgain(ctx, from, at, have.until, ok); err != nil && !ok {
			return nil, err
		}
		have, _ = a.known(at)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: have.trusted(time.Now())}, nil
}

func (a *Access) known(at place) (known, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	have, ok := a.read[at]
	return have, ok
}

// readAgain has a Secret read and waits for it: without bound but ctx if nothing is known of it, else for rereadPatience.
func (a *Access) readAgain(ctx context.Context, from client.Reader, at place, until time.Time, ok bool) error {
	done := a.reading.DoChan(at.key(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return nil, a.readOne(ctx, from, at)
	})
	var late <-chan time.Time
	if ok {
		timer := time.NewTimer(rereadPatience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case read := <-done:
		return read.Err
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		a.mu.Lock()
		defer a.mu.Unlock()
		if have := a.read[at]; have.until.Equal(until) { // nobody has read it meanwhile
			have.until = time.Now().Add(rereadPause)
			a.read[at] = have
		}
		return nil
	}
}

// key tells places apart. No part of it has a slash.
func (p place) key() string {
	return string(p.uid) + "/" + p.group.String() + "/" + p.name.String()
}

// serversCache allows an answer from the API server's memory, which costs it a fraction of a read from etcd.
var serversCache = &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}

// unchanged is true if the API server's memory holds the version of a Secret that was read last. A thousand groups have six thousand Secrets,
// which hardly ever change. That memory can be behind by moments, so it may only say that nothing changed; all else is read from etcd.
func unchanged(ctx context.Context, from client.Reader, name types.NamespacedName, version string) bool {
	if version == "" {
		return false
	}
	secret := &corev1.Secret{}
	return from.Get(ctx, name, secret, serversCache) == nil && secret.ResourceVersion == version
}

// readOne reads a Secret and keeps it. The last known content is better than no connection: if it is wrong now, the server refuses it.
func (a *Access) readOne(ctx context.Context, from client.Reader, at place) error {
	now := time.Now()
	if have, ok := a.known(at); ok && unchanged(ctx, from, at.name, have.version) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if have := a.read[at]; have.version != "" {
			have.until = now.Add(SecretAge)
			a.read[at] = have
		}
		return nil
	}
	secret := &corev1.Secret{}
	err := from.Get(ctx, at.name, secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	have, ok := a.read[at]
	switch {
	case apierrors.IsNotFound(err) && ok:
		// Deleting a Secret changes nothing on the servers, but without its content no failover would be possible any more.
		if have.missing != wholeSecret {
			log.FromContext(ctx).Error(err, "a Secret of the group is gone: what was read of it before is used until the operator restarts; restore it",
				"namespace", at.group.Namespace, "group", at.group.Name, "secret", at.name.Name)
		}
		have.missing, have.version, have.until = wholeSecret, "", now.Add(SecretAge)
		a.read[at] = have
		return nil
	case err != nil:
		return err
	}
	next := have.after(secret, now)
	if next.missing != "" && next.missing != have.missing {
		// Nor does emptying a Secret change anything on the servers.
		log.FromContext(ctx).Error(ErrSecretIncomplete, "a Secret of the group lacks keys: what was read of them before is used until the operator restarts; restore it",
			"namespace", at.group.Namespace, "group", at.group.Name, "secret", at.name.Name, "keys", next.missing)
	}
	a.read[at] = next
	return nil
}
