// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

func (s *sidecar) askAll() {
	s.spawn(s.askOperatorOnce)
	for _, peer := range s.w.sites {
		if peer != s.pod.site && s.pod.knows(peer) {
			s.once(peer.name, func(done func()) { s.askPeer(peer, done) })
		}
	}
}

func (s *sidecar) once(target string, ask func(done func())) {
	if !s.asking[target] {
		s.asking[target] = true
		ask(func() { delete(s.asking, target) })
	}
}

func (s *sidecar) askOperatorOnce(t *task) {
	s.once("operator", func(done func()) {
		s.askOperator(t, done)
	})
}

// askOperator asks with a fresh nonce, takes the answer in, and opens writes if the answer says so. It calls heard once the next question
// may be sent.
func (s *sidecar) askOperator(t *task, heard func()) fence.Refusal {
	w := fence.Word{Origin: fence.Operator, Nonce: s.w.nonce(), SentAt: s.mono()}
	var signed wire.Signed
	target := s.w.anyOperator()
	if s.w.replaying && s.w.chance(0.3) {
		return s.takeAnswer(t, w, s.w.meddle(s, s.w.sign(s.state.Newest()), w.Nonce), heard)
	}
	answered := t.ask(target.host, exchangeTimeout, func(reply func()) {
		run := target.run
		if run == nil {
			return
		}
		run.do(func() {
			if signed = run.answer(wire.Ask{Namespace: namespace, Group: group, Site: s.pod.site.name, Pod: s.pod.uid, Nonce: w.Nonce}); signed == "" {
				return
			}
			signed = s.w.meddle(s, signed, w.Nonce)
			reply()
		})
	})
	if !answered || signed == "" {
		heard()
		return fence.Refusal{Reason: fence.NotFromOperator, Message: "ask operator: no answer"}
	}
	return s.takeAnswer(t, w, signed, heard)
}

// takeAnswer is the rest of askOperator: what the operator's answer leads to.
func (s *sidecar) takeAnswer(t *task, w fence.Word, signed wire.Signed, heard func()) fence.Refusal {
	w.Signed, w.Statement = signed, s.w.verify(signed)
	if w.Statement.Epoch == 0 {
		heard()
		return fence.Refusal{Reason: fence.NoStatement}
	}
	adoption, kept := s.learn(t, w)
	heard() // the next question does not wait for the volume
	t.await(kept, forever)
	if !adoption.Taken {
		return adoption.Refusal
	}
	if w.Statement.ActiveSite != s.pod.site.name || w.Statement.Hold || (s.state.Open() && s.state.Seen().Writable) {
		return fence.Refusal{}
	}
	refusal := s.open(t, w)
	if refusal.Reason == fence.MySQLWritable && s.state.Open() {
		return fence.Refusal{}
	}
	if refusal.Reason != "" {
		s.w.count("not opened: " + string(refusal.Reason))
	}
	return refusal
}

// askPeer asks one peer. Nothing in it waits inside the peer, so it needs no task of its own until an answer comes.
func (s *sidecar) askPeer(peer *site, done func()) {
	w := fence.Word{Origin: fence.Peer, SentAt: s.mono()}
	target := s.w.resolve(s.host, peer)
	over := false
	end := func() {
		if !over {
			over = true
			done()
		}
	}
	s.after(exchangeTimeout, end)
	if target == nil {
		return
	}
	s.w.send(s.host, target.host, func() {
		p := target.sidecar
		if p == nil || p.dead || !p.serving {
			return
		}
		p.do(func() {
			signed, ok := p.peer(s.pod.site.name)
			if !ok {
				return
			}
			s.w.send(target.host, s.host, func() {
				s.do(func() {
					if over {
						return
					}
					end()
					w.Signed, w.Statement = signed, s.w.verify(signed)
					s.spawn(func(t *task) { s.learn(t, w) })
				})
			})
		})
	})
}

// peer relays the newest statement.
func (s *sidecar) peer(asking string) (wire.Signed, bool) {
	next, signed, refusal := fence.Answer(s.state, asking, s.now())
	s.state = next
	if refusal.Reason != "" {
		s.w.count("peer refused: " + string(refusal.Reason))
		return "", false
	}
	s.w.truth.vouches(s, s.w.verify(signed))
	return signed, true
}

