// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

// The second guard: the deadline that the sidecar's shell tells (sidecar/agent become), and the supervisor that keeps it
// (sidecar/supervise.go). What decides is the real fence.Watch and the real watchdog.Due. The supervisor itself never
// stands still alone here: with the sidecar, that would be two at once (docs/internals/fence.md).

// tell is what a sidecar says in the moment in which its state changes.
func (p *pod) tell(told fence.Watchdog) {
	if told.Sooner && p.deadline != 0 && p.deadline < told.Until {
		return
	}
	p.deadline = told.Until
	p.w.superviseAt(p)
}

// superviseAt looks when the deadline is reached; one that moved is looked at again then.
func (w *world) superviseAt(p *pod) {
	if p.deadline == 0 || p.watching {
		return
	}
	p.watching = true
	left := max(0, p.deadline-p.host.clock.local(w.now))
	w.after(p.host.clock.real(left)+w.between(0, watchdog.Interval), func() {
		p.watching = false
		w.supervise(p)
	})
}

// supervise is one look of the supervisor. A machine that stands still looks when it goes on.
func (w *world) supervise(p *pod) {
	if p.over || !p.host.up || p.host.frozen {
		return
	}
	now := p.host.clock.local(w.now)
	m := p.mysqld
	if m.running() && watchdog.Due(p.deadline, m.startedAt, now) {
		w.count("mysqld killed by its supervisor")
		w.trace("supervisor ends %s: its deadline was %s", m, p.deadline)
		w.killMysqld(m)
		return
	}
	if now < p.deadline {
		w.superviseAt(p)
	}
}

// killMysqld is SIGKILL: no thread returns to its program, also if the end takes its time. The supervisor starts another.
func (w *world) killMysqld(m *mysqld) {
	switch {
	case m.vol.stalled:
		// A thread of it waits in the kernel. What it had handed over is written once the volume goes on, and then it ends.
		m.doomed, m.serving = true, false
		w.touched()
		w.endThawed(m)
	case m.stubborn:
		m.doomed = true
		w.touched()
		w.after(w.between(0, 5*time.Second), m.end)
	default:
		m.end()
	}
	w.restartMysqld(m.pod)
}
