// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
	"github.com/mysql-mfg/mfg/tui/paint"
	"github.com/mysql-mfg/mfg/tui/standin"
)

// fleet is every known group, in the order of the list.
type fleet struct {
	connection
	groups map[string]*group
	order  []string // of groups, as they are listed
	byName bool     // list by name, not by what needs attention first
	filter string   // the list shows only matches
	news   []item   // of all groups, the newest last
}

// arrange sorts the groups that pass the filter.
func (f *fleet) arrange() {
	f.order = f.order[:0]
	for name, g := range f.groups {
		if g.report.Metadata.Name != "" && g.matches(f.filter) {
			f.order = append(f.order, name)
		}
	}
	slices.SortFunc(f.order, func(a, b string) int {
		if !f.byName {
			if d := cmp.Compare(f.groups[b].gravity(), f.groups[a].gravity()); d != 0 {
				return d
			}
		}
		return strings.Compare(a, b)
	})
}

// group finds a group, or adds it.
func (f *fleet) group(name string) *group {
	g := f.groups[name]
	if g == nil {
		g = &group{
			name: name, lag: map[string]*canvas.Trace{}, behind: map[string]*canvas.Trace{}, commits: map[string]*canvas.Trace{},
			counters: map[string]*gauge.Counter{}, silent: map[string]time.Time{},
		}
		f.groups[name] = g
	}
	return g
}

// rebuild makes the report of a group again from the custom resource and from what the operator told.
func (f *fleet) rebuild(g *group) {
	view := report.LiveView{Missing: f.missing(), Denied: f.link.Denied}
	object := g.object
	if g.told != nil && !f.fellBack {
		view = report.LiveView{Status: wire.StatusList{IssuedAt: g.issuedAt(), Groups: []wire.GroupStatus{g.told.Status}}}
		if object == nil {
			object = standin.Group(g.told.Status)
		}
	}
	if object == nil && g.told != nil {
		object = standin.Group(g.told.Status)
	}
	if object != nil {
		g.report = report.Build(object, view)
	}
}

func (f *fleet) knows(name string) bool {
	g := f.groups[name]
	return g != nil && g.report.Metadata.Name != ""
}

// count notes how many transactions each site has now.
func (g *group) count(s wire.GroupStatus) {
	for _, site := range s.Sites {
		c := g.counters[site.Name]
		if c == nil {
			c = &gauge.Counter{}
			g.counters[site.Name] = c
		}
		executed := site.GTIDExecuted
		if !site.Reachable {
			executed = "" // the last known set
		}
		c.Push(s.ObservedAt, executed)
	}
}

// poll is how often the operator looks at the group; 0 if that is not known.
func (g *group) poll() time.Duration {
	if g.object == nil {
		return 0
	}
	return g.object.Spec.Failover.PollInterval.Duration
}

func (f *fleet) heardFigures(h Answer) {
	if g := f.groups[h.name()]; g != nil {
		g.figures, g.figuresErr, g.figuresAt = h.Figures, h.Error, f.now
	}
}

func (f *fleet) heardEvents(h Answer) {
	if g := f.groups[h.name()]; g != nil {
		g.eventsErr = h.Error
		if h.Error == "" {
			g.events = h.Events
		}
	}
}

// absorbChanges applies what the stream said.
func (f *fleet) absorbChanges(c feed.Changes) {
	if !c.At.IsZero() {
		f.now = later(f.now, c.At)
		f.heardAt = c.At
		if !c.Clock.IsZero() {
			f.skew = c.At.Sub(c.Clock)
		}
	}
	fellBack, failure := f.fellBack, f.link.Error
	if c.Link != nil {
		f.link = *c.Link
	}
	f.fellBack = f.fellBack && !f.link.Up
	if c.Whole {
		f.forgetTold(c.Groups)
	}
	for i := range c.Groups {
		t := c.Groups[i]
		g := f.group(t.Name())
		if g.told != nil {
			f.compare(g, g.told.Status, t)
		}
		g.told, g.aged = &t, false
		g.count(t.Status)
		f.rebuild(g)
	}
	f.absorbAges(c)
	for _, name := range c.Gone {
		if g := f.groups[name]; g != nil {
			g.told = nil
			f.rebuild(g)
			f.dropUnknown(name)
		}
	}
	if fellBack != f.fellBack || failure != f.link.Error { // reports say why they are not live
		f.rebuildAll()
	}
}

// forgetTold drops groups that a snapshot does not name.
func (f *fleet) forgetTold(told []feed.Told) {
	named := map[string]bool{}
	for _, t := range told {
		named[t.Name()] = true
	}
	for name, g := range f.groups {
		if g.told != nil && !named[name] {
			g.told = nil
			f.rebuild(g)
			f.dropUnknown(name)
		}
	}
}

// dropUnknown forgets a group that neither the operator nor the API server knows.
func (f *fleet) dropUnknown(name string) {
	if g := f.groups[name]; g != nil && g.object == nil && g.told == nil {
		delete(f.groups, name)
	}
}

