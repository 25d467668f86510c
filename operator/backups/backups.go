// SPDX-License-Identifier: Apache-2.0

// Package backups is the shell around operator/backup: it makes MysqlBackups by the schedules of groups, runs a Job for each, and records the
// result. It talks to no storage: docs/decisions/0025. No step of a failover waits for anything here; if a site is needed, this package
// releases what a backup holds on it (docs/internals/invariants.md, I23 and I24).
package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Access says how the operator reaches the MySQL of a site; *access.Access implements it.
type Access interface {
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
}

// Server is a site on which backups can be ended; *mysql.DB implements it.
type Server interface {
	EndBackups(ctx context.Context) (int, error)
	Close() error
}

// Options is what New makes Backups from.
type Options struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Facts    scope.Facts
	Access   Access
	Recorder *events.Recorder
	Log      *slog.Logger
	Install  render.Install
	// Limits bound which images Jobs may run.
	Limits limits.Limits
	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election.
	Lease string
	// AtOnce is how many backups run at a time, of all groups together, and how many verifications.
	AtOnce int
	// Dial opens a connection to a MySQL; nil means MySQL itself.
	Dial func(mysql.Target) (Server, error)
	// Now is the clock; nil means the machine's.
	Now func() time.Time
}

// Backups acts on MysqlBackups and on the schedules of groups.
type Backups struct {
	Options
	wakes chan event.TypedGenericEvent[types.NamespacedName]
	turns turns
	ends  ends

	mu sync.Mutex
	// shown are the profiles of each group that have metrics.
	shown map[types.NamespacedName][]string
}

// DefaultAtOnce is how many backups run at a time if nothing else is set.
const DefaultAtOnce = 5

// New makes Backups. SetupWithManager gives it to a manager.
func New(o Options) *Backups {
	if o.Dial == nil {
		o.Dial = func(t mysql.Target) (Server, error) { return mysql.Open(t) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.AtOnce <= 0 {
		o.AtOnce = DefaultAtOnce
	}
	return &Backups{Options: o, wakes: make(chan event.TypedGenericEvent[types.NamespacedName], 1024), shown: map[types.NamespacedName][]string{}}
}

// How soon something is looked at again without an event.
const (
	whenOvertaken = 200 * time.Millisecond
	whenMoving    = 2 * time.Second
	whenWaiting   = 10 * time.Second
	whenSettled   = 5 * time.Minute
	// whenFailed bounds the pause after an error of a group: one profile may fail for days, and the schedules of the others must not be late for it.
	whenFailed = 10 * time.Second

	reconcilers      = 2
	reconcileTimeout = time.Minute
)

// Indexes of the cache: the MysqlBackups of a group, and those that are waiting or being made.
const (
	indexGroup = "mfg.backups"
	indexOpen  = "mfg.backups.open"
	isOpen     = "yes"
)

func indexedGroup(obj client.Object) []string {
	if b, is := obj.(*v1alpha1.MysqlBackup); is {
		return []string{b.Spec.Group}
	}
	return nil
}

func indexedOpen(obj client.Object) []string {
	b, is := obj.(*v1alpha1.MysqlBackup)
	if !is || b.Status.Phase != "" && b.Status.Phase != v1alpha1.BackupPending && b.Status.Phase != v1alpha1.BackupRunning {
		return nil
	}
	return []string{isOpen}
}

// SetupWithManager registers the controllers and what watches the sites that are copied.
func (b *Backups) SetupWithManager(mgr ctrl.Manager) error {
	for name, of := range map[string]client.IndexerFunc{indexGroup: indexedGroup, indexOpen: indexedOpen} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.MysqlBackup{}, name, of); err != nil {
			return fmt.Errorf("index backups: %w", err)
		}
	}
	options := controller.Options{MaxConcurrentReconciles: reconcilers, ReconciliationTimeout: reconcileTimeout}
	err := ctrl.NewControllerManagedBy(mgr).Named("mysqlbackup").
		For(&v1alpha1.MysqlBackup{}).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(backupOf)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(backupOf)).
		WatchesRawSource(source.TypedChannel(b.wakes, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				q.Add(reconcile.Request{NamespacedName: e.Object})
			},
		})).
		WithOptions(options).Complete(b)
	if err != nil {
		return err
	}
	schedules := options
	schedules.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](whenOvertaken, whenFailed)
	err = ctrl.NewControllerManagedBy(mgr).Named("backupschedule").
		For(&v1alpha1.MysqlFailoverGroup{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, claimChanged()))).
		Watches(&v1alpha1.MysqlBackup{}, handler.EnqueueRequestsFromMapFunc(groupOf)).
		WithOptions(schedules).Complete(reconcile.Func(b.ReconcileGroup))
	if err != nil {
		return err
	}
	return mgr.Add(b)
}

// claimChanged sees that this release claims a group, which does not change its specification.
func claimChanged() predicate.Predicate {
	lease := func(obj client.Object) string {
		if g, is := obj.(*v1alpha1.MysqlFailoverGroup); is && g.Status.Claim != nil {
			return g.Status.Claim.Lease
		}
		return ""
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return lease(e.ObjectOld) != lease(e.ObjectNew) }}
}

func backupOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.LabelBackup]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

func groupOf(_ context.Context, obj client.Object) []reconcile.Request {
	if b, is := obj.(*v1alpha1.MysqlBackup); is {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.Group}}}
	}
	return nil
}

// wake asks for a look at a MysqlBackup soon. It never blocks: if no one takes wakes, the next look comes by the clock.
func (b *Backups) wake(key types.NamespacedName) {
	select {
	case b.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	default:
	}
}

// mine is true if this release operates the group. It leaves alone a group that no release has claimed yet.
func (b *Backups) mine(group *v1alpha1.MysqlFailoverGroup) bool {
	lease := ""
	if group.Status.Claim != nil {
		lease = group.Status.Claim.Lease
	}
	return lease == b.Lease
}

// profileOf returns a profile of a group; nil if it has none of that name.
func profileOf(group *v1alpha1.MysqlFailoverGroup, name string) *v1alpha1.BackupProfile {
	if group == nil || group.Spec.Backup == nil {
		return nil
	}
	for i := range group.Spec.Backup.Profiles {
		if p := &group.Spec.Backup.Profiles[i]; p.Name == name {
			return p
		}
	}
	return nil
}

var errOvertaken = errors.New("somebody wrote meanwhile")
