// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

var processFaults = []fault{
	{"mysqld crashes", 8, time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		m.end()
		w.restartMysqld(m.pod)
		return nothing
	}},
	{"mysqld cannot start", 8, 60 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		s := m.pod.site
		s.noRestart = w.now + time.Hour
		m.end()
		w.restartMysqld(m.pod)
		return func() { s.noRestart = 0 }
	}},
	{"mysqld comes and goes", 5, 40 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		s := m.pod.site
		s.failsToStart = true
		m.end()
		w.restartMysqld(m.pod)
		return func() { s.failsToStart = false }
	}},
	{"mysqld stands still", 6, 40 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil || m.frozen {
			return nil
		}
		m.freeze()
		w.touched()
		return func() {
			if !m.host.frozen {
				m.thaw()
				w.touched()
			}
		}
	}},
	{"hung SQL", 5, 20 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		m.stuck = w.now + w.between(time.Second, 20*time.Second)
		return func() { m.stuck = 0 }
	}},
	{"slow SQL", 4, 30 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		m.slow = w.between(50*time.Millisecond, 1500*time.Millisecond)
		m.stubborn = w.chance(0.5)
		return func() { m.slow, m.stubborn = 0, false }
	}},
	{"replica lags", 8, 60 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil {
			return nil
		}
		m.trickle = int32(w.rnd.IntN(3)) - 1
		if m.trickle == 0 {
			m.trickle = 1
		}
		return func() { m.trickle = 0 }
	}},
	{"applier stops", 3, 30 * time.Second, func(w *world) func() {
		m := w.someServer()
		if m == nil || m.vol.source == "" {
			return nil
		}
		m.applier, m.sqlError = false, "an error"
		return func() { m.sqlError = "" }
	}},
	{"sidecar crashes", 6, time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil || p.sidecar == nil {
			return nil
		}
		p.sidecar.kill()
		return nothing
	}},
	{"sidecar stands still", 5, 30 * time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil || p.sidecar == nil || p.sidecar.dead {
			return nil
		}
		s := p.sidecar
		s.freeze()
		return func() {
			if !s.host.frozen {
				s.guardedSince = w.now
				s.thaw()
			}
		}
	}},
	{"sidecar is told to end", 4, time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil || p.sidecar == nil || p.sidecar.dead || p.sidecar.frozen || !p.host.kubelet {
			return nil
		}
		s := p.sidecar
		s.spawn(func(t *task) {
			s.leave(t)
			w.at(w.now, s.kill)
		})
		return nothing
	}},
	{"volume cannot be written", 3, 30 * time.Second, func(w *world) func() {
		v := w.someSite().vol
		v.failSave = true
		return func() { v.failSave = false }
	}},
	{"operator crashes", 8, time.Second, func(w *world) func() {
		w.leader().crash()
		return nothing
	}},
	{"operator stands still", 8, 50 * time.Second, func(w *world) func() {
		o := w.leader()
		r := o.run
		if r == nil || r.dead || r.frozen {
			return nil
		}
		r.lingers = w.between(0, 9*time.Second)
		r.freeze()
		return func() {
			if !o.host.frozen {
				r.thaw()
			}
		}
	}},
	{"operator crashes again and again", 3, 40 * time.Second, func(w *world) func() {
		on := true
		var again func()
		again = func() {
			if on {
				w.leader().crash()
				w.after(w.between(time.Second, 12*time.Second), again)
			}
		}
		again()
		return func() { on = false }
	}},
}