// absorbObjects applies what the watch said.
func (f *fleet) absorbObjects(o feed.Objects) {
	f.now = later(f.now, o.At)
	f.objectErr = o.Error
	if o.Error != "" {
		return
	}
	f.objects, f.objectsAt = true, o.At
	named := map[string]bool{}
	for _, object := range o.Changed {
		name := feed.NameOf(object.Namespace, object.Name)
		named[name] = true
		g := f.group(name)
		g.object = object
		f.rebuild(g)
	}
	gone := o.Gone
	if o.Whole {
		for name, g := range f.groups {
			if g.object != nil && !named[name] {
				gone = append(gone, name)
			}
		}
	}
	for _, name := range gone {
		if g := f.groups[name]; g != nil {
			g.object = nil
			f.rebuild(g)
			f.dropUnknown(name)
		}
	}
}

func (f *fleet) rebuildAll() {
	for _, g := range f.groups {
		f.rebuild(g)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// compare turns what changed between two looks of the operator into news.
func (f *fleet) compare(g *group, old wire.GroupStatus, t feed.Told) {
	now := t.Status
	at := t.Clock
	if old.ActiveSite != now.ActiveSite || old.Epoch != now.Epoch {
		f.tell(g, item{at: at, words: fmt.Sprintf("active site %s -> %s under epoch %d", paint.OrNone(old.ActiveSite), paint.OrNone(now.ActiveSite), now.Epoch), st: canvas.Warn})
	}
	if old.Hold != now.Hold {
		words := "writes may be opened again"
		if now.Hold {
			words = "hold: no site may open writes"
		}
		f.tell(g, item{at: at, words: words, st: canvas.Warn})
	}
	if old.Topology != now.Topology || old.Verdict != now.Verdict || old.Reason != now.Reason {
		words := fmt.Sprintf("%s, %s", now.Topology, now.Verdict)
		if now.Verdict == wire.VerdictNothing {
			words = now.Topology + ", nothing to do"
		}
		if now.Reason != "" && now.Reason != now.Topology {
			words += " (" + now.Reason + ")"
		}
		if now.Message != "" {
			words += ": " + now.Message
		}
		st := canvas.Plain
		if now.Verdict != wire.VerdictNothing {
			st = canvas.Warn
		}
		f.tell(g, item{at: at, words: words, st: st})
	}
	f.compareCache(g, old.Cache, now.Cache, at)
	was := map[string]wire.SiteStatus{}
	for _, s := range old.Sites {
		was[s.Name] = s
	}
	for _, s := range now.Sites {
		f.compareSite(g, was[s.Name], s, at)
	}
}

func (f *fleet) compareSite(g *group, old, now wire.SiteStatus, at time.Time) {
	switch {
	case now.Reachable:
		delete(g.silent, now.Name)
	case old.Reachable:
		g.silent[now.Name] = at
	}
	if was, is := stateOf(old), stateOf(now); was.StateWord() != is.StateWord() {
		words := fmt.Sprintf("%s: %s -> %s", now.Name, paint.OrNone(was.StateWord()), paint.OrNone(is.StateWord()))
		if now.Message != "" {
			words += ": " + now.Message
		}
		f.tell(g, item{at: at, words: words, st: stateStyle(is)})
	}
	if old.Fence != now.Fence {
		f.tell(g, item{at: at, words: fmt.Sprintf("%s: fence %s -> %s", now.Name, paint.OrNone(old.Fence), paint.OrNone(now.Fence))})
	}
	if old.Errant != now.Errant && now.Errant > 0 {
		f.tell(g, item{at: at, words: fmt.Sprintf("%s: %s that no other site has", now.Name, gtid.Transactions(now.Errant)), st: canvas.Bad})
	}
}

// stateOf returns the state that the operator told, as the report calls it: a site being fenced is not Fenced while it is open.
func stateOf(s wire.SiteStatus) report.Site {
	return report.Site{State: s.State, Foreign: s.Reachable && s.Writable && s.State == string(v1alpha1.SiteFenced)}
}

func (f *fleet) tell(g *group, i item) {
	i.group = g.name
	g.news = keep(append(g.news, i))
	f.news = keep(append(f.news, i))
}

// keep bounds the news.
func keep(news []item) []item {
	if extra := len(news) - tickerMost; extra > 0 {
		return append(news[:0:0], news[extra:]...)
	}
	return news
}

// sample adds a second to the plots.
func (f *fleet) sample() {
	_, silent := f.stale()
	for _, g := range f.groups {
		stale := silent || g.isStale()
		for _, s := range g.report.Sites {
			if s.Active {
				pace := canvas.UnknownSample
				if !stale {
					pace = g.counters[s.Name].PerSecond(f.clock(), g.poll())
				}
				traceOf(g.commits, s.Name).Push(pace)
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
