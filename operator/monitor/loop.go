// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/cachedesk"
	"github.com/mysql-mfg/mfg/operator/monitor/groupevents"
	"github.com/mysql-mfg/mfg/operator/monitor/receivers"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// loop is the poll loop of one group. Its goroutine, or the worker that runs a pass for it, owns every field not marked.
type loop struct {
	m     *Monitor
	key   types.NamespacedName
	log   *slog.Logger
	stop  context.CancelFunc
	wakes chan struct{}

	authority *authority.Authority // locks itself
	// foreign is true while another release of the operator operates the group.
	foreign atomic.Bool
	facts   atomic.Pointer[Facts]

	client    *siteClient
	caches    cachedesk.Desk
	sites     map[string]*siteLink
	started   time.Time
	verifying receivers.Verifying
	// fenced holds what the operator fenced by SQL since the last poll, by site; it locks itself.
	fenced sync.Map
	signer signer

	// durable is the part of status that was last read or persisted; loaded is true once it was read.
	durable failover.Durable
	loaded  bool
	// tried is the last part that the loop tried to persist: if the outcome is unknown, it may be stored.
	tried failover.Durable
	// unwritten is true if the last decision could not be persisted and had to be.
	unwritten bool
	// move is the primary Service's last move beside the loop.
	move *move
	// version is the resource version that this loop wrote last. While the object has it, no one else has written.
	version string
	memory  failover.Memory
	said    said
	told    groupevents.Told
	// turns is the poll interval if all is well and the next look is an ordinary one, else 0.
	turns time.Duration
	// silent are the sites that did not answer the last poll.
	silent map[string]bool
	// looked is when the look began that the loop acts on.
	looked time.Time
}

func newLoop(m *Monitor, key types.NamespacedName, stop context.CancelFunc) *loop {
	log := m.Log.With("namespace", key.Namespace, "group", key.Name)
	signs := authority.New()
	return &loop{
		m: m, key: key, stop: stop, wakes: make(chan struct{}, 1), log: log, client: &siteClient{m: m, key: key, log: log},
		authority: signs, signer: signer{m: m, authority: signs, log: log}, sites: map[string]*siteLink{}, started: time.Now(), caches: cachedesk.Desk{Port: m.Caches, Key: key}, told: groupevents.Told{Key: key},
	}
}

func (l *loop) wakeUp() {
	select {
	case l.wakes <- struct{}{}:
	default: // a wake is waiting already
	}
}

// shortestPause keeps a loop that must look again at once from using up the processor.
const shortestPause = 5 * time.Millisecond

func (l *loop) run(ctx context.Context) {
	defer l.close()
	for ctx.Err() == nil {
		l.turns = 0
		var next time.Duration
		l.m.workers.Wait(func() { next = l.pass(ctx) })
		l.await(ctx, time.Now().Add(max(next, shortestPause)))
	}
}

// lateTurn is how late a turn may come: far longer than a process with enough CPU waits.
const lateTurn = 250 * time.Millisecond

// await waits until the next look is due, or something wakes the loop. A late turn is left out, once: this process stood
// still, and if it polled all groups that missed their turns at once, none of them would get answers in time.
func (l *loop) await(ctx context.Context, due time.Time) {
	if !l.sleep(ctx, time.Until(due)) || l.turns == 0 || time.Since(due) < lateTurn {
		return
	}
	l.sleep(ctx, turn(l.key, l.turns, time.Now()))
}

// sleep returns false if something came before its end.
func (l *loop) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.wakes:
		return false
	case <-timer.C:
		return true
	}
}

func (l *loop) close() {
	for _, link := range l.sites {
		link.close()
	}
	l.m.Drop(l.key)
	l.m.Board.Remove(l.key.Namespace, l.key.Name)
	metrics.ForgetGroup(l.key.Namespace, l.key.Name)
}

