// SPDX-License-Identifier: Apache-2.0

package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/tui/drill"
)

// theEnd is a place further down than any page goes: a reader there stays at the newest line.
const theEnd = 1 << 30

// drillInto shows what is below a site, or below all sites of a group.
func (m *Model) drillInto(name string, kind drill.Kind, site string) tea.Cmd {
	g := m.fleet.groups[name]
	if g == nil || m.options.Look == nil {
		return nil
	}
	from := m.page
	if m.open != name {
		m.openGroup(name)
	}
	m.page = from
	return m.ask(drill.Question{Kind: kind, Namespace: g.report.Metadata.Namespace, Group: g.report.Metadata.Name, Site: site})
}

func (m *Model) ask(q drill.Question) tea.Cmd {
	m.drill = drill.Page{Question: q, Wrap: m.drill.Wrap}
	m.show(pageDrill)
	if q.Kind == drill.Logs {
		m.scroll = theEnd
	}
	return m.look()
}

// drillKey handles a key on the page of pods or of logs.
func (m *Model) drillKey(k tea.KeyPressMsg) tea.Cmd {
	q := m.drill.Question
	switch k.String() {
	case "/":
		m.prompt, m.typed = promptSearch, m.drill.Filter
	case "w":
		m.drill.Wrap = !m.drill.Wrap
	case "tab":
		if q.Kind == drill.Logs {
			return m.ask(m.drill.Next())
		}
	case "l":
		q.Kind = drill.Logs
		return m.ask(q)
	case "d":
		q.Kind = drill.Pods
		return m.ask(q)
	case "s":
		if g := m.fleet.groups[m.open]; g != nil {
			m.shell(g, q.Site)
		}
	default:
		return m.pageKey(k)
	}
	return nil
}

// shell names the command for a shell. The dashboard opens none: a shell has no plan to show, and asks nothing before it acts.
func (m *Model) shell(g *group, site string) {
	if site == "" {
		m.say("choose a site first", "")
		return
	}
	q := drill.Question{Namespace: g.report.Metadata.Namespace, Group: g.report.Metadata.Name, Site: site}
	m.say("a shell beside the MySQL of "+site+":", q.Shell())
}
