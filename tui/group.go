// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

const (
	// cardWidth is the least width of a site's card; two of them side by side need a wide screen.
	cardWidth = 37
	// wideScreen is from where on sites are drawn as cards, and news beside the rest.
	wideScreen = 118
)

// groupPage is all about one group, what matters most first.
func (m Model) groupPage(width int) canvas.Block {
	g := m.groups[m.open]
	if !m.knows(m.open) {
		return canvas.Block{nil, {{Text: "  no group " + m.open + " is known", Style: canvas.Warn}}, {{Text: "  " + m.objectErr, Style: canvas.Bad}}}
	}
	out := m.summary(g, width)
	out = append(out, nil)
	out = append(out, m.siteMap(g, width)...)
	// What is wrong and what to do come before the rest, and on a small screen a failover that unfolds before all else.
	sections := []canvas.Block{append(m.problems(g, width), m.hints(g, width)...), m.keyrings(g, width)}
	switch {
	case width < wideScreen && g.report.Transition != nil:
		sections = append([]canvas.Block{m.timeline(g, width)}, sections...)
	case width < wideScreen:
		sections = append(sections, m.timeline(g, width))
	}
	for _, s := range sections {
		if len(s) > 0 {
			out = append(append(out, nil), s...)
		}
	}
	out = append(out, nil)
	return append(out, m.lower(g, width, m.bodyRows()-len(out))...)
}

// lower is the news, and on a wide screen the timeline beside it.
func (m Model) lower(g *group, width, rows int) canvas.Block {
	if width < wideScreen {
		out := canvas.Block{m.signs.Rule("News and events", width)}
		left := max(3, rows-len(out))
		if m.height == 0 {
			left = tickerMost
		}
		return append(out, m.newsBlock(m.ticker(g), left, false)...)
	}
	half := (width - 2) / 2
	left := append(canvas.Block{m.signs.Rule("Failover", half)}, m.timeline(g, half)...)
	fit := max(3, rows-1)
	if m.height == 0 {
		fit = max(20, len(left)-1)
	}
	right := append(canvas.Block{m.signs.Rule("News and events", width-2-half)}, m.newsBlock(m.ticker(g), fit, false)...)
	return m.signs.Beside([]int{half, width - 2 - half}, left, right)
}

