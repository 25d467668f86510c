// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

const (
	// interval is from one look to the next while all is well.
	interval = 2 * time.Second
	// shortestPause keeps a loop that is asked to look again at once from taking the processor.
	shortestPause = 5 * time.Millisecond
	// failedPause follows a look that could not be acted on.
	failedPause = 500 * time.Millisecond
	// apiTimeout bounds one call to the API server, askTimeout one look at an engine, actTimeout one change at one.
	apiTimeout = 3 * time.Second
	askTimeout = 700 * time.Millisecond
	actTimeout = 2 * time.Second
)

// loop looks after the cache of one group. Its goroutine owns every field but those marked.
type loop struct {
	m     *Loops
	key   types.NamespacedName
	log   *slog.Logger
	stop  context.CancelFunc
	wakes chan struct{}
	// told is the last word from MySQL's failover, seen what this loop saw last. Any goroutine may use them.
	told atomic.Pointer[cache.MySQL]
	seen atomic.Pointer[seen]

	// durable is the part of status that was last read or persisted; loaded says that it was read at all.
	durable cache.Durable
	loaded  bool
	memory  cache.Memory
	links   map[string]*link
	said    said
	wrote   route
	failing failing
}

// seen is what a look found, for MySQL's failover.
type seen struct {
	at     time.Time
	synced []cache.Synced
}

// look is one look at a group.
type look struct {
	group    *v1alpha1.MysqlFailoverGroup
	pods     map[string]*corev1.Pod
	snapshot cache.Snapshot
	decision cache.Decision
	began    time.Time
}

func newLoop(m *Loops, key types.NamespacedName, stop context.CancelFunc) *loop {
	return &loop{m: m, key: key, stop: stop, wakes: make(chan struct{}, 1), links: map[string]*link{},
		log: m.Log.With("namespace", key.Namespace, "group", key.Name, "part", "cache")}
}

func (l *loop) wakeUp() {
	select {
	case l.wakes <- struct{}{}:
	default: // a wake is waiting already
	}
}

func (l *loop) run(ctx context.Context) {
	defer l.close()
	for ctx.Err() == nil {
		next, over := l.pass(ctx)
		if over {
			return
		}
		timer := time.NewTimer(max(next, shortestPause))
		select {
		case <-ctx.Done():
		case <-l.wakes:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (l *loop) close() {
	for _, link := range l.links {
		link.close()
	}
	l.seen.Store(nil)
	forget(l.key)
}

// pass looks once and acts on it. It returns when to look again, and whether nothing is left to look after.
func (l *loop) pass(ctx context.Context) (next time.Duration, over bool) {
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Client.Get(ctx, l.key, group); err != nil {
		if !apierrors.IsNotFound(err) {
			l.log.Error("read group", "error", err)
		}
		return time.Second, false
	}
	if l.isForeign(group.Status) || group.DeletionTimestamp != nil {
		l.loaded = false // another process may write meanwhile
		l.seen.Store(nil)
		return time.Second, false
	}
	if !l.m.Steady() {
		// Another process may lead, and may have moved the role: what this one knew makes the new master look like a second one (I22).
		l.loaded = false
		l.seen.Store(nil)
		return time.Second, false
	}
	if !enabled(group) {
		return l.clear(ctx, group)
	}
	if err := l.load(ctx); err != nil {
		l.log.Error("load status", "error", err)
		return time.Second, false
	}
	k := look{group: group, began: time.Now()}
	k.snapshot, k.pods = l.gather(ctx, group)
	k.decision = l.withTrouble(k.snapshot, withDrain(k.snapshot, cache.Decide(k.snapshot, l.memory)))
	l.memory = k.decision.Memory
	l.seen.Store(&seen{k.began, k.decision.Synced})
	failed := l.carryOut(ctx, k)
	k.decision = l.withFailure(k.decision, failed, time.Now())
	l.report(ctx, k, failed)
	if failed != nil {
		return l.failing.pause(), false
	}
	if k.decision.Next > 0 {
		return min(interval, k.decision.Next), false
	}
	return interval, false
}

// carryOut persists and performs. It does nothing that it could not persist.
func (l *loop) carryOut(ctx context.Context, k look) error {
	if err := k.decision.Check(k.snapshot); err != nil {
		return fmt.Errorf("nothing of it is done: %w", err)
	}
	if k.decision.Persist {
		if err := l.persist(ctx, k); err != nil {
			return err
		}
		l.emit(k)
	}
	return l.perform(ctx, k)
}

// clear removes what status says about a cache that is switched off.
func (l *loop) clear(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (time.Duration, bool) {
	l.seen.Store(nil)
	if err := l.refuse(ctx, group); err != nil {
		l.log.Error("answer request", "error", err)
		return time.Second, false
	}
	if group.Status.Cache == nil {
		return 0, true
	}
	if err := l.apply(ctx, group, v1alpha1.MysqlFailoverGroupStatus{}); err != nil && !apierrors.IsNotFound(err) {
		if !apierrors.IsConflict(err) {
			l.log.Error("clear status", "error", err)
		}
		return failedPause, false
	}
	return failedPause, false // once the cache of the manager shows it, the loop ends
}
