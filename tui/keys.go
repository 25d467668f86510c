// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/drill"
)

// pauseFor is how long the key p pauses a group.
const pauseFor = "30m"

func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit
	}
	if m.prompt != promptNone {
		return m.promptKey(k)
	}
	switch k.String() {
	case "q":
		return tea.Quit
	case "?":
		m.help()
	case ":":
		m.prompt, m.typed = promptCommand, ""
	case "esc":
		m.leave()
	default:
		if m.page == pageList {
			return m.listKey(k)
		}
		return m.groupKey(k)
	}
	return nil
}

func (m *Model) help() {
	if m.page == pageHelp {
		m.leave()
		return
	}
	m.show(pageHelp)
}

// show opens a page that esc leaves.
func (m *Model) show(p page) {
	if m.page == pageList || m.page == pageGroup {
		m.back = m.page
	}
	m.page, m.scroll = p, 0
}

// leave goes back one step.
func (m *Model) leave() {
	switch m.page {
	case pageDrill:
		if m.drill.Filter != "" {
			m.drill.Filter = ""
			return
		}
		m.page, m.scroll = m.back, 0
	case pageHelp, pageWhy:
		m.page, m.scroll = m.back, 0
	case pageGroup:
		m.page, m.scroll, m.open = pageList, 0, ""
	case pageList:
		m.fleet.filter = ""
	}
	m.arrange()
}

func (m *Model) listKey(k tea.KeyPressMsg) tea.Cmd {
	page := max(1, m.listView().rows()-1)
	switch k.String() {
	case "j", "down":
		m.choose(1)
	case "k", "up":
		m.choose(-1)
	case "g", "home":
		m.choose(-len(m.fleet.order))
	case "G", "shift+g", "end":
		m.choose(len(m.fleet.order))
	case "ctrl+f", "pgdown", "space":
		m.choose(page)
	case "ctrl+b", "pgup":
		m.choose(-page)
	case "/":
		m.prompt, m.typed = promptFilter, m.fleet.filter
	case "N", "shift+n":
		m.fleet.byName = true
		m.arrange()
	case "S", "shift+s":
		m.fleet.byName = false
		m.arrange()
	case "enter", "right":
		m.openGroup(m.cursor)
	case "l":
		return m.drillInto(m.cursor, drill.Logs, "")
	case "d":
		return m.drillInto(m.cursor, drill.Pods, "")
	case "x":
		m.openWhy(m.cursor)
	}
	return nil
}

func (m *Model) choose(by int) {
	if len(m.fleet.order) == 0 {
		return
	}
	i := slices.Index(m.fleet.order, m.cursor) + by
	m.cursor = m.fleet.order[min(len(m.fleet.order)-1, max(0, i))]
}

func (m *Model) openGroup(name string) {
	if m.fleet.groups[name] == nil {
		return
	}
	if m.open != name {
		m.eventsAt, m.whyAt, m.why = time.Time{}, time.Time{}, Answer{}
	}
	m.page, m.open, m.cursor, m.site, m.scroll = pageGroup, name, name, "", 0
	m.chooseSite(0)
}

func (m *Model) openWhy(name string) {
	if m.fleet.groups[name] == nil {
		return
	}
	from := m.page
	if m.open != name {
		m.openGroup(name)
	}
	m.page = from
	m.show(pageWhy)
}

func (m *Model) groupKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+f", "pgdown", "space", "J", "shift+j":
		m.scrollBy(max(1, m.painter().BodyRows()/2))
		return nil
	case "ctrl+b", "pgup", "K", "shift+k":
		m.scrollBy(-max(1, m.painter().BodyRows()/2))
		return nil
	}
	g := m.fleet.groups[m.open]
	switch {
	case m.page == pageDrill:
		return m.drillKey(k)
	case m.page != pageGroup || g == nil:
		return m.pageKey(k)
	}
	switch k.String() {
	case "j", "down", "right":
		m.chooseSite(1)
	case "k", "up", "left":
		m.chooseSite(-1)
	case "tab":
		m.next(1)
	case "shift+tab":
		m.next(-1)
	case "x":
		m.openWhy(m.open)
	case "d", "enter":
		return m.drillInto(m.open, drill.Pods, m.siteNow())
	case "l":
		return m.drillInto(m.open, drill.Logs, m.siteNow())
	case "s":
		m.shell(g, m.siteNow())
	case "f":
		return m.siteAction(VerbFailover)
	case "c":
		return m.siteAction(VerbReclone)
	case "a":
		return m.act(g.action(VerbAbort, ""))
	case "p":
		return m.pauseOrResume(g)
	}
	return nil
}

