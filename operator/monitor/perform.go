// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// sqlTimeout bounds one statement of an effect.
const sqlTimeout = 3 * time.Second

// perform carries out the effects in order and stops at the first failure; the next pass sees what is left. Effects on
// replicas (Follow) do not stop each other: one bad replica must not keep the others detached.
func (l *loop) perform(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) error {
	var late []error
	for _, effect := range d.Effects {
		err := l.one(ctx, group, s, effect)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", effect, err)
		if _, follow := effect.(failover.Follow); !follow {
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
	case failover.Drain:
		return l.drain(ctx, group, s, e.Site)
	case failover.Detach:
		return l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error { return db.DropReplication(ctx) })
	case failover.Select:
		return l.selectPrimary(ctx, group, e.Site)
	case failover.Open:
		return l.open(ctx, group, e.Site)
	case failover.Follow:
		return l.follow(ctx, group, e)
	}
	panic(fmt.Sprintf("unknown effect %T", effect))
}

// announceTimeout bounds how long a pass waits for an announcement. What takes longer goes on beside the loop, and the
// next polls see what came of it: one dead site must not slow down the rest.
const announceTimeout = time.Second

// announce pushes to every sidecar, fences by SQL and drains, all at once.
func (l *loop) announce(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, e failover.Announce) error {
	signed, err := l.authority.sign(time.Now())
	if err != nil && s.Status.Epoch > 0 {
		return err
	}
	longest, cancel := context.WithTimeout(ctx, s.Policy.FenceTimeout+time.Second)
	var all sync.WaitGroup
	for _, pod := range l.pods(ctx, group) {
		if pod.Status.PodIP != "" && signed != "" {
			all.Go(func() { _, _ = l.m.Push.PushActiveSite(longest, sidecarAddr(pod), signed) })
		}
	}
	epoch := l.authority.statement().Epoch
	for _, site := range e.Fence {
		if link := l.sites[site]; link != nil && link.beginFence() {
			all.Go(func() {
				defer link.endFence()
				l.fence(longest, group, link, failoverFence{site: site, epoch: epoch})
			})
		}
	}
	if target, known := s.Site(e.Drain); known && target.MySQL.Direct && target.MySQL.ReplicaHost != "" {
		link := l.sites[e.Drain]
		all.Go(func() { _ = l.drainLink(longest, group, link, target) })
	}
	finished := make(chan struct{})
	l.m.done.Go(func() {
		defer cancel()
		all.Wait()
		close(finished)
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
	db, err := l.connection(ctx, group, link, f.site)
	if err != nil {
		return
	}
	began := time.Now()
	result, err := db.Fence(ctx, mysql.FenceOptions{})
	if err != nil {
		l.log.Debug("fence by SQL did not succeed", "site", f.site, "error", err)
		return
	}
	if result.ReadBack.SuperReadOnly && podUID == link.pod() {
		l.fenced.Store(f.site, failover.SQLFence{Epoch: f.epoch, At: began, PodUID: podUID})
	}
}

// takeFences moves what was fenced beside the loop into its memory.
func (l *loop) takeFences() {
	l.fenced.Range(func(site, fence any) bool {
		if l.memory.FencedBySQL == nil {
			l.memory.FencedBySQL = map[string]failover.SQLFence{}
		}
		name, isName := site.(string)
		if proof, isProof := fence.(failover.SQLFence); isName && isProof {
			l.memory.FencedBySQL[name] = proof
		}
		l.fenced.Delete(site)
		return true
	})
}

func (k *siteLink) beginFence() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fencing {
		return false
	}
	k.fencing = true
	return true
}

func (k *siteLink) endFence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fencing = false
}

// drain ends the flow from the old active site and applies what had arrived.
func (l *loop) drain(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, name string) error {
	site, known := s.Site(name)
	link := l.sites[name]
	if !known || link == nil {
		return fmt.Errorf("no connection to %s", name)
	}
	return l.drainLink(ctx, group, link, site)
}

func (l *loop) drainLink(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site failover.Site) error {
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	db, err := l.connection(ctx, group, link, site.Name)
	if err != nil {
		return err
	}
	if err := db.StopReceiver(ctx); err != nil {
		return err
	}
	if err := db.StartApplier(ctx); err != nil {
		return err
	}
	_, err = db.WaitApplied(ctx, site.MySQL.Retrieved, time.Second)
	return err
}

func (l *loop) onSite(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, do func(context.Context, *mysql.DB) error) error {
	link := l.sites[site]
	if link == nil {
		return fmt.Errorf("no connection to %s", site)
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	db, err := l.connection(ctx, group, link, site)
	if err != nil {
		return err
	}
	return do(ctx, db)
}

func (l *loop) follow(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, e failover.Follow) error {
	source, err := l.m.Access.Replication(ctx, group, e.Source)
	if err != nil {
		return err
	}
	return l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error { return db.Follow(ctx, source) })
}

// open asks the active site's sidecar to open writes. The push only pokes it: it fetches a fresh statement from the
// operator and opens on that alone.
func (l *loop) open(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	pod := l.pods(ctx, group)[site]
	if pod == nil || pod.Status.PodIP == "" {
		return fmt.Errorf("no pod of %s", site)
	}
	signed, err := l.authority.sign(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	r, err := l.m.Push.PushActiveSite(ctx, sidecarAddr(pod), signed)
	if err != nil {
		return err
	}
	if r.Site != site || r.PodUID != string(pod.UID) || !r.Answered || !r.Writable {
		return fmt.Errorf("sidecar of %s did not open: %s", site, r.Message)
	}
	return l.label(ctx, pod, v1alpha1.RolePrimary, true)
}

// selectPrimary points the primary Service at a site. Endpoints appear once that site's pod carries the primary label.
func (l *loop) selectPrimary(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.PrimaryService(group.Name)}
	want := map[string]string{v1alpha1.LabelGroup: group.Name, v1alpha1.LabelSite: site, v1alpha1.LabelRole: v1alpha1.RolePrimary}
	current := &corev1.Service{}
	if err := l.m.Client.Get(ctx, name, current); err == nil && sameMap(current.Spec.Selector, want) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	selector := map[string]any{}
	for k, v := range want {
		selector[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": selector}}}
	u.SetAPIVersion("v1")
	u.SetKind("Service")
	u.SetNamespace(name.Namespace)
	u.SetName(name.Name)
	if err := l.m.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(v1alpha1.ManagerMonitor), client.ForceOwnership); err != nil {
		// The Service must never delay the database: the next pass tries again.
		l.log.Error("select primary", "site", site, "error", err)
	}
	return nil
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// label writes the role and the health of a site on its live pod.
func (l *loop) label(ctx context.Context, pod *corev1.Pod, role string, healthy bool) error {
	health := v1alpha1.HealthyNo
	if healthy {
		health = v1alpha1.HealthyYes
	}
	if pod.Labels[v1alpha1.LabelRole] == role && pod.Labels[v1alpha1.LabelHealthy] == health {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q,%q:%q}}}`, pod.UID,
		v1alpha1.LabelRole, role, v1alpha1.LabelHealthy, health)
	return l.m.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(v1alpha1.ManagerMonitor))
}
