// SPDX-License-Identifier: Apache-2.0

// Package standin makes what the dashboard shows of a group whose custom resource it cannot read.
package standin

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Group makes a custom resource from the operator's words alone.
func Group(s wire.GroupStatus) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Group}}
	for _, site := range s.Sites {
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: site.Name, Role: v1alpha1.SiteRole(site.Role)})
	}
	g.Status.ActiveSite, g.Status.Epoch = s.ActiveSite, s.Epoch
	// Conditions are unknown. An empty one keeps the report from saying that no operator looks at the group.
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionUnknown}}
	cache(g, s.Cache)
	return g
}

// cache fills in the cache of a custom resource from the operator's words alone.
func cache(g *v1alpha1.MysqlFailoverGroup, c *wire.CacheStatus) {
	if c == nil {
		return
	}
	g.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true}
	at := &v1alpha1.CacheStatus{ActiveSite: c.ActiveSite}
	if t := c.Transition; t != nil {
		at.Transition = &v1alpha1.CacheTransition{Kind: v1alpha1.CacheMove(t.Kind), From: t.From, To: t.To, StartedAt: metav1.NewMicroTime(t.StartedAt)}
	}
	if p := c.LastPromotion; p != nil {
		at.LastPromotion = &v1alpha1.CachePromotion{
			At: metav1.NewMicroTime(p.At), Kind: v1alpha1.CacheMove(p.Kind), From: p.From, To: p.To, Method: v1alpha1.CacheMethod(p.Method),
			SessionsPreserved: p.SessionsPreserved, TookMillis: p.TookMillis, Reason: v1alpha1.Reason(p.Reason), Message: p.Message,
		}
	}
	for _, s := range c.Sites {
		site := v1alpha1.CacheSiteStatus{Name: s.Name, Role: v1alpha1.CacheRole(s.Role), Link: s.Link, OffsetBehind: cmp.Or(s.BehindBytes, s.BehindChanges), Image: s.Image, Message: s.Message}
		if s.BehindBytes != nil {
			g.Spec.Cache.Engine = v1alpha1.CacheValkey
		}
		if s.UsedMemoryBytes != nil {
			site.UsedMemory = resource.NewQuantity(*s.UsedMemoryBytes, resource.BinarySI)
		}
		at.Sites = append(at.Sites, site)
	}
	g.Status.Cache = at
	if c.Ready != nil {
		status := metav1.ConditionFalse
		if *c.Ready {
			status = metav1.ConditionTrue
		}
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCacheReady, Status: status, Reason: c.Reason, Message: c.Message})
	}
}
