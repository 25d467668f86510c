// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// listView draws the groups, one line each, and the news of all of them.
type listView struct {
	painter
	fleet  *fleet
	cursor string
	// namespace is the shown one, "" for all.
	namespace string
}

// rows is how many groups fit on the screen.
func (v listView) rows() int {
	if v.Height == 0 {
		return len(v.fleet.order)
	}
	rows := v.BodyRows() - 1 - v.newsRows()
	if v.isBlind() {
		rows-- // which says so
	}
	return max(1, rows)
}

// newsRows is how many rows of the list's screen are for news.
func (v listView) newsRows() int {
	switch {
	case v.Height >= 50:
		return 12
	case v.Height >= 36:
		return 8
	case v.Height >= 20:
		return 4
	}
	return 0
}

func (v listView) draw(width int) canvas.Block {
	rows := v.rows()
	first := v.firstRow(rows)
	columns := v.columns(width, first, min(len(v.fleet.order), first+rows))
	out := v.Signs.Table(columns, width)
	if v.isBlind() && len(v.fleet.order) > 0 {
		out = append(canvas.Block{v.Signs.Fit(canvas.Line{{Text: "  this is old: " + v.objectErr, Style: canvas.Bad}}, width)}, out...)
	}
	if len(v.fleet.order) == 0 {
		out = append(out, v.nothing())
	}
	news := v.newsRows()
	if news == 0 {
		return out
	}
	for len(out) < v.BodyRows()-news {
		out = append(out, nil)
	}
	out = append(out, v.Signs.Rule("News", width))
	return append(out, v.newsBlock(v.fleet.news, news-1, true)...)
}

func (v listView) nothing() canvas.Line {
	switch {
	case v.fleet.filter != "":
		return canvas.Line{{Text: "  no group matches /" + v.fleet.filter, Style: canvas.Warn}}
	case v.objectErr != "":
		return canvas.Line{{Text: "  " + v.objectErr, Style: canvas.Bad}}
	case !v.objects && v.heardAt.IsZero():
		return canvas.Line{{Text: "  asking the API server and the operator" + v.Signs.Ellipsis, Style: canvas.Faint}}
	}
	return canvas.Line{{Text: "  there are no groups here", Style: canvas.Faint}}
}

// firstRow keeps the cursor on the screen.
func (v listView) firstRow(rows int) int {
	for i, name := range v.fleet.order {
		if name == v.cursor {
			return max(0, min(i-rows/2, len(v.fleet.order)-rows))
		}
	}
	return 0
}

func (v listView) columns(width, from, to int) []canvas.Column {
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
	cache := canvas.Column{Title: "CACHE", Drop: 2, Most: 24}
	plotWidth := min(60, max(10, width/5))
	for _, key := range v.fleet.order[from:to] {
		g := v.fleet.groups[key]
		r := g.report
		sign := canvas.Span{Text: " "}
		if key == v.cursor {
			sign = canvas.Span{Text: ">", Style: canvas.Chosen}
		}
		mark.Cells = append(mark.Cells, sign)
		name.Cells = append(name.Cells, canvas.Span{Text: v.shortName(r), Style: canvas.Strong})
		status.Cells = append(status.Cells, v.status(g))
		active.Cells = append(active.Cells, canvas.Span{Text: paint.OrNone(r.ActiveSite)})
		sites.Cells = append(sites.Cells, sitesSpan(r.Sites))
		worst := g.worst()
		lag.Cells = append(lag.Cells, canvas.Span{Text: lagWords(worst.LagSeconds)})
		behind.Cells = append(behind.Cells, canvas.Span{Text: countWords(worst.Behind)})
		samples := g.lags(min(plotWidth, 60))
		p := v.Signs.Spark(samples, plotWidth, 1, canvas.Greatest(samples, 1))
		plot.Cells = append(plot.Cells, p[0][0])
		epoch.Cells = append(epoch.Cells, canvas.Span{Text: fmt.Sprint(r.Epoch)})
		loss.Cells = append(loss.Cells, forecastSpan(r.Forecast))
		problem.Cells = append(problem.Cells, problemSpan(r))
		cache.Cells = append(cache.Cells, v.cacheMark(r.Cache))
	}
	columns := []canvas.Column{mark, name, status, active, sites, lag, behind}
	if v.fleet.hasCache() {
		columns = append(columns, cache)
	}
	return append(columns, plot, epoch, loss, problem)
}

func (v listView) shortName(r report.MysqlFailoverGroupReport) string {
	if v.namespace == "" {
		return feed.NameOf(r.Metadata.Namespace, r.Metadata.Name)
	}
	return r.Metadata.Name
}

// worst returns the site that lags most; an empty one if no lag is known.
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

// lags returns the greatest lag of any site, second by second.
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

// status says how old the state is instead of the state, if the operator's loop for the group stands still: no one knows it.
func (v listView) status(g *group) canvas.Span {
	if g.isStale() {
		return canvas.Span{Text: "! STALE " + paint.Seconds(g.lookedAgo(v.now)), Style: canvas.Bad}
	}
	return canvas.Span{Text: statusSign(g.report) + string(g.report.Summary), Style: summaryStyle(g.report.Summary)}
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
		return canvas.Span{Text: "no site takes over", Style: canvas.Bad}
	}
	return canvas.Span{Text: f.Site + " takes over"}
}

func problemSpan(r report.MysqlFailoverGroupReport) canvas.Span {
	if len(r.Problems) == 0 {
		return canvas.Span{Text: "-", Style: canvas.Faint}
	}
	p := r.Problems[0]
	if p.Reason == v1alpha1.ReasonFailingOver && len(r.Problems) > 1 && !r.Problems[1].Consequence {
		p = r.Problems[1] // the status already says this one, and not its cause
	}
	return canvas.Span{Text: strings.TrimSpace(string(p.Reason) + " " + p.Site), Style: canvas.Warn}
}
