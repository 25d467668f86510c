// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// The smallest screen on which anything can be said.
const (
	leastWidth  = 40
	leastHeight = 8
)

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.frame().Draw(m.options.Colour))
	v.AltScreen = true
	v.WindowTitle = "mfg"
	return v
}

// Once is one frame without any control sequence, as high as it needs to be, for a ticket.
func (m Model) Once(width int) string {
	m.width, m.height = width, 0
	return append(canvas.Block{m.header()}, m.body(width)...).Bare()
}

// frame is exactly as large as the terminal.
func (m Model) frame() canvas.Block {
	if m.width < leastWidth || m.height < leastHeight {
		return canvas.Block{{{Text: m.signs.Clip(fmt.Sprintf("%dx%d is too small", m.width, m.height), m.width)}}}
	}
	rows := m.bodyRows()
	body := m.body(m.width)
	hidden := 0
	if m.page != pageList {
		skip := min(m.scroll, max(0, len(body)-rows))
		body = body[skip:]
		hidden = len(body) - rows
	}
	if hidden > 0 {
		body = body[:rows]
		body[rows-1] = canvas.Line{{Text: fmt.Sprintf("%s %d more lines: space", m.signs.Ellipsis, hidden+1), Style: canvas.Faint}}
	}
	out := canvas.Block{m.header()}
	out = append(out, body...)
	for len(out) < m.height-1 {
		out = append(out, nil)
	}
	out = append(out[:m.height-1], m.footer())
	for i := range out {
		out[i] = m.signs.Fit(out[i], m.width)
	}
	return out
}

// bodyRows is what is left between header and footer.
func (m Model) bodyRows() int { return m.height - 2 }

func (m Model) body(width int) canvas.Block {
	switch m.page {
	case pageGroup:
		return m.groupPage(width)
	case pageWhy:
		return m.whyPage(width)
	case pageHelp:
		return m.helpPage(width)
	case pageList:
	}
	return m.listPage(width)
}

// header says what is shown and how far it is to be believed.
func (m Model) header() canvas.Line {
	left := canvas.Line{{Text: " mfg ", Style: canvas.Chosen}, {Text: " "}, {Text: m.where(), Style: canvas.Strong}}
	right := append(m.trust(), canvas.Span{Text: "  " + m.clock().UTC().Format("15:04:05Z"), Style: canvas.Faint})
	if m.options.AllowActions {
		right = append(right, canvas.Span{Text: "  actions"})
	} else {
		right = append(right, canvas.Span{Text: "  read-only", Style: canvas.Faint})
	}
	room := m.width - right.Width() - 1
	if room < 12 {
		return left
	}
	return append(m.signs.Fit(left, room), append(canvas.Line{{Text: " "}}, right...)...)
}

func (m Model) where() string {
	switch m.page {
	case pageHelp:
		return "help"
	case pageWhy:
		return m.open + " why"
	case pageGroup:
		return m.open
	case pageList:
	}
	namespace := m.options.Namespace
	if namespace == "" {
		namespace = "all namespaces"
	}
	bad := 0
	for _, g := range m.groups {
		if g.gravity() > 0 {
			bad++
		}
	}
	words := fmt.Sprintf("%s  %d groups", namespace, len(m.groups))
	if bad > 0 {
		words += fmt.Sprintf(", %d not ready", bad)
	}
	return words
}

// footer is the prompt, the answer to the last key, or what can be pressed.
func (m Model) footer() canvas.Line {
	switch {
	case m.prompt == promptCommand:
		return canvas.Line{{Text: ":" + m.typed}, {Text: " ", Style: canvas.Chosen}}
	case m.prompt == promptFilter:
		return canvas.Line{{Text: "/" + m.typed}, {Text: " ", Style: canvas.Chosen}, {Text: fmt.Sprintf("  %d found", len(m.order)), Style: canvas.Faint}}
	case m.notice != "":
		return canvas.Line{{Text: m.notice, Style: canvas.Warn}}
	}
	keys := "enter open  / filter  : command  x why  s sort  ? help  q quit"
	switch m.page {
	case pageGroup:
		keys = "j/k site  f failover  c reclone  p pause  x why  esc back  ? help  q quit"
		if g := m.groups[m.open]; g != nil && g.isAbortable() {
			keys = "j/k site  a abort  f failover  p pause  x why  esc back  ? help  q quit"
		}
	case pageWhy, pageHelp:
		keys = "j/k scroll  esc back  q quit"
	case pageList:
		if m.filter != "" {
			keys = "filter /" + m.filter + " (esc ends it)  " + keys
		}
	}
	return canvas.Line{{Text: keys, Style: canvas.Faint}}
}

