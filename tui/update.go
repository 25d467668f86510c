// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// noticeFor is how long the answer to a key stays on the screen.
const noticeFor = 10 * time.Second

// done is the outcome of an action.
type done struct {
	action Action
	words  string
	err    error
}

// Update handles a message. Nothing waits here: slow work goes out as a command.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.take(msg)
	return m, cmd
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.prompt != promptNone {
			m.typeIn(msg.Content)
		}
	case tick:
		m.pass(time.Time(msg))
		return tea.Batch(nextTick(), m.asks())
	case feed.Changes:
		m.fleet.absorbChanges(msg)
		m.arrange()
		m.settle()
		m.forgetWhy()
	case feed.Objects:
		m.fleet.absorbObjects(msg)
		m.arrange()
		m.settle()
	case events:
		m.fleet.heardEvents(Answer(msg))
	case figures:
		m.asking = false
		m.fleet.heardFigures(Answer(msg))
	case looked:
		m.looking = false
		if msg.Question != m.drill.Question {
			return m.look() // it was put off until the one that now has its answer
		}
		m.drill.Answer = drill.Answer(msg)
	case why:
		if Answer(msg).name() == m.open {
			m.why, m.whyHeard = Answer(msg), m.fleet.now
		}
	case done:
		if errors.Is(msg.err, ErrEnded) {
			return tea.Quit
		}
		m.say(outcome(msg), "")
	}
	return nil
}

// pass moves the time on.
func (m *Model) pass(now time.Time) {
	m.fleet.now = later(m.fleet.now, now)
	if quiet, stale := m.fleet.stale(); !m.fleet.fellBack && stale && quiet >= fallBackAfter {
		m.fleet.fellBack = true
		m.fleet.rebuildAll()
		m.arrange()
	}
	if m.notice != "" && m.fleet.now.Sub(m.noticeAt) > noticeFor {
		m.say("", "")
	}
	m.fleet.sample()
}

type (
	events  Answer
	figures Answer
	why     Answer
	looked  drill.Answer
)

// asks returns the questions about the open group that are due.
func (m *Model) asks() tea.Cmd {
	g := m.fleet.groups[m.open]
	if g == nil || m.page == pageList {
		return nil
	}
	var cmds []tea.Cmd
	ns, name := g.report.Metadata.Namespace, g.report.Metadata.Name
	if ask := m.options.Events; ask != nil && m.fleet.now.Sub(m.eventsAt) >= eventsEvery {
		m.eventsAt = m.fleet.now
		cmds = append(cmds, func() tea.Msg { return events(ask(ns, name)) })
	}
	if ask := m.options.Why; ask != nil && m.fleet.now.Sub(m.whyAt) >= whyEvery && (m.page == pageWhy || g.deciding()) {
		m.whyAt = m.fleet.now
		cmds = append(cmds, func() tea.Msg { return why(ask(ns, name)) })
	}
	if ask := m.options.Figures; ask != nil && !m.asking && m.fleet.now.Sub(m.figuresAt) >= figuresEvery {
		m.figuresAt, m.asking = m.fleet.now, true
		cmds = append(cmds, func() tea.Msg { return figures(ask(ns, name)) })
	}
	if m.page == pageDrill && m.fleet.now.Sub(m.lookAt) >= lookEvery {
		cmds = append(cmds, m.look())
	}
	return tea.Batch(cmds...)
}

// lookEvery is how often pods and logs are read again while they are on the screen.
const lookEvery = 2 * time.Second

// look asks about what the drill page shows. One question is under way at a time; the next tick asks the one that was put off.
func (m *Model) look() tea.Cmd {
	ask, q := m.options.Look, m.drill.Question
	if ask == nil || m.looking {
		return nil
	}
	m.lookAt, m.looking = m.fleet.now, true
	return func() tea.Msg { return looked(ask(q)) }
}

// forgetWhy drops what the operator said about a decision once there is none: the next one has other reasons. What is older than the
// operator's news by whyHold goes too: it may be about an earlier decision.
func (m *Model) forgetWhy() {
	g := m.fleet.groups[m.open]
	over := g == nil || m.page != pageWhy && !g.deciding()
	if over || clock.Elapsed(m.whyHeard, m.fleet.heardAt) > whyHold {
		m.why = Answer{}
	}
}

// deciding is true while there is something that the operator could be asked about.
func (g *group) deciding() bool {
	d := g.report.Decision
	return d != nil && (d.Verdict != wire.VerdictNothing || g.report.Transition != nil)
}

func outcome(d done) string {
	what := d.action.Verb + " " + d.action.Group
	switch {
	case d.err != nil:
		return what + ": " + d.err.Error()
	case d.words != "":
		return what + ": " + d.words
	}
	return what + ": done"
}

// ErrEnded is what a Runner returns if the process was told to end while it had the terminal: then no one else hears the signal.
var ErrEnded = errors.New("the process was told to end")

// Runner carries out an action on the terminal, and then says the outcome in a line.
type Runner interface {
	tea.ExecCommand
	Outcome() string
}

// act hands an action to its verb, which shows its plan and asks. A read-only dashboard names the command instead.
func (m *Model) act(a Action) tea.Cmd {
	if !m.options.AllowActions || m.options.Perform == nil {
		m.say("read-only (start with --allow-actions):", a.Command())
		return nil
	}
	runner := m.options.Perform(a)
	return tea.Exec(runner, func(err error) tea.Msg {
		d := done{action: a, err: err}
		if err == nil {
			d.words = runner.Outcome()
		}
		return d
	})
}

// say puts words in the last lines of the screen, and a command that a person may type under them.
func (m *Model) say(words, command string) {
	m.notice, m.offer, m.noticeAt = words, command, m.fleet.now
}

// Command returns what a person would type for it.
func (a Action) Command() string {
	c := fmt.Sprintf("kubectl mfg %s %s -n %s", a.Verb, a.Group, a.Namespace)
	switch a.Verb {
	case VerbFailover:
		return c + " --to " + a.Argument
	case VerbAbort:
		return fmt.Sprintf("kubectl mfg %s %s -n %s --abort", VerbFailover, a.Group, a.Namespace)
	case VerbPause:
		return c + " --for " + a.Argument
	case VerbReclone:
		return fmt.Sprintf("kubectl mfg %s %s %s -n %s", a.Verb, a.Group, a.Argument, a.Namespace)
	}
	return c
}

// Verbs that the dashboard can ask for.
const (
	VerbFailover = "failover"
	VerbAbort    = "abort" // failover --abort
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbReclone  = "reclone"
)
