// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/copies"
	"github.com/mysql-mfg/mfg/tui/paint"
	"github.com/mysql-mfg/mfg/tui/timeline"
)

const (
	// cardWidth is the least width of a site's card; two of them side by side need a wide screen.
	cardWidth = 37
	// wideScreen is the width from which on sites are drawn as cards, and news beside the rest.
	wideScreen = 118
)

// groupView draws one group.
type groupView struct {
	painter
	g *group
	// selected is which of its sites is chosen; why is what the operator last said about its decision.
	selected int
	why      Answer
}

func (v groupView) sites() sitesView {
	return sitesView{painter: v.painter, g: v.g, selected: v.selected}
}

func (v groupView) copies() copies.View {
	return copies.View{Painter: v.Painter, Report: v.g.report}
}

func (v groupView) timeline() timeline.View {
	out := timeline.View{Painter: v.Painter, Report: v.g.report, Object: v.g.object, SilentSince: func(site string) time.Time { return v.g.silent[site] }}
	if v.why.name() == v.g.name && v.g.deciding() {
		out.Rule = v.why.Deciding
	}
	return out
}

// draw draws all about one group, the most important first: while the active site changes, that; then what is wrong and what to do.
func (v groupView) draw(width int) canvas.Block {
	out := v.summary(width)
	change := v.timeline()
	problems, hints, sites := v.problems(width), v.hints(width), v.sites().draw(width)
	wrong := append(slices.Clone(problems), hints...)
	rest := []canvas.Block{v.keyrings(width), v.cache(width), append(v.copies().Backups(width), v.copies().PITR(width)...), v.unread(width)}
	sections := append([]canvas.Block{sites, wrong}, rest...)
	switch {
	case change.IsRunning():
		sections = append([]canvas.Block{change.Draw(width), wrong, sites}, rest...)
	case width < wideScreen && v.Height > 0 && v.Height < 30 && len(v.g.report.Problems) > 0:
		sections = append([]canvas.Block{problems, sites, hints, change.Draw(width)}, rest...) // not everything fits on the first screen
	case width < wideScreen:
		sections = append(sections, change.Draw(width))
	}
	sections = append([]canvas.Block{v.copies().Restore(width)}, sections...) // a group that waits for its data has nothing else to wait for
	for _, s := range sections {
		if len(s) > 0 {
			out = append(append(out, nil), s...)
		}
	}
	out = append(out, nil)
	return append(out, v.lower(width, v.BodyRows()-len(out))...)
}

// lower draws the news, and on a wide screen the timeline beside it.
func (v groupView) lower(width, rows int) canvas.Block {
	if width < wideScreen || v.timeline().IsRunning() {
		out := canvas.Block{v.Signs.Rule("News and events", width)}
		left := max(3, rows-len(out))
		if v.Height == 0 {
			left = tickerMost
		}
		return append(out, v.newsBlock(v.ticker(), left, false)...)
	}
	half := (width - 2) / 2
	left := append(canvas.Block{v.Signs.Rule("Failover", half)}, v.timeline().Draw(half)...)
	fit := max(3, rows-1)
	if v.Height == 0 {
		fit = max(20, len(left)-1)
	}
	right := append(canvas.Block{v.Signs.Rule("News and events", width-2-half)}, v.newsBlock(v.ticker(), fit, false)...)
	return v.Signs.Beside([]int{half, width - 2 - half}, left, right)
}