// listRows is how many groups are seen at once.
func (m Model) listRows() int {
	if m.height == 0 {
		return len(m.order)
	}
	rows := m.bodyRows() - 1 - m.newsRows()
	if m.isBlind() {
		rows-- // which says so
	}
	return max(1, rows)
}

// newsRows is how much of the list's screen is for news.
func (m Model) newsRows() int {
	switch {
	case m.height >= 50:
		return 12
	case m.height >= 36:
		return 8
	case m.height >= 20:
		return 4
	}
	return 0
}

func (m Model) listPage(width int) canvas.Block {
	rows := m.listRows()
	first := m.firstRow(rows)
	columns := m.listColumns(width, first, min(len(m.order), first+rows))
	out := m.signs.Table(columns, width)
	if m.isBlind() && len(m.order) > 0 {
		out = append(canvas.Block{m.signs.Fit(canvas.Line{{Text: "  this is old: " + m.objectErr, Style: canvas.Bad}}, width)}, out...)
	}
	if len(m.order) == 0 {
		out = append(out, m.nothing())
	}
	news := m.newsRows()
	if news == 0 {
		return out
	}
	for len(out) < m.bodyRows()-news {
		out = append(out, nil)
	}
	out = append(out, m.signs.Rule("News", width))
	return append(out, m.newsBlock(m.news, news-1, true)...)
}

func (m Model) nothing() canvas.Line {
	switch {
	case m.filter != "":
		return canvas.Line{{Text: "  no group matches /" + m.filter, Style: canvas.Warn}}
	case m.objectErr != "":
		return canvas.Line{{Text: "  " + m.objectErr, Style: canvas.Bad}}
	case !m.objects && m.heardAt.IsZero():
		return canvas.Line{{Text: "  asking the API server and the operator" + m.signs.Ellipsis, Style: canvas.Faint}}
	}
	return canvas.Line{{Text: "  there are no groups here", Style: canvas.Faint}}
}

// firstRow keeps the cursor on the screen.
func (m Model) firstRow(rows int) int {
	for i, name := range m.order {
		if name == m.cursor {
			return max(0, min(i-rows/2, len(m.order)-rows))
		}
	}
	return 0
}

func (m Model) listColumns(width, from, to int) []canvas.Column {
	mark := canvas.Column{Title: " "}
	name := canvas.Column{Title: "GROUP", Most: 44}
	status := canvas.Column{Title: "STATUS"}
	active := canvas.Column{Title: "ACTIVE", Most: 24}
	sites := canvas.Column{Title: "SITES"}
	lag := canvas.Column{Title: "LAG"}
	plot := canvas.Column{Title: "LAG, LAST MINUTE", Drop: 3}
	behind := canvas.Column{Title: "BEHIND", Drop: 2}
	epoch := canvas.Column{Title: "EPOCH", Drop: 5}
	loss := canvas.Column{Title: "IF LOST NOW", Drop: 4, Most: 24}
	problem := canvas.Column{Title: "PROBLEM", Drop: 1, Most: 40}
	plotWidth := min(60, max(10, width/5))
	for _, key := range m.order[from:to] {
		g := m.groups[key]
		r := g.report
		sign := canvas.Span{Text: " "}
		if key == m.cursor {
			sign = canvas.Span{Text: ">", Style: canvas.Chosen}
		}
		mark.Cells = append(mark.Cells, sign)
		name.Cells = append(name.Cells, canvas.Span{Text: m.shortName(r), Style: canvas.Strong})
		status.Cells = append(status.Cells, canvas.Span{Text: statusSign(r) + string(r.Summary), Style: summaryStyle(r.Summary)})
		active.Cells = append(active.Cells, canvas.Span{Text: orNone(r.ActiveSite)})
		sites.Cells = append(sites.Cells, sitesSpan(r.Sites))
		worst := g.worst()
		lag.Cells = append(lag.Cells, canvas.Span{Text: lagWords(worst.LagSeconds)})
		behind.Cells = append(behind.Cells, canvas.Span{Text: countWords(worst.Behind)})
		samples := g.lags(min(plotWidth, 60))
		p := m.signs.Spark(samples, plotWidth, 1, canvas.Greatest(samples, 1))
		plot.Cells = append(plot.Cells, p[0][0])
		epoch.Cells = append(epoch.Cells, canvas.Span{Text: fmt.Sprint(r.Epoch)})
		loss.Cells = append(loss.Cells, forecastSpan(r.Forecast))
		problem.Cells = append(problem.Cells, problemSpan(r))
	}
	return []canvas.Column{mark, name, status, active, sites, lag, behind, plot, epoch, loss, problem}
}

