// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// absorbChanges takes in what the stream said.
func (m *Model) absorbChanges(c feed.Changes) {
	if !c.At.IsZero() {
		m.now = later(m.now, c.At)
		m.heardAt = c.At
		if !c.Clock.IsZero() {
			m.skew = c.At.Sub(c.Clock)
		}
	}
	fallen, failure := m.fallen, m.link.Error
	if c.Link != nil {
		m.link = *c.Link
	}
	m.fallen = m.fallen && !m.link.Up
	if c.Whole {
		m.forgetTold(c.Groups)
	}
	for i := range c.Groups {
		t := c.Groups[i]
		g := m.group(t.Name())
		if g.told != nil {
			m.compare(g, g.told.Status, t)
		}
		g.told = &t
		m.rebuild(g)
	}
	for _, name := range c.Gone {
		if g := m.groups[name]; g != nil {
			g.told = nil
			m.rebuild(g)
			m.dropUnknown(name)
		}
	}
	if fallen != m.fallen || failure != m.link.Error { // reports say why they are not live
		m.rebuildAll()
	}
	m.arrange()
}

// forgetTold drops what a snapshot does not name.
func (m *Model) forgetTold(told []feed.Told) {
	named := map[string]bool{}
	for _, t := range told {
		named[t.Name()] = true
	}
	for name, g := range m.groups {
		if g.told != nil && !named[name] {
			g.told = nil
			m.rebuild(g)
			m.dropUnknown(name)
		}
	}
}

// dropUnknown forgets a group that neither the operator nor the API server knows.
func (m *Model) dropUnknown(name string) {
	if g := m.groups[name]; g != nil && g.object == nil && g.told == nil {
		delete(m.groups, name)
	}
}

// absorbObjects takes in what the watch said.
func (m *Model) absorbObjects(o feed.Objects) {
	m.now = later(m.now, o.At)
	m.objectErr = o.Error
	if o.Error != "" {
		return
	}
	m.objects, m.objectsAt = true, o.At
	named := map[string]bool{}
	for _, object := range o.Changed {
		name := feed.NameOf(object.Namespace, object.Name)
		named[name] = true
		g := m.group(name)
		g.object = object
		m.rebuild(g)
	}
	gone := o.Gone
	if o.Whole {
		for name, g := range m.groups {
			if g.object != nil && !named[name] {
				gone = append(gone, name)
			}
		}
	}
	for _, name := range gone {
		if g := m.groups[name]; g != nil {
			g.object = nil
			m.rebuild(g)
			m.dropUnknown(name)
		}
	}
	m.arrange()
}

func (m *Model) rebuildAll() {
	for _, g := range m.groups {
		m.rebuild(g)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// compare turns what changed between two looks of the operator into news.
func (m *Model) compare(g *group, old wire.GroupStatus, t feed.Told) {
	now := t.Status
	at := t.Clock
	if old.ActiveSite != now.ActiveSite || old.Epoch != now.Epoch {
		m.tell(g, item{at: at, words: fmt.Sprintf("active site %s -> %s under epoch %d", orNone(old.ActiveSite), orNone(now.ActiveSite), now.Epoch), st: canvas.Warn})
	}
	if old.Hold != now.Hold {
		words := "writes may be opened again"
		if now.Hold {
			words = "hold: no site may open writes"
		}
		m.tell(g, item{at: at, words: words, st: canvas.Warn})
	}
	if old.Topology != now.Topology || old.Verdict != now.Verdict || old.Reason != now.Reason {
		words := fmt.Sprintf("%s, %s", now.Topology, now.Verdict)
		if now.Reason != "" && now.Reason != now.Topology {
			words += " (" + now.Reason + ")"
		}
		if now.Message != "" {
			words += ": " + now.Message
		}
		st := canvas.Plain
		if now.Verdict != verdictNothing {
			st = canvas.Warn
		}
		m.tell(g, item{at: at, words: words, st: st})
	}
	was := map[string]wire.SiteStatus{}
	for _, s := range old.Sites {
		was[s.Name] = s
	}
	for _, s := range now.Sites {
		m.compareSite(g, was[s.Name], s, at)
	}
}

// verdictNothing is what the operator decides while there is nothing to do.
const verdictNothing = "Nothing"

func (m *Model) compareSite(g *group, old, now wire.SiteStatus, at time.Time) {
	switch {
	case now.Reachable:
		delete(g.silent, now.Name)
	case old.Reachable:
		g.silent[now.Name] = at
	}
	if was, is := stateOf(old), stateOf(now); was.StateWord() != is.StateWord() {
		words := fmt.Sprintf("%s: %s -> %s", now.Name, orNone(was.StateWord()), orNone(is.StateWord()))
		if now.Message != "" {
			words += ": " + now.Message
		}
		m.tell(g, item{at: at, words: words, st: stateStyle(is)})
	}
	if old.Fence != now.Fence {
		m.tell(g, item{at: at, words: fmt.Sprintf("%s: fence %s -> %s", now.Name, orNone(old.Fence), orNone(now.Fence))})
	}
	if old.Errant != now.Errant && now.Errant > 0 {
		m.tell(g, item{at: at, words: fmt.Sprintf("%s: %d transactions that nobody else has", now.Name, now.Errant), st: canvas.Bad})
	}
}

// stateOf is the state that the operator told, as the report calls it: one that it fences is not Fenced while it is open.
func stateOf(s wire.SiteStatus) report.Site {
	return report.Site{State: s.State, Foreign: s.Reachable && s.Writable && s.State == string(v1alpha1.SiteFenced)}
}

func (m *Model) tell(g *group, i item) {
	i.group = g.name
	g.news = keep(append(g.news, i))
	m.news = keep(append(m.news, i))
}

// keep bounds news.
func keep(news []item) []item {
	if extra := len(news) - tickerMost; extra > 0 {
		return append(news[:0:0], news[extra:]...)
	}
	return news
}

// sample adds a second to the plots.
func (m *Model) sample() {
	_, stale := m.stale()
	for _, g := range m.groups {
		for _, s := range g.report.Sites {
			if s.Active {
				continue
			}
			lag, behind := canvas.UnknownSample, canvas.UnknownSample
			if s.LagSeconds != nil && !stale {
				lag = *s.LagSeconds
			}
			if s.Behind != nil && !stale {
				behind = float64(*s.Behind)
			}
			traceOf(g.lag, s.Name).Push(lag)
			traceOf(g.behind, s.Name).Push(behind)
		}
	}
}

func traceOf(all map[string]*canvas.Trace, site string) *canvas.Trace {
	t := all[site]
	if t == nil {
		t = &canvas.Trace{}
		all[site] = t
	}
	return t
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
