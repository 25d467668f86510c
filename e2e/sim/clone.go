// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"
)

// The jobs that bring the group's data to a site, re-enacted from operator/clone: provisioner.go (run, look, read),
// provision.go (examine) and provision_clone.go (clone, resume, perform, watch, donorWatch, afterClone).

const (
	windowMargin  = 2 * time.Second
	donorPatience = 30 * time.Second
	returnPoll    = time.Second
	returnTimeout = 20 * time.Minute
	queryTimeout  = 5 * time.Second
)

// verdicts of examine.
const (
	waits = iota
	adopts
	clones
	reclones
	refuses
)

var (
	errNotNow = errors.New("the facts do not allow it now")
	errGaveUp = errors.New("the server gave the clone up")
)

// provisioning is one job.
type provisioning struct {
	r    *operatorRun
	site *site
	j    *job
}

// sight is what a look at a site and at the active site showed.
type sight struct {
	verdict          int
	source, volume   string
	recipient, donor *pod
	here, active     mysqlStatus
	epoch            int64
}

// bring is provisioner.run.
func (r *operatorRun) bring(t *task, p *provisioning) outcome {
	first, err := p.look(t)
	switch {
	case err != nil:
		return outcome{}
	case first.here.clone == cloneRuns:
		return p.resume(t, first)
	case first.verdict != clones && first.verdict != reclones:
		return outcome{verdict: first.verdict, volume: first.volume}
	}
	r.work.donor.take(t, forever)
	defer r.work.donor.release()
	again, err := p.look(t)
	if err != nil || again.verdict != first.verdict || again.volume != first.volume || again.epoch != first.epoch {
		return outcome{}
	}
	p.j.busy = true
	r.w.count("clone")
	return p.settle(t, p.perform(t, again))
}

// look reads the site, then the active site, and examines them.
func (p *provisioning) look(t *task) (sight, error) {
	f := p.r.loop.facts
	if !f.provisionable(p.site.name) {
		return sight{}, errNotNow
	}
	seen, _ := f.snapshot.Site(p.site.name)
	s := sight{source: f.snapshot.Status.ActiveSite, epoch: f.snapshot.Status.Epoch, volume: seen.Sidecar.Report.VolumeID, recipient: f.pods[p.site.name]}
	if err := p.read(t, &s); err != nil {
		return sight{}, err
	}
	s.verdict = examine(s.here, s.active)
	return s, nil
}

func (p *provisioning) read(t *task, s *sight) error {
	if err := p.on(t, s.recipient, func(m *mysqld) error { s.here = m.status(); return nil }); err != nil {
		return err
	}
	f := p.r.loop.facts
	if f.snapshot.Status.ActiveSite != s.source || f.snapshot.Status.Epoch != s.epoch || !f.open {
		return errNotNow
	}
	if s.donor = f.pods[s.source]; s.donor == nil {
		return errNotNow
	}
	return p.on(t, s.donor, func(m *mysqld) error { s.active = m.status(); return nil })
}

// examine is operator/clone/provision.go's examine, without orders.
func examine(here, active mysqlStatus) int {
	holds := here.executed.union(here.retrieved)
	again := clones
	if here.databases {
		again = reclones
	}
	switch {
	case !active.writable(), here.writable(), here.clone == cloneRuns, here.cloning:
		return waits
	case !active.executed.contains(holds):
		return refuses
	case here.clone == cloneFailed, !holds.contains(active.purged):
		return again
	case here.clone == cloneDone || here.executed != (history{}):
		return adopts
	case here.databases:
		return refuses
	}
	return clones
}

// on runs one statement on the server of a pod.
func (p *provisioning) on(t *task, at *pod, run func(*mysqld) error) error {
	if at == nil {
		return errNoPod
	}
	return p.r.loop.sql(t, at, queryTimeout, func(m *mysqld, _ *task) error { return run(m) })
}

// resume waits for a clone that an earlier operator began.
func (p *provisioning) resume(t *task, s sight) outcome {
	p.j.busy = true
	if !s.here.superReadOnly {
		p.j.window = true
	}
	return p.settle(t, p.watch(t, s, nil))
}