// pass runs the five beats once and returns when to look again.
func (l *loop) pass(ctx context.Context) time.Duration {
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Client.Get(ctx, l.key, group); err != nil {
		if !apierrors.IsNotFound(err) {
			l.log.Error("read group", "error", err)
		}
		return time.Second
	}
	if l.isForeign(group.Status) {
		// Another release operates it. The controller ends this loop; until then this one says, does and answers nothing for the group.
		l.foreign.Store(true)
		return time.Second
	}
	if l.foreign.Swap(false) {
		l.loaded, l.started = false, time.Now() // what others answered meanwhile is unknown here (I4, I9)
	}
	if group.DeletionTimestamp != nil {
		l.watch(ctx, group)
		return time.Second
	}
	if err := l.load(ctx, group); err != nil {
		l.log.Error("load status", "error", err)
		return time.Second
	}
	l.signer.look(ctx, group)
	began := time.Now()
	l.looked = began
	snapshot := l.gather(ctx, group)
	decision := failover.Decide(snapshot, l.memory)
	l.client.tellRefusals(decision.Views)
	l.m.Keep(l.key, snapshot, l.memory, decision)
	l.memory = decision.Memory
	l.publishFacts(group, snapshot, decision)
	l.signer.take(snapshot)

	performed := l.carryOut(ctx, group, snapshot, decision)
	if performed == nil {
		l.givePasswords(ctx, group, snapshot, decision)
		sources{l, group}.verify(ctx, snapshot, decision)
	}
	done := time.Now()
	l.report(ctx, group, snapshot, decision, performed)
	l.log.Debug("pass", "gather", snapshot.Now.Sub(began), "act", done.Sub(snapshot.Now), "report", time.Since(done), "verdict", decision.Verdict,
		"reason", decision.Reason, "message", decision.Message)
	return l.next(decision, snapshot.Policy, performed)
}

// watch looks at the sites of a group that is being deleted, for the code that waits until a keyring is in escrow before its pod
// ends. It decides and does nothing, and the last statement stays valid: the sites are only asked.
func (l *loop) watch(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	if err := l.load(ctx, group); err != nil {
		l.log.Error("load status of a group that is being deleted", "error", err)
		return
	}
	snapshot := l.gather(ctx, group)
	l.publishFacts(group, snapshot, failover.Decide(snapshot, l.memory))
}

// carryOut persists and performs. The statement changes at the right moment: a hold at once, a new epoch or a release
// only once its basis is durable.
func (l *loop) carryOut(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) error {
	var unwritten error
	if d.Persist {
		detached := l.detachBeside(ctx, group, d)
		unwritten = l.persist(ctx, group, d)
		detached()
		if unwritten == nil {
			l.caches.Tell(d.Status) // in parallel with the rest, and the loop never waits for it
		}
	}
	l.unwritten = unwritten != nil
	if l.unwritten && !l.loaded {
		// The decision is not durable, so no one may act on it. The old statement stays valid, with a hold.
		l.state(group, s, l.durable, true)
		return unwritten
	}
	l.state(group, s, d.Status, d.Hold)
	return errors.Join(unwritten, l.perform(ctx, group, s, d))
}

// state replaces the valid statement.
func (l *loop) state(group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, durable failover.Durable, hold bool) {
	if durable.Epoch == 0 {
		return
	}
	l.authority.Set(wire.Statement{
		Namespace: l.key.Namespace, Group: l.key.Name,
		ActiveSite: durable.ActiveSite, Epoch: durable.Epoch, Hold: hold,
		LeaseTimeoutMillis: s.Policy.LeaseTimeout.Milliseconds(),
		Windows:            l.m.LongWork.Windows(group.Namespace, group.Name),
	}, podUIDs(s.Sites, l.durable), time.Now())
}

// turn is how long it is until a group's turn to be polled: each has its own moment of the interval. If each came an
// interval after its last poll instead, groups would fall into step whenever the processor is busy, and stay so.
func turn(key types.NamespacedName, interval time.Duration, now time.Time) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String()))
	moment := time.Duration(h.Sum64() % uint64(interval))
	return interval - (time.Duration(now.UnixNano())-moment)%interval
}

// next says when to look again: once per poll interval while all is well, else four times as often. If very many groups are
// not well, only some get that: with too many polls to answer in time, even healthy groups would look silent, and would be
// polled more often for it.
func (l *loop) next(d failover.Decision, p failover.Policy, failed error) time.Duration {
	if errors.Is(failed, errOvertaken) || apierrors.IsConflict(failed) {
		return 0 // nothing was done: look and decide again
	}
	next := turn(l.key, p.PollInterval, time.Now())
	switch {
	case d.Topology == failover.TopologyHealthy && d.Next == 0 && failed == nil:
		l.turns = p.PollInterval
	case d.Topology != failover.TopologyHealthy && next > p.PollInterval/4 && l.m.permits(d.Topology):
		next = p.PollInterval / 4
	}
	if d.Next > 0 && failed == nil {
		next = min(next, d.Next)
	}
	return next
}
