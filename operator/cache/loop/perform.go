// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/operator/cache"
)

// lookValidity is how old a look may be when an action from it begins.
const lookValidity = 5 * time.Second

var errNoPod = errors.New("it has no pod")

// perform does the actions in order and stops at the first that fails; the next look sees what is left. A failure that concerns only
// a replica holds up nothing but the other actions on that replica.
func (l *loop) perform(ctx context.Context, k look) error {
	var late []error
	bad := map[string]bool{}
	for _, a := range k.decision.Actions {
		if old := clock.Elapsed(k.began, time.Now()); old > lookValidity {
			return errors.Join(append(late, fmt.Errorf("%s: the look it rests on is %s old; looking again", a, old.Round(time.Millisecond)))...)
		}
		aside := asideOf(a)
		if bad[aside] {
			continue
		}
		began := time.Now()
		err := l.act(ctx, k, a)
		l.log.Debug("action", "action", a.String(), "took", time.Since(began), "error", err)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", a, err)
		if aside == "" {
			return errors.Join(append(late, err)...)
		}
		bad[aside], late = true, append(late, err)
	}
	return errors.Join(late...)
}

// asideOf names what an action is about that no other waits for; empty for one that the next ones rest on.
func asideOf(a cache.Action) string {
	switch a := a.(type) {
	case cache.Follow:
		return a.Site
	case cache.CutClients:
		return "clients of " + a.Site // they are cut of one that cannot follow, too
	case cache.Label:
		return a.Site
	case cache.TrafficOff, cache.TrafficOn, cache.Route, cache.Arrive, cache.TakeOver, cache.Promote:
	}
	return ""
}

func (l *loop) act(ctx context.Context, k look, action cache.Action) error {
	switch a := action.(type) {
	case cache.TrafficOff:
		if k.pods[a.Site] == nil {
			return nil // no pod, no traffic
		}
		err := l.patch(ctx, k, a.Site, map[string]any{v1alpha1.LabelCacheTraffic: nil})
		if l.wrote.site == cache.ByLabels || l.wrote.site == a.Site { // otherwise it went when the Service was pointed elsewhere
			l.note(a.Site, err, func(k *link, now time.Time) { k.offAt = now })
		}
		return err
	case cache.TrafficOn:
		err := l.patch(ctx, k, a.Site, map[string]any{v1alpha1.LabelCacheRole: string(v1alpha1.CacheMaster), v1alpha1.LabelCacheTraffic: v1alpha1.CacheTrafficOn})
		l.note(a.Site, err, func(k *link, now time.Time) { k.onAt = now })
		return err
	case cache.Route:
		return l.route(ctx, k, a.Site)
	case cache.Arrive:
		l.arrive(ctx, k.group, a.Site)
		return nil
	case cache.Label:
		return l.patch(ctx, k, a.Site, map[string]any{v1alpha1.LabelCacheRole: string(a.Role), v1alpha1.LabelCacheTraffic: nil})
	case cache.TakeOver:
		from, to := l.links[a.From], l.links[a.To]
		if from == nil || to == nil || from.engine == nil || to.engine == nil {
			return errNoPod
		}
		from.offAt = time.Now() // until here the old master took writes, wherever the Service leads
		ctx, cancel := context.WithTimeout(ctx, a.Budget)
		defer cancel()
		return l.m.TakeOver(ctx, from.engine, to.engine)
	case cache.Promote:
		return l.at(ctx, a.Site, Engine.Promote)
	case cache.Follow:
		return l.at(ctx, a.Site, func(e Engine, ctx context.Context) error {
			return e.Follow(ctx, hostOf(k.group, a.Master), v1alpha1.CachePort)
		})
	case cache.CutClients:
		err := l.at(ctx, a.Site, Engine.CutClients)
		l.note(a.Site, err, func(k *link, now time.Time) { k.cutAt = now })
		return err
	}
	panic(fmt.Sprintf("unknown action %T", action))
}

// note keeps the time of what was done, if it was done. A site without a pod may no longer have a link.
func (l *loop) note(site string, err error, at func(*link, time.Time)) {
	if k := l.links[site]; err == nil && k != nil {
		at(k, time.Now())
	}
}

func (l *loop) at(ctx context.Context, site string, do func(Engine, context.Context) error) error {
	k := l.links[site]
	if k == nil || k.engine == nil {
		return errNoPod
	}
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	return do(k.engine, ctx)
}

// patch writes labels of the very pod that was looked at.
func (l *loop) patch(ctx context.Context, k look, site string, labels map[string]any) error {
	pod := k.pods[site]
	if pod == nil {
		return errNoPod
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": labels}})
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	written := &corev1.Pod{}
	written.Namespace, written.Name = pod.Namespace, pod.Name
	err = l.m.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerCache))
	if client.IgnoreNotFound(err) == nil && err != nil && labels[v1alpha1.LabelCacheTraffic] == nil {
		return nil // it is gone, and its labels with it
	}
	if err != nil {
		return err
	}
	link := l.links[site]
	link.written, link.version, link.writtenAt = written.Labels, written.ResourceVersion, time.Now()
	return nil
}
