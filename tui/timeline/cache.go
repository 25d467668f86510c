// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// cacheStep is what the cache does beside a change of the active site. It waits for nothing, and nothing waits for it.
func (v View) cacheStep(t v1alpha1.Transition, began time.Time) (step, bool) {
	c := v.Report.Cache
	if c == nil {
		return step{}, false
	}
	s := step{kind: only("cache"), words: "follows to " + t.To, state: next}
	p := c.LastPromotion
	switch {
	case c.Transition != nil:
		s.words, s.state = "moves to "+c.Transition.To, now
	case c.MasterSite == t.To && p != nil && p.To == t.To && !p.At.Before(began):
		s.words, s.state, s.at = SessionsWords(*p)+", "+t.To+" has the traffic", done, p.At
	case c.MasterSite == t.To:
		s.words, s.state = t.To+" had the traffic already", done
	}
	return s, true
}

// besideMost is how far in time a change of the cache's master may be from a change of the active site to count as its part.
const besideMost = time.Minute

// cacheBeside draws what happened to the sessions in a completed change of the active site.
func (v View) cacheBeside(f v1alpha1.FailoverRecord, from time.Time, width int) canvas.Block {
	c := v.Report.Cache
	if c == nil || c.LastPromotion == nil {
		return nil
	}
	p := *c.LastPromotion
	if p.To != f.To || p.At.Before(from.Add(-besideMost)) || p.At.After(f.OpenedAt.Add(besideMost)) {
		return nil // it is not part of that change
	}
	return v.Signs.Paragraph(canvas.Span{Text: "Cache", Style: PromotionStyle(&p)}, "took "+paint.Millis(p.TookMillis)+", "+SessionsWords(p), width)
}

// SessionsWords says what happened to the sessions when the cache's master changed.
func SessionsWords(p report.CachePromotion) string {
	if p.SessionsPreserved {
		return "sessions preserved"
	}
	words := "sessions NOT preserved"
	if p.Reason != "" {
		words += " [" + string(p.Reason) + "]"
	}
	return words
}

// PromotionStyle returns the style of such a change.
func PromotionStyle(p *report.CachePromotion) canvas.Style {
	if p.SessionsPreserved || p.IsFirst() {
		return canvas.Plain
	}
	return canvas.Warn
}

// CacheWords says what a site of the cache store does, and how far behind it is.
func CacheWords(c *report.Cache, s report.CacheSite) string {
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
