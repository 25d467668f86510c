// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// The sidecar's shell, re-enacted: sidecar/agent, function by function and under the same names. What decides is the real
// sidecar/fence.
//
//	look, enforce, release, climb, kill, gone                  sidecar/agent/enforce.go (and internal/mysql fence.go)
//	open, tryOpen, mayOpen, unmark, openWrites                 sidecar/agent/opening.go (and internal/mysql open_writes.go)
//	askAll, askOperator, askPeer, exchange, learn, keep        sidecar/agent/exchange.go
//	start, tick, watch, rearm (keepTime, alarm)                sidecar/agent/loop.go
//	put, push, report, peer                                    sidecar/agent/server.go

// Constants of sidecar/agent.
const (
	watchInterval   = 500 * time.Millisecond
	lookTimeout     = time.Second
	exchangeTimeout = time.Second
	openTimeout     = 1500 * time.Millisecond
	retryPause      = 100 * time.Millisecond
	goneTimeout     = 3 * time.Second
	gonePoll        = 20 * time.Millisecond
	reportLooks     = 3
	keepOutTimeout  = time.Second
	reportTimeout   = wire.ReportPatience * 6 / 10
	askSoonPause    = 500 * time.Millisecond
)

// sidecar is one run of the sidecar's process.
type sidecar struct {
	process
	pod    *pod
	boot   string
	state  fence.State
	status mysqlStatus

	right, saving, opening lock
	keepingOut             bool
	// marked is true if its volume may have the mark of an opening.
	marked bool
	asking map[string]bool
	// askedSoon is when a push last had the operator asked within an epoch.
	askedSoon time.Duration
	// alarm is when the next alarm is set for, in true time; zero if none is.
	alarm   time.Duration
	serving bool
	left    bool
	// silent and silentSince are since when MySQL was looked at in vain.
	silent      bool
	silentSince time.Duration
	// heardEpoch is the greatest epoch that it was rightly told of; the truth's, not the core's.
	heardEpoch int64
	// told is the lease that the last statement named, toldAt when it began to.
	told, toldAt time.Duration
	// guardedSince is when it began, or went on after it had stood still.
	guardedSince time.Duration
}

func (w *world) startSidecar(p *pod) {
	w.processes++
	s := &sidecar{process: process{w: w, host: p.host}, pod: p, boot: "b" + itoa(w.processes), asking: map[string]bool{}}
	s.frozen = p.host.frozen
	s.guardedSince = w.now
	s.heardEpoch = p.vol.kept.Statement.Epoch
	p.sidecar = s
	site := fence.Site{Namespace: namespace, Group: group, Name: p.site.name, Peers: slices.Sorted(maps.Keys(p.peers))}
	s.state = fence.Boot(site, fence.Limits{Lease: p.lease, Opening: openTimeout, Fence: w.policy.fenceTimeout}, p.vol.kept, s.now())
	if p.vol.opening {
		w.count("starts with an opening marked")
		s.state, s.marked = fence.Interrupted(s.state, p.vol.openingIn), true
	}
	w.trace("sidecar %s of %s starts, epoch %d", s.boot, p, p.vol.kept.Statement.Epoch)
	s.spawn(func(t *task) {
		s.look(t)
		s.enforce(t)
		s.serving = true
		s.spawn(s.tick)
		s.spawn(s.watch)
	})
}

func (s *sidecar) now() fence.Instant { return fence.Instant{Mono: s.mono(), Wall: s.wall()} }

// update replaces the state and moves the alarm.
func (s *sidecar) update(next fence.State) {
	s.become(next)
	s.rearm()
}

// become replaces the state and tells the supervisor in the same moment.
func (s *sidecar) become(next fence.State) {
	s.state = next
	s.pod.tell(fence.Watch(next, s.now()))
}