// summary is who is active, and what would happen if it were lost.
func (m Model) summary(g *group, width int) canvas.Block {
	r := g.report
	first := canvas.Line{{Text: "Status    "}, {Text: statusSign(r) + string(r.Summary), Style: summaryStyle(r.Summary)}, {Text: fmt.Sprintf("  epoch %d", r.Epoch)}}
	if r.MySQL != "" {
		first = append(first, canvas.Span{Text: "  MySQL " + r.MySQL})
	}
	out := canvas.Block{first, m.activeLine(r)}
	if d := r.Decision; d != nil && (d.Verdict != verdictNothing || r.Transition != nil) {
		words := d.Verdict + " (" + orNone(d.Reason) + ")"
		if d.Message != "" {
			words += ": " + d.Message
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Decision", Style: canvas.Warn}, words, width)...)
	}
	if rule := m.why.Deciding; rule != nil && m.why.name() == g.name && g.deciding() && r.Decision.Message != rule.Input {
		words := rule.Name + ": " + rule.Input
		if rule.Remedy != "" {
			words += "; " + rule.Remedy
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Decided by"}, words, width)...)
	}
	if r.Hold && r.Transition == nil {
		// Without a change under way: the active site is lost or was, or its keyring is not in escrow. The decision says which.
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Hold", Style: canvas.Warn}, "no site may open writes until the operator lets one; a hold closes none that is open", width)...)
	}
	out = append(out, m.countdowns(g, width)...)
	return append(out, m.forecast(r, width)...)
}

func (m Model) activeLine(r report.MysqlFailoverGroupReport) canvas.Line {
	l := canvas.Line{{Text: "Active    "}, {Text: orNone(r.ActiveSite), Style: canvas.Strong}}
	switch {
	case r.Transition != nil:
		l = append(l, canvas.Span{Text: " (not open yet)", Style: canvas.Warn})
	case r.ActiveSiteSince != nil:
		l = append(l, canvas.Span{Text: " for " + m.ago(*r.ActiveSiteSince)})
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
func (m Model) countdowns(g *group, width int) canvas.Block {
	var out canvas.Block
	if until := g.report.PausedUntil; until != nil {
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Paused", Style: canvas.Warn}, fmt.Sprintf("%s left: a lost active site is not replaced until %s", m.left(*until), until.Format(time.RFC3339)), width)...)
	}
	if o := g.object; o != nil && o.Status.CooldownUntil != nil && o.Status.CooldownUntil.After(m.clock()) {
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Cooldown", Style: canvas.Warn}, m.left(o.Status.CooldownUntil.Time)+" left: no emergency failover starts by itself", width)...)
	}
	for _, s := range g.report.Sites {
		if l, silent := m.silence(g, s); silent {
			out = append(out, l)
		}
	}
	return out
}

// silence sets how long a site has not answered the operator against its lease. It is the operator's view: the lease
// itself may have been renewed by a peer, and only the operator's gate says when it counts as run out.
func (m Model) silence(g *group, s report.Site) (canvas.Line, bool) {
	since, known := g.silent[s.Name]
	if s.LastSeen != nil && (!known || s.LastSeen.After(since)) {
		since, known = *s.LastSeen, true
	}
	if s.Reachable == nil || *s.Reachable || !known {
		return nil, false
	}
	quiet := max(0, m.clock().Sub(since))
	lease := leaseOf(g.object)
	words := fmt.Sprintf("%s silent %s of %s ", s.Name, seconds(quiet), seconds(lease))
	l := canvas.Line{{Text: "Lease     ", Style: canvas.Warn}, {Text: words}, {Text: m.signs.Bar(float64(quiet)/float64(lease), 12), Style: canvas.Warn}}
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

func (m Model) forecast(r report.MysqlFailoverGroupReport, width int) canvas.Block {
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
	return m.signs.Paragraph(label, words, width)
}

// keyrings are the phases of the sites' keyrings; nothing where the group is not encrypted.
func (m Model) keyrings(g *group, width int) canvas.Block {
	if g.object == nil || g.object.Status.EncryptionAtRest == nil {
		return nil
	}
	var out canvas.Block
	label := canvas.Span{Text: "Keyrings"}
	for _, k := range g.object.Status.EncryptionAtRest.Sites {
		words := k.Name + " " + keyringWords(k)
		if k.Work != "" {
			words += " for " + string(k.Work)
		}
		if k.Since != nil {
			words += " since " + m.ago(k.Since.Time)
		}
		if k.Message != "" {
			words += ": " + k.Message
		}
		out = append(out, m.signs.Paragraph(label, words, width)...)
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

func (m Model) problems(g *group, width int) canvas.Block {
	var out canvas.Block
	for _, p := range g.report.Problems {
		if g.tells(p) {
			continue
		}
		words := p.Message
		if p.Site != "" {
			words = p.Site + " " + words
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Problem", Style: canvas.Bad}, words+" ["+string(p.Reason)+"]", width)...)
	}
	for _, n := range g.report.Notes {
		if n == g.report.PauseNote() {
			continue // has its countdown above
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Note", Style: canvas.Warn}, n, width)...)
	}
	if m.objectErr != "" {
		words := "the custom resource was never read: "
		if m.objects {
			words = "the custom resource was last heard of " + seconds(m.resourceAge()) + " ago: "
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Facts", Style: canvas.Bad}, words+m.objectErr, width)...)
	}
	if g.report.Facts.Source == report.LastKnown && m.link.Error != "" {
		words := "the last known status of the custom resource"
		if at := g.report.Facts.ObservedAt; at != nil {
			words += ", changed " + m.ago(*at) + " ago"
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Facts", Style: canvas.Warn}, words+": "+g.report.Facts.Message, width)...)
	}
	return out
}

// tells is true for a problem that the timeline or the site's own line says already.
func (g *group) tells(p report.Problem) bool {
	if p.Site == "" {
		return g.report.Transition != nil && p.Reason == v1alpha1.ReasonFailingOver
	}
	return slices.ContainsFunc(g.report.Sites, func(s report.Site) bool {
		return s.Name == p.Site && s.Message != "" && strings.Contains(p.Message, s.Message)
	})
}

func (m Model) move(from, to string) string {
	if from == "" {
		return "to " + to
	}
	return from + " " + m.signs.Arrow + " " + to
}

// ago is the age of a time of the cluster's clock.
func (m Model) ago(t time.Time) string { return duration.HumanDuration(max(0, m.clock().Sub(t))) }

func (m Model) left(t time.Time) string { return seconds(max(0, t.Sub(m.clock()))) }
