// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// Cutoff answers GET /pitr-cutoff. Anyone may ask: the answer comes from memory, but for the signing key, which is read once in a
// while. The answer about a group that archives nothing is not signed, and no archiver acts on it.
func (a *Archiving) Cutoff(ctx context.Context, namespace, group string) (wire.CutoffAnswer, error) {
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := a.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: group}, g); err != nil {
		// From memory: there is none, or this release does not look after the namespace. The client chooses the names, so nothing is logged.
		return wire.CutoffAnswer{}, wire.ErrUnknownGroup
	}
	if !a.mine(g) {
		return wire.CutoffAnswer{}, wire.ErrUnknownGroup
	}
	all, err := a.backups(ctx, g)
	if err != nil {
		return wire.CutoffAnswer{}, err
	}
	var place v1alpha1.StoragePlace
	if enabled(g) {
		place = placeOf(g)
	}
	answer := wire.CutoffAnswer{Cutoff: pitr.CutoffOf(g, all, place)}
	if place.Location == "" {
		return answer, nil
	}
	key, err := a.keys.of(ctx, a.Keys, g, a.Now())
	if err != nil {
		return wire.CutoffAnswer{}, err
	}
	if len(key.Chain) > 1 {
		answer.Keys = key.Chain
	}
	answer.Signed, err = wire.SignCutoff(key.Private, answer.Cutoff)
	return answer, err
}

const (
	// keyAge is how long a key is used after it was read; a newer key leads back to it by its chain. keyRetry is the pause before the
	// next try after a key could not be read.
	keyAge   = time.Minute
	keyRetry = 5 * time.Second
	// keysMost bounds how many keys are remembered.
	keysMost = 4096
)

// keyCache keeps strangers from causing a request to the API server with each of theirs.
type keyCache struct {
	mu    sync.Mutex
	known map[types.UID]cachedKey
}

type cachedKey struct {
	key   signing.Key
	err   error
	until time.Time
}

func (c *keyCache) of(ctx context.Context, keys Keys, group *v1alpha1.MysqlFailoverGroup, now time.Time) (signing.Key, error) {
	c.mu.Lock()
	known, ok := c.known[group.UID]
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.key, known.err
	}
	key, err := keys.Read(ctx, group)
	entry := cachedKey{key: key, err: err, until: now.Add(keyAge)}
	if err != nil {
		entry.until = now.Add(keyRetry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= keysMost {
		c.known = map[types.UID]cachedKey{} // those in use come back
	}
	c.known[group.UID] = entry
	return key, err
}