// summary draws which site is active, and what would happen if it were lost.
func (v groupView) summary(width int) canvas.Block {
	r := v.g.report
	first := canvas.Line{{Text: "Status    "}, {Text: statusSign(r) + string(r.Summary), Style: summaryStyle(r.Summary)}, {Text: fmt.Sprintf("  epoch %d", r.Epoch)}}
	if r.MySQL != "" {
		first = append(first, canvas.Span{Text: "  MySQL " + r.MySQL})
	}
	out := canvas.Block{first, v.activeLine(r)}
	change := v.timeline()
	if d := r.Decision; d != nil && !v.isStep() && (d.Verdict != wire.VerdictNothing || r.Transition != nil) {
		words := d.Verdict + " (" + paint.OrNone(d.Reason) + ")"
		if d.Message != "" {
			words += ": " + d.Message
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Decision", Style: canvas.Warn}, words, width)...)
	}
	if rule := change.Rule; rule != nil && rule.Until.IsZero() && r.Decision.Message != rule.Input {
		words := rule.Name + ": " + rule.Input
		if rule.Remedy != "" {
			words += "; " + rule.Remedy
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Decided by"}, words, width)...)
	}
	if r.Hold && r.Transition == nil {
		// No change is under way: the active site is lost or was, or its keyring is not in escrow. The decision says which.
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Hold", Style: canvas.Warn}, "the operator lets no site open now; a site that is open stays open", width)...)
	}
	out = append(out, v.countdowns(width)...)
	return append(out, v.forecast(r, width)...)
}

// isStep is true for a decision that the timeline already shows as the step under way.
func (v groupView) isStep() bool {
	t := v.g.report.Transition
	return t != nil && v.g.object != nil && v.g.object.Status.Transition != nil && t.Step == string(v1alpha1.TransitionFencing)
}

func (v groupView) activeLine(r report.MysqlFailoverGroupReport) canvas.Line {
	l := canvas.Line{{Text: "Active    "}, {Text: paint.OrNone(r.ActiveSite), Style: canvas.Strong}}
	switch {
	case r.Transition != nil:
		l = append(l, canvas.Span{Text: " (not open yet)", Style: canvas.Warn})
	case r.ActiveSiteSince != nil:
		l = append(l, canvas.Span{Text: " for " + v.Ago(*r.ActiveSiteSince)})
	}
	return append(l, canvas.Span{Text: "  writes to " + r.Endpoints.Writes, Style: canvas.Faint})
}

// countdowns draws the times at which something ends on its own.
func (v groupView) countdowns(width int) canvas.Block {
	var out canvas.Block
	if until := v.g.report.PausedUntil; until != nil {
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Paused", Style: canvas.Warn}, v.pauseWords(*until), width)...)
	}
	change := v.timeline()
	if change.IsRunning() {
		return out // one countdown at a time: the change has its own
	}
	if o := v.g.object; o != nil && o.Status.CooldownUntil != nil && o.Status.CooldownUntil.After(v.clock()) {
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Cooldown", Style: canvas.Warn}, v.Left(o.Status.CooldownUntil.Time)+" left: no emergency failover starts automatically", width)...)
	}
	return append(out, change.Countdown(width)...)
}

func (v groupView) forecast(r report.MysqlFailoverGroupReport, width int) canvas.Block {
	f := r.Forecast
	if f == nil || r.Transition != nil {
		return nil
	}
	if d := r.Decision; d != nil && d.Verdict == wire.VerdictBlocked && f.Message == d.Message {
		return nil // the active site is lost, and the decision above says what is in the way
	}
	words := f.Message
	if f.Site != "" {
		words = f.Words()
	}
	loss := f.Loss()
	if r.Facts.Source == report.LastKnown { // as kubectl mfg status says it
		words, loss = "last known: "+words, strings.TrimPrefix(loss, "last known: ")
	}
	if loss != "" {
		words += "; " + loss
	}
	label := canvas.Span{Text: "If lost"}
	if f.BlockedBy != "" {
		label.Style, words = canvas.Warn, words+" ["+string(f.BlockedBy)+"]"
	}
	return v.Signs.Paragraph(label, words, width)
}

// keyrings draws the phases of the sites' keyrings; nothing if the group is not encrypted.
func (v groupView) keyrings(width int) canvas.Block {
	if v.g.object == nil || v.g.object.Status.EncryptionAtRest == nil {
		return nil
	}
	var out canvas.Block
	label := canvas.Span{Text: "Keyrings"}
	for _, k := range v.g.object.Status.EncryptionAtRest.Sites {
		words := k.Name + " " + keyringWords(k)
		if k.Work != "" {
			words += " for " + string(k.Work)
		}
		if k.Since != nil {
			words += " since " + v.Ago(k.Since.Time)
		}
		if k.Message != "" {
			words += ": " + k.Message
		}
		out = append(out, v.Signs.Paragraph(label, words, width)...)
		label = canvas.Span{}
	}
	if c := v.g.object.Status.EncryptionAtRest.Campaign; c.UnderWay() {
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Rotation"}, "of all sites: "+c.Words(), width)...)
	}
	return out
}

func keyringWords(k v1alpha1.SiteKeyringStatus) string {
	if k.KeyringVersion > 0 {
		return fmt.Sprintf("v%d %s", k.KeyringVersion, paint.OrNone(string(k.Phase)))
	}
	return paint.OrNone(string(k.Phase))
}

// keyringOf returns the keyring of one site in a word; empty if there is none.
func (g *group) keyringOf(site string) string {
	if g.object == nil || g.object.Status.EncryptionAtRest == nil {
		return ""
	}
	all := g.object.Status.EncryptionAtRest.Sites
	i := slices.IndexFunc(all, func(k v1alpha1.SiteKeyringStatus) bool { return k.Name == site })
	if i < 0 {
		return ""
	}
	return keyringWords(all[i])
}

// ticker returns all that happened to a group, the newest first: what the operator told, and what Kubernetes keeps.
func (v groupView) ticker() []item {
	out := slices.Clone(v.g.news)
	for _, e := range v.g.events {
		st := canvas.Plain
		if e.Type == corev1.EventTypeWarning {
			st = canvas.Warn
		}
		words := e.Reason + ": " + e.Message
		if !e.OfGroup() {
			words = e.Object + " " + words
		}
		if e.Count > 1 {
			words += fmt.Sprintf(" (x%d)", e.Count)
		}
		out = append(out, item{at: e.Time, group: v.g.name, words: words, st: st})
	}
	if v.g.eventsErr != "" {
		out = append(out, item{at: v.clock(), words: "events cannot be read: " + v.g.eventsErr, st: canvas.Warn})
	}
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.at.UnixMilli(), b.at.UnixMilli()) })
	return out
}

// pauseWords says how long the pause lasts. Its end is not yet that of its effect: the operator ends it when it looks.
func (v groupView) pauseWords(until time.Time) string {
	if !until.After(v.clock()) {
		return fmt.Sprintf("its time ended at %s; until its next look, the operator replaces no lost active site", until.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s left: a lost active site is not replaced until %s", v.Left(until), until.Format(time.RFC3339))
}
