// SPDX-License-Identifier: Apache-2.0

// Package upgrade decides which group may get the pods of another version of the operator now. It is pure. One group at a time, in the
// order of names, with a pause after each; a group that is not healthy with its new pods in time stops all that follow. Changes that a
// person asked for wait for no turn: Sort tells the two apart. See docs/upgrades.md.
package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/pace"
)

// Policy is how turns are paced.
type Policy struct {
	// Pause is how long a group stays healthy with its new pods before the next turn begins.
	Pause time.Duration
	// StopAfter is how long a group may take to have its new pods and be healthy.
	StopAfter time.Duration
	// Window is when a turn may begin; empty means at any time.
	Window pace.Window
}

// Turn is all the state between decisions.
type Turn struct {
	// Group has the turn, as namespace/name; empty means that no group has it.
	Group string
	// Began is since when the group has the turn, or continues after a stop, later by as long as it was healthy in between; zero while it is
	// stopped.
	Began time.Time
	// Since is since when the group has all its new pods and is healthy; zero if it is not.
	Since time.Time
	// Paused is true if a person lets no further turn begin.
	Paused bool
	// Stopped says why no further turn begins until a person says so; empty normally.
	Stopped string
}

// Next decides the next turn. It must be persisted before a pod is replaced because of it. A turn never passes from one group to another in one
// step, so the end of one is persisted before the next begins.
func Next(t Turn, groups []pace.Group, p Policy, now time.Time) Turn {
	if t.Group != "" {
		return goOn(t, groups, p, now)
	}
	if t.Paused || t.Stopped != "" {
		return t
	}
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b pace.Group) int { return strings.Compare(a.Name, b.Name) })
	for _, g := range groups {
		if !g.Behind || pace.WhyNot(g, p.Window, now) != "" {
			continue
		}
		t.Group, t.Began, t.Since = g.Name, now, time.Time{}
		return t
	}
	return t
}

// goOn follows the group that has the turn.
func goOn(t Turn, groups []pace.Group, p Policy, now time.Time) Turn {
	at := slices.IndexFunc(groups, func(g pace.Group) bool { return g.Name == t.Group })
	if at < 0 || groups[at].Pinned && t.Stopped != "" {
		// It is gone or another operator's, or after a stop a person leaves it alone.
		t.Group, t.Began, t.Since = "", time.Time{}, time.Time{}
		return t
	}
	// A leader of before whose clock was ahead wrote a time that is still to come: it counts from now, or the turn would not end until then.
	for _, since := range []*time.Time{&t.Began, &t.Since} {
		if since.After(now) {
			*since = now
		}
	}
	g := groups[at]
	// No more pods of a pinned or a kept group are replaced, but one replacement may be under way.
	if (!g.Behind || g.Pinned || g.Kept != "") && g.Why == "" {
		if t.Since.IsZero() {
			t.Since = now
		}
		if now.Sub(t.Since) >= p.Pause {
			t.Group, t.Began, t.Since = "", time.Time{}, time.Time{}
		}
		return t
	}
	if t.Stopped != "" {
		t.Began, t.Since = time.Time{}, time.Time{}
		return t
	}
	switch {
	case t.Began.IsZero(): // a person lets it continue after a stop
		t.Began, t.Since = now, time.Time{}
	case !t.Since.IsZero():
		// It is unhealthy again. Only the time in which it was healthy does not count: a group that comes and goes would have the turn for
		// good, and nobody would be told.
		t.Began, t.Since = t.Began.Add(now.Sub(t.Since)), time.Time{}
	}
	if now.Sub(t.Began) >= p.StopAfter {
		why := g.Why
		if why == "" {
			why = "pods of it are still to be replaced"
		}
		t.Began = time.Time{}
		t.Stopped = fmt.Sprintf("%s was not done and healthy within %s: %s", g.Name, p.StopAfter, why)
	}
	return t
}
