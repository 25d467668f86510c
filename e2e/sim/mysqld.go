// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// volume is a data volume: what survives the processes.
type volume struct {
	id     string
	server int
	site   string
	host   *node

	executed, purged history
	// retrieved is what the relay logs hold or were applied from; sync_relay_log keeps most of it over a crash.
	retrieved history
	source    string
	clone     cloneState
	databases bool
	// tables are those outside InnoDB, withRows those of them that have rows: a clone brings the tables, and not the rows.
	tables, withRows int
	// handFrom is how many transactions of its own it had when somebody began to write by hand.
	handFrom int32
	// clonesBegun tells one clone from the next.
	clonesBegun int

	kept     fence.Kept
	failSave bool
	// detached: it is attached to another machine by now. Who has it open still runs, and nothing that it writes gets there.
	detached bool
	// stalled since stalledAt: whatever writes to it waits until it goes on.
	stalled   bool
	stalledAt time.Duration
	// opening is true while the mark of an opening is on it, openingIn which mysqld it names.
	opening   bool
	openingIn string
	// acked is the highest epoch that was ever acknowledged from here.
	acked int64
	// holder is the pod whose sidecar and mysqld hold the locks on this volume.
	holder *pod
}

type cloneState int

const (
	cloneNever cloneState = iota
	cloneRuns
	cloneDone
	cloneFailed
)

// mysqld is one process of the server.
type mysqld struct {
	process
	id  string
	pod *pod
	vol *volume
	// startedAt is when it started, on the clock of its machine.
	startedAt time.Duration

	readOnly, superReadOnly, offline bool
	// serving is false until recovery is over; stuck until when no statement is answered.
	serving bool
	stuck   time.Duration
	// slow is added to every statement, applyOnly bounds what is applied or received in one step; 0 is no bound.
	slow time.Duration
	// hang is how long the next statement alone waits for a lock.
	hang    time.Duration
	trickle int32

	receiver, applier bool
	connected         *mysqld
	ioErrno           int
	sqlError          string
	commits           []*commit
	waits             []*promise
	// openEpoch is the epoch under which its sidecar opened it; tampered is true if somebody else did.
	openEpoch int64
	tampered  bool
	// opensToCome counts the statements of openings that are under way inside the server, loose is since when it is not
	// read-only and nobody may say that it need not be.
	opensToCome int
	loose       time.Duration
	// goodAt is when the question of its last good exchange was sent.
	goodAt  time.Duration
	cloning bool
	// stubborn: a SIGKILL takes its time to end the process; doomed: it was sent.
	stubborn, doomed bool
}

// commit is one client's transaction on its way.
type commit struct {
	// certain is true once it is in the commit itself: then a KILL does not end it any more.
	certain bool
	lost    bool
	done    promise
}

var (
	errRefused  = errors.New("connection refused")
	errTimeout  = errors.New("no answer")
	errBroken   = errors.New("connection broken")
	errServer   = errors.New("the server answered with an error")
	errChannels = errors.New("a replication channel is configured")
)

func (m *mysqld) running() bool { return m != nil && !m.dead }

// accepts is true while an ordinary client could commit.
func (m *mysqld) accepts() bool {
	return m.running() && m.serving && !m.doomed && !m.frozen && !m.host.frozen && !m.readOnly && !m.superReadOnly && !m.offline
}

func (m *mysqld) String() string { return m.pod.site.name + "/" + m.id }

// mysqlStatus is what the status query answers.
type mysqlStatus struct {
	server                                       int
	readOnly, superReadOnly, offline             bool
	executed, purged, retrieved                  history
	source                                       string
	channel, ioRunning, ioConnecting, sqlRunning bool
	ioErrno                                      int
	sqlError                                     string
	cloning, databases                           bool
	clone                                        cloneState
	clonesBegun                                  int
	lag                                          float64
	lagKnown                                     bool
}

func (s mysqlStatus) writable() bool { return !s.superReadOnly && !s.readOnly }

func (m *mysqld) status() mysqlStatus {
	v := m.vol
	s := mysqlStatus{server: v.server, readOnly: m.readOnly, superReadOnly: m.superReadOnly, offline: m.offline, executed: v.executed,
		purged: v.purged, source: v.source, channel: v.source != "", cloning: m.cloning, databases: v.databases, clone: v.clone, clonesBegun: v.clonesBegun}
	if s.channel {
		s.retrieved = v.retrieved
		s.ioRunning, s.ioConnecting = m.receiver && m.connected != nil, m.receiver && m.connected == nil
		s.sqlRunning, s.ioErrno, s.sqlError = m.applier, m.ioErrno, m.sqlError
		if s.ioRunning && m.applier {
			s.lagKnown = true
			if !v.executed.contains(v.retrieved) || !v.retrieved.union(v.executed).contains(m.connected.vol.executed) {
				s.lag = float64(m.connected.vol.executed.without(v.executed)) / 10
			}
		}
	}
	return s
}

