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
	"github.com/mysql-mfg/mfg/tui/paint"
)

// sitesView draws the sites of a group; selected is the chosen one.
type sitesView struct {
	painter
	g        *group
	selected int
}

// draw draws the sites: as cards if there is room, else in two lines each.
func (v sitesView) draw(width int) canvas.Block {
	perRow := min(len(v.g.report.Sites), (width+2)/(cardWidth+2))
	if width < wideScreen || perRow == 0 {
		return v.rows(width)
	}
	// More than two rows of cards would leave no room for anything else.
	if v.Height > 0 && (len(v.g.report.Sites)+perRow-1)/perRow > 2 {
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
		out = append(out, v.Signs.Beside(widths, cards...)...)
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

// rows draws two lines for each site.
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
			{Text: v.mark(i, s) + v.Signs.Pad(s.Name, name) + "  ", Style: st},
			{Text: v.Signs.Pad(s.Role, role) + "  "},
			{Text: v.Signs.Pad(paint.OrUnknown(s.StateWord())+" ", 13), Style: stateStyle(s)},
			v.fence(s), {Text: "  "}, v.stream(s),
		}
		second := append(canvas.Line{{Text: strings.Repeat(" ", name+6)}}, v.measures(s, width-name-6)...)
		out = append(out, first, second)
		if s.Message != "" {
			out = append(out, canvas.Line{{Text: strings.Repeat(" ", name+6)}, {Text: v.Signs.Clip(s.Message, width-name-6), Style: stateStyle(s)}})
		}
	}
	return out
}

func (v sitesView) fence(s report.Site) canvas.Span {
	out := canvas.Span{Text: "fence " + paint.OrUnknown(s.FenceWord())}
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

// stream draws where a site's transactions come from.
func (v sitesView) stream(s report.Site) canvas.Span {
	switch {
	case s.Clone != nil:
		return canvas.Span{Text: cloneWords(s.Clone), Style: canvas.Warn}
	case s.Writable != nil && *s.Writable && s.Active:
		return canvas.Span{Text: "takes writes", Style: canvas.Good}
	case s.Writable != nil && *s.Writable:
		return canvas.Span{Text: "TAKES WRITES", Style: canvas.Bad}
	case s.ReplicatingFrom != "":
		return canvas.Span{Text: v.Signs.Back + " " + s.ReplicatingFrom}
	}
	if s.Reachable == nil || !*s.Reachable {
		return canvas.Span{Text: "stream ?", Style: canvas.Faint} // unknown: the custom resource does not say, and a silent site cannot
	}
	return canvas.Span{Text: "no stream", Style: canvas.Faint}
}

func cloneWords(c *report.Clone) string {
	words := fmt.Sprintf("copy of %s, %s %d %%", paint.OrNone(c.Source), paint.OrNone(c.Stage), c.Percent)
	if c.ETASeconds != nil {
		words += ", " + duration.HumanDuration(time.Duration(*c.ETASeconds)*time.Second) + " left"
	}
	return words
}

// whereabouts draws the node, the keyring and when the site was seen.
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
		words = append(words, "seen "+v.Ago(*s.LastSeen)+" ago")
	}
	return canvas.Line{{Text: strings.Join(words, "  "), Style: canvas.Faint}}
}

// card draws one site in a frame.
func (v sitesView) card(i, width int) canvas.Block {
	s, inner := v.g.report.Sites[i], width-4
	st := canvas.Faint
	if i == v.selected {
		st = canvas.Strong
	}
	title := v.mark(i, s) + s.Name + " "
	title = v.Signs.Flat + v.Signs.Clip(title, width-3)
	out := canvas.Block{{{Text: v.Signs.TopLeft + title + strings.Repeat(v.Signs.Flat, max(0, width-2-canvas.Cells(title))) + v.Signs.TopRight, Style: st}}}
	for _, l := range v.cardLines(s, inner) {
		row := canvas.Line{{Text: v.Signs.Side + " ", Style: st}}
		row = append(row, v.Signs.Fit(l, inner)...)
		out = append(out, append(row, canvas.Span{Text: " " + v.Signs.Side, Style: st}))
	}
	return append(out, canvas.Line{{Text: v.Signs.LowLeft + strings.Repeat(v.Signs.Flat, width-2) + v.Signs.LowRight, Style: st}})
}
