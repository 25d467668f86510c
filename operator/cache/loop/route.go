// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// route is what this loop wrote to the Service for applications, while the manager's cache does not show it yet.
type route struct {
	site, version string
	at            time.Time
}

// selector is the selector of the Service for applications: by the labels that this loop gives or, around a move, by site.
func selector(group, site string) map[string]string {
	if site == cache.ByLabels {
		return v1alpha1.CacheSelector(group)
	}
	return map[string]string{v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site}
}

// routed is where the Service for applications leads.
func (l *loop) routed(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) string {
	s := &corev1.Service{}
	if err := l.m.Client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.CacheService(group.Name)}, s, client.UnsafeDisableDeepCopy); err != nil {
		return cache.ByLabels // there is no Service that could lead anywhere, or the next look reads it
	}
	if w := l.wrote; w.version != "" && s.ResourceVersion != w.version && time.Since(w.at) < apiTimeout {
		return w.site
	}
	for _, site := range []string{cache.ByLabels, s.Spec.Selector[v1alpha1.LabelSite]} {
		if maps.Equal(s.Spec.Selector, selector(group.Name, site)) {
			return site
		}
	}
	return cache.NoRoute
}

// route points the Service for applications at a site, or at the labels. Without the Service no client is led anywhere, and the loop
// looks after the caches all the same.
func (l *loop) route(ctx context.Context, k look, site string) error {
	name := client.ObjectKey{Namespace: k.group.Namespace, Name: v1alpha1.CacheService(k.group.Name)}
	if err := l.m.Client.Get(ctx, name, &corev1.Service{}, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	// It replaces the whole selector: a key that another client added would keep every pod out.
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/selector", "value": selector(k.group.Name, site)}})
	if err != nil {
		return fmt.Errorf("encode selector: %w", err)
	}
	written := &corev1.Service{}
	written.Namespace, written.Name = name.Namespace, name.Name
	if err := l.m.Client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.ManagerCache)); err != nil {
		return err
	}
	l.wrote = route{site, written.ResourceVersion, time.Now()}
	for other, link := range l.links {
		if site != cache.ByLabels && other != site {
			link.offAt = l.wrote.at
		}
	}
	return nil
}

const (
	// arriveMost bounds the wait for the tables of nodes: kube-proxy may put off a change for a second.
	arriveMost = 1200 * time.Millisecond
	// arriveBlind is how long to wait if no engine can be asked through the Service.
	arriveBlind = 200 * time.Millisecond
	// arriveEvery is how often to try, arriveTry how long one connection may take.
	arriveEvery = 20 * time.Millisecond
	arriveTry   = 150 * time.Millisecond
)

// arrive waits until a new connection through the Service reaches the engine of a site. This node stands for all others: their
// kube-proxies get the change at the same time.
func (l *loop) arrive(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) {
	to, s := l.links[site], &corev1.Service{}
	err := l.m.Client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.CacheService(group.Name)}, s, client.UnsafeDisableDeepCopy)
	if err != nil || to == nil || to.engine == nil || to.info.Run == "" || net.ParseIP(s.Spec.ClusterIP) == nil {
		sleep(ctx, arriveBlind)
		return
	}
	target := to.target
	target.Addr = net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(v1alpha1.CachePort))
	began, heard := time.Now(), false
	for ctx.Err() == nil && time.Since(began) < arriveMost && (heard || time.Since(began) < arriveBlind) {
		run, err := l.reached(ctx, target)
		if run == to.info.Run {
			return
		}
		heard = heard || err == nil
		sleep(ctx, arriveEvery)
	}
}

// reached is the process that a new connection leads to.
func (l *loop) reached(ctx context.Context, target engine.Target) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, arriveTry)
	defer cancel()
	e := l.m.Dial(target)
	defer e.Close()
	info, err := e.Info(ctx)
	return info.Run, err
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
