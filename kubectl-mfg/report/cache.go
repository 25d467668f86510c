// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Links of a cache replica.
const (
	CacheLinkUp      = "Up"
	CacheLinkDown    = "Down"
	CacheLinkSyncing = "Syncing"
)

// Cache is the cache store of a group.
type Cache struct {
	Engine string `json:"engine"`
	// Endpoint is what applications connect to, with TLS or without.
	Endpoint string `json:"endpoint"`
	TLS      bool   `json:"tls"`
	// Ready is what the condition CacheReady says; nil while there is none. Reason and Message are from that condition.
	Ready   *bool           `json:"ready,omitempty"`
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// MasterSite is the site whose cache is the master and takes the traffic; empty while none does.
	MasterSite string `json:"masterSite,omitempty"`
	// MaxMemoryBytes is how much data each cache holds.
	MaxMemoryBytes int64            `json:"maxMemoryBytes"`
	Transition     *CacheTransition `json:"transition,omitempty"`
	LastPromotion  *CachePromotion  `json:"lastPromotion,omitempty"`
	// Outlook is what would happen to the sessions; nil if unknown.
	Outlook *CacheOutlook `json:"outlook,omitempty"`
	Sites   []CacheSite   `json:"sites"`
}

// CacheTransition is a change of the cache's master that is under way.
type CacheTransition struct {
	Kind      string    `json:"kind"`
	From      string    `json:"from,omitempty"`
	To        string    `json:"to"`
	StartedAt time.Time `json:"startedAt"`
}

// CachePromotion is a past change of the cache's master.
type CachePromotion struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Method string    `json:"method"`
	// SessionsPreserved is true if every key of the old master is in the new one.
	SessionsPreserved bool `json:"sessionsPreserved"`
	// TookMillis is how long no cache took the traffic, in milliseconds.
	TookMillis int64           `json:"tookMillis"`
	Reason     v1alpha1.Reason `json:"reason,omitempty"`
	Message    string          `json:"message,omitempty"`
}

// CacheMoveWords says why the cache's master changes.
func CacheMoveWords(kind string) string {
	if kind == string(v1alpha1.CacheMoveOnly) {
		return "cache only"
	}
	return strings.ToLower(kind)
}

// IsFirst is true for the first master of a group, before which there was nothing to lose.
func (p CachePromotion) IsFirst() bool { return p.Method == string(v1alpha1.CacheByFirstStart) }

// What says what happened: a move, or a restart of the master's process.
func (p CachePromotion) What(arrow func(from, to string) string) string {
	switch {
	case p.IsFirst():
		return p.To + " is the first master"
	case p.From == p.To:
		return "the cache of " + p.To + " began again, and stayed the master"
	}
	return CacheMoveWords(p.Kind) + " " + arrow(p.From, p.To)
}

// CacheSite is the cache of one site.
type CacheSite struct {
	Name string `json:"name"`
	// Active is true for the site that is active in the group, Master for the one whose cache takes the traffic.
	Active bool `json:"active"`
	Master bool `json:"master"`
	// Role is master or replica; empty while the cache does not answer.
	Role string `json:"role,omitempty"`
	// Link is Up, Down or Syncing for a replica.
	Link string `json:"link,omitempty"`
	// BehindBytes is what a replica has not received yet; with Dragonfly that is counted in changes.
	BehindBytes     *int64 `json:"behindBytes,omitempty"`
	BehindChanges   *int64 `json:"behindChanges,omitempty"`
	UsedMemoryBytes *int64 `json:"usedMemoryBytes,omitempty"`
	Image           string `json:"image,omitempty"`
	Message         string `json:"message,omitempty"`
}

// Behind says how much of its master's changes a replica has not received, in words; empty while unknown.
func (s CacheSite) Behind() string {
	switch {
	case s.BehindBytes != nil:
		return Bytes(*s.BehindBytes)
	case s.BehindChanges != nil && *s.BehindChanges == 1:
		return "1 change"
	case s.BehindChanges != nil:
		return fmt.Sprintf("%d changes", *s.BehindChanges)
	}
	return ""
}

