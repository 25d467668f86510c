// SPDX-License-Identifier: Apache-2.0

// Package tui is the dashboard: groups as the operator sees them, live. Update and View are pure: news, keys and the time come in as messages;
// questions and actions go out as commands. Nothing here knows a Kubernetes client: the plugin provides the ways to the operator, the watch of
// the custom resources, and the verbs.
package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// Times by which the screen says how far to trust it.
const (
	// quietAfter: the operator says something every 10 s; after this long without a word the screen is called stale.
	quietAfter = 12 * time.Second
	// fallBackAfter is how long the operator's last words are shown; then the custom resource is.
	fallBackAfter = 15 * time.Second
	eventsEvery   = 3 * time.Second
	whyEvery      = time.Second
	// whyHold is how much older than the operator's last news an answer may be: it is asked every second, and has 3 s.
	whyHold = 5 * time.Second
	// figuresEvery is how often the dashboard asks sidecars for figures, which they measure every 15 s; after figuresHold those are old.
	figuresEvery = 10 * time.Second
	figuresHold  = 45 * time.Second
	// tickerMost is how many lines of news are kept for each group.
	tickerMost = 100
)

// Action is something that a verb of the plugin does.
type Action struct {
	Verb, Namespace, Group string
	// Argument is the site, or how long to pause.
	Argument string
}

// Options is what New makes the dashboard from.
type Options struct {
	// Namespace is the shown one, "" for all; Group is opened at the start, if set.
	Namespace, Group string
	Colour, ASCII    bool
	// AllowActions enables the keys for verbs.
	AllowActions bool
	Now          time.Time
	// Perform makes the Runner that carries out an action on the terminal: the verb itself, with its plan and its questions.
	Perform func(Action) Runner
	// Events, Why and Figures ask about one group; they run beside the screen.
	Events, Why, Figures func(namespace, group string) Answer
	// Look asks about one site: its pods, or its logs.
	Look func(drill.Question) drill.Answer
}

// page is what fills the screen.
type page int

const (
	pageList page = iota
	pageGroup
	pageWhy
	pageHelp
	pageDrill
)

// prompt is where the user types.
type prompt int

const (
	promptNone prompt = iota
	promptCommand
	promptFilter
	promptSearch // in a page of text
)

// Model is the dashboard.
type Model struct {
	options       Options
	signs         canvas.Glyphs
	width, height int

	fleet fleet

	page     page
	back     page // from help and why
	cursor   string
	open     string
	site     string // the chosen one, by name: sites come and go
	scroll   int
	prompt   prompt
	typed    string
	notice   string
	offer    string // the command that a person may type, below the notice
	noticeAt time.Time
	drill    drill.Page

	why       Answer
	whyHeard  time.Time
	eventsAt  time.Time
	whyAt     time.Time
	figuresAt time.Time
	lookAt    time.Time
	// asking and looking are true until the answer has come: a hanging pod is not asked a second time meanwhile.
	asking, looking bool
}

// item is one line of news.
type item struct {
	at    time.Time
	group string
	words string
	st    canvas.Style
}

// group is what is known of one group.
type group struct {
	name   string
	object *v1alpha1.MysqlFailoverGroup // nil: not read
	told   *feed.Told                   // nil: not told
	// age is how long ago the operator had last looked at the group when it said so, and agedAt this machine's clock at that; aged is false
	// while it has not said so since it told.
	age    time.Duration
	agedAt time.Time
	aged   bool
	report report.MysqlFailoverGroupReport
	// lag, behind and commits are the measures of each site, second by second; counters make the commits.
	lag, behind, commits map[string]*canvas.Trace
	counters             map[string]*gauge.Counter
	// figures are what sidecars last said, and when: zero if no one asks.
	figures    []gauge.Reading
	figuresErr string
	figuresAt  time.Time
	// silent is since when the operator has called a site unreachable, by its clock.
	silent    map[string]time.Time
	news      []item
	events    []report.Event
	eventsErr string
}

// New makes a dashboard that knows nothing yet.
func New(o Options) Model {
	m := Model{options: o, signs: canvas.Unicode, width: 80, height: 24, fleet: fleet{connection: connection{now: o.Now}, groups: map[string]*group{}}}
	if o.ASCII {
		m.signs = canvas.ASCII
	}
	if o.Group != "" {
		m.open, m.page = feed.NameOf(o.Namespace, o.Group), pageGroup
		m.cursor = m.open
	}
	return m
}

// tick is the time, sent every second.
type tick time.Time

// Init starts the clock.
func (m Model) Init() tea.Cmd { return nextTick() }

func nextTick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) }) }

// current returns the open group or, in the list, the one under the cursor; nil if there is none.
func (m Model) current() *group {
	if m.page == pageList {
		return m.fleet.groups[m.cursor]
	}
	return m.fleet.groups[m.open]
}

// arrange sorts the list, and keeps the cursor on its group.
func (m *Model) arrange() {
	m.fleet.arrange()
	if m.page == pageList && !slices.Contains(m.fleet.order, m.cursor) {
		m.cursor = ""
		if len(m.fleet.order) > 0 {
			m.cursor = m.fleet.order[0]
		}
	}
}

// gravity is how much a group needs attention.
func (g *group) gravity() int {
	switch g.report.Summary {
	case report.SummarySplitBrain:
		return 5
	case report.SummaryUnavailable:
		return 4
	case report.SummaryFailingOver:
		return 3
	case report.SummaryDegraded, report.SummaryUnknown:
		return 2
	case report.SummaryBootstrapping:
		return 1
	case report.SummaryReady:
		return 0
	}
	return 0
}

func (g *group) matches(filter string) bool {
	return filter == "" || strings.Contains(strings.ToLower(g.name+" "+string(g.report.Summary)+" "+g.report.ActiveSite), strings.ToLower(filter))
}

// Failure says why nothing is known, also about the one requested group, and what to do next; empty if something is known.
func (m Model) Failure() string {
	unknown := m.open != "" && !m.fleet.knows(m.open)
	switch {
	case m.fleet.objects && unknown && m.fleet.objectErr == "":
		return fmt.Sprintf("no group %q in namespace %q\n  list all groups: kubectl mfg status -A", m.options.Group, m.options.Namespace)
	case m.fleet.objects && !unknown, !m.fleet.heardAt.IsZero() && !unknown:
		return ""
	case m.fleet.objectErr != "":
		return m.fleet.objectErr
	case !m.fleet.heardAt.IsZero():
		return fmt.Sprintf("the operator tells nothing of group %q in namespace %q, and the API server did not answer in time", m.options.Group, m.options.Namespace)
	}
	return "neither the API server nor the operator answered in time"
}

// Healthy is true if nothing on the screen needs attention.
func (m Model) Healthy() bool {
	for name, g := range m.fleet.groups {
		if (m.open == "" || m.open == name) && g.report.Health != report.Healthy {
			return false
		}
	}
	return m.open == "" || m.fleet.knows(m.open)
}