func (p *provisioning) settle(t *task, err error) outcome {
	if err != nil {
		p.r.w.trace("the clone of %s failed: %v", p.site.name, err)
		return outcome{failed: true}
	}
	for range 30 {
		if s, err := p.look(t); err == nil && s.verdict != waits {
			return outcome{verdict: s.verdict, volume: s.volume}
		}
		t.sleep(returnPoll)
	}
	return outcome{}
}

// perform carries the clone out, inside a window if the site has databases.
func (p *provisioning) perform(t *task, s sight) error {
	w, inWindow := p.r.w, s.verdict == reclones
	if inWindow {
		p.j.window = true
		defer func() { p.j.window = false }()
		t.sleep(w.policy.poll + w.policy.peerCheck + windowMargin)
		if f := p.r.loop.facts; f.snapshot.Status.ActiveSite != s.source || f.snapshot.Status.Epoch != s.epoch || !f.open {
			return errNotNow
		}
		if err := p.on(t, s.recipient, func(m *mysqld) error { m.beginWindow(); return nil }); err != nil {
			return err
		}
	}
	if !p.unchanged(t, s) {
		return p.closeWindow(t, s, inWindow, errNotNow)
	}
	if inWindow || s.here.channel {
		stop := func(m *mysqld) error { m.receiver, m.applier, m.connected = false, false, nil; return nil }
		if err := p.on(t, s.recipient, stop); err != nil || !p.unchanged(t, s) {
			return p.closeWindow(t, s, inWindow, errNotNow)
		}
		if err := p.on(t, s.recipient, func(m *mysqld) error { m.dropForClone(); return nil }); err != nil {
			return p.closeWindow(t, s, inWindow, err)
		}
	}
	err := p.watch(t, s, p.begin(s))
	return p.closeWindow(t, s, inWindow && errors.Is(err, errGaveUp), err)
}

// unchanged looks a last time.
func (p *provisioning) unchanged(t *task, s sight) bool {
	now := sight{source: s.source, epoch: s.epoch, recipient: s.recipient}
	err := p.read(t, &now)
	return err == nil && now.donor == s.donor && examine(now.here, now.active) == s.verdict
}

// closeWindow is provisioner.close.
func (p *provisioning) closeWindow(t *task, s sight, open bool, err error) error {
	if open {
		_ = p.r.loop.sql(t, s.recipient, queryTimeout, func(m *mysqld, st *task) error {
			if err := m.setSuperReadOnly(st, time.Second); err != nil {
				return err
			}
			m.setOffline(false)
			return nil
		})
	}
	return err
}

// cloning is the statement of a clone: err is nil if nobody knows, or it is done.
type cloning struct {
	over promise
	err  error
}

// begin sends CLONE INSTANCE, which is carried out although nobody may wait any more.
func (p *provisioning) begin(s sight) *cloning {
	c := &cloning{}
	c.over.w = p.r.w
	at := s.recipient.mysqld
	answered, gaveUp := false, false
	end := func() {
		if gaveUp && !c.over.done {
			c.err = errGaveUp
		}
		c.over.fulfil()
	}
	p.r.spawn(func(t *task) {
		err := p.r.loop.sql(t, s.recipient, forever, func(m *mysqld, st *task) error {
			err := m.cloneFrom(st, s.donor)
			answered, gaveUp = true, err != nil
			return err
		})
		gaveUp = gaveUp || err != nil // also one that nobody listened to
		end()
	})
	p.r.spawn(func(t *task) {
		for lost := 0; !c.over.done; {
			t.sleep(keepAlive)
			there := p.r.w.reaches(p.r.host, s.recipient.host) && p.r.w.reaches(s.recipient.host, p.r.host)
			if lost++; there {
				lost = 0
			}
			if there && (answered || !at.running()) || lost > keepAliveProbes {
				end() // an answer that was lost on the way is sent again; without one nobody knows how it went
			}
		}
	})
	return c
}

// TCP's keepalive, as Go sets it: a connection to a server that is gone ends after a while.
const (
	keepAlive       = 15 * time.Second
	keepAliveProbes = 9
)

// donorWatch notices when the source of a clone is no longer the open active site.
type donorWatch struct {
	source string
	closed time.Duration
}