// learn takes a word in and fences if it says so. The promise is fulfilled once it is on the data volume.
func (s *sidecar) learn(t *task, w fence.Word) (fence.Adoption, *promise) {
	before := s.state.Newest()
	next, adoption := fence.Adopt(s.state, w, s.now())
	s.update(next)
	s.w.truth.heard(s, w)
	s.w.truth.unmoved(s, before, w)
	if adoption.Newer {
		s.w.trace("sidecar of %s learns epoch %d %s hold=%v by %s (had %d)", s.pod, w.Statement.Epoch, w.Statement.ActiveSite,
			w.Statement.Hold, w.Origin, before.Epoch)
	}
	if adoption.Refusal.Reason != "" {
		s.w.count("not taken: " + string(adoption.Refusal.Reason))
	}
	kept := &promise{w: s.w}
	if _, due := fence.Unkept(s.state); due {
		s.spawn(func(kt *task) { s.keep(kt); kept.fulfil() })
	} else {
		kept.done = true
	}
	if s.enforce(t).Do == fence.KeepOut {
		s.spawn(s.keepOut)
	}
	return adoption, kept
}

// keep writes the newest statement to the data volume unless it is there.
func (s *sidecar) keep(t *task) {
	s.saving.take(t, forever)
	defer s.saving.release()
	k, due := fence.Unkept(s.state)
	if !due {
		return
	}
	t.sleep(s.w.mostly(4*time.Millisecond, 2*time.Second, 0.02))
	if s.pod.vol.failSave {
		return
	}
	s.pod.vol.kept = k
	s.update(fence.Keep(s.state, k))
}

// put is PUT /active-site: the operator's push, or somebody's replay of one. It is done to the end although the client may
// hang up.
func (s *sidecar) put(t *task, signed wire.Signed) wire.Report {
	message := ""
	if signed != "" {
		message = s.push(t, fence.Word{Origin: fence.Push, Signed: signed, Statement: s.w.verify(signed)})
	}
	return s.report(t, message)
}

func (s *sidecar) push(t *task, w fence.Word) string {
	if w.Statement.Namespace != namespace || w.Statement.Group != group {
		return "the statement is for another group"
	}
	adoption, kept := s.learn(t, w)
	t.await(kept, forever)
	switch {
	case s.pod.vol.failSave && s.state.Epoch() < s.state.Newest().Epoch:
		return "keep statement: the volume is broken"
	case !adoption.Taken && adoption.Refusal.Reason != fence.RelayedNotNewer:
		return adoption.Refusal.Message
	case s.state.Exposed() && fence.Decide(s.state, s.now()).Do == fence.Fence:
		return "MySQL is not fenced yet"
	case !s.state.Names() || w.Statement.Hold || (s.state.Open() && s.state.Seen().Writable):
		if now := s.mono(); adoption.Ask && (s.askedSoon == 0 || now-s.askedSoon >= askSoonPause) {
			s.askedSoon = now
			s.spawn(s.askOperatorOnce)
		}
		return ""
	}
	return s.askOperator(t, func() {}).Message
}

func (s *sidecar) report(t *task, message string) wire.Report {
	began := s.mono()
	current, late := s.lookInTime(t)
	r := fence.Report(s.state, s.now())
	r.BootID, r.PodUID, r.VolumeID, r.Message, r.ObservedAt = s.boot, s.pod.uid, s.pod.vol.id, message, s.wall()
	r.Keyring, r.Engines = s.pod.keyring(), s.pod.engines()
	r.WriteProbe, r.VolumeProbe = s.probed()
	switch {
	case late:
		s.w.count("late report")
		r.MysqldRunning, r.Answered = true, false
	case !current:
		r.MysqldRunning, r.Answered, r.Fenced = true, false, false
	}
	s.w.truth.reports(s, r)
	if !r.Answered {
		silent := s.mono() - s.silentSince
		if late && !s.silent {
			silent = s.mono() - began
		}
		r.SilentMillis = silent.Milliseconds()
		r.Writable, r.SuperReadOnly, r.OfflineMode = false, false, false
		return r
	}
	r.ServerUUID, r.GTIDExecuted = uuidOf(s.status.server), s.w.sets.of(s.status.executed).text
	return r
}

// lookInTime looks for a report; one that takes too long goes on by itself.
func (s *sidecar) lookInTime(t *task) (current, late bool) {
	if s.state.Leaving() {
		return false, false
	}
	done := &promise{w: s.w}
	s.spawn(func(t *task) {
		for range reportLooks {
			if current = s.look(t); current {
				break
			}
		}
		done.fulfil()
	})
	if !t.await(done, reportTimeout) {
		return false, true
	}
	return current, false
}

// leave is Stop: what is open is fenced before the process ends.
func (s *sidecar) leave(t *task) {
	s.left = true
	s.update(fence.Leave(s.state))
	s.enforce(t)
	if m := s.pod.mysqld; m.running() && m.accepts() && !m.tampered {
		s.w.fail("I4", "the sidecar of %s ends and leaves it open", s.pod)
	}
}
