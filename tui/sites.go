// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// sitesView draws the sites of a group; selected is the one that is chosen.
type sitesView struct {
	painter
	g        *group
	selected int
}

// draw draws the sites: as cards where there is room, else two lines for each.
func (v sitesView) draw(width int) canvas.Block {
	perRow := min(len(v.g.report.Sites), (width+2)/(cardWidth+2))
	if width < wideScreen || perRow == 0 {
		return v.rows(width)
	}
	// Two rows of cards are the most that leaves room for anything else.
	if v.height > 0 && (len(v.g.report.Sites)+perRow-1)/perRow > 2 {
		return v.rows(width)
	}
	each := min(66, (width-2*(perRow-1))/perRow)
	var out canvas.Block
	for first := 0; first < len(v.g.report.Sites); first += perRow {
		var cards []canvas.Block
		var widths []int
		for i := first; i < min(first+perRow, len(v.g.report.Sites)); i++ {
			cards, widths = append(cards, v.card(i, each)), append(widths, each)
		}
		out = append(out, v.signs.Beside(widths, cards...)...)
	}
	return out
}

func (v sitesView) mark(i int, s report.Site) string {
	mark := "  "
	if i == v.selected {
		mark = "> "
	}
	if s.Active {
		return mark + "* "
	}
	return mark + "  "
}

// rows are two lines for each site.
func (v sitesView) rows(width int) canvas.Block {
	name, role := 8, 6
	for _, s := range v.g.report.Sites {
		name, role = max(name, canvas.Cells(s.Name)), max(role, canvas.Cells(s.Role))
	}
	name = min(name, 24)
	var out canvas.Block
	for i, s := range v.g.report.Sites {
		st := canvas.Plain
		if i == v.selected {
			st = canvas.Strong
		}
		first := canvas.Line{
			{Text: v.mark(i, s) + v.signs.Pad(s.Name, name) + "  ", Style: st},
			{Text: v.signs.Pad(s.Role, role) + "  "},
			{Text: v.signs.Pad(orUnknown(s.StateWord())+" ", 13), Style: stateStyle(s)},
			v.fence(s), {Text: "  "}, v.stream(s),
		}
		second := append(canvas.Line{{Text: strings.Repeat(" ", name+6)}}, v.measures(s, width-name-6)...)
		out = append(out, first, second)
		if s.Message != "" {
			out = append(out, canvas.Line{{Text: strings.Repeat(" ", name+6)}, {Text: v.signs.Clip(s.Message, width-name-6), Style: stateStyle(s)}})
		}
	}
	return out
}

func orUnknown(state string) string {
	if state == "" {
		return "?"
	}
	return state
}

func (v sitesView) fence(s report.Site) canvas.Span {
	out := canvas.Span{Text: "fence " + orUnknown(s.Fence)}
	switch {
	case s.Fence == wire.FenceOpen && s.Active:
		out.Style = canvas.Good
	case s.Fence == wire.FenceOpen:
		out.Text, out.Style = out.Text+" !", canvas.Bad
	case s.Fence == "" || s.Fence == wire.FenceUnknown:
		out.Style = canvas.Warn
	}
	return out
}

// stream is where a site's transactions come from.
func (v sitesView) stream(s report.Site) canvas.Span {
	switch {
	case s.Clone != nil:
		return canvas.Span{Text: cloneWords(s.Clone), Style: canvas.Warn}
	case s.Writable != nil && *s.Writable && s.Active:
		return canvas.Span{Text: "takes writes", Style: canvas.Good}
	case s.Writable != nil && *s.Writable:
		return canvas.Span{Text: "TAKES WRITES", Style: canvas.Bad}
	case s.ReplicatingFrom != "":
		return canvas.Span{Text: v.signs.Back + " " + s.ReplicatingFrom}
	}
	if s.Reachable == nil || !*s.Reachable {
		return canvas.Span{Text: "stream ?", Style: canvas.Faint} // nobody looked: the custom resource does not say, and a silent site cannot
	}
	return canvas.Span{Text: "no stream", Style: canvas.Faint}
}

func cloneWords(c *report.Clone) string {
	words := fmt.Sprintf("copy of %s, %s %d %%", orNone(c.Source), orNone(c.Stage), c.Percent)
	if c.ETASeconds != nil {
		words += ", " + duration.HumanDuration(time.Duration(*c.ETASeconds)*time.Second) + " left"
	}
	return words
}

// measures are lag and gap of a replica, with bars and plots as far as there is room.
func (v sitesView) measures(s report.Site, width int) canvas.Line {
	if s.Active || s.Clone != nil {
		return v.whereabouts(s)
	}
	each := width/2 - 1
	return append(append(v.measure(s, lagOf, each), canvas.Span{Text: "  "}), v.measure(s, gapOf, each)...)
}

// quantity is what is measured of a replica.
type quantity struct {
	label  string
	words  func(report.Site) string
	value  func(report.Site) (float64, bool)
	traces func(*group) map[string]*canvas.Trace
	// floor is the least full scale: small numbers are no mountains.
	floor float64
}

