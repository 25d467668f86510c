// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/gauge"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// quantity is a measure of a site, second by second. A value is NaN while unknown.
type quantity struct {
	label  string
	words  func(*group, report.Site) string
	value  func(*group, report.Site) float64
	traces func(*group) map[string]*canvas.Trace
	// floor is the least full scale: small numbers must not look large.
	floor float64
}

var (
	lagOf = quantity{
		label: "lag", floor: 1,
		words: func(_ *group, s report.Site) string { return lagWords(s.LagSeconds) },
		value: func(_ *group, s report.Site) float64 {
			if s.LagSeconds == nil {
				return math.NaN()
			}
			return *s.LagSeconds
		},
		traces: func(g *group) map[string]*canvas.Trace { return g.lag },
	}
	gapOf = quantity{
		label: "behind", floor: 10,
		words: func(_ *group, s report.Site) string { return countWords(s.Behind) },
		value: func(_ *group, s report.Site) float64 {
			if s.Behind == nil {
				return math.NaN()
			}
			return float64(*s.Behind)
		},
		traces: func(g *group) map[string]*canvas.Trace { return g.behind },
	}
	commitsOf = quantity{
		label: "commits", floor: 10,
		words:  func(g *group, s report.Site) string { return perSecond(g.pace(s.Name)) },
		value:  func(g *group, s report.Site) float64 { return g.pace(s.Name) },
		traces: func(g *group) map[string]*canvas.Trace { return g.commits },
	}
)

// pace returns how many transactions a second the active site commits, as last measured.
func (g *group) pace(site string) float64 {
	if t := g.commits[site]; t != nil {
		if last := t.Last(1); len(last) > 0 {
			return last[0]
		}
	}
	return math.NaN()
}

func perSecond(pace float64) string {
	switch {
	case math.IsNaN(pace):
		return "?/s"
	case pace < 10 && pace > 0:
		return fmt.Sprintf("%.1f/s", pace)
	}
	return fmt.Sprintf("%.0f/s", pace)
}

// top returns the full scale, the same for all sites of a group so that they can be compared.
func (q quantity) top(g *group, n int) float64 {
	top := q.floor
	for _, s := range g.report.Sites {
		if s.Active != (q.label == commitsOf.label) {
			continue
		}
		if v := q.value(g, s); v > top { // false for NaN
			top = v
		}
		if t := q.traces(g)[s.Name]; t != nil {
			top = canvas.Greatest(t.Last(n), top)
		}
	}
	return top
}

// measure draws a quantity in a line: its value, and its course if there is room.
func (v sitesView) measure(s report.Site, q quantity, width int) canvas.Line {
	words := q.label + " " + v.Signs.Pad(q.words(v.g, s), 6) + " "
	plotWidth := min(60, width-canvas.Cells(words))
	t := q.traces(v.g)[s.Name]
	if plotWidth < 5 || t == nil {
		return v.Signs.Fit(canvas.Line{{Text: words}}, max(canvas.Cells(words), width))
	}
	return append(canvas.Line{{Text: words}}, v.Signs.Course(t, plotWidth, 1, q.top(v.g, plotWidth))[0]...)
}

// measures draws the figures of a site in one line.
func (v sitesView) measures(s report.Site, width int) canvas.Line {
	figures := v.figures(s, false)
	switch {
	case s.Clone != nil:
		return v.whereabouts(s)
	case s.Active && v.g.report.Transition != nil:
		return append(append(figures, canvas.Span{Text: "  "}), v.whereabouts(s)...) // it takes no writes yet
	case s.Active:
		l := v.measure(s, commitsOf, width/3)
		return append(append(append(append(l, canvas.Span{Text: "  "}), figures...), canvas.Span{Text: "  "}), v.whereabouts(s)...)
	}
	tail := canvas.Line{}
	if c := v.catchUp(s); c.Text != "" {
		tail = canvas.Line{{Text: " "}, c}
	}
	if len(figures) > 0 {
		tail = append(append(tail, canvas.Span{Text: "  "}), figures[0])
	}
	each := (width - tail.Width() - 2) / 2
	l := append(v.measure(s, lagOf, each), canvas.Span{Text: "  "})
	return append(append(l, v.measure(s, gapOf, each)...), tail...)
}

// catchUpOver is how many seconds the trend of a gap is read from.
const catchUpOver = 30

// catchUp says how a replica's gap changes, and when it will be closed.
func (v sitesView) catchUp(s report.Site) canvas.Span {
	t := v.g.behind[s.Name]
	if t == nil || s.Behind == nil || *s.Behind == 0 || v.g.report.Transition != nil {
		return canvas.Span{} // while the role moves, the others naturally fall behind
	}
	switch trend, left := gauge.CatchUp(t.Last(catchUpOver)); trend {
	case gauge.Closing:
		return canvas.Span{Text: paint.Seconds(left) + " to go", Style: canvas.Good}
	case gauge.Growing:
		return canvas.Span{Text: "falls behind", Style: canvas.Warn}
	case gauge.Steady:
		return canvas.Span{Text: "gains nothing", Style: canvas.Warn}
	case gauge.Unknown, gauge.CaughtUp:
	}
	return canvas.Span{}
}

// Shares above which a figure needs a look, and above which it is trouble.
const (
	warnShare = 0.8
	badShare  = 0.9
)

