// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// lookValidity is how old a look may be when an effect that it led to begins. After that the loop decides again. The age counts
// from the start of the look: the first answer is that old, even if the process stood still while it looked.
const lookValidity = 5 * time.Second

// sqlTimeout bounds one statement of an effect.
const sqlTimeout = 3 * time.Second

// perform carries out the effects in order and stops at the first failure; the next pass sees what is left. Effects on replicas (Follow) run
// together and do not stop each other: one whose applier is busy for hours must not keep the others detached.
func (l *loop) perform(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) error {
	var late []error
	for rest := d.Effects; len(rest) > 0; {
		now := failover.Together(rest)
		rest = rest[len(now):]
		if age := clock.Elapsed(l.looked, time.Now()); age > lookValidity {
			// This process stood still, or waited for long: another may lead by now, and the decision rests on the past.
			return fmt.Errorf("%s: the look it rests on is %s old; looking again", now[0], age.Round(time.Millisecond))
		}
		errs := make([]error, len(now))
		var done sync.WaitGroup
		for i, effect := range now {
			done.Go(func() { // it touches the link of its own site alone
				began := time.Now()
				err := l.one(ctx, group, s, effect)
				l.log.Debug("effect", "effect", effect, "took", time.Since(began), "error", err)
				if err != nil {
					errs[i] = fmt.Errorf("%s: %w", effect, err)
				}
			})
		}
		done.Wait()
		err := errors.Join(errs...)
		if _, follow := now[0].(failover.Follow); err != nil && !follow {
			return err
		}
		late = append(late, err)
	}
	return errors.Join(late...)
}

func (l *loop) one(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, effect failover.Effect) error {
	switch e := effect.(type) {
	case failover.Announce:
		return l.announce(ctx, group, s, e)
	case failover.Handover:
		return l.handover(ctx, group, s, e)
	case failover.Apply:
		return l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error {
			l.cutReaders(ctx, db, e.Site)
			_, err := db.WaitApplied(ctx, e.Set, applyTimeout)
			return err
		})
	case failover.Drain:
		return l.drain(ctx, group, s, e.Site)
	case failover.Detach:
		return l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error { return db.DropReplication(ctx) })
	case failover.Select:
		want := selector(group.Name, e.Site, v1alpha1.RolePrimary)
		if l.recall(e.Site) {
			return l.pointPrimary(ctx, group, want)
		}
		return l.selectPrimary(ctx, group, want)
	case failover.Open:
		return l.open(ctx, group, e.Site)
	case failover.Follow:
		return l.follow(ctx, group, e)
	}
	panic(fmt.Sprintf("unknown effect %T", effect))
}

// announceTimeout bounds how long a pass waits for an announcement. What takes longer continues beside the loop, and the next
// polls see the result. The same holds for a site that did not answer: a dead site must not slow down the rest.
const announceTimeout = time.Second

// announce pushes to every sidecar, fences by SQL and drains, all in parallel.
func (l *loop) announce(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, e failover.Announce) error {
	signed, err := l.authority.Sign(time.Now())
	if err != nil && s.Status.Epoch > 0 {
		return err
	}
	longest, cancel := context.WithTimeout(ctx, s.Policy.FenceTimeout+time.Second)
	var all, beside sync.WaitGroup
	waited := func(site string) *sync.WaitGroup {
		if seen, _ := s.Site(site); seen.Reachable() {
			return &all
		}
		return &beside
	}
	for site, pod := range l.cluster().Newest(ctx, group) {
		if pod.Status.PodIP != "" && signed != "" {
			waited(site).Go(func() { _, _ = l.m.Push.PushActiveSite(longest, sidecarAddr(pod), wire.ActiveSite{Statement: signed}) })
		}
	}
	epoch := l.authority.Statement().Epoch
	for _, site := range e.Fence {
		if link := l.sites[site]; link != nil && link.fencing.TryLock() {
			waited(site).Go(func() {
				defer link.fencing.Unlock()
				l.fence(longest, group, link, failoverFence{site: site, epoch: epoch})
			})
		}
	}
	if target, _ := s.Site(e.Drain); target.MySQL.Direct && target.MySQL.ReplicaHost != "" {
		link := l.sites[e.Drain]
		all.Go(func() { _ = l.drainLink(longest, group, link, target) })
	}
	finished := make(chan struct{})
	l.m.done.Go(func() {
		defer cancel()
		all.Wait()
		close(finished)
		beside.Wait()
	})
	select {
	case <-finished:
	case <-time.After(announceTimeout):
	}
	return nil
}