// rearm is keepTime and alarm: at the moment at which time alone changes the decision, fence.
func (s *sidecar) rearm() {
	left, ok := fence.NextChange(s.state, s.now())
	if !ok {
		return
	}
	left = max(0, left) + time.Microsecond // two clocks never agree on the last digits
	at := s.w.now + s.host.clock.real(left)
	if s.alarm != 0 && s.alarm <= at {
		return // rings earlier and looks again then
	}
	s.alarm = at
	s.after(left, func() {
		if s.alarm != at {
			return
		}
		s.alarm = 0
		if left, ok := fence.NextChange(s.state, s.now()); !ok || left > 0 {
			s.rearm()
			return
		}
		s.spawn(func(t *task) {
			s.enforce(t)
			t.sleep(retryPause)
			s.rearm()
		})
	})
}

func (s *sidecar) tick(t *task) {
	for {
		s.askAll()
		t.sleep(s.w.policy.peerCheck)
	}
}

func (s *sidecar) watch(t *task) {
	for {
		s.look(t)
		switch d := s.enforce(t); d.Do {
		case fence.Ask:
			s.spawn(s.askOperatorOnce)
		case fence.Release:
			s.release(t)
		case fence.KeepOut:
			s.keepOut(t)
		case fence.LetIn:
			s.letIn(t)
		case fence.Nothing, fence.Fence:
		}
		t.sleep(watchInterval)
	}
}

// look looks at MySQL and takes it in, unless it overlapped a change.
func (s *sidecar) look(t *task) bool {
	change := s.state.Change()
	m := s.pod.mysqld
	facts := fence.Facts{}
	if m.running() {
		facts.Process = m.id
	}
	var status mysqlStatus
	err := errRefused
	if m != nil {
		err = m.quick(t, lookTimeout, func() error { status = m.status(); return nil })
	}
	facts.Answered = err == nil
	if facts.Answered {
		facts.SuperReadOnly, facts.Writable, facts.Offline = status.superReadOnly, status.writable(), status.offline
		facts.Replicates, facts.Cloning = status.channel, status.cloning
	}
	facts.Watched = true
	facts.Running = facts.Process != "" || facts.Answered || s.pod.vol.lockedBy(s.pod)
	next, taken := fence.Observe(s.state, facts, change)
	if taken {
		s.status = status
		if facts.Answered || !s.silent {
			s.silent, s.silentSince = !facts.Answered, s.mono()
		}
		s.update(next)
	}
	return taken
}

func (s *sidecar) enforce(t *task) fence.Decision {
	if d := fence.Decide(s.state, s.now()); d.Do != fence.Fence {
		return d
	}
	s.right.take(t, forever)
	defer s.right.release()
	d := fence.Decide(s.state, s.now())
	if d.Do == fence.Fence {
		s.fence(t, d)
		d = fence.Decide(s.state, s.now())
	}
	return d
}

func (s *sidecar) release(t *task) {
	s.right.take(t, forever)
	defer s.right.release()
	if fence.Decide(s.state, s.now()).Do != fence.Release {
		return
	}
	s.update(fence.Fencing(s.state))
	_, err := s.fenceBySQL(t, s.w.now+s.w.policy.fenceTimeout)
	s.update(fence.Fenced(s.state, fence.LastFence{}, err == nil))
}

// keepOut is sidecar/agent/keepout.go, without looks for prepared XA transactions: there are none here.
func (s *sidecar) keepOut(t *task) {
	if s.keepingOut {
		return
	}
	s.keepingOut = true
	defer func() { s.keepingOut = false }()
	s.right.take(t, forever)
	defer s.right.release()
	if fence.Decide(s.state, s.now()).Do != fence.KeepOut {
		return
	}
	s.update(fence.Fencing(s.state))
	err := errRefused
	if m := s.pod.mysqld; m != nil {
		err = m.quick(t, keepOutTimeout, func() error { m.setOffline(true); m.killSessions(); return nil })
	}
	s.update(fence.KeptOut(s.state, err == nil))
}

