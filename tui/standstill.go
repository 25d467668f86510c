// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// absorbAges applies how long ago the operator looked at each group. The stream sends nothing of a group that did not change, whether
// its loop in the operator looks and finds nothing new or stands still; only the age tells.
func (f *fleet) absorbAges(c feed.Changes) {
	for name, age := range c.Ages {
		g := f.groups[name]
		if g == nil || g.told == nil {
			continue
		}
		g.age, g.agedAt, g.aged = age, c.At, true
		if age > freshUpTo || g.isStale() {
			f.rebuild(g)
		}
	}
}

// freshUpTo is an age up to which no group is stale: its report need not be made again.
const freshUpTo = 5 * time.Second

// issuedAt is the operator's clock when it last said something of the group: the report compares it with the time of the last look.
func (g *group) issuedAt() time.Time {
	if g.aged {
		return g.told.Status.ObservedAt.Add(g.age)
	}
	return g.told.Clock
}

// isStale is true if the operator's loop for the group stands still, although the operator itself speaks.
func (g *group) isStale() bool {
	return slices.ContainsFunc(g.report.Problems, func(p report.Problem) bool { return p.Reason == v1alpha1.ReasonStale })
}

// lookedAgo is how long ago the operator looked at a group that is stale.
func (g *group) lookedAgo(now time.Time) time.Duration {
	if g.told == nil {
		return 0
	}
	if g.aged {
		return g.age + max(0, clock.Elapsed(g.agedAt, now))
	}
	return g.told.Clock.Sub(g.told.Status.ObservedAt)
}

// chosen is the place of the chosen site in the list; -1 if it is gone. No other takes its place: a key would act on a site that the
// person did not choose.
func (m Model) chosen() int {
	g := m.fleet.groups[m.open]
	if g == nil {
		return -1
	}
	return slices.IndexFunc(g.report.Sites, func(s report.Site) bool { return s.Name == m.site })
}

// siteNow is the name of the chosen site; empty if it is gone.
func (m Model) siteNow() string {
	if m.chosen() < 0 {
		return ""
	}
	return m.site
}

// chooseSite moves the choice; without one, it takes the first site.
func (m *Model) chooseSite(by int) {
	g := m.fleet.groups[m.open]
	if g == nil || len(g.report.Sites) == 0 {
		return
	}
	to := 0
	if at := m.chosen(); at >= 0 {
		to = max(0, min(len(g.report.Sites)-1, at+by))
	}
	m.site = g.report.Sites[to].Name
}

// settle chooses the first site of a group that was opened before its sites were known.
func (m *Model) settle() {
	if m.open != "" && m.site == "" {
		m.chooseSite(0)
	}
}
