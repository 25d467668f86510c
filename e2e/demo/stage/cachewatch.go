// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// CacheWatch gathers the promotions that a group has on record of its cache: status keeps the last one only.
type CacheWatch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	last v1alpha1.CachePromotion
	seen []v1alpha1.CachePromotion
}

// watchEvery is how often it looks; two promotions in less would count as one.
const watchEvery = 100 * time.Millisecond

// WatchCache begins to gather what is put on record from now on.
func (g *Group) WatchCache(ctx context.Context) *CacheWatch {
	w := &CacheWatch{}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if group, err := g.Get(ctx); err == nil && group.Status.Cache != nil && group.Status.Cache.LastPromotion != nil {
		w.last = *group.Status.Cache.LastPromotion
	}
	w.done.Go(func() {
		for ctx.Err() == nil {
			if group, err := g.Get(ctx); err == nil {
				w.Note(group)
			}
			select {
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
		}
	})
	return w
}

// Note takes in what a group has on record.
func (w *CacheWatch) Note(group *v1alpha1.MysqlFailoverGroup) {
	if group.Status.Cache == nil || group.Status.Cache.LastPromotion == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := *group.Status.Cache.LastPromotion
	if p.At.Equal(&w.last.At) {
		return
	}
	w.last, w.seen = p, append(w.seen, p)
}

// Seen are the promotions so far, the oldest first.
func (w *CacheWatch) Seen() []v1alpha1.CachePromotion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// Said are the same as text.
func (w *CacheWatch) Said() []string {
	var all []string
	for _, p := range w.Seen() {
		all = append(all, fmt.Sprintf("%s to %s by %s, sessions preserved %t %s, %d ms", p.Kind, p.To, p.Method, p.SessionsPreserved, p.Reason, p.TookMillis))
	}
	return all
}

// Stop ends the watch. It may be called more than once.
func (w *CacheWatch) Stop() {
	w.cancel()
	w.done.Wait()
}
