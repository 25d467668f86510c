// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// cacheOf returns the cache store as the loop of the cache wrote it into status; nil in a group without one.
func cacheOf(group *v1alpha1.MysqlFailoverGroup) *wire.CacheStatus {
	at := group.Status.Cache
	if c := group.Spec.Cache; c == nil || !c.Enabled || at == nil {
		return nil
	}
	out := &wire.CacheStatus{ActiveSite: at.ActiveSite, Sites: []wire.CacheSiteStatus{}}
	if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionCacheReady); c != nil {
		ready := c.Status == metav1.ConditionTrue
		out.Ready, out.Reason, out.Message = &ready, c.Reason, c.Message
	}
	if t := at.Transition; t != nil {
		out.Transition = &wire.CacheTransition{Kind: string(t.Kind), From: t.From, To: t.To, StartedAt: t.StartedAt.UTC()}
	}
	if p := at.LastPromotion; p != nil {
		out.LastPromotion = &wire.CachePromotion{
			At: p.At.UTC(), Kind: string(p.Kind), From: p.From, To: p.To, Method: string(p.Method), SessionsPreserved: p.SessionsPreserved,
			TookMillis: p.TookMillis, Reason: string(p.Reason), Message: p.Message,
		}
	}
	for _, s := range at.Sites {
		site := wire.CacheSiteStatus{Name: s.Name, Role: string(s.Role), Link: s.Link, Image: s.Image, Message: s.Message}
		site.BehindBytes, site.BehindChanges = group.Spec.Cache.Engine.Behind(s.OffsetBehind)
		if s.UsedMemory != nil {
			used := s.UsedMemory.Value()
			site.UsedMemoryBytes = &used
		}
		out.Sites = append(out.Sites, site)
	}
	return out
}
