// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

const (
	// cardWidth is the least width of a site's card; two of them side by side need a wide screen.
	cardWidth = 37
	// wideScreen is from where on sites are drawn as cards, and news beside the rest.
	wideScreen = 118
)

// groupView draws one group.
type groupView struct {
	painter
	g *group
	// selected is which of its sites is chosen; why is what the operator said of its decision last.
	selected int
	why      Answer
}

func (v groupView) sites() sitesView {
	return sitesView{painter: v.painter, g: v.g, selected: v.selected}
}
func (v groupView) timeline() timelineView { return timelineView{painter: v.painter, g: v.g} }

// draw is all about one group, what matters most first.
func (v groupView) draw(width int) canvas.Block {
	out := v.summary(width)
	out = append(out, nil)
	out = append(out, v.sites().draw(width)...)
	// What is wrong and what to do come before the rest, and on a small screen a failover that unfolds before all else.
	sections := []canvas.Block{append(v.problems(width), v.hints(width)...), v.keyrings(width), v.cache(width), append(v.backups(width), v.pitr(width)...)}
	switch {
	case width < wideScreen && v.g.report.Transition != nil:
		sections = append([]canvas.Block{v.timeline().draw(width)}, sections...)
	case width < wideScreen:
		sections = append(sections, v.timeline().draw(width))
	}
	for _, s := range sections {
		if len(s) > 0 {
			out = append(append(out, nil), s...)
		}
	}
	out = append(out, nil)
	return append(out, v.lower(width, v.bodyRows()-len(out))...)
}

// lower is the news, and on a wide screen the timeline beside it.
func (v groupView) lower(width, rows int) canvas.Block {
	if width < wideScreen {
		out := canvas.Block{v.signs.Rule("News and events", width)}
		left := max(3, rows-len(out))
		if v.height == 0 {
			left = tickerMost
		}
		return append(out, v.newsBlock(v.ticker(), left, false)...)
	}
	half := (width - 2) / 2
	left := append(canvas.Block{v.signs.Rule("Failover", half)}, v.timeline().draw(half)...)
	fit := max(3, rows-1)
	if v.height == 0 {
		fit = max(20, len(left)-1)
	}
	right := append(canvas.Block{v.signs.Rule("News and events", width-2-half)}, v.newsBlock(v.ticker(), fit, false)...)
	return v.signs.Beside([]int{half, width - 2 - half}, left, right)
}

