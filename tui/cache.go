// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
	"github.com/mysql-mfg/mfg/tui/timeline"
)

// cache draws the cache store of a group: which site has the sessions, which follow, and the last change of that; nothing without a store.
func (v groupView) cache(width int) canvas.Block {
	c := v.g.report.Cache
	if c == nil {
		return nil
	}
	var out canvas.Block
	label := canvas.Span{Text: "Cache"}
	if c.Ready == nil || !*c.Ready {
		label.Style = canvas.Warn
	}
	for _, s := range c.Sites {
		out = append(out, v.Signs.Paragraph(label, cacheWords(c, s), width)...)
		label = canvas.Span{}
	}
	if t := c.Transition; t != nil {
		words := fmt.Sprintf("%s, %s, for %s", v.Move(t.From, t.To), report.CacheMoveWords(t.Kind), v.Ago(t.StartedAt))
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Moving", Style: canvas.Warn}, words, width)...)
	}
	if p := c.LastPromotion; p != nil {
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Promoted", Style: timeline.PromotionStyle(p)}, v.promotion(*p), width)...)
	}
	return out
}

func cacheWords(c *report.Cache, s report.CacheSite) string {
	words := s.Name + " " + orWord(s.Role, "silent")
	switch {
	case s.Master:
		words += ", has the traffic"
	case s.Role == string(v1alpha1.CacheReplica):
		words += ", link " + paint.OrUnknown(strings.ToLower(s.Link))
		if s.Behind() != "" {
			words += ", " + s.Behind() + " behind"
		}
	}
	if s.UsedMemoryBytes != nil {
		words += ", " + report.Bytes(*s.UsedMemoryBytes)
		if c.MaxMemoryBytes > 0 { // else only the operator's words are known
			words += " of " + report.Bytes(c.MaxMemoryBytes)
		}
	}
	if s.Message != "" {
		words += ": " + s.Message
	}
	return words
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// promotion tells a past change of the cache's master in words.
func (v groupView) promotion(p report.CachePromotion) string {
	what := p.What(v.Move)
	if p.IsFirst() {
		return what + ", for " + v.Ago(p.At)
	}
	return fmt.Sprintf("%s, %s ago, took %s, %s", what, v.Ago(p.At), paint.Millis(p.TookMillis), timeline.SessionsWords(p))
}

// cacheMark draws the cache in the list: where its master is, and whether something is wrong with it.
func (v listView) cacheMark(c *report.Cache) canvas.Span {
	switch {
	case c == nil:
		return canvas.Span{Text: "-"}
	case c.Transition != nil:
		return canvas.Span{Text: "> " + c.Transition.To, Style: canvas.Warn}
	case c.Ready == nil || !*c.Ready:
		return canvas.Span{Text: "! " + paint.OrNone(c.MasterSite), Style: canvas.Bad}
	}
	return canvas.Span{Text: c.MasterSite}
}

// hasCache is true if any group has a cache store.
func (f *fleet) hasCache() bool {
	for _, g := range f.groups {
		if g.report.Cache != nil {
			return true
		}
	}
	return false
}

// compareCache turns a change of the cache's master into news.
func (f *fleet) compareCache(g *group, old, now *wire.CacheStatus, at time.Time) {
	if old == nil || now == nil {
		return
	}
	if p := now.LastPromotion; p != nil && (old.LastPromotion == nil || !old.LastPromotion.At.Equal(p.At)) {
		past := report.CachePromotion{Method: p.Method, SessionsPreserved: p.SessionsPreserved, Reason: v1alpha1.Reason(p.Reason)}
		words := fmt.Sprintf("cache: master %s -> %s, %s", paint.OrNone(p.From), p.To, timeline.SessionsWords(past))
		if past.IsFirst() {
			words = "cache: " + p.To + " is the first master"
		}
		f.tell(g, item{at: at, words: words, st: timeline.PromotionStyle(&past)})
		return
	}
	if old.ActiveSite != now.ActiveSite {
		f.tell(g, item{at: at, words: fmt.Sprintf("cache: traffic %s -> %s", paint.OrNone(old.ActiveSite), paint.OrNone(now.ActiveSite)), st: canvas.Warn})
	}
}

// standInCache fills in the cache of a custom resource from the operator's words alone.
func standInCache(g *v1alpha1.MysqlFailoverGroup, c *wire.CacheStatus) {
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
