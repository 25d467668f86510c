// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// The smallest screen that can show anything.
const (
	leastWidth  = 40
	leastHeight = 8
	// leastTitle is how much of the title stays before other words of the first line go.
	leastTitle = 12
)

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.frame().Draw(m.options.Colour))
	v.AltScreen = true
	v.WindowTitle = "mfg"
	return v
}

// Once returns one frame without any control sequence, as high as needed, for a ticket.
func (m Model) Once(width int) string {
	m.width, m.height = width, 0
	return append(canvas.Block{m.header()}, m.body(width)...).Bare()
}

// frame is exactly as large as the terminal.
func (m Model) frame() canvas.Block {
	if m.width < leastWidth || m.height < leastHeight {
		return canvas.Block{{{Text: m.signs.Clip(fmt.Sprintf("%dx%d is too small", m.width, m.height), m.width)}}}
	}
	rows := m.painter().BodyRows()
	body := m.body(m.width)
	hidden := 0
	if m.page != pageList {
		skip := min(m.scroll, max(0, len(body)-rows))
		body = body[skip:]
		hidden = len(body) - rows
	}
	if hidden > 0 {
		top := body.Top(rows - 1)
		more := canvas.Line{{Text: fmt.Sprintf("%s %d more lines: space", m.signs.Ellipsis, len(body)-top), Style: canvas.Faint}}
		body = append(slices.Clone(body[:top]), more)
	}
	out, foot := canvas.Block{m.header()}, m.footer()
	out = append(out, body...)
	for len(out) < m.height {
		out = append(out, nil)
	}
	foot = foot[:min(len(foot), m.height-1)]
	out = append(out[:m.height-len(foot)], foot...)
	for i := range out {
		out[i] = m.signs.Fit(out[i], m.width)
	}
	return out
}

func (m Model) body(width int) canvas.Block {
	switch m.page {
	case pageGroup:
		return m.groupPage(width)
	case pageWhy:
		return m.whyPage(width)
	case pageHelp:
		return m.helpPage(width)
	case pageDrill:
		return m.drillPage(width)
	case pageList:
	}
	return m.listView().draw(width)
}

func (m Model) painter() painter {
	return painter{paint.Painter{Signs: m.signs, Height: m.height, Now: m.fleet.clock()}, m.fleet.connection}
}

func (m Model) listView() listView {
	return listView{painter: m.painter(), fleet: &m.fleet, cursor: m.cursor, namespace: m.options.Namespace}
}

func (m Model) groupPage(width int) canvas.Block {
	if !m.fleet.knows(m.open) {
		return canvas.Block{nil, {{Text: "  no group " + m.open + " is known", Style: canvas.Warn}}, {{Text: "  " + m.fleet.objectErr, Style: canvas.Bad}}}
	}
	return groupView{painter: m.painter(), g: m.fleet.groups[m.open], selected: m.chosen(), why: m.why}.draw(width)
}

// header says what is shown and how far to trust it.
func (m Model) header() canvas.Line {
	left := canvas.Line{{Text: " mfg ", Style: canvas.Chosen}, {Text: " "}, {Text: m.where(), Style: canvas.Strong}}
	right := append(m.trust(), canvas.Span{Text: "  " + m.fleet.clock().UTC().Format("15:04:05Z"), Style: canvas.Faint})
	if m.options.AllowActions {
		right = append(right, canvas.Span{Text: "  actions"})
	} else {
		right = append(right, canvas.Span{Text: "  read-only", Style: canvas.Faint})
	}
	// A narrow screen lacks the mode first, then the clock, then the end of the title; never how far to trust it.
	for len(right) > 1 && m.width-right.Width()-1 < leastTitle {
		right = right[:len(right)-1]
	}
	room := max(0, m.width-right.Width()-1)
	return append(m.signs.Fit(left, room), append(canvas.Line{{Text: " "}}, right...)...)
}

// trust is how old the page is, in words: what is shown of one group is no younger than the operator's last look at it.
func (m Model) trust() canvas.Line {
	g := m.fleet.groups[m.open]
	if _, silent := m.fleet.stale(); m.page == pageList || m.page == pageHelp || g == nil || silent || !g.isStale() {
		return m.fleet.trust()
	}
	return canvas.Line{{Text: "STALE for " + paint.Seconds(g.lookedAgo(m.fleet.now)), Style: canvas.Bad}}
}

func (m Model) where() string {
	switch m.page {
	case pageHelp:
		return "help"
	case pageWhy:
		return m.open + " why"
	case pageGroup:
		return m.open
	case pageDrill:
		return m.drill.Title()
	case pageList:
	}
	namespace := m.options.Namespace
	if namespace == "" {
		namespace = "all namespaces"
	}
	bad, stale := 0, 0
	for _, g := range m.fleet.groups {
		switch {
		case g.isStale():
			stale++
		case g.gravity() > 0:
			bad++
		}
	}
	words := fmt.Sprintf("%s  %d groups", namespace, len(m.fleet.groups))
	if bad > 0 {
		words += fmt.Sprintf(", %d not ready", bad)
	}
	if stale > 0 {
		words += fmt.Sprintf(", %d STALE", stale)
	}
	return words
}

// footer is the prompt, the answer to the last key, or the keys that work here. An answer takes as many lines as its words need.
func (m Model) footer() canvas.Block {
	switch {
	case m.prompt == promptCommand:
		return canvas.Block{{{Text: ":" + m.typed}, {Text: " ", Style: canvas.Chosen}}}
	case m.prompt == promptFilter:
		return canvas.Block{{{Text: "/" + m.typed}, {Text: " ", Style: canvas.Chosen}, {Text: fmt.Sprintf("  %d found", len(m.fleet.order)), Style: canvas.Faint}}}
	case m.prompt == promptSearch:
		return canvas.Block{{{Text: "/" + m.typed}, {Text: " ", Style: canvas.Chosen}}}
	case m.notice != "":
		out := m.signs.Wrap(canvas.Span{}, 0, m.notice, m.width)
		for i := range out {
			for j := range out[i] {
				out[i][j].Style = canvas.Warn
			}
		}
		if m.offer != "" {
			out = append(out, m.painter().Command(m.offer, m.width)...)
		}
		return out
	}
	return canvas.Block{{{Text: m.keys(), Style: canvas.Faint}}}
}

// keys returns the keys that work on this page.
func (m Model) keys() string {
	switch m.page {
	case pageGroup:
		if g := m.fleet.groups[m.open]; g != nil && g.isAbortable() {
			return "j/k site  d pods  l logs  a abort  f failover  x why  esc back  ? help  q quit"
		}
		return "j/k site  d pods  l logs  f failover  c reclone  p pause  x why  ? help  q quit"
	case pageDrill:
		if m.drill.Question.Kind == drill.Logs {
			return "j/k scroll  G newest  / filter  tab container  w wrap  esc back  q quit"
		}
		return "j/k scroll  l logs  s shell  esc back  q quit"
	case pageWhy, pageHelp:
		return "j/k scroll  esc back  q quit"
	case pageList:
	}
	keys := "enter open  / filter  : command  l logs  x why  N S sort  ? help  q quit"
	if m.fleet.filter != "" {
		keys = "filter /" + m.fleet.filter + " (esc ends it)  " + keys
	}
	return keys
}