func (s *sidecar) letIn(t *task) {
	s.right.take(t, forever)
	defer s.right.release()
	if fence.Decide(s.state, s.now()).Do != fence.LetIn {
		return
	}
	s.w.count("clients let in after a late statement")
	s.update(fence.Fencing(s.state))
	err := errRefused
	if m := s.pod.mysqld; m != nil {
		err = m.quick(t, keepOutTimeout, func() error { m.setOffline(false); return nil })
	}
	s.update(fence.LetClientsIn(s.state, err == nil))
}

func (s *sidecar) fence(t *task, d fence.Decision) {
	s.w.count("fence " + string(d.Why))
	s.w.trace("sidecar of %s fences: %s %s, epoch %d", s.pod, d.Cause, d.Why, s.state.Newest().Epoch)
	s.update(fence.Fencing(s.state))
	stage, err := s.climb(t, d.Kill, s.state.Seen().Process)
	s.update(fence.Fenced(s.state, fence.LastFence{Cause: d.Cause, Stage: stage}, err == nil))
	if err == nil {
		s.w.count("fenced at " + string(stage))
	} else {
		s.w.count("fence without proof")
	}
	s.w.trace("sidecar of %s fenced: stage %q, error %v", s.pod, stage, err)
}

func (s *sidecar) climb(t *task, kill bool, process string) (wire.FenceStage, error) {
	limit := s.w.policy.fenceTimeout
	deadline := s.w.now + s.host.clock.real(limit-limit/8)
	for !kill && s.w.now < deadline {
		if s.gone(process) {
			return wire.FenceNone, nil
		}
		if stage, err := s.fenceBySQL(t, deadline); err == nil {
			return stage, nil
		}
		t.sleep(retryPause)
	}
	return s.killServer(t, process)
}

func (s *sidecar) killServer(t *task, process string) (wire.FenceStage, error) {
	if m := s.pod.mysqld; m.running() && (process == "" || m.id == process) {
		s.w.killMysqld(m)
	}
	deadline := s.w.now + s.host.clock.real(goneTimeout)
	for !s.gone(process) {
		if s.w.now >= deadline {
			return "", errTimeout
		}
		t.sleep(gonePoll)
	}
	return wire.FenceKillServer, nil
}

// gone is true if the mysqld that was seen no longer exists.
func (s *sidecar) gone(process string) bool {
	m := s.pod.mysqld
	if m.running() && (process == "" || m.id == process) {
		return false
	}
	return m.running() || !s.pod.vol.lockedBy(s.pod)
}

// fenceBySQL is internal/mysql Fence, on the sidecar's own connection.
func (s *sidecar) fenceBySQL(t *task, deadline time.Duration) (wire.FenceStage, error) {
	m := s.pod.mysqld
	if m == nil {
		t.sleep(time.Millisecond)
		return "", errRefused
	}
	left := func() time.Duration { return max(0, deadline-s.w.now) }
	var before mysqlStatus
	if err := m.quick(t, left(), func() error { before = m.status(); return nil }); err != nil {
		return "", err
	}
	stage := wire.FenceNone
	if !before.superReadOnly || !before.readOnly {
		stage = wire.FenceReadOnly
		_ = m.quick(t, left(), func() error { m.setOffline(true); return nil })
		for {
			err := m.statement(t, left(), func(st *task) error { return m.setSuperReadOnly(st, time.Second) })
			if err == nil {
				break
			}
			if !errors.Is(err, errServer) {
				return "", err
			}
			stage = wire.FenceKillSessions
			if err := m.quick(t, left(), func() error { m.killSessions(); return nil }); err != nil {
				return "", err
			}
		}
		if err := m.quick(t, left(), func() error { before = m.status(); return nil }); err != nil {
			return "", err
		}
		if !before.superReadOnly {
			return "", errServer
		}
	}
	if before.offline {
		_ = m.quick(t, left(), func() error { m.setOffline(false); return nil })
	}
	return stage, nil
}
