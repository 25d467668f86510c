// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/operator/failover"
)

// tamper is somebody with SUPER who lifts the fence by hand.
func (w *world) tamper(m *mysqld) bool {
	if !m.running() || m.cloning || !m.readOnly {
		return false
	}
	m.byHand()
	m.offline = m.offline && w.chance(0.3)
	m.setReadOnlyOff()
	return true
}

// byHand: from here on what is committed is that person's.
func (m *mysqld) byHand() {
	if !m.tampered {
		m.vol.handFrom = m.vol.executed[m.vol.server]
	}
	m.tampered, m.pod.site.tampered = true, true
}

// letClientsIn is somebody who lifts offline_mode on a site that is being worked on, and the rest of the fence with it.
func (w *world) letClientsIn(m *mysqld) {
	if m.offline && !m.dead && !w.healed {
		m.byHand()
		m.offline = false
		m.setReadOnlyOff()
	}
}

// inWindow is a site that somebody works on now, or any.
func (w *world) inWindow() *site {
	if r := w.leader().run; r != nil {
		for _, s := range w.sites {
			if j := r.work.jobs[s.name]; j != nil && j.window {
				return s
			}
		}
	}
	return w.someSite()
}

// restoreStatus puts the status back to what it was once, or to nothing.
func (w *world) restoreStatus() {
	old := failover.Durable{}
	if len(w.truth.past) > 0 && w.chance(0.7) {
		old = w.truth.past[w.rnd.IntN(len(w.truth.past))]
	}
	w.trace("status goes back to epoch %d, active site %s", old.Epoch, old.ActiveSite)
	w.truth.standing = old.Epoch
	w.truth.restored = true
	w.api.change(func(o *object) { o.durable = old })
}

var humanFaults = []fault{
	{"somebody writes on a replica", 5, time.Second, func(w *world) func() {
		m := w.someServer()
		if p := w.podAt(w.inWindow()); p != nil && w.chance(0.7) {
			m = p.mysqld
		}
		if !w.tamper(m) {
			return nil
		}
		return nothing
	}},
	{"work on a site is left half done", 3, time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil || m.cloning || !m.readOnly || m.pod.site.name == w.api.group.durable.ActiveSite {
			return nil
		}
		m.setOffline(true)
		m.superReadOnly = false
		return nothing
	}},
	{"servers hang while they are opened", 5, 60 * time.Second, func(w *world) func() {
		w.hangOpenings = true
		return func() { w.hangOpenings = false }
	}},
	{"binary logs are purged", 4, time.Second, func(w *world) func() {
		m := w.serverOf(w.api.group.durable.ActiveSite)
		if !m.running() {
			return nil
		}
		m.vol.purged = m.vol.executed
		return nothing
	}},
	{"a site is provisioned anew", 3, time.Second, func(w *world) func() {
		s := w.sites[w.rnd.IntN(len(w.sites))]
		if s.name == w.api.group.durable.ActiveSite {
			return nil
		}
		w.api.change(func(o *object) { o.provisioned = with(o.provisioned, s.name, false) })
		return nothing
	}},
	{"a person orders a failover", 4, 20 * time.Second, func(w *world) func() {
		s := w.sites[w.rnd.IntN(len(w.sites))]
		w.api.change(func(o *object) { o.forceTo = s.name })
		return nothing
	}},
	{"a planned failover is asked for", 16, 20 * time.Second, func(w *world) func() {
		s := w.sites[w.rnd.IntN(len(w.sites))]
		w.api.change(func(o *object) { o.plannedTo = s.name })
		return nothing
	}},
	{"a planned failover is asked for and given up", 4, 8 * time.Second, func(w *world) func() {
		s := w.sites[w.rnd.IntN(len(w.sites))]
		w.api.change(func(o *object) { o.plannedTo = s.name })
		w.after(w.between(0, 4*time.Second), func() { w.api.change(func(o *object) { o.abort = true }) })
		return nothing
	}},
	{"a node is drained", 6, 30 * time.Second, func(w *world) func() {
		s := w.someSite()
		s.leaving = "node is cordoned"
		return func() { s.leaving = "" }
	}},
	{"status is restored from a backup", 2, time.Second, func(w *world) func() {
		w.restoreStatus()
		return nothing
	}},
	{"a person pauses failover", 2, 30 * time.Second, func(w *world) func() {
		w.api.change(func(o *object) { o.pausedUntil = epochZero.Add(w.now + 20*time.Second) })
		return func() { w.api.change(func(o *object) { o.pausedUntil = time.Time{} }) }
	}},
	{"a site leaves the spec", 2, time.Second, func(w *world) func() {
		s := w.sites[w.rnd.IntN(len(w.sites))]
		if s.name == w.api.group.durable.ActiveSite || len(w.sites) < 3 || s.removed {
			return nil
		}
		s.removed = true
		return nothing
	}},
}