var clusterFaults = []fault{
	{"API server is away", 6, 40 * time.Second, func(w *world) func() {
		w.api.away = true
		return func() { w.api.away = false }
	}},
	{"API server loses answers", 5, 40 * time.Second, func(w *world) func() {
		w.api.inDoubt = true
		return func() { w.api.inDoubt = false }
	}},
	{"node dies", 10, 60 * time.Second, func(w *world) func() {
		n := w.someHost()
		if !n.up {
			return nil
		}
		w.powerOff(n)
		return func() { w.powerOn(n) }
	}},
	{"node dies and is tainted", 4, 60 * time.Second, func(w *world) func() {
		n := w.someHost()
		if !n.up || n.tainted {
			return nil
		}
		w.powerOff(n)
		w.after(w.between(time.Second, 20*time.Second), func() {
			if !n.up {
				n.tainted = true
			}
		})
		return func() {
			n.tainted = false
			w.powerOn(n)
		}
	}},
	{"node stands still", 6, 50 * time.Second, func(w *world) func() {
		n := w.someHost()
		if !n.up || n.frozen {
			return nil
		}
		w.freezeNode(n, true)
		return func() { w.freezeNode(n, false) }
	}},
	{"kubelet is dead", 4, 60 * time.Second, func(w *world) func() {
		n := w.someHost()
		n.kubelet = false
		return func() { n.kubelet = true }
	}},
	{"pod is deleted by force", 7, time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil {
			return nil
		}
		w.deletePod(p)
		return nothing
	}},
	{"pod is deleted", 5, time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil || !p.host.kubelet || !p.host.up || p.host.frozen {
			return nil
		}
		w.stopPod(p)
		return nothing
	}},
	{"pod is evicted", 5, time.Second, func(w *world) func() {
		p := w.podAt(w.someSite())
		if p == nil || !p.host.kubelet || !p.host.up || p.host.frozen || !p.bootstrapped {
			return nil
		}
		w.endPod(p)
		p.phase, p.hasIP = failed, false
		w.after(w.between(500*time.Millisecond, 25*time.Second), func() { w.deletePod(p) })
		return nothing
	}},
	{"a pod is deleted by force and its volume moves", 6, time.Second, func(w *world) func() { return w.moveVolume(w.someSite()) }},
	{"volume is replaced", 4, time.Second, func(w *world) func() { return w.replaceVolume(w.someSite()) }},
}

// replaceVolume is somebody who deletes the pod by force, and its claim, and has the site start again on another machine,
// whatever still runs on the first one.
func (w *world) replaceVolume(s *site) func() {
	p := w.podAt(s)
	if p == nil || w.servers >= maxServers {
		return nil
	}
	spare := w.nodes[len(w.nodes)-1-w.rnd.IntN(2)]
	for _, other := range w.sites {
		if other.host == spare {
			return nil
		}
	}
	if w.chance(0.7) && p.host.up {
		p.host.kubelet = false
		cut := w.cuts(both([]*node{p.host}, w.except(p.host)))
		host := p.host
		w.ends = append(w.ends, func() { cut(); host.kubelet = true })
	}
	w.moved = true
	s.host = spare
	s.vol = w.newVolume(s)
	w.deletePod(p)
	return nothing
}

// moveVolume is somebody who deletes the pod of a machine that is out of reach by force, and has its volume attached to another one,
// whatever still runs on the first: the site starts again with all that its volume held.
func (w *world) moveVolume(s *site) func() {
	p := w.podAt(s)
	if p == nil || p.gone || p.vol != s.vol {
		return nil
	}
	spare := w.nodes[len(w.nodes)-1-w.rnd.IntN(2)]
	for _, other := range w.sites {
		if other.host == spare {
			return nil
		}
	}
	some := []*node{p.host}
	if active := w.siteOf(w.api.group.durable.ActiveSite); active != nil && active.host != p.host && w.chance(0.7) {
		some = append(some, active.host) // it may go on vouching for that one
	}
	others := w.except(some...)
	if w.chance(0.3) {
		others = append(w.operatorHosts(), w.api.host) // its peers still reach it
	}
	cut := w.cuts(both(some, others))
	p.host.kubelet = false
	w.ends = append(w.ends, func() { cut(); p.host.kubelet = true })
	w.after(w.between(0, 30*time.Second), func() { w.detach(s, p, spare) })
	return nothing
}

// detach takes the volume of a site away from a pod, which runs on with what it has of it.
func (w *world) detach(s *site, p *pod, to *node) {
	v := s.vol
	if w.healed || p.vol != v || p.gone || p.over || slices.ContainsFunc(w.sites, func(other *site) bool { return other.host == to }) {
		return
	}
	stale := *v
	stale.detached = true
	for _, other := range s.pods {
		if other.vol == v && other.host == p.host {
			other.vol = &stale
			if other.mysqld != nil {
				other.mysqld.vol = &stale
			}
		}
	}
	w.moved, v.holder, v.host, s.host = true, nil, to, to
	w.trace("volume %s moves from %s to %s", v.id, p.host.name, to.name)
	w.deletePod(p)
}
