// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

var (
	errOvertaken = errors.New("status was changed by somebody else")
	errConflict  = errors.New("the object was changed meanwhile")
	errNoPod     = errors.New("no pod")
	errOldLook   = errors.New("the look that it rests on is old")
	errNotOpen   = errors.New("the sidecar did not open")
)

// Of monitor/perform.go.
const (
	sqlTimeout      = 3 * time.Second
	announceTimeout = time.Second
	applyTimeout    = 500 * time.Millisecond
	lookValidity    = 5 * time.Second
)

// perform is monitor/perform.go: in order, and the first failure ends the pass; replicas do not stop each other.
func (l *loop) perform(t *task, s failover.Snapshot, d failover.Decision) error {
	var late error
	for _, effect := range d.Effects {
		if l.r.wall().Sub(l.looked) > lookValidity {
			return errOldLook
		}
		l.r.w.countEffect(effect)
		l.r.w.truth.performs(s, d, effect)
		err := l.one(t, s, effect)
		if err == nil {
			continue
		}
		if _, follow := effect.(failover.Follow); !follow {
			return err
		}
		late = err
	}
	return late
}

func (l *loop) one(t *task, s failover.Snapshot, effect failover.Effect) error {
	switch e := effect.(type) {
	case failover.Announce:
		l.announce(t, s, e)
		return nil
	case failover.Handover:
		l.handover(t, s, e)
		return nil
	case failover.Apply:
		return l.onSite(t, e.Site, func(m *mysqld, st *task) error { m.waitFor(st, e.Set, applyTimeout); return nil })
	case failover.Drain:
		site, _ := s.Site(e.Site)
		return l.drain(t, site)
	case failover.Detach:
		return l.onSite(t, e.Site, func(m *mysqld, _ *task) error { m.resetReplica(); return nil })
	case failover.Select:
		l.selectPrimary(t, e.Site)
		return nil
	case failover.Open:
		return l.open(t, e.Site)
	case failover.Follow:
		return l.onSite(t, e.Site, func(m *mysqld, _ *task) error {
			if m.vol.source != e.Source && !m.superReadOnly {
				return errServer // never given a source while it accepts writes
			}
			m.follow(e.Source)
			return nil
		})
	}
	panic(fmt.Sprintf("the simulation does not know the effect %T", effect))
}

func (l *loop) announce(t *task, s failover.Snapshot, e failover.Announce) {
	w := l.r.w
	var all []*promise
	await := func(site string, done *promise) {
		if seen, _ := s.Site(site); seen.Reachable() {
			all = append(all, done)
		}
	}
	for _, site := range w.sites {
		if pods := l.podsOf()[site.name]; len(pods) > 0 && pods[0].hasIP && l.authority.Statement().Epoch > 0 {
			done := &promise{w: w}
			l.push(pods[0].pod, done, func(wire.Report) {})
			await(site.name, done)
		}
	}
	epoch := l.authority.Statement().Epoch
	for _, site := range e.Fence {
		if k := l.links[site]; k != nil && !k.fencing {
			k.fencing = true
			done := &promise{w: w}
			await(site, done)
			l.r.spawn(func(ft *task) {
				l.fence(ft, site, k, epoch)
				k.fencing = false
				done.fulfil()
			})
		}
	}
	if target, known := s.Site(e.Drain); known && target.MySQL.Direct && target.MySQL.ReplicaHost != "" {
		done := &promise{w: w}
		all = append(all, done)
		l.r.spawn(func(dt *task) {
			_ = l.drain(dt, target)
			done.fulfil()
		})
	}
	deadline := w.now + l.r.host.clock.real(announceTimeout)
	for _, f := range all {
		t.await(f, max(0, l.r.host.clock.local(deadline-w.now)))
	}
}

// handover is monitor/handover.go: the old active site is fenced and waited for, all else goes on beside the loop.
func (l *loop) handover(t *task, _ failover.Snapshot, e failover.Handover) {
	pods := l.podsOf()
	fenced := &promise{w: l.r.w}
	for _, s := range l.r.w.sites {
		if len(pods[s.name]) == 0 || !pods[s.name][0].hasIP {
			continue
		}
		p := pods[s.name][0].pod
		if s.name != e.From {
			l.push(p, &promise{w: l.r.w}, func(wire.Report) {})
			continue
		}
		l.r.spawn(func(ft *task) {
			l.fenceAndApply(ft, p, e)
			fenced.fulfil()
		})
	}
	t.await(fenced, announceTimeout)
}

// detachBeside is monitor/handover.go: the one effect that need not wait for the write of the passed gate.
func (l *loop) detachBeside(d failover.Decision) *promise {
	done := &promise{w: l.r.w, done: true}
	if d.Verdict != failover.VerdictPromote || d.Status.Transition.Kind != v1alpha1.FailoverPlanned {
		return done
	}
	for _, effect := range d.Effects {
		if e, is := effect.(failover.Detach); is && e.Site != d.Status.Transition.From {
			done.done = false
			l.r.spawn(func(t *task) {
				_ = l.onSite(t, e.Site, func(m *mysqld, _ *task) error { m.resetReplica(); return nil })
				done.fulfil()
			})
		}
	}
	return done
}