var (
	lagOf = quantity{
		label: "lag", floor: 1,
		words: func(s report.Site) string { return lagWords(s.LagSeconds) },
		value: func(s report.Site) (float64, bool) {
			if s.LagSeconds == nil {
				return 0, false
			}
			return *s.LagSeconds, true
		},
		traces: func(g *group) map[string]*canvas.Trace { return g.lag },
	}
	gapOf = quantity{
		label: "behind", floor: 10,
		words: func(s report.Site) string { return countWords(s.Behind) },
		value: func(s report.Site) (float64, bool) {
			if s.Behind == nil {
				return 0, false
			}
			return float64(*s.Behind), true
		},
		traces: func(g *group) map[string]*canvas.Trace { return g.behind },
	}
)

// top is the full scale, the same for all sites of a group so that they can be compared.
func (q quantity) top(g *group, n int) float64 {
	top := q.floor
	for _, s := range g.report.Sites {
		if v, known := q.value(s); known && !s.Active {
			top = max(top, v)
		}
		if t := q.traces(g)[s.Name]; t != nil {
			top = canvas.Greatest(t.Last(n), top)
		}
	}
	return top
}

func (v sitesView) measure(s report.Site, q quantity, width int) canvas.Line {
	words := q.label + " " + v.signs.Pad(q.words(s), 6) + " "
	barWidth := 6
	plotWidth := min(60, width-canvas.Cells(words)-barWidth-1)
	if plotWidth < 5 {
		return canvas.Line{{Text: words}}
	}
	top := q.top(v.g, plotWidth)
	value, known := q.value(s)
	bar := strings.Repeat(" ", barWidth)
	if known {
		bar = v.signs.Bar(value/top, barWidth)
	}
	l := canvas.Line{{Text: words}, {Text: bar}, {Text: " "}}
	if t := q.traces(v.g)[s.Name]; t != nil {
		return append(l, v.signs.Course(t, plotWidth, 1, top)[0]...)
	}
	return append(l, canvas.Span{Text: strings.Repeat(" ", plotWidth)})
}

// whereabouts are node, keyring and when the site was seen.
func (v sitesView) whereabouts(s report.Site) canvas.Line {
	var words []string
	if s.Node != "" {
		words = append(words, "node "+s.Node)
	}
	if k := v.g.keyringOf(s.Name); k != "" {
		words = append(words, "keyring "+k)
	}
	if s.Errant > 0 {
		words = append(words, fmt.Sprintf("%d errant", s.Errant))
	}
	if s.LastSeen != nil && s.Reachable != nil && !*s.Reachable {
		words = append(words, "seen "+v.ago(*s.LastSeen)+" ago")
	}
	return canvas.Line{{Text: strings.Join(words, "  "), Style: canvas.Faint}}
}

// card is one site in a frame.
func (v sitesView) card(i, width int) canvas.Block {
	s, inner := v.g.report.Sites[i], width-4
	st := canvas.Faint
	if i == v.selected {
		st = canvas.Strong
	}
	title := v.mark(i, s) + s.Name + " "
	title = v.signs.Flat + v.signs.Clip(title, width-3)
	out := canvas.Block{{{Text: v.signs.TopLeft + title + strings.Repeat(v.signs.Flat, max(0, width-2-canvas.Cells(title))) + v.signs.TopRight, Style: st}}}
	for _, l := range v.cardLines(s, inner) {
		row := canvas.Line{{Text: v.signs.Side + " ", Style: st}}
		row = append(row, v.signs.Fit(l, inner)...)
		out = append(out, append(row, canvas.Span{Text: " " + v.signs.Side, Style: st}))
	}
	return append(out, canvas.Line{{Text: v.signs.LowLeft + strings.Repeat(v.signs.Flat, width-2) + v.signs.LowRight, Style: st}})
}

func (v sitesView) cardLines(s report.Site, width int) canvas.Block {
	state := canvas.Span{Text: orUnknown(s.StateWord()), Style: stateStyle(s)}
	out := canvas.Block{
		{{Text: v.signs.Pad(s.Role, width-canvas.Cells(state.Text))}, state},
		{v.fence(s), {Text: "  "}, v.stream(s)},
	}
	for _, q := range []quantity{lagOf, gapOf} {
		out = append(out, v.cardMeasure(s, q, width)...)
	}
	out = append(out, v.whereabouts(s))
	if s.Message != "" {
		return append(out, canvas.Line{{Text: s.Message, Style: stateStyle(s)}})
	}
	return append(out, nil)
}

// cardMeasure is value and bar in one line, and the plot below, higher on a high screen.
func (v sitesView) cardMeasure(s report.Site, q quantity, width int) canvas.Block {
	height := 1
	if v.height >= 50 && !v.signs.IsASCII {
		height = 3
	}
	plotWidth := min(width, canvas.History)
	if s.Active || s.Clone != nil {
		return make(canvas.Block, 1+height)
	}
	words := q.label + " " + v.signs.Pad(q.words(s), 8) + " "
	top := q.top(v.g, plotWidth)
	l := canvas.Line{{Text: words}}
	if value, known := q.value(s); known {
		l = append(l, canvas.Span{Text: v.signs.Bar(value/top, width-canvas.Cells(words))})
	}
	t := q.traces(v.g)[s.Name]
	if t == nil {
		t = &canvas.Trace{}
	}
	return append(canvas.Block{l}, v.signs.Course(t, plotWidth, height, top)...)
}
