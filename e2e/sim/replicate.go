// SPDX-License-Identifier: Apache-2.0

package main

import "time"

const (
	replicateEvery = 150 * time.Millisecond
	// errnoPurged is what a source says that cannot serve a replica any more.
	errnoPurged = 1236
)

// replicate moves transactions along: from the source into the relay log, and from there into the data.
func (m *mysqld) replicate() {
	if m.vol.source != "" && !m.cloning && m.stuck <= m.w.now && !m.vol.stalled {
		m.receive()
		m.apply()
	}
	m.after(m.w.between(replicateEvery/2, replicateEvery), m.replicate)
}

func (m *mysqld) receive() {
	m.connected = nil
	if !m.receiver {
		return
	}
	source := m.w.serverOf(m.vol.source)
	if !source.running() || source == m || !source.serving || source.frozen || source.cloning || source.stuck > m.w.now ||
		!m.w.reaches(m.host, source.host) || !m.w.reaches(source.host, m.host) {
		return
	}
	have := m.vol.executed.union(m.vol.retrieved)
	if !have.contains(source.vol.purged) || have[source.vol.server] > source.vol.executed[source.vol.server] {
		m.receiver, m.ioErrno = false, errnoPurged
		return
	}
	m.connected, m.ioErrno = source, 0
	m.vol.retrieved = advance(m.vol.retrieved.union(have), source.vol.executed, m.trickle, m.w)
}

func (m *mysqld) apply() {
	if m.applier {
		m.vol.executed = advance(m.vol.executed, m.vol.retrieved, m.trickle, m.w)
	}
}

// advance takes from what there is, up to a bound; 0 is no bound.
func advance(have, from history, bound int32, w *world) history {
	if bound < 0 {
		return have
	}
	if bound == 0 && w.chance(0.9) {
		return have.union(from)
	}
	budget := bound
	if bound == 0 {
		budget = int32(w.rnd.IntN(3))
	}
	for _, server := range w.order {
		if n := min(budget, from[server]-have[server]); n > 0 {
			have[server] += n
			budget -= n
		}
	}
	return have
}

// stopReceiver ends the receiver: the retrieved set grows no more.
func (m *mysqld) stopReceiver() { m.receiver, m.connected = false, nil }

func (m *mysqld) startReplica() {
	if m.vol.source != "" {
		m.receiver, m.applier = true, true
	}
}

// follow is internal/mysql.follow: it changes nothing if the server follows already, and starts what stands.
func (m *mysqld) follow(source string) {
	if m.vol.source != source {
		m.w.truth.dropsRelayLog(m, source)
		m.w.truth.attached(m, source)
		m.vol.retrieved = history{}
		m.vol.source, m.ioErrno, m.sqlError = source, 0, ""
	}
	m.startReplica()
}

// resetReplica is STOP REPLICA, RESET REPLICA ALL.
func (m *mysqld) resetReplica() {
	if m.vol.source == "" {
		return
	}
	m.w.truth.dropsRelayLog(m, "")
	m.vol.source, m.vol.retrieved, m.receiver, m.applier, m.connected = "", history{}, false, false, nil
}

// write is one client's attempt to commit on a server; it is made at every site all the time.
func (w *world) write(m *mysqld) {
	if !m.accepts() || m.cloning {
		return
	}
	c := &commit{certain: w.chance(0.5), done: promise{w: w}}
	m.commits = append(m.commits, c)
	took := w.mostly(8*time.Millisecond, 60*time.Millisecond, 0.05)
	if w.chance(0.01) {
		took = w.between(100*time.Millisecond, 4*time.Second) // LOCK TABLES, a slow disk, a large transaction
	}
	m.after(took, func() { m.finish(c) })
}

func (m *mysqld) finish(c *commit) {
	if c.lost || m.doomed {
		return
	}
	if m.vol.stalled {
		m.after(time.Second, func() { m.finish(c) })
		return
	}
	for i, other := range m.commits {
		if other == c {
			m.commits = append(m.commits[:i], m.commits[i+1:]...)
			break
		}
	}
	if m.vol.detached {
		c.done.fulfil() // the client gets an error: its write is not on the volume
		return
	}
	m.vol.executed[m.vol.server]++
	m.w.truth.born(m.vol, m.tampered)
	m.w.truth.committed(m)
	c.done.fulfil()
}

// writer lets a client write to a site, whatever the site is.
func (w *world) writer(s *site) {
	for _, p := range s.pods {
		if p.mysqld != nil {
			w.write(p.mysqld)
		}
	}
	w.after(w.between(50*time.Millisecond, 400*time.Millisecond), func() { w.writer(s) })
}
