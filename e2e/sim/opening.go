// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

func (s *sidecar) open(t *task, w fence.Word) fence.Refusal {
	if !s.opening.take(t, 10*time.Second) {
		return fence.Refusal{Reason: fence.TooOld}
	}
	defer s.opening.release()
	refusal := s.tryOpen(t, w)
	s.enforce(t)
	s.unmark()
	return refusal
}

// tryOpen marks the opening on the volume before it takes the right for it.
func (s *sidecar) tryOpen(t *task, w fence.Word) fence.Refusal {
	process, refusal := s.mayOpen(t, w)
	if refusal.Reason != "" {
		return refusal
	}
	s.marked = true
	t.sleep(s.w.mostly(time.Millisecond, 2*time.Second, 0.02))
	if s.pod.vol.failSave {
		return fence.Refusal{Reason: fence.OpeningNotMarked}
	}
	s.pod.vol.opening, s.pod.vol.openingIn = true, process
	if !s.right.take(t, 10*time.Second) {
		return fence.Refusal{Reason: fence.TooOld}
	}
	defer s.right.release()
	s.look(t)
	if refusal := fence.MayOpen(s.state, w, s.now()); refusal.Reason != "" {
		return refusal
	}
	if process != "" && s.state.Seen().Process != process {
		return fence.Refusal{Reason: fence.MysqldRestarted}
	}
	s.w.truth.opening(s, w)
	s.update(fence.Opening(s.state))
	s.w.trace("sidecar of %s opens under epoch %d", s.pod, w.Statement.Epoch)
	outcome := outcomeOf(s.openWrites(t, w.Statement.Epoch))
	s.update(fence.Opened(s.state, outcome))
	s.w.count("opening " + string(outcome))
	s.w.trace("sidecar of %s opened: %s", s.pod, outcome)
	if outcome != fence.Done {
		return fence.Refusal{Reason: fence.Reason(outcome), Message: "open writes: " + string(outcome)}
	}
	return fence.Refusal{}
}

// mayOpen asks the boot rule over a fresh look, and returns the mysqld that would be opened.
func (s *sidecar) mayOpen(t *task, w fence.Word) (string, fence.Refusal) {
	if !s.right.take(t, 10*time.Second) {
		return "", fence.Refusal{Reason: fence.TooOld}
	}
	defer s.right.release()
	s.look(t)
	return s.state.Seen().Process, fence.MayOpen(s.state, w, s.now())
}

// unmark takes the mark away once no statement of the opening can be under way.
func (s *sidecar) unmark() {
	if s.marked && !s.state.Unsure() && !s.pod.vol.failSave {
		s.pod.vol.opening, s.marked = false, false
	}
}

// openWrites is internal/mysql OpenWrites: statement by statement, within the deadline of an opening. What was sent is
// carried out, although nobody may wait for it any more.
func (s *sidecar) openWrites(t *task, epoch int64) error {
	m := s.pod.mysqld
	if m == nil {
		return errRefused
	}
	deadline := s.w.now + s.host.clock.real(openTimeout)
	left := func() time.Duration { return max(0, deadline-s.w.now) }
	steps := []func() error{
		func() error {
			if m.vol.source != "" {
				return errChannels
			}
			return nil
		},
		func() error { m.setOffline(true); return nil },
		func() error {
			m.opensToCome--
			m.setReadOnlyOff()
			m.openEpoch = epoch
			if !m.offline { // a fence let readers in meanwhile
				s.w.truth.opened(m, epoch)
			}
			return nil
		},
		func() error {
			m.setOffline(false)
			s.w.truth.opened(m, epoch)
			return nil
		},
		func() error {
			if m.readOnly || m.superReadOnly || m.offline {
				return errServer
			}
			return nil
		},
	}
	for i, step := range steps {
		if i == 2 {
			m.aboutToOpen()
		}
		err := m.quick(t, left(), step)
		if errors.Is(err, errRefused) && i > 0 {
			return errBroken
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aboutToOpen: the statement that opens is sent now; it may wait inside the server for long.
func (m *mysqld) aboutToOpen() {
	if !m.running() || !m.serving {
		return
	}
	if m.w.hangOpenings && m.w.chance(0.6) {
		m.hang = m.w.between(time.Second, 6*time.Second)
	}
	m.opensToCome++
}

func outcomeOf(err error) fence.Outcome {
	switch {
	case err == nil:
		return fence.Done
	case errors.Is(err, errChannels), errors.Is(err, errRefused):
		return fence.Refused
	case errors.Is(err, errServer):
		return fence.Failed
	}
	return fence.Unsure
}