// pageKey scrolls pages of text.
func (m *Model) pageKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "j", "down":
		m.scrollBy(1)
	case "k", "up":
		m.scrollBy(-1)
	case "g", "home":
		m.scroll = 0
	case "G", "shift+g", "end":
		m.scroll = theEnd
	}
	return nil
}

// scrollBy goes no further than the last line: each line beyond would have to be scrolled back.
func (m *Model) scrollBy(n int) {
	most := max(0, len(m.body(m.width))-m.painter().BodyRows())
	m.scroll = max(0, min(most, min(most, m.scroll)+n))
}

// next opens the group after or before this one in the list.
func (m *Model) next(by int) {
	if n := len(m.fleet.order); n > 0 {
		i := slices.Index(m.fleet.order, m.open)
		m.openGroup(m.fleet.order[((i+by)%n+n)%n])
	}
}

func (m *Model) siteAction(verb string) tea.Cmd {
	g := m.fleet.groups[m.open]
	site := m.siteNow()
	if site == "" {
		m.say("choose a site first", "")
		return nil
	}
	return m.act(g.action(verb, site))
}

func (m *Model) pauseOrResume(g *group) tea.Cmd {
	if g.report.PausedUntil != nil {
		return m.act(g.action(VerbResume, ""))
	}
	return m.act(g.action(VerbPause, pauseFor))
}

// isAbortable is true while something can be aborted: a planned failover, or an order that accepts data loss.
func (g *group) isAbortable() bool {
	p := g.report.Planned
	return g.report.OrderedTo != "" || p != nil && p.FinishedAt == nil
}

func (g *group) action(verb, argument string) Action {
	return Action{Verb: verb, Namespace: g.report.Metadata.Namespace, Group: g.report.Metadata.Name, Argument: argument}
}

// promptKey edits the typed text. A filter works while it is typed; a command waits for enter.
func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		switch m.prompt {
		case promptFilter:
			m.setFilter("")
		case promptSearch:
			m.drill.Filter = ""
		case promptNone, promptCommand:
		}
		m.prompt, m.typed = promptNone, ""
	case "enter":
		was, typed := m.prompt, m.typed
		m.prompt, m.typed = promptNone, ""
		if was == promptCommand {
			return m.command(strings.Fields(typed))
		}
	case "backspace":
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
			m.typeIn("")
		} else {
			m.prompt = promptNone
		}
	case "ctrl+u":
		m.typed = ""
		m.typeIn("")
	default:
		m.typeIn(k.Text)
	}
	return nil
}

func (m *Model) typeIn(s string) {
	m.typed += canvas.Clean(s)
	switch m.prompt {
	case promptFilter:
		m.setFilter(m.typed)
	case promptSearch:
		m.drill.Filter = m.typed
	case promptNone, promptCommand:
	}
}

func (m *Model) setFilter(s string) {
	m.fleet.filter = s
	m.arrange()
}

// command runs what was typed after the colon.
func (m *Model) command(words []string) tea.Cmd {
	if len(words) == 0 {
		return nil
	}
	argument := ""
	if len(words) > 1 {
		argument = words[1]
	}
	switch words[0] {
	case "q", "quit", "q!":
		return tea.Quit
	case "help", "h":
		m.show(pageHelp)
	case "groups", "mfg", "list":
		m.page, m.open, m.scroll = pageList, "", 0
		m.arrange()
	case "filter":
		m.page, m.open = pageList, ""
		m.setFilter(argument)
	case "explain", "why":
		if g := m.current(); g != nil {
			m.openWhy(g.name)
		}
	case string(drill.Pods), string(drill.Logs):
		if g := m.current(); g != nil {
			return m.drillInto(g.name, drill.Kind(words[0]), argument)
		}
	case VerbFailover, VerbAbort, VerbReclone, VerbPause, VerbResume:
		return m.verb(words[0], argument)
	default:
		m.jump(words[0])
	}
	return nil
}

func (m *Model) verb(verb, argument string) tea.Cmd {
	g := m.current()
	switch {
	case g == nil:
		m.say("choose a group first", "")
		return nil
	case argument == "" && verb == VerbPause:
		argument = pauseFor
	case argument == "" && verb != VerbResume && verb != VerbAbort:
		m.say(":"+verb+" SITE", "")
		return nil
	}
	return m.act(g.action(verb, argument))
}

// jump opens the group of that name, with or without its namespace.
func (m *Model) jump(name string) {
	var found []string
	for known, g := range m.fleet.groups {
		if known == name || g.report.Metadata.Name == name {
			found = append(found, known)
		}
	}
	switch len(found) {
	case 0:
		m.say("no such command or group: "+name+" (? helps)", "")
	case 1:
		m.openGroup(found[0])
	default:
		slices.Sort(found)
		m.say("which one: "+strings.Join(found, ", "), "")
	}
}