// Synced is true for a replica that receives every change of its master.
func (s CacheSite) Synced() bool {
	return s.Role == string(v1alpha1.CacheReplica) && s.Link == CacheLinkUp
}

// Fit is true for the master with the traffic, and for a replica that could take over with every key.
func (s CacheSite) Fit() bool {
	return s.Master && s.Role == string(v1alpha1.CacheMaster) || s.Synced()
}

// Full is true if a cache holds 90 % of what it may.
func (c Cache) Full(s CacheSite) bool {
	return s.UsedMemoryBytes != nil && c.MaxMemoryBytes > 0 && *s.UsedMemoryBytes >= c.MaxMemoryBytes/10*9
}

// Masters returns the sites whose caches call themselves the master.
func (c Cache) Masters() []string {
	var out []string
	for _, s := range c.Sites {
		if s.Role == string(v1alpha1.CacheMaster) {
			out = append(out, s.Name)
		}
	}
	return out
}

// CacheOf returns what the custom resource says of the cache store; nil in groups without one. active is the active site, and next is
// the forecast for its loss.
func CacheOf(cr *v1alpha1.MysqlFailoverGroup, active string, next *Forecast) *Cache {
	spec := cr.Spec.Cache
	if spec == nil || !spec.Enabled {
		return nil
	}
	c := &Cache{
		Engine: string(spec.Engine), TLS: cr.CacheTLS(), MaxMemoryBytes: spec.MaxMemory.Value(),
		Endpoint: fmt.Sprintf("%s.%s:%d", v1alpha1.CacheService(cr.Name), cr.Namespace, v1alpha1.CachePort),
	}
	if ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionCacheReady); ready != nil {
		is := ready.Status == metav1.ConditionTrue
		c.Ready, c.Reason, c.Message = &is, v1alpha1.Reason(ready.Reason), ready.Message
	}
	at := cr.Status.Cache
	if at == nil {
		at = &v1alpha1.CacheStatus{}
	}
	c.MasterSite = at.ActiveSite
	if t := at.Transition; t != nil {
		c.Transition = &CacheTransition{Kind: string(t.Kind), From: t.From, To: t.To, StartedAt: t.StartedAt.UTC()}
	}
	c.LastPromotion = cachePromotionOf(at.LastPromotion)
	c.Sites = cacheSites(cr, at, active)
	c.Outlook = c.outlook(spec, active, next)
	return c
}

func cachePromotionOf(p *v1alpha1.CachePromotion) *CachePromotion {
	if p == nil {
		return nil
	}
	return &CachePromotion{
		At: p.At.UTC(), Kind: string(p.Kind), From: p.From, To: p.To, Method: string(p.Method), SessionsPreserved: p.SessionsPreserved,
		TookMillis: p.TookMillis, Reason: p.Reason, Message: p.Message,
	}
}

// cacheSites returns the caches of all sites, in the order of the specification; caches of sites that have left it come last.
func cacheSites(cr *v1alpha1.MysqlFailoverGroup, at *v1alpha1.CacheStatus, active string) []CacheSite {
	out := []CacheSite{}
	for _, s := range cr.Spec.Sites {
		out = append(out, CacheSite{Name: s.Name})
	}
	for _, s := range at.Sites {
		i := slices.IndexFunc(out, func(known CacheSite) bool { return known.Name == s.Name })
		if i < 0 {
			i, out = len(out), append(out, CacheSite{Name: s.Name})
		}
		out[i].Role, out[i].Link, out[i].Image, out[i].Message = string(s.Role), s.Link, s.Image, s.Message
		out[i].BehindBytes, out[i].BehindChanges = cr.Spec.Cache.Engine.Behind(s.OffsetBehind)
		if s.UsedMemory != nil {
			used := s.UsedMemory.Value()
			out[i].UsedMemoryBytes = &used
		}
	}
	for i := range out {
		out[i].Active, out[i].Master = out[i].Name == active, out[i].Name == at.ActiveSite && at.ActiveSite != ""
	}
	return out
}

// Site returns the cache of a site.
func (c Cache) Site(name string) (CacheSite, bool) {
	for _, s := range c.Sites {
		if s.Name == name {
			return s, true
		}
	}
	return CacheSite{}, false
}