func (l *loop) fenceAndApply(t *task, p *pod, e failover.Handover) {
	done := &promise{w: l.r.w}
	var report wire.Report
	l.push(p, done, func(r wire.Report) { report = r })
	if !t.await(done, l.r.w.policy.fenceTimeout+time.Second) || !report.Answered || !report.FencedUnder(l.authority.Statement().Epoch) {
		return
	}
	set, err := gtid.Parse(report.GTIDExecuted)
	if err != nil {
		return
	}
	_ = l.onSite(t, e.To, func(m *mysqld, st *task) error { m.waitFor(st, set, applyTimeout); return nil })
}

// fence sets a site read-only by the operator's own connection and reads it back.
func (l *loop) fence(t *task, site string, k *link, epoch int64) {
	p := k.pod
	if p == nil {
		return
	}
	began := l.r.wall()
	deadline := l.r.w.now + l.r.w.policy.fenceTimeout + time.Second
	left := func() time.Duration { return max(0, deadline-l.r.w.now) }
	var before mysqlStatus
	read := func(m *mysqld, _ *task) error { before = m.status(); return nil }
	if l.sql(t, p, left(), read) != nil {
		return
	}
	if !before.superReadOnly || !before.readOnly {
		_ = l.sql(t, p, left(), func(m *mysqld, _ *task) error { m.setOffline(true); return nil })
		for {
			err := l.sql(t, p, left(), func(m *mysqld, st *task) error { return m.setSuperReadOnly(st, time.Second) })
			if err == nil {
				break
			}
			if !errors.Is(err, errServer) || l.sql(t, p, left(), func(m *mysqld, _ *task) error { m.killSessions(); return nil }) != nil {
				return
			}
		}
		if l.sql(t, p, left(), read) != nil || !before.superReadOnly {
			return
		}
	}
	if before.offline {
		_ = l.sql(t, p, left(), func(m *mysqld, _ *task) error { m.setOffline(false); return nil })
	}
	if k.pod == p {
		l.fenced[site] = failover.SQLFence{Epoch: epoch, At: began, PodUID: p.uid}
	}
}

// takeFences moves what was fenced beside the loop into its memory.
func (l *loop) takeFences() {
	for _, s := range l.r.w.sites {
		if proof, ok := l.fenced[s.name]; ok {
			l.memory = l.memory.With(s.name, func(is *failover.SiteMemory) { is.FencedBySQL = proof })
			delete(l.fenced, s.name)
		}
	}
}

func (l *loop) drain(t *task, site failover.Site) error {
	deadline := l.r.w.now + l.r.host.clock.real(sqlTimeout)
	left := func() time.Duration { return max(0, deadline-l.r.w.now) }
	k := l.links[site.Name]
	if k == nil || k.pod == nil {
		return errNoPod
	}
	p := k.pod // the next poll may find another
	steps := []func(*mysqld, *task) error{
		func(m *mysqld, st *task) error {
			if m.receiver && m.connected == nil {
				st.sleep(2 * time.Second) // a receiver that hangs in connecting is signalled once, and again after that
			}
			m.stopReceiver()
			return nil
		},
		func(m *mysqld, _ *task) error {
			if m.vol.source != "" {
				m.applier = true
			}
			return nil
		},
		func(m *mysqld, st *task) error {
			m.waitFor(st, site.MySQL.Retrieved, time.Second)
			return nil
		},
	}
	for _, step := range steps {
		if err := l.sql(t, p, left(), step); err != nil {
			return err
		}
	}
	return nil
}

// waitFor is WAIT_FOR_EXECUTED_GTID_SET of a set that the core named.
func (m *mysqld) waitFor(st *task, set gtid.Set, d time.Duration) {
	for deadline := m.w.now + d; m.w.now < deadline && !m.w.sets.of(m.vol.executed).set.Contains(set); {
		st.sleep(20 * time.Millisecond)
	}
}

func (l *loop) onSite(t *task, site string, run func(*mysqld, *task) error) error {
	k := l.links[site]
	if k == nil || k.pod == nil {
		return errNoPod
	}
	return l.sql(t, k.pod, sqlTimeout, run)
}

// sql is one statement of the operator on a site. A server that began a statement ends it, also if its client has gone.
func (l *loop) sql(t *task, p *pod, d time.Duration, run func(*mysqld, *task) error) error {
	err := errRefused
	answered := t.ask(p.host, d, func(reply func()) {
		m := p.mysqld
		if !m.running() || !m.serving {
			reply()
			return
		}
		m.spawn(func(st *task) {
			st.sleep(m.delay())
			err = run(m, st)
			reply()
		})
	})
	if !answered {
		return errTimeout
	}
	return err
}

func (l *loop) open(t *task, site string) error {
	pods := l.podsOf()[site]
	if len(pods) == 0 || !pods[0].hasIP {
		return errNoPod
	}
	done := &promise{w: l.r.w}
	opened := false
	l.push(pods[0].pod, done, func(r wire.Report) { opened = r.Answered && r.Writable })
	if !t.await(done, sqlTimeout) || !opened {
		return errNotOpen
	}
	return nil
}

// selectPrimary never delays the database by more than one call.
func (l *loop) selectPrimary(t *task, site string) {
	if l.chosen != site && l.r.w.api.call(t, func() {}) {
		l.chosen = site
	}
}