func shareStyle(share float64) canvas.Style {
	switch {
	case share >= badShare:
		return canvas.Bad
	case share >= warnShare:
		return canvas.Warn
	}
	return canvas.Plain
}

// figures draws how full a site's disk is, which its status says, and its connections, which its sidecar is asked for. Nothing if neither is
// known nor asked for. The first span is the disk.
func (v sitesView) figures(s report.Site, whole bool) canvas.Line {
	disk := canvas.Span{Text: "disk ?", Style: canvas.Faint}
	use := s.Volume
	if use != nil && v.g.isReachable(s.Name) {
		disk = canvas.Span{Text: fmt.Sprintf("disk %d%%", use.Percent()), Style: shareStyle(float64(use.Percent()) / 100)}
		if whole {
			disk.Text += " of " + report.Bytes(use.TotalBytes)
		}
	}
	r, asked := v.reading(s.Name)
	switch {
	case !asked && use == nil:
		return nil
	case !asked:
		return canvas.Line{disk}
	}
	conn := canvas.Span{Text: "conn ?", Style: canvas.Faint}
	if !math.IsNaN(r.Connections) {
		conn = canvas.Span{Text: fmt.Sprintf("conn %.0f", r.Connections)}
		if r.MaxConnections > 0 {
			conn.Text += fmt.Sprintf("/%.0f", r.MaxConnections)
			conn.Style = shareStyle(r.Connections / r.MaxConnections)
		}
	}
	return canvas.Line{disk, {Text: "  "}, conn}
}

// reading returns what the sidecar of a site last said, while that may be trusted; false if no one asks for it.
func (v sitesView) reading(site string) (gauge.Reading, bool) {
	if v.g.figuresAt.IsZero() {
		return gauge.Reading{}, false
	}
	if clock.Elapsed(v.g.figuresAt, v.now) <= figuresHold && v.g.isReachable(site) {
		for _, r := range v.g.figures {
			if r.Site == site {
				return r, true
			}
		}
	}
	return gauge.Unread(site, ""), true
}

// unread says why connections are unknown; nothing while all are known.
func (v groupView) unread(width int) canvas.Block {
	var sites []string
	why := v.g.figuresErr
	for _, r := range v.g.figures {
		if r.Error != "" && v.g.isReachable(r.Site) {
			sites = append(sites, r.Site)
			why = r.Error
		}
	}
	if why == "" {
		return nil
	}
	words := "connections are not known"
	if len(sites) > 0 {
		words += " of " + strings.Join(sites, ", ")
	}
	return v.Signs.Paragraph(canvas.Span{Text: "Figures", Style: canvas.Faint}, words+": "+why, width)
}

// isReachable is false for a site that does not answer the operator: the screen says elsewhere that it cannot be asked.
func (g *group) isReachable(site string) bool {
	for _, s := range g.report.Sites {
		if s.Name == site {
			return s.Reachable == nil || *s.Reachable
		}
	}
	return false
}

// cardLines returns the contents of a site's card.
func (v sitesView) cardLines(s report.Site, width int) canvas.Block {
	state := canvas.Span{Text: paint.OrUnknown(s.StateWord()), Style: stateStyle(s)}
	out := canvas.Block{
		{{Text: v.Signs.Pad(s.Role, width-canvas.Cells(state.Text))}, state},
		{v.fence(s), {Text: "  "}, v.stream(s)},
	}
	high := 1
	if v.Height >= 50 && !v.Signs.IsASCII {
		high = 3
	}
	switch {
	case s.Clone != nil, s.Active && v.g.report.Transition != nil:
		out = append(out, make(canvas.Block, 2*(1+high))...)
	case s.Active:
		out = append(out, v.cardMeasure(s, commitsOf, width, high)...)
		out = append(out, make(canvas.Block, 1+high)...)
	default:
		out = append(out, v.cardMeasure(s, lagOf, width, high)...)
		out = append(out, v.cardMeasure(s, gapOf, width, high)...)
	}
	out = append(out, v.figures(s, true), v.whereabouts(s))
	if s.Message != "" {
		return append(out, canvas.Line{{Text: s.Message, Style: stateStyle(s)}})
	}
	return append(out, nil)
}

// cardMeasure draws value and bar in one line, and the plot below. For a gap, the line says whether it closes.
func (v sitesView) cardMeasure(s report.Site, q quantity, width, high int) canvas.Block {
	plotWidth := min(width, canvas.History)
	words := q.label + " " + v.Signs.Pad(q.words(v.g, s), 8) + " "
	top := q.top(v.g, plotWidth)
	l := canvas.Line{{Text: words}}
	left := width - canvas.Cells(words)
	tail := canvas.Span{}
	if q.label == gapOf.label {
		if tail = v.catchUp(s); tail.Text != "" {
			left -= canvas.Cells(tail.Text) + 1
		}
	}
	if value := q.value(v.g, s); !math.IsNaN(value) && left > 0 {
		l = append(l, canvas.Span{Text: v.Signs.Bar(value/top, left)})
		if tail.Text != "" {
			l = append(l, canvas.Span{Text: " "}, tail)
		}
	}
	t := q.traces(v.g)[s.Name]
	if t == nil {
		t = &canvas.Trace{}
	}
	return append(canvas.Block{l}, v.Signs.Course(t, plotWidth, high, top)...)
}
