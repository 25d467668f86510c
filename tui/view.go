// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/tui/canvas"
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
	rows := m.painter().bodyRows()
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
	return m.listView().draw(width)
}

func (m Model) painter() painter {
	return painter{signs: m.signs, height: m.height, connection: m.fleet.connection}
}

func (m Model) listView() listView {
	return listView{painter: m.painter(), fleet: &m.fleet, cursor: m.cursor, namespace: m.options.Namespace}
}

func (m Model) groupPage(width int) canvas.Block {
	if !m.fleet.knows(m.open) {
		return canvas.Block{nil, {{Text: "  no group " + m.open + " is known", Style: canvas.Warn}}, {{Text: "  " + m.fleet.objectErr, Style: canvas.Bad}}}
	}
	return groupView{painter: m.painter(), g: m.fleet.groups[m.open], selected: m.site, why: m.why}.draw(width)
}

// header says what is shown and how far it is to be believed.
func (m Model) header() canvas.Line {
	left := canvas.Line{{Text: " mfg ", Style: canvas.Chosen}, {Text: " "}, {Text: m.where(), Style: canvas.Strong}}
	right := append(m.fleet.trust(), canvas.Span{Text: "  " + m.fleet.clock().UTC().Format("15:04:05Z"), Style: canvas.Faint})
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
	for _, g := range m.fleet.groups {
		if g.gravity() > 0 {
			bad++
		}
	}
	words := fmt.Sprintf("%s  %d groups", namespace, len(m.fleet.groups))
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
		return canvas.Line{{Text: "/" + m.typed}, {Text: " ", Style: canvas.Chosen}, {Text: fmt.Sprintf("  %d found", len(m.fleet.order)), Style: canvas.Faint}}
	case m.notice != "":
		return canvas.Line{{Text: m.notice, Style: canvas.Warn}}
	}
	keys := "enter open  / filter  : command  x why  s sort  ? help  q quit"
	switch m.page {
	case pageGroup:
		keys = "j/k site  f failover  c reclone  p pause  x why  esc back  ? help  q quit"
		if g := m.fleet.groups[m.open]; g != nil && g.isAbortable() {
			keys = "j/k site  a abort  f failover  p pause  x why  esc back  ? help  q quit"
		}
	case pageWhy, pageHelp:
		keys = "j/k scroll  esc back  q quit"
	case pageList:
		if m.fleet.filter != "" {
			keys = "filter /" + m.fleet.filter + " (esc ends it)  " + keys
		}
	}
	return canvas.Line{{Text: keys, Style: canvas.Faint}}
}