// failoverFence is a fence of a site by the operator under an epoch.
type failoverFence struct {
	site  string
	epoch int64
}

// fence sets a site read-only by the operator's own connection and reads it back. One at a time for each site.
func (l *loop) fence(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, f failoverFence) {
	podUID := link.pod()
	db, err := l.client.connection(ctx, group, link, f.site)
	if err != nil {
		return
	}
	began := time.Now()
	result, err := db.Fence(ctx, mysql.FenceOptions{})
	if err != nil {
		l.log.Debug("fence by SQL did not succeed", "site", f.site, "error", err)
	}
	if isProven(result, err) && podUID == link.pod() {
		l.fenced.Store(f.site, failover.SQLFence{Epoch: f.epoch, At: began, PodUID: podUID})
	}
}

// isProven is true if a fence was read back, and nothing went wrong after that (I1).
func isProven(result mysql.FenceResult, err error) bool {
	return err == nil && result.ReadBack.SuperReadOnly
}

// takeFences moves what was fenced beside the loop into its memory.
func (l *loop) takeFences() {
	// A copy: explanations of the last decision read the old one.
	l.fenced.Range(func(site, fence any) bool {
		name, _ := site.(string)
		l.memory = l.memory.With(name, func(is *failover.SiteMemory) { is.FencedBySQL, _ = fence.(failover.SQLFence) })
		l.fenced.Delete(site)
		return true
	})
}

// drain ends the flow from the old active site and applies what has arrived.
func (l *loop) drain(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, name string) error {
	site, known := s.Site(name)
	link := l.sites[name]
	if !known || link == nil {
		return fmt.Errorf("no connection to %s", name)
	}
	return l.drainLink(ctx, group, link, site)
}

// drainLink drains a site, one drain at a time: that of an announcement may still be under way beside the loop. Of two that end a delay at once,
// one may stop the receiver after the other has stopped the applier, and CHANGE REPLICATION SOURCE then removes the relay logs (I8).
func (l *loop) drainLink(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site failover.Site) error {
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	link.draining.Lock() // for sqlTimeout at most, which bounds each drain
	defer link.draining.Unlock()
	db, err := l.client.connection(ctx, group, link, site.Name)
	if err != nil {
		return err
	}
	l.cutReaders(ctx, db, site.Name)
	if err := db.StopReceiver(ctx); err != nil {
		return err
	}
	if err := db.StartApplier(ctx); err != nil {
		return err
	}
	_, err = db.WaitApplied(ctx, site.MySQL.Retrieved, time.Second)
	return err
}

// cutReaders ends the sessions on a site before it is opened: an idle transaction could hold back its applier without end. The
// site's sidecar also keeps clients out. Only the sidecar may, because a late statement of ours must not leave a site without
// clients that was opened meanwhile. A site that only serves reads keeps its sessions.
func (l *loop) cutReaders(ctx context.Context, db *mysql.DB, site string) {
	if s := l.authority.Statement(); s.ActiveSite != site || !s.Hold {
		return
	}
	if err := db.CutSessions(ctx); err != nil {
		l.log.Debug("cut sessions", "site", site, "error", err) // the next pass tries again
	}
}

func (l *loop) onSite(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, do func(context.Context, *mysql.DB) error) error {
	return l.at(group, site)(ctx, do)
}

