// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// siteMap draws the sites: as cards where there is room, else two lines for each.
func (m Model) siteMap(g *group, width int) block {
	perRow := min(len(g.report.Sites), (width+2)/(cardWidth+2))
	if width < wideScreen || perRow == 0 {
		return m.siteRows(g, width)
	}
	// Two rows of cards are the most that leaves room for anything else.
	if m.height > 0 && (len(g.report.Sites)+perRow-1)/perRow > 2 {
		return m.siteRows(g, width)
	}
	each := min(66, (width-2*(perRow-1))/perRow)
	var out block
	for first := 0; first < len(g.report.Sites); first += perRow {
		var cards []block
		var widths []int
		for i := first; i < min(first+perRow, len(g.report.Sites)); i++ {
			cards, widths = append(cards, m.card(g, i, each)), append(widths, each)
		}
		out = append(out, m.signs.beside(widths, cards...)...)
	}
	return out
}

func (m Model) siteMark(i int, s report.Site) string {
	mark := "  "
	if i == m.site {
		mark = "> "
	}
	if s.Active {
		return mark + "* "
	}
	return mark + "  "
}

// siteRows are two lines for each site.
func (m Model) siteRows(g *group, width int) block {
	name, role := 8, 6
	for _, s := range g.report.Sites {
		name, role = max(name, cells(s.Name)), max(role, cells(s.Role))
	}
	name = min(name, 24)
	var out block
	for i, s := range g.report.Sites {
		st := plain
		if i == m.site {
			st = strong
		}
		first := line{
			{s: m.siteMark(i, s) + m.signs.pad(s.Name, name) + "  ", st: st},
			{s: m.signs.pad(s.Role, role) + "  "},
			{s: m.signs.pad(orUnknown(s.StateWord())+" ", 13), st: stateStyle(s)},
			m.fence(s), {s: "  "}, m.stream(s),
		}
		second := append(line{{s: strings.Repeat(" ", name+6)}}, m.measures(g, s, width-name-6)...)
		out = append(out, first, second)
		if s.Message != "" {
			out = append(out, line{{s: strings.Repeat(" ", name+6)}, {s: m.signs.clip(s.Message, width-name-6), st: stateStyle(s)}})
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

func (m Model) fence(s report.Site) span {
	out := span{s: "fence " + orUnknown(s.Fence)}
	switch {
	case s.Fence == "open" && s.Active:
		out.st = good
	case s.Fence == "open":
		out.s, out.st = out.s+" !", bad
	case s.Fence == "" || s.Fence == "unknown":
		out.st = warn
	}
	return out
}

// stream is where a site's transactions come from.
func (m Model) stream(s report.Site) span {
	switch {
	case s.Clone != nil:
		return span{s: cloneWords(s.Clone), st: warn}
	case s.Writable != nil && *s.Writable && s.Active:
		return span{s: "takes writes", st: good}
	case s.Writable != nil && *s.Writable:
		return span{s: "TAKES WRITES", st: bad}
	case s.ReplicatingFrom != "":
		return span{s: m.signs.back + " " + s.ReplicatingFrom}
	}
	if s.Reachable == nil || !*s.Reachable {
		return span{s: "stream ?", st: faint} // nobody looked: the custom resource does not say, and a silent site cannot
	}
	return span{s: "no stream", st: faint}
}

func cloneWords(c *report.Clone) string {
	words := fmt.Sprintf("copy of %s, %s %d %%", orNone(c.Source), orNone(c.Stage), c.Percent)
	if c.ETASeconds != nil {
		words += ", " + duration.HumanDuration(time.Duration(*c.ETASeconds)*time.Second) + " left"
	}
	return words
}

// measures are lag and gap of a replica, with bars and plots as far as there is room.
func (m Model) measures(g *group, s report.Site, width int) line {
	if s.Active || s.Clone != nil {
		return m.whereabouts(g, s)
	}
	each := width/2 - 1
	return append(append(m.measure(g, s, lagOf, each), span{s: "  "}), m.measure(g, s, gapOf, each)...)
}

// quantity is what is measured of a replica.
type quantity struct {
	label  string
	words  func(report.Site) string
	value  func(report.Site) (float64, bool)
	traces func(*group) map[string]*trace
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
		traces: func(g *group) map[string]*trace { return g.lag },
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
		traces: func(g *group) map[string]*trace { return g.behind },
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
			top = greatest(t.last(n), top)
		}
	}
	return top
}

func (m Model) measure(g *group, s report.Site, q quantity, width int) line {
	words := q.label + " " + m.signs.pad(q.words(s), 6) + " "
	barWidth := 6
	plotWidth := min(60, width-cells(words)-barWidth-1)
	if plotWidth < 5 {
		return line{{s: words}}
	}
	top := q.top(g, plotWidth)
	value, known := q.value(s)
	bar := strings.Repeat(" ", barWidth)
	if known {
		bar = m.signs.bar(value/top, barWidth)
	}
	l := line{{s: words}, {s: bar}, {s: " "}}
	if t := q.traces(g)[s.Name]; t != nil {
		return append(l, m.signs.course(t, plotWidth, 1, top)[0]...)
	}
	return append(l, span{s: strings.Repeat(" ", plotWidth)})
}

// whereabouts are node, keyring and when the site was seen.
func (m Model) whereabouts(g *group, s report.Site) line {
	var words []string
	if s.Node != "" {
		words = append(words, "node "+s.Node)
	}
	if k := g.keyringOf(s.Name); k != "" {
		words = append(words, "keyring "+k)
	}
	if s.Errant > 0 {
		words = append(words, fmt.Sprintf("%d errant", s.Errant))
	}
	if s.LastSeen != nil && s.Reachable != nil && !*s.Reachable {
		words = append(words, "seen "+m.ago(*s.LastSeen)+" ago")
	}
	return line{{s: strings.Join(words, "  "), st: faint}}
}

// card is one site in a frame.
func (m Model) card(g *group, i, width int) block {
	s, inner := g.report.Sites[i], width-4
	st := faint
	if i == m.site {
		st = strong
	}
	title := m.siteMark(i, s) + s.Name + " "
	title = m.signs.flat + m.signs.clip(title, width-3)
	out := block{{{s: m.signs.topLeft + title + strings.Repeat(m.signs.flat, max(0, width-2-cells(title))) + m.signs.topRight, st: st}}}
	for _, l := range m.cardLines(g, s, inner) {
		row := line{{s: m.signs.side + " ", st: st}}
		row = append(row, m.signs.fit(l, inner)...)
		out = append(out, append(row, span{s: " " + m.signs.side, st: st}))
	}
	return append(out, line{{s: m.signs.lowLeft + strings.Repeat(m.signs.flat, width-2) + m.signs.lowRight, st: st}})
}

func (m Model) cardLines(g *group, s report.Site, width int) block {
	state := span{s: orUnknown(s.StateWord()), st: stateStyle(s)}
	out := block{
		{{s: m.signs.pad(s.Role, width-cells(state.s))}, state},
		{m.fence(s), {s: "  "}, m.stream(s)},
	}
	for _, q := range []quantity{lagOf, gapOf} {
		out = append(out, m.cardMeasure(g, s, q, width)...)
	}
	out = append(out, m.whereabouts(g, s))
	if s.Message != "" {
		return append(out, line{{s: s.Message, st: stateStyle(s)}})
	}
	return append(out, nil)
}

// cardMeasure is value and bar in one line, and the plot below, higher on a high screen.
func (m Model) cardMeasure(g *group, s report.Site, q quantity, width int) block {
	height := 1
	if m.height >= 50 && !m.signs.ascii {
		height = 3
	}
	plotWidth := min(width, history)
	if s.Active || s.Clone != nil {
		return make(block, 1+height)
	}
	words := q.label + " " + m.signs.pad(q.words(s), 8) + " "
	top := q.top(g, plotWidth)
	l := line{{s: words}}
	if value, known := q.value(s); known {
		l = append(l, span{s: m.signs.bar(value/top, width-cells(words))})
	}
	t := q.traces(g)[s.Name]
	if t == nil {
		t = &trace{}
	}
	return append(block{l}, m.signs.course(t, plotWidth, height, top)...)
}