func (p *provisioning) watcher(source string) *donorWatch { return &donorWatch{source: source} }

func (d *donorWatch) look(f *facts, now time.Duration) string {
	switch {
	case f.snapshot.Status.ActiveSite != d.source:
		return "another site is active now"
	case f.open:
		d.closed = 0
	case d.closed == 0:
		d.closed = now
	case now-d.closed >= donorPatience:
		return "it is not open"
	}
	return ""
}

// watch waits until a clone is over and the site is back.
func (p *provisioning) watch(t *task, s sight, c *cloning) error {
	donor := p.watcher(s.source)
	deadline := t.p.mono() + returnTimeout
	for t.p.mono() < deadline {
		if c == nil {
			t.sleep(returnPoll)
		} else if t.await(&c.over, returnPoll) {
			if c.err != nil {
				return c.err
			}
			p.j.window = false
			c = nil
		}
		var now mysqlStatus
		if p.on(t, p.r.loop.facts.pods[p.site.name], func(m *mysqld) error { now = m.status(); return nil }) != nil {
			continue
		}
		if now.clone == cloneRuns {
			deadline = t.p.mono() + returnTimeout
			if donor.look(p.r.loop.facts, t.p.mono()) != "" {
				_ = p.on(t, p.r.loop.facts.pods[p.site.name], func(m *mysqld) error { m.cancelClone(); return nil })
			}
			continue
		}
		switch {
		case c != nil:
		case now.clone != cloneDone:
			return errors.New("the clone ended half-way")
		case s.here.clone != cloneRuns && now.clonesBegun == s.here.clonesBegun:
			return errors.New("the clone did not begin")
		case !now.executed.contains(s.active.executed):
			return errors.New("the site lacks transactions")
		default:
			return nil
		}
	}
	return errTimeout
}

func (m *mysqld) beginWindow() {
	m.setOffline(true)
	m.superReadOnly = false
	m.w.touched()
	if m.w.chance(0.1) {
		m.w.after(m.w.between(0, 3*time.Second), func() { m.w.letClientsIn(m) })
	}
}

// dropForClone is DropReplication before a clone: what is in the relay log was judged with all that the site holds.
func (m *mysqld) dropForClone() {
	m.vol.source, m.receiver, m.applier, m.connected = "", false, false, nil
}

// cloneFrom is CLONE INSTANCE: it drops what is there first and ends in a restart, or half-way.
func (m *mysqld) cloneFrom(st *task, at *pod) error {
	donor := at.mysqld
	if m.cloning || !donor.running() || !donor.serving || donor.frozen || !m.w.reaches(donor.host, m.host) || !m.w.reaches(m.host, donor.host) {
		return errServer
	}
	if m.superReadOnly && m.vol.databases {
		return errServer // it has databases, and no window is open
	}
	if m.w.truth.cloneWouldDestroy(m, donor) {
		return errServer
	}
	m.w.trace("%s is cloned from %s", m, donor)
	v := m.vol
	m.cloning, m.receiver, m.applier, m.connected = true, false, false, nil
	v.clonesBegun++
	v.clone, v.executed, v.retrieved, v.purged, v.source = cloneRuns, history{}, history{}, history{}, ""
	st.sleep(m.w.mostly(8*time.Second, 30*time.Second, 0.3))
	m.cloning = false
	if v.clone != cloneRuns {
		return errServer // it was cancelled
	}
	v.clone = cloneFailed
	if !donor.running() || !donor.serving || !m.w.reaches(donor.host, m.host) || !m.w.reaches(m.host, donor.host) {
		return errServer
	}
	v.clone, v.databases = cloneDone, true
	v.executed, v.purged = donor.vol.executed, donor.vol.executed
	v.tables, v.withRows = donor.vol.tables, 0 // as after an order that gave them up
	m.w.truth.cloned(m)
	p := m.pod
	m.w.at(m.w.now, func() { m.end(); m.w.restartMysqld(p) })
	return nil
}

// cancelClone ends a clone that is received: the server stays up, without its data.
func (m *mysqld) cancelClone() {
	if m.vol.clone == cloneRuns && m.cloning {
		m.vol.clone, m.cloning = cloneFailed, false
		m.w.count("clone cancelled")
	}
}