// statement runs one statement on the server on behalf of a task of another process, which waits for it at most for d.
// A server that began a statement ends it, whether or not anybody waits.
func (m *mysqld) statement(t *task, d time.Duration, run func(st *task) error) error {
	if !m.running() || !m.serving {
		t.sleep(time.Millisecond)
		return errRefused
	}
	done := &promise{w: m.w}
	var result error
	m.spawn(func(st *task) {
		st.sleep(m.delay())
		result = run(st)
		done.fulfil()
	})
	m.onEnd(done)
	if !t.await(done, d) {
		return errTimeout
	}
	if m.dead && result == nil {
		return errBroken
	}
	return result
}

// quick runs a statement that waits for nothing inside the server.
func (m *mysqld) quick(t *task, d time.Duration, run func() error) error {
	if !m.running() || !m.serving {
		t.sleep(time.Millisecond)
		return errRefused
	}
	done := &promise{w: m.w}
	var result error
	m.after(m.delay(), func() {
		result = run()
		m.after(m.w.mostly(time.Millisecond, 300*time.Millisecond, 0.01)+m.slow/2, done.fulfil)
	})
	m.onEnd(done)
	if !t.await(done, d) {
		return errTimeout
	}
	if m.dead && result == nil {
		return errBroken
	}
	return result
}

// delay is how long a statement takes to begin.
func (m *mysqld) delay() time.Duration {
	d := m.w.between(200*time.Microsecond, 2*time.Millisecond) + m.slow + m.hang
	m.hang = 0
	if left := m.stuck - m.w.now; left > 0 {
		d += left
	}
	return d
}

// onEnd breaks the connections of those who wait when the process ends.
func (m *mysqld) onEnd(done *promise) {
	m.waits = slices.DeleteFunc(m.waits, func(f *promise) bool { return f.done })
	m.waits = append(m.waits, done)
}

// startMysqld starts a server on a pod's volume: fenced, offline, with no replication thread (my.cnf).
func (w *world) startMysqld(p *pod) {
	w.processes++
	m := &mysqld{process: process{w: w, host: p.host}, id: "m" + itoa(w.processes), pod: p, vol: p.vol,
		readOnly: true, superReadOnly: true, offline: true}
	m.frozen, m.startedAt = p.host.frozen, m.mono()
	p.mysqld = m
	if p.vol.clone == cloneRuns {
		p.vol.clone = cloneFailed
	}
	w.trace("%s starts", m)
	if p.site.failsToStart {
		m.after(w.between(100*time.Millisecond, 3*time.Second), func() {
			m.end()
			w.restartMysqld(p)
		})
		return
	}
	m.after(w.mostly(time.Second, 8*time.Second, 0.2), func() {
		m.serving = true
		w.touched()
		w.trace("%s serves, holds %v, relay log up to %v", m, m.vol.executed, m.vol.retrieved)
		m.replicate()
	})
}

// end kills the server: what was under way is broken off, and a commit that had reached the log is there after recovery,
// although nobody was told.
func (m *mysqld) end() {
	if m.dead {
		return
	}
	for _, c := range m.commits {
		if c.certain && !c.lost && !m.cloning && !m.vol.detached && m.w.chance(0.5) {
			m.vol.executed[m.vol.server]++
			m.w.truth.born(m.vol, m.tampered)
		}
	}
	m.commits = nil
	m.kill()
	m.w.trace("%s ended", m)
	m.w.touched()
	for _, f := range m.waits {
		f.fulfil()
	}
	m.waits = nil
}

// setOffline: ON ends the sessions of ordinary clients.
func (m *mysqld) setOffline(on bool) {
	m.offline = on
	if on {
		m.killSessions()
	}
	m.w.touched()
}

func (m *mysqld) killSessions() {
	left := m.commits[:0]
	for _, c := range m.commits {
		if c.certain {
			left = append(left, c)
			continue
		}
		c.lost = true
		c.done.fulfil()
	}
	m.commits = left
}

// setSuperReadOnly waits for the commits that are under way, for the lock wait at most.
func (m *mysqld) setSuperReadOnly(st *task, lockWait time.Duration) error {
	deadline := m.w.now + lockWait
	for len(m.commits) > 0 {
		left := deadline - m.w.now
		if left <= 0 || !st.await(&m.commits[0].done, left) {
			return errServer
		}
	}
	m.superReadOnly, m.readOnly, m.tampered, m.openEpoch = true, true, false, 0
	m.w.touched()
	return nil
}

// setReadOnlyOff clears super_read_only too, at once.
func (m *mysqld) setReadOnlyOff() {
	m.readOnly, m.superReadOnly = false, false
	m.w.touched()
}
