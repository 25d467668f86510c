// SPDX-License-Identifier: Apache-2.0

// Package loop looks after the caches: it runs a goroutine for each group that has one, beside the poll loop of MySQL and never inside
// it. It gathers what operator/cache decides on, persists, performs and reports. Whatever hangs here does not hold up MySQL's failover:
// the monitor leaves a word in a mailbox and reads one, and no lock is held during any wait.
package loop

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// Access says how to reach the cache of a site.
type Access interface {
	Cache(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) (passwords []string, config *tls.Config, err error)
	// CacheCertificate is the certificate (DER) that the caches have to show; nil without TLS.
	CacheCertificate(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]byte, error)
}

// Engine is one cache engine. *engine.Client is one.
type Engine interface {
	Info(ctx context.Context) (engine.Info, error)
	Follow(ctx context.Context, host string, port int) error
	Promote(ctx context.Context) error
	CutClients(ctx context.Context) error
	Close()
}

// Troubles say what a person has to settle before the cache of a group works: what the objects of the cache lack. looked is false until
// the controller has looked for any.
type Troubles interface {
	Known(key types.NamespacedName) (reason v1alpha1.Reason, message string, looked bool)
}

// Options is what Loops are made of.
type Options struct {
	// Client reads from the manager's cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Access Access
	// Troubles may be nil: then there are none.
	Troubles Troubles
	Events   *events.Recorder
	Log      *slog.Logger
	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election.
	Lease string
	// Steady is false after this process was stopped for a while: another may lead by now. Without it none ever was.
	Steady func() bool
	// Dial connects to an engine, TakeOver has one take over from another. Without them the real ones are used.
	Dial     func(engine.Target) Engine
	TakeOver func(ctx context.Context, from, to Engine) error
}

// Loops are the loops of all groups. They run only while this process leads.
type Loops struct {
	Options

	mu      sync.Mutex // never held during a wait
	running context.Context
	wanted  map[types.NamespacedName]bool
	loops   map[types.NamespacedName]*loop
	ending  map[*loop]bool
	done    sync.WaitGroup
}

// New makes Loops.
func New(o Options) *Loops {
	if o.Dial == nil {
		o.Dial = func(t engine.Target) Engine { return engine.New(t) }
		o.TakeOver = takeOver
	}
	if o.Steady == nil {
		o.Steady = func() bool { return true }
	}
	return &Loops{Options: o, wanted: map[types.NamespacedName]bool{}, loops: map[types.NamespacedName]*loop{}, ending: map[*loop]bool{}}
}

func takeOver(ctx context.Context, from, to Engine) error {
	old, isOld := from.(*engine.Client)
	next, isNext := to.(*engine.Client)
	if !isOld || !isNext {
		return engine.ErrUnsupported
	}
	return engine.TakeOver(ctx, old, next)
}

// NeedLeaderElection says that two must never run at once.
func (m *Loops) NeedLeaderElection() bool { return true }

// Start runs the loops until ctx ends.
func (m *Loops) Start(ctx context.Context) error {
	m.mu.Lock()
	m.running = ctx
	keys := make([]types.NamespacedName, 0, len(m.wanted))
	for key := range m.wanted {
		keys = append(keys, key)
	}
	m.mu.Unlock()
	for _, key := range keys {
		m.Ensure(key)
	}
	<-ctx.Done()
	m.done.Wait()
	return nil
}

// Ensure starts the loop of a group that has a cache, or had one, if none runs. It may be called often.
func (m *Loops) Ensure(key types.NamespacedName) {
	m.mu.Lock()
	m.wanted[key] = true
	idle := m.running != nil && m.loops[key] == nil
	running := m.running
	m.mu.Unlock()
	if !idle {
		return
	}
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := m.Client.Get(running, key, group); err != nil || !concerned(group) {
		return // without a cache there is no goroutine; the change that adds one has the group reconciled
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted[key] && m.loops[key] == nil && m.running.Err() == nil {
		m.startLocked(key)
	}
}

// concerned is true for a group that has something to look after or to clear away.
func concerned(group *v1alpha1.MysqlFailoverGroup) bool {
	_, asked := group.Annotations[v1alpha1.AnnotationPromoteCache]
	return enabled(group) || group.Status.Cache != nil || asked
}

func enabled(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.Cache != nil && group.Spec.Cache.Enabled
}

func (m *Loops) startLocked(key types.NamespacedName) {
	ctx, stop := context.WithCancel(m.running)
	l := newLoop(m, key, stop)
	m.loops[key] = l
	m.done.Go(func() {
		l.run(ctx)
		stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.ending, l)
		if m.loops[key] == l {
			delete(m.loops, key) // it had nothing left to do; Ensure starts another if needed
		}
	})
}

// Forget ends the loop of a group.
func (m *Loops) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wanted, key)
	if l := m.loops[key]; l != nil {
		l.stop()
		delete(m.loops, key)
		m.ending[l] = true
	}
}

// Ended is true once no loop of a forgotten group runs any more.
func (m *Loops) Ended(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for l := range m.ending {
		if l.key == key {
			return false
		}
	}
	return m.loops[key] == nil
}

func (m *Loops) loop(namespace, group string) *loop {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loops[types.NamespacedName{Namespace: namespace, Name: group}]
}

// Moved tells the loop what MySQL's failover has decided and persisted, and wakes it. It never waits.
func (m *Loops) Moved(namespace, group string, now cache.MySQL) {
	if l := m.loop(namespace, group); l != nil {
		l.told.Store(&now)
		l.wakeUp()
	}
}

// readyFor is how long what a loop saw is believed.
const readyFor = 10 * time.Second

// Readiness says whether a planned failover of MySQL to a site would keep the sessions, as far as is known. It never waits.
func (m *Loops) Readiness(namespace, group, site string) cache.Readiness {
	l := m.loop(namespace, group)
	if l == nil {
		return cache.Readiness{}
	}
	seen := l.seen.Load()
	if seen == nil || time.Since(seen.at) > readyFor {
		return cache.Readiness{}
	}
	for _, s := range seen.synced {
		if s.Site == site {
			return cache.Readiness{Known: true, Synced: s.Yes, Why: s.Why}
		}
	}
	return cache.Readiness{}
}