func (m Model) shortName(r report.MysqlFailoverGroupReport) string {
	if m.options.Namespace == "" {
		return feed.NameOf(r.Metadata.Namespace, r.Metadata.Name)
	}
	return r.Metadata.Name
}

// worst is the site that lags most; nobody where none is known.
func (g *group) worst() report.Site {
	var worst report.Site
	for _, s := range g.report.Sites {
		if s.Active || s.LagSeconds == nil {
			continue
		}
		if worst.LagSeconds == nil || *s.LagSeconds > *worst.LagSeconds {
			worst = s
		}
	}
	return worst
}

// lags are the greatest lags of any site, second by second.
func (g *group) lags(n int) []float64 {
	var out []float64
	for _, t := range g.lag {
		samples := t.Last(n)
		for extra := len(samples) - len(out); extra > 0; extra-- {
			out = append([]float64{canvas.UnknownSample}, out...)
		}
		for i, v := range samples {
			if at := len(out) - len(samples) + i; math.IsNaN(out[at]) || v > out[at] {
				out[at] = v
			}
		}
	}
	return out
}

func statusSign(r report.MysqlFailoverGroupReport) string {
	if r.Health == report.Healthy {
		return ""
	}
	return "! "
}

func summaryStyle(s report.Summary) canvas.Style {
	switch s {
	case report.SummaryReady:
		return canvas.Good
	case report.SummarySplitBrain, report.SummaryUnavailable:
		return canvas.Bad
	case report.SummaryDegraded, report.SummaryFailingOver, report.SummaryBootstrapping, report.SummaryUnknown:
	}
	return canvas.Warn
}

func stateStyle(s report.Site) canvas.Style {
	if s.Foreign {
		return canvas.Bad
	}
	switch v1alpha1.SiteState(s.State) {
	case v1alpha1.SitePrimary, v1alpha1.SiteReplica:
		return canvas.Good
	case v1alpha1.SiteDiverged, v1alpha1.SiteUnreachable:
		return canvas.Bad
	case v1alpha1.SitePending, v1alpha1.SiteFenced, v1alpha1.SiteCloning, v1alpha1.SiteDetached:
	}
	return canvas.Warn
}

func sitesSpan(sites []report.Site) canvas.Span {
	fit := 0
	for _, s := range sites {
		if s.Fit() {
			fit++
		}
	}
	out := canvas.Span{Text: fmt.Sprintf("%d/%d", fit, len(sites))}
	if fit < len(sites) {
		out.Style = canvas.Warn
	}
	return out
}

func lagWords(lag *float64) string {
	switch {
	case lag == nil:
		return "?"
	case *lag < 100:
		return fmt.Sprintf("%.1fs", *lag)
	}
	return duration.HumanDuration(time.Duration(*lag * float64(time.Second)))
}

func countWords(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func forecastSpan(f *report.Forecast) canvas.Span {
	switch {
	case f == nil:
		return canvas.Span{Text: "-"}
	case f.BlockedBy != "":
		return canvas.Span{Text: "blocked: " + string(f.BlockedBy), Style: canvas.Warn}
	case f.Site == "":
		return canvas.Span{Text: "nobody takes over", Style: canvas.Bad}
	}
	return canvas.Span{Text: f.Site + " takes over"}
}

func problemSpan(r report.MysqlFailoverGroupReport) canvas.Span {
	if len(r.Problems) == 0 {
		return canvas.Span{Text: "-", Style: canvas.Faint}
	}
	p := r.Problems[0]
	return canvas.Span{Text: strings.TrimSpace(string(p.Reason) + " " + p.Site), Style: canvas.Warn}
}
