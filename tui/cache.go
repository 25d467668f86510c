// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

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
		out = append(out, v.Signs.Paragraph(label, timeline.CacheWords(c, s), width)...)
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
