// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/cacheobjects"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventCachePodReplaced  = events.Normal(v1alpha1.ReasonCachePodReplaced, "Update")
	eventCacheAskedToLeave = events.Normal(v1alpha1.ReasonCacheAskedToLeave, "Update")
)

// cacheObjects returns what makes the objects of cache stores, with this controller's way to apply and to remove.
func cacheObjects(r *Reconciler) *cacheobjects.Objects {
	return &cacheobjects.Objects{Client: r.Client, Live: r.Live, Limits: r.Limits, Troubles: r.CacheTroubles, Remove: r.apply.Remove,
		Apply: func(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
			err := r.apply.Apply(ctx, group, obj)
			if errors.Is(err, apply.ErrForeign) {
				return fmt.Errorf("%w: %w", cacheobjects.ErrForeign, err)
			}
			return err
		}}
}

// cache makes the objects of the cache store. It never stops the other phases: MySQL needs none of it.
func (r *Reconciler) cache(ctx context.Context, s *scope.Scope) error {
	result, err := cacheObjects(r).Converge(ctx, s.In, cacheobjects.Patience{Paused: r.pausedUntil(s), Held: func(site, has, want string) bool {
		return s.Upgrade.Sort(s.Group, v1alpha1.UpgradeCache+site, scope.Templates{Has: has, Want: want})
	}})
	s.TellUpgrade()
	said := ""
	for _, refusal := range result.Refused {
		s.Refuse(refusal.Reason, refusal.Message)
		said += refusal.Message + " "
	}
	r.base.Say(s, "cache", eventConfigKeysIgnored, said)
	if result.Asked != "" {
		r.Recorder.Emit(s.Group, nil, eventCacheAskedToLeave,
			"Only the cache of %s, the master, is left to update; the master moves away before its pod is replaced", result.Asked)
	}
	if result.Replaced != "" {
		r.Recorder.Emit(s.Group, nil, eventCachePodReplaced, "The cache pod of %s is replaced", result.Replaced)
	}
	switch {
	case err != nil:
		return err
	case result.Reason != "" && result.Stuck:
		s.Progress(scope.Stuck(result.Reason, "cache: "+result.Message), result.Again)
	case result.Reason != "":
		s.Progress(scope.Moving(result.Reason, "cache: "+result.Message), result.Again)
	}
	return nil
}
