// SPDX-License-Identifier: Apache-2.0

// Package archiving is the shell around operator/pitr: it asks the archivers of the active sites for their state, records it, and makes the
// sites keep binary logs that the archive does not have yet; and it answers the archivers. It runs beside the poll loops, and no step of a
// failover waits for anything here. It talks to no storage: it knows of the archive only what the archivers say.
package archiving

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// Access says how the operator reaches the MySQL of a site; *access.Access implements it.
type Access interface {
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
}

// Server is the MySQL of a site; *mysql.DB implements it.
type Server interface {
	Binlogs(ctx context.Context) (mysql.BinlogState, error)
	PurgeBinlogs(ctx context.Context, purge bool) error
	RotateBinlog(ctx context.Context) error
	Close() error
}

// Keys reads the keys that sign; *signing.Keys implements it.
type Keys interface {
	Read(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (signing.Key, error)
}

// Options is what New makes Archiving from.
type Options struct {
	// Client reads from the cache and writes.
	Client   client.Client
	Facts    scope.Facts
	Access   Access
	Keys     Keys
	Recorder *events.Recorder
	Log      *slog.Logger
	Install  render.Install
	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election.
	Lease string
	// Ask asks the sidecar at host:port what its archiver says.
	Ask func(ctx context.Context, addr string) (wire.ArchiverStatus, error)
	// Dial opens a connection to a MySQL; nil means MySQL itself.
	Dial func(mysql.Target) (Server, error)
	// Now is the clock; nil means the machine's.
	Now func() time.Time
}

// Archiving looks after the archives of all groups.
type Archiving struct {
	Options
	keys keyCache

	mu    sync.Mutex
	known map[types.NamespacedName]*memory
}

const (
	// every is how often each group is looked at.
	every = 10 * time.Second
	// atOnce is how many looks run at a time: a missing answer holds up one of them.
	atOnce = 32
	// askTimeout bounds one question to a sidecar, lookTimeout the whole look at a group, with the calls to its servers.
	askTimeout  = 2 * time.Second
	lookTimeout = 20 * time.Second
)

// New makes Archiving. SetupWithManager prepares the cache, and the manager runs it.
func New(o Options) *Archiving {
	if o.Dial == nil {
		o.Dial = func(t mysql.Target) (Server, error) { return mysql.Open(t) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Archiving{Options: o, known: map[types.NamespacedName]*memory{}}
	metrics.OnForgetGroup(a.forget)
	return a
}

// indexGroup finds the MysqlBackups of a group in the cache.
const indexGroup = "mfg.pitr.backups"

func indexedGroup(obj client.Object) []string {
	if b, is := obj.(*v1alpha1.MysqlBackup); is {
		return []string{b.Spec.Group}
	}
	return nil
}

// Index tells the cache how to find backups.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.MysqlBackup{}, indexGroup, indexedGroup); err != nil {
		return fmt.Errorf("index backups for archives: %w", err)
	}
	return nil
}

// NeedLeaderElection says that only the leader looks and writes.
func (a *Archiving) NeedLeaderElection() bool { return true }

// Start looks at all groups, again and again, until ctx ends.
func (a *Archiving) Start(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			a.round(ctx)
		}
	}
}

// round looks at every group once.
func (a *Archiving) round(ctx context.Context) {
	var groups v1alpha1.MysqlFailoverGroupList
	if err := a.Client.List(ctx, &groups, client.UnsafeDisableDeepCopy); err != nil {
		return // from memory: it fails only at shutdown
	}
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i := range groups.Items {
		shared := &groups.Items[i]
		if !a.mine(shared) || !concerns(shared) {
			continue
		}
		group := shared.DeepCopy() // the cache's own must not be changed
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			bounded, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			if err := a.look(bounded, group); err != nil && ctx.Err() == nil {
				a.Log.Warn("look after the archive", "namespace", group.Namespace, "group", group.Name, "error", err)
			}
		})
	}
	running.Wait()
}

// concerns is true for a group that has an archive, or whose status still shows one.
func concerns(g *v1alpha1.MysqlFailoverGroup) bool { return enabled(g) || tells(g) }

func enabled(g *v1alpha1.MysqlFailoverGroup) bool {
	return g.Spec.Backup != nil && g.Spec.Backup.PITR != nil && g.Spec.Backup.PITR.Enabled && g.DeletionTimestamp == nil
}

// mine is true if this release operates the group. It leaves alone a group that no release has claimed yet.
func (a *Archiving) mine(group *v1alpha1.MysqlFailoverGroup) bool {
	lease := ""
	if group.Status.Claim != nil {
		lease = group.Status.Claim.Lease
	}
	return lease == a.Lease
}

// memory is what Archiving remembers of a group from one look to the next. Forgetting it only delays reports of trouble.
type memory struct {
	// heardAt is the date of the archiver's last status, by its own clock, and heardSince when that was first seen here.
	heardAt, heardSince time.Time
	// quietSince and troubledSince are as in pitr.Look; zero while all is well.
	quietSince, troubledSince time.Time
	// open is the log that the active site writes, as its archiver says.
	open openLog
	// counted are the counters that were last added to the metrics, and the process that they are from.
	counted counters
	// written is when status was last written.
	written time.Time
	// purges are the sites that are known to purge by age, released those whose room for logs was used up.
	purges, released map[string]bool
	shown            bool
}

type counters struct {
	site              string
	started           time.Time
	succeeded, failed int64
}

func (a *Archiving) of(key types.NamespacedName) *memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.known[key]
	if m == nil {
		m = &memory{purges: map[string]bool{}, released: map[string]bool{}}
		a.known[key] = m
	}
	return m
}

func (a *Archiving) forget(namespace, group string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, types.NamespacedName{Namespace: namespace, Name: group})
}
