// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/cachedesk"
	"github.com/mysql-mfg/mfg/operator/monitor/evidence"
	"github.com/mysql-mfg/mfg/operator/monitor/workers"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// Access gives the operator's connection settings for one site.
type Access interface {
	// Site returns how to reach the admin interface of the MySQL in a pod.
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
	// Replication returns how a replica reaches a source site.
	Replication(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Source, error)
	// ReportKey returns the key with which a site authenticates its reports.
	ReportKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) ([]byte, error)
}

// Pusher pushes a statement to a sidecar and returns its report.
type Pusher interface {
	PushActiveSite(ctx context.Context, addr string, push wire.ActiveSite) (wire.Answer, error)
}

// LongWork is the work that runs beside the loop.
type LongWork interface {
	Busy(namespace, group, site string) (purpose string, busy bool)
	Windows(namespace, group string) []wire.Window
	// Leaving says whether the controller wants the role moved away from a site, and why.
	Leaving(namespace, group, site string) (reason string, wanted bool)
}

// Losses counts the rows of lost transactions beside the loop. It never blocks; done is false while it counts.
type Losses interface {
	Rows(group *v1alpha1.MysqlFailoverGroup, record v1alpha1.FailoverRecord, podIP string) (rows []v1alpha1.LostRows, state string, done bool)
}

// Publisher shows what was seen to those who watch. It never blocks.
type Publisher interface {
	Publish(wire.GroupStatus)
	Remove(namespace, group string)
}

// Options is what a Monitor is made of.
type Options struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Cache  cache.Cache

	Access   Access
	Keys     *signing.Keys
	Push     Pusher
	LongWork LongWork
	Losses   Losses
	Board    Publisher
	// Caches looks after the caches; nil without any.
	Caches cachedesk.Port
	Events *events.Recorder
	Log    *slog.Logger
	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election.
	Lease string
	// Former says until when an earlier leader may have answered for a group whose loop began at that time; zero if unknown, nil if never known.
	Former func(group *v1alpha1.MysqlFailoverGroup, started time.Time) time.Time
}

// Monitor owns the loops. It runs only while this process leads.
type Monitor struct {
	Options
	Explanations
	pulse   authority.Pulse
	workers *workers.Pool
	// ends holds the pods that have ended; it locks itself.
	ends evidence.EndedPods
	// signing holds one entry for each signature under way.
	signing chan struct{}

	mu      sync.Mutex
	running context.Context
	wanted  map[types.NamespacedName]bool
	// hasty and idle permit polls outside the turns of the groups.
	hasty, idle flowcontrol.PassiveRateLimiter
	loops       map[types.NamespacedName]*loop
	// ending are the loops that were forgotten and still run.
	ending map[*loop]bool
	done   sync.WaitGroup
}

// How many polls per second are permitted outside the turns of the groups and the looks that have something to do: for
// groups where a site may have to take over, enough for 66 of them all the time, and for those where none can. A thousand
// groups make 500 polls a second, and many more would not be answered in time.
const (
	hastyPerSecond = 100
	idlePerSecond  = 50
)

// permits says whether a group that is not well may be polled outside its turn.
func (m *Monitor) permits(t failover.Topology) bool {
	if t == failover.TopologyUninitialised || t == failover.TopologyAllUnreachable {
		return m.idle.TryAccept()
	}
	return m.hasty.TryAccept()
}

// New makes a Monitor.
func New(o Options) *Monitor {
	return &Monitor{Options: o, workers: workers.New(), signing: make(chan struct{}, runtime.GOMAXPROCS(0)),
		hasty:  flowcontrol.NewTokenBucketPassiveRateLimiter(hastyPerSecond, hastyPerSecond),
		idle:   flowcontrol.NewTokenBucketPassiveRateLimiter(idlePerSecond, idlePerSecond),
		wanted: map[types.NamespacedName]bool{}, loops: map[types.NamespacedName]*loop{}, ending: map[*loop]bool{}}
}

// NeedLeaderElection says that two monitors must never run at once.
func (m *Monitor) NeedLeaderElection() bool { return true }

// Leading is true while the loops run.
func (m *Monitor) Leading() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running != nil && m.running.Err() == nil
}

