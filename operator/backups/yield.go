// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
)

// yieldInterval is how often watch checks whether a site that is being copied is needed. The facts are the poll loop's, in memory.
const yieldInterval = 200 * time.Millisecond

// ends tracks which backups' sessions are being ended. The zero value is ready.
type ends struct {
	mu      sync.Mutex
	running sync.WaitGroup
	// begun is when the sessions of an attempt were last ended.
	begun map[types.NamespacedName]time.Time
	// busy are those being ended now.
	busy map[types.NamespacedName]bool
}

// endAgain is how soon the sessions of a backup that still runs are ended again: it may have just been connecting.
const endAgain = 2 * time.Second

// begin returns false if that is under way, or was done a moment ago.
func (e *ends) begin(key types.NamespacedName) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun == nil {
		e.begun, e.busy = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]bool{}
	}
	if e.busy[key] || time.Since(e.begun[key]) < endAgain {
		return false
	}
	e.begun[key], e.busy[key] = time.Now(), true
	return true
}

func (e *ends) end(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.busy, key)
	for other, at := range e.begun {
		if time.Since(at) > time.Minute {
			delete(e.begun, other)
		}
	}
}

// NeedLeaderElection says that only the leader ends sessions.
func (b *Backups) NeedLeaderElection() bool { return true }

// Start watches the sites that are being copied until ctx ends. It runs beside the reconciles, so that no hanging request keeps a lock on a site
// that must be promoted (I24).
func (b *Backups) Start(ctx context.Context) error {
	ticker := time.NewTicker(yieldInterval)
	defer ticker.Stop()
	defer b.ends.running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			b.watch(ctx)
		}
	}
}

// watch ends the sessions of every backup that must get out of the way. The reconcile that it wakes records that; ending them again, or too
// early, costs only an attempt.
func (b *Backups) watch(ctx context.Context) {
	var open v1alpha1.MysqlBackupList
	if err := b.Client.List(ctx, &open, client.MatchingFields{indexOpen: isOpen}, client.UnsafeDisableDeepCopy); err != nil {
		return // from memory: it fails only at shutdown
	}
	for i := range open.Items {
		mb := &open.Items[i]
		if mb.Status.Phase != v1alpha1.BackupRunning || mb.Status.Site == "" {
			continue
		}
		seen, known := b.Facts.Sites(mb.Namespace, mb.Spec.Group)
		if !known {
			continue
		}
		group := &v1alpha1.MysqlFailoverGroup{}
		if err := b.Client.Get(ctx, types.NamespacedName{Namespace: mb.Namespace, Name: mb.Spec.Group}, group); err != nil || !b.mine(group) {
			continue
		}
		profile := profileOf(group, mb.Spec.Profile)
		if profile == nil {
			continue // the reconcile stops it
		}
		if reason, _ := backup.Yield(groupFacts(group, seen), mb.Status.Site, prefer(profile)); reason == "" {
			continue
		}
		b.yield(ctx, group, client.ObjectKeyFromObject(mb), mb.Status.Site)
	}
}

func (b *Backups) yield(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, key types.NamespacedName, site string) {
	if !b.ends.begin(key) {
		return
	}
	b.ends.running.Go(func() {
		defer b.ends.end(key)
		b.wake(key)
		if err := b.endSessions(ctx, group, site); err != nil {
			b.Log.Warn("end the sessions of a backup", "namespace", key.Namespace, "group", group.Name, "backup", key.Name, "site", site, "error", err)
		}
	})
}