// doer does something on one site.
type doer func(context.Context, func(context.Context, *mysql.DB) error) error

// at returns how to do something on a site, also beside the loop: only the loop may look up a link.
func (l *loop) at(group *v1alpha1.MysqlFailoverGroup, site string) doer {
	link := l.sites[site]
	return func(ctx context.Context, do func(context.Context, *mysql.DB) error) error {
		if link == nil {
			return fmt.Errorf("no connection to %s", site)
		}
		ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
		defer cancel()
		db, err := l.client.connection(ctx, group, link, site)
		if err != nil {
			return err
		}
		return do(ctx, db)
	}
}

func (l *loop) follow(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, e failover.Follow) error {
	source, err := l.m.Access.Replication(ctx, group, e.Source)
	if err != nil {
		return err
	}
	err = l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error { return db.Follow(ctx, source) })
	if err == nil {
		l.gave(e.Site, e.Source, source)
	}
	return err
}

// open asks the active site's sidecar to open writes. The push only wakes it: it fetches a fresh statement from the
// operator and opens on that alone.
func (l *loop) open(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	pod := l.cluster().Newest(ctx, group)[site]
	if pod == nil || pod.Status.PodIP == "" {
		return fmt.Errorf("no pod of %s", site)
	}
	signed, err := l.authority.Sign(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	r, err := l.client.askReport(ctx, group, asking{pod, site, signed})
	if err != nil {
		return err
	}
	if !r.Answered || !r.Writable {
		return fmt.Errorf("sidecar of %s did not open: %s", site, r.Message)
	}
	return l.label(ctx, pod, marks(v1alpha1.RolePrimary, true, false, true))
}

// selector is the primary Service's. With a role, endpoints appear once that site's pod has the label, so that clients
// are refused and not misled while it waits to be opened. A planned failover leaves the role out: then the endpoint
// moves in one step, and kube-proxy may delay a second step by a second.
func selector(group, site, role string) map[string]string {
	// Cache pods have the labels of the group and of the site too. Every MySQL pod has this name since the first version, so a
	// Service that gains it keeps its endpoint.
	want := map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site}
	if role != "" {
		want[v1alpha1.LabelRole] = role
	}
	return want
}

// selectPrimary points the primary Service at a site. A selector without the role stays so.
func (l *loop) selectPrimary(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, want map[string]string) error {
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.PrimaryService(group.Name)}
	current := &corev1.Service{}
	// A Service that cannot be read counts as selecting nothing, and is written.
	_ = l.m.Client.Get(ctx, name, current)
	if s := current.Spec.Selector; maps.Equal(s, want) || maps.Equal(s, selector(group.Name, want[v1alpha1.LabelSite], "")) {
		return nil
	} else if plain := selector(group.Name, want[v1alpha1.LabelSite], ""); maps.Equal(s, former(plain)) {
		want = plain // it gains only the name, or it could lose its endpoint while the pod has no role
	}
	return l.pointPrimary(ctx, group, want)
}

// former returns a selector as operators wrote it before cache pods existed.
func former(selector map[string]string) map[string]string {
	out := maps.Clone(selector)
	delete(out, v1alpha1.LabelName)
	return out
}

// pointPrimary writes the selector of the primary Service.
func (l *loop) pointPrimary(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, want map[string]string) error {
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.PrimaryService(group.Name)}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	fields := map[string]any{}
	for k, v := range want {
		fields[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": fields}}}
	u.SetAPIVersion("v1")
	u.SetKind("Service")
	u.SetNamespace(name.Namespace)
	u.SetName(name.Name)
	if err := l.m.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(v1alpha1.ManagerMonitor), client.ForceOwnership); err != nil {
		// The Service must never delay the database: the next pass tries again.
		l.log.Error("select primary", "site", want[v1alpha1.LabelSite], "error", err)
	}
	return nil
}