// summary is who is active, and what would happen if it were lost.
func (v groupView) summary(width int) canvas.Block {
	r := v.g.report
	first := canvas.Line{{Text: "Status    "}, {Text: statusSign(r) + string(r.Summary), Style: summaryStyle(r.Summary)}, {Text: fmt.Sprintf("  epoch %d", r.Epoch)}}
	if r.MySQL != "" {
		first = append(first, canvas.Span{Text: "  MySQL " + r.MySQL})
	}
	out := canvas.Block{first, v.activeLine(r)}
	if d := r.Decision; d != nil && (d.Verdict != wire.VerdictNothing || r.Transition != nil) {
		words := d.Verdict + " (" + orNone(d.Reason) + ")"
		if d.Message != "" {
			words += ": " + d.Message
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Decision", Style: canvas.Warn}, words, width)...)
	}
	if rule := v.why.Deciding; rule != nil && v.why.name() == v.g.name && v.g.deciding() && r.Decision.Message != rule.Input {
		words := rule.Name + ": " + rule.Input
		if rule.Remedy != "" {
			words += "; " + rule.Remedy
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Decided by"}, words, width)...)
	}
	if r.Hold && r.Transition == nil {
		// Without a change under way: the active site is lost or was, or its keyring is not in escrow. The decision says which.
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Hold", Style: canvas.Warn}, "no site may open writes until the operator lets one; a hold closes none that is open", width)...)
	}
	out = append(out, v.countdowns(width)...)
	return append(out, v.forecast(r, width)...)
}

func (v groupView) activeLine(r report.MysqlFailoverGroupReport) canvas.Line {
	l := canvas.Line{{Text: "Active    "}, {Text: orNone(r.ActiveSite), Style: canvas.Strong}}
	switch {
	case r.Transition != nil:
		l = append(l, canvas.Span{Text: " (not open yet)", Style: canvas.Warn})
	case r.ActiveSiteSince != nil:
		l = append(l, canvas.Span{Text: " for " + v.ago(*r.ActiveSiteSince)})
	}
	return append(l, canvas.Span{Text: "  writes to " + r.Endpoints.Writes, Style: canvas.Faint})
}

func lossWords(lost int64, exact bool) string {
	switch {
	case exact:
		return fmt.Sprintf("%d lost", lost)
	case lost == 0:
		return "loss not known yet"
	}
	return fmt.Sprintf("at least %d lost", lost)
}

// countdowns are the times by which something ends by itself.
func (v groupView) countdowns(width int) canvas.Block {
	var out canvas.Block
	if until := v.g.report.PausedUntil; until != nil {
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Paused", Style: canvas.Warn}, fmt.Sprintf("%s left: a lost active site is not replaced until %s", v.left(*until), until.Format(time.RFC3339)), width)...)
	}
	if o := v.g.object; o != nil && o.Status.CooldownUntil != nil && o.Status.CooldownUntil.After(v.clock()) {
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Cooldown", Style: canvas.Warn}, v.left(o.Status.CooldownUntil.Time)+" left: no emergency failover starts by itself", width)...)
	}
	for _, s := range v.g.report.Sites {
		if l, silent := v.silence(s); silent {
			out = append(out, l)
		}
	}
	return out
}

// silence sets how long a site has not answered the operator against its lease. It is the operator's view: the lease
// itself may have been renewed by a peer, and only the operator's gate says when it counts as run out.
func (v groupView) silence(s report.Site) (canvas.Line, bool) {
	since, known := v.g.silent[s.Name]
	if s.LastSeen != nil && (!known || s.LastSeen.After(since)) {
		since, known = *s.LastSeen, true
	}
	if s.Reachable == nil || *s.Reachable || !known {
		return nil, false
	}
	quiet := max(0, v.clock().Sub(since))
	lease := leaseOf(v.g.object)
	words := fmt.Sprintf("%s silent %s of %s ", s.Name, seconds(quiet), seconds(lease))
	l := canvas.Line{{Text: "Lease     ", Style: canvas.Warn}, {Text: words}, {Text: v.signs.Bar(float64(quiet)/float64(lease), 12), Style: canvas.Warn}}
	if left := lease - quiet; left > 0 {
		return append(l, canvas.Span{Text: fmt.Sprintf(" %s left, unless a peer answers", seconds(left))}), true
	}
	return append(l, canvas.Span{Text: " over, unless a peer answers"}), true
}

// defaultLease is the API's default, for what was written by an older API server.
const defaultLease = 20 * time.Second

func leaseOf(o *v1alpha1.MysqlFailoverGroup) time.Duration {
	if o == nil || o.Spec.Sidecar.LeaseTimeout.Duration <= 0 {
		return defaultLease
	}
	return o.Spec.Sidecar.LeaseTimeout.Duration
}

func (v groupView) forecast(r report.MysqlFailoverGroupReport, width int) canvas.Block {
	f := r.Forecast
	if f == nil || r.Transition != nil {
		return nil
	}
	words := f.Message
	if f.Site != "" {
		words = f.Words()
	}
	if loss := f.Loss(); loss != "" {
		words += "; " + loss
	}
	label := canvas.Span{Text: "If lost"}
	if f.BlockedBy != "" {
		label.Style, words = canvas.Warn, words+" ["+string(f.BlockedBy)+"]"
	}
	return v.signs.Paragraph(label, words, width)
}

// keyrings are the phases of the sites' keyrings; nothing where the group is not encrypted.
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
			words += " since " + v.ago(k.Since.Time)
		}
		if k.Message != "" {
			words += ": " + k.Message
		}
		out = append(out, v.signs.Paragraph(label, words, width)...)
		label = canvas.Span{}
	}
	return out
}

func keyringWords(k v1alpha1.SiteKeyringStatus) string {
	if k.KeyringVersion > 0 {
		return fmt.Sprintf("v%d %s", k.KeyringVersion, orNone(string(k.Phase)))
	}
	return orNone(string(k.Phase))
}

// keyringOf is the keyring of one site in a word; empty where there is none.
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

func (v groupView) problems(width int) canvas.Block {
	var out canvas.Block
	for _, p := range v.g.report.Problems {
		if v.g.tells(p) {
			continue
		}
		words := p.Message
		if p.Site != "" {
			words = p.Site + " " + words
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Problem", Style: canvas.Bad}, words+" ["+string(p.Reason)+"]", width)...)
	}
	for _, n := range v.g.report.Notes {
		if n.Kind == report.NotePause {
			continue // has its countdown above
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Note", Style: canvas.Warn}, n.Text, width)...)
	}
	if v.objectErr != "" {
		words := "the custom resource was never read: "
		if v.objects {
			words = "the custom resource was last heard of " + seconds(v.resourceAge()) + " ago: "
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Facts", Style: canvas.Bad}, words+v.objectErr, width)...)
	}
	if v.g.report.Facts.Source == report.LastKnown && v.link.Error != "" {
		words := "the last known status of the custom resource"
		if at := v.g.report.Facts.ObservedAt; at != nil {
			words += ", changed " + v.ago(*at) + " ago"
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Facts", Style: canvas.Warn}, words+": "+v.g.report.Facts.Message, width)...)
	}
	return out
}

// tells is true for a problem that the timeline or the site's own line says already.
func (g *group) tells(p report.Problem) bool {
	if p.Site == "" {
		return g.report.Transition != nil && p.Reason == v1alpha1.ReasonFailingOver
	}
	return p.OfSite
}

// ticker is all that happened to a group, the newest first: what the operator told, and what Kubernetes keeps.
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
