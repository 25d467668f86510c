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
)

// The smallest screen on which anything can be said.
const (
	leastWidth  = 40
	leastHeight = 8
)

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.frame().draw(m.options.Colour))
	v.AltScreen = true
	v.WindowTitle = "mfg"
	return v
}

// Once is one frame without any control sequence, as high as it needs to be, for a ticket.
func (m Model) Once(width int) string {
	m.width, m.height = width, 0
	return append(block{m.header()}, m.body(width)...).bare()
}

// frame is exactly as large as the terminal.
func (m Model) frame() block {
	if m.width < leastWidth || m.height < leastHeight {
		return block{{{s: m.signs.clip(fmt.Sprintf("%dx%d is too small", m.width, m.height), m.width)}}}
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
		body[rows-1] = line{{s: fmt.Sprintf("%s %d more lines: space", m.signs.ellipsis, hidden+1), st: faint}}
	}
	out := block{m.header()}
	out = append(out, body...)
	for len(out) < m.height-1 {
		out = append(out, nil)
	}
	out = append(out[:m.height-1], m.footer())
	for i := range out {
		out[i] = m.signs.fit(out[i], m.width)
	}
	return out
}

// bodyRows is what is left between header and footer.
func (m Model) bodyRows() int { return m.height - 2 }

func (m Model) body(width int) block {
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
func (m Model) header() line {
	left := line{{s: " mfg ", st: chosen}, {s: " "}, {s: m.where(), st: strong}}
	right := append(m.trust(), span{s: "  " + m.clock().UTC().Format("15:04:05Z"), st: faint})
	if m.options.AllowActions {
		right = append(right, span{s: "  actions"})
	} else {
		right = append(right, span{s: "  read-only", st: faint})
	}
	room := m.width - right.width() - 1
	if room < 12 {
		return left
	}
	return append(m.signs.fit(left, room), append(line{{s: " "}}, right...)...)
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
func (m Model) footer() line {
	switch {
	case m.prompt == promptCommand:
		return line{{s: ":" + m.typed}, {s: " ", st: chosen}}
	case m.prompt == promptFilter:
		return line{{s: "/" + m.typed}, {s: " ", st: chosen}, {s: fmt.Sprintf("  %d found", len(m.order)), st: faint}}
	case m.notice != "":
		return line{{s: m.notice, st: warn}}
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
	return line{{s: keys, st: faint}}
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

func (m Model) listPage(width int) block {
	rows := m.listRows()
	first := m.firstRow(rows)
	columns := m.listColumns(width, first, min(len(m.order), first+rows))
	out := m.table(columns, width)
	if m.isBlind() && len(m.order) > 0 {
		out = append(block{m.signs.fit(line{{s: "  this is old: " + m.objectErr, st: bad}}, width)}, out...)
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
	out = append(out, m.rule("News", width))
	return append(out, m.newsBlock(m.news, news-1, true)...)
}

func (m Model) nothing() line {
	switch {
	case m.filter != "":
		return line{{s: "  no group matches /" + m.filter, st: warn}}
	case m.objectErr != "":
		return line{{s: "  " + m.objectErr, st: bad}}
	case !m.objects && m.heardAt.IsZero():
		return line{{s: "  asking the API server and the operator" + m.signs.ellipsis, st: faint}}
	}
	return line{{s: "  there are no groups here", st: faint}}
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

func (m Model) listColumns(width, from, to int) []column {
	mark := column{title: " "}
	name := column{title: "GROUP", most: 44}
	status := column{title: "STATUS"}
	active := column{title: "ACTIVE", most: 24}
	sites := column{title: "SITES"}
	lag := column{title: "LAG"}
	plot := column{title: "LAG, LAST MINUTE", drop: 3}
	behind := column{title: "BEHIND", drop: 2}
	epoch := column{title: "EPOCH", drop: 5}
	loss := column{title: "IF LOST NOW", drop: 4, most: 24}
	problem := column{title: "PROBLEM", drop: 1, most: 40}
	plotWidth := min(60, max(10, width/5))
	for _, key := range m.order[from:to] {
		g := m.groups[key]
		r := g.report
		sign := span{s: " "}
		if key == m.cursor {
			sign = span{s: ">", st: chosen}
		}
		mark.cells = append(mark.cells, sign)
		name.cells = append(name.cells, span{s: m.shortName(r), st: strong})
		status.cells = append(status.cells, span{s: statusSign(r) + string(r.Summary), st: summaryStyle(r.Summary)})
		active.cells = append(active.cells, span{s: orNone(r.ActiveSite)})
		sites.cells = append(sites.cells, sitesSpan(r.Sites))
		worst := g.worst()
		lag.cells = append(lag.cells, span{s: lagWords(worst.LagSeconds)})
		behind.cells = append(behind.cells, span{s: countWords(worst.Behind)})
		samples := g.lags(min(plotWidth, 60))
		p := m.signs.spark(samples, plotWidth, 1, greatest(samples, 1))
		plot.cells = append(plot.cells, p[0][0])
		epoch.cells = append(epoch.cells, span{s: fmt.Sprint(r.Epoch)})
		loss.cells = append(loss.cells, forecastSpan(r.Forecast))
		problem.cells = append(problem.cells, problemSpan(r))
	}
	return []column{mark, name, status, active, sites, lag, behind, plot, epoch, loss, problem}
}

func (m Model) shortName(r report.MysqlFailoverGroupReport) string {
	if m.options.Namespace == "" {
		return nameOf(r.Metadata.Namespace, r.Metadata.Name)
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
		samples := t.last(n)
		for extra := len(samples) - len(out); extra > 0; extra-- {
			out = append([]float64{unknownSample}, out...)
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

func summaryStyle(s report.Summary) style {
	switch s {
	case report.SummaryReady:
		return good
	case report.SummarySplitBrain, report.SummaryUnavailable:
		return bad
	case report.SummaryDegraded, report.SummaryFailingOver, report.SummaryBootstrapping, report.SummaryUnknown:
	}
	return warn
}

func stateStyle(s report.Site) style {
	if s.Foreign {
		return bad
	}
	switch v1alpha1.SiteState(s.State) {
	case v1alpha1.SitePrimary, v1alpha1.SiteReplica:
		return good
	case v1alpha1.SiteDiverged, v1alpha1.SiteUnreachable:
		return bad
	case v1alpha1.SitePending, v1alpha1.SiteFenced, v1alpha1.SiteCloning, v1alpha1.SiteDetached:
	}
	return warn
}

func sitesSpan(sites []report.Site) span {
	fit := 0
	for _, s := range sites {
		if s.Fit() {
			fit++
		}
	}
	out := span{s: fmt.Sprintf("%d/%d", fit, len(sites))}
	if fit < len(sites) {
		out.st = warn
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

func forecastSpan(f *report.Forecast) span {
	switch {
	case f == nil:
		return span{s: "-"}
	case f.BlockedBy != "":
		return span{s: "blocked: " + string(f.BlockedBy), st: warn}
	case f.Site == "":
		return span{s: "nobody takes over", st: bad}
	}
	return span{s: f.Site + " takes over"}
}

func problemSpan(r report.MysqlFailoverGroupReport) span {
	if len(r.Problems) == 0 {
		return span{s: "-", st: faint}
	}
	p := r.Problems[0]
	return span{s: strings.TrimSpace(string(p.Reason) + " " + p.Site), st: warn}
}