// Start runs the loops until ctx ends.
func (m *Monitor) Start(ctx context.Context) error {
	if err := m.watch(ctx); err != nil {
		return err
	}
	m.pulse.Beat(time.Now())
	m.done.Go(func() { m.beats(ctx) })
	m.mu.Lock()
	m.running = ctx
	for key := range m.wanted {
		m.startLocked(key)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.done.Wait()
	return nil
}

// Ensure starts the loop of a group if none runs.
func (m *Monitor) Ensure(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted[key] = true
	if m.running != nil && m.loops[key] == nil {
		m.startLocked(key)
	}
}

// Forget ends the loop of a group.
func (m *Monitor) Forget(key types.NamespacedName) {
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
func (m *Monitor) Ended(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for l := range m.ending {
		if l.key == key {
			return false
		}
	}
	return m.loops[key] == nil
}

func (m *Monitor) startLocked(key types.NamespacedName) {
	ctx, stop := context.WithCancel(m.running)
	l := newLoop(m, key, stop)
	m.loops[key] = l
	m.done.Go(func() {
		l.run(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.ending, l)
	})
}

func (m *Monitor) loop(key types.NamespacedName) *loop {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loops[key]
}

// watch wakes a group's loop when one of its pods or its object changes, so that it need not wait for the next poll.
func (m *Monitor) watch(ctx context.Context) error {
	wake := func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		switch o := obj.(type) {
		case *corev1.Pod:
			if o.Labels[v1alpha1.LabelName] != v1alpha1.NameMySQL {
				return // a cache's pod runs no site's MySQL
			}
			m.wake(types.NamespacedName{Namespace: o.Namespace, Name: o.Labels[v1alpha1.LabelGroup]})
		case *v1alpha1.MysqlFailoverGroup:
			m.wake(client.ObjectKeyFromObject(o))
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake,
		UpdateFunc: func(before, after any) {
			if relevant(before, after) {
				wake(after)
			}
		},
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &v1alpha1.MysqlFailoverGroup{}} {
		informer, err := m.Cache.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// relevant leaves out what the loop itself writes, or every pass would cause the next.
func relevant(before, after any) bool {
	switch o := after.(type) {
	case *corev1.Pod:
		old, ok := before.(*corev1.Pod)
		return !ok || old.Status.Phase != o.Status.Phase || old.Status.PodIP != o.Status.PodIP || restarts(old) != restarts(o) ||
			(old.DeletionTimestamp == nil) != (o.DeletionTimestamp == nil)
	case *v1alpha1.MysqlFailoverGroup:
		old, ok := before.(*v1alpha1.MysqlFailoverGroup)
		return !ok || old.Generation != o.Generation || !sameAnnotations(old.Annotations, o.Annotations) || !sameMarks(old.Status.Sites, o.Status.Sites) ||
			!equality.Semantic.DeepEqual(old.Status.Claim, o.Status.Claim)
	}
	return true
}

// sameMarks compares the controller's notes on the sites' data. A first opening waits for it.
func sameMarks(before, after []v1alpha1.SiteStatus) bool {
	return slices.EqualFunc(before, after, func(a, b v1alpha1.SiteStatus) bool {
		return a.Name == b.Name && a.Provisioned == b.Provisioned && a.VolumeID == b.VolumeID && a.Unlisted == b.Unlisted
	})
}

func restarts(pod *corev1.Pod) int32 {
	var n int32
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
		if c.State.Running != nil {
			n += 1 << 16
		}
	}
	return n
}

func sameAnnotations(a, b map[string]string) bool {
	return sameOrders(a, b) && v1alpha1.SameKeptFenced(a, b)
}

// sameOrders is true if the annotations of two states of a group order, abort and pause the same failovers.
func sameOrders(a, b map[string]string) bool {
	for _, key := range []string{v1alpha1.AnnotationForceFailover, v1alpha1.AnnotationPlannedFailover,
		v1alpha1.AnnotationAbortFailover, v1alpha1.AnnotationPauseUntil} {
		before, had := a[key]
		if after, has := b[key]; before != after || had != has {
			return false
		}
	}
	return true
}

func (m *Monitor) wake(key types.NamespacedName) {
	if l := m.loop(key); l != nil {
		l.wakeUp()
	}
}
