// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// quiet is how long no XA transaction must have been prepared before readers come back. Applications that use XA prepare again and
// again: without this pause, each one would cut the readers, and each gap would leave the door open for a moment.
const quiet = 10 * time.Second

// super_read_only does not refuse the XA COMMIT of a prepared transaction, and any ordinary account may end any of them; on a
// replica that is a second writer (I1). Only offline_mode keeps it out while the applier continues (decision 0011).

// toBeKeptOut says why clients must be kept out of a read-only MySQL that lets them in now, or "".
func toBeKeptOut(s State, now Instant) Reason {
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	if open || s.changing || !s.seen.Answered || s.seen.Offline || s.seen.Cloning {
		return "" // no client gets in, or other work is under way and decides that
	}
	switch {
	case aboutToOpen(s):
		return AboutToOpen
	case preparedLately(s, now):
		return PreparedXA
	}
	return ""
}

// mayReach is true if clients may reach this read-only MySQL.
func mayReach(s State, now Instant) bool { return !aboutToOpen(s) && !preparedLately(s, now) }

// aboutToOpen: the site will be opened, but must not be yet. The primary Service may lead here already, and the locks of an idle
// reader would keep the applier from finishing. A site named without a hold is opened next, or was isolated: its readers stay.
func aboutToOpen(s State) bool { return s.Names() && (s.word.Hold || s.seen.Replicates) }

// preparedLately: an XA transaction is prepared, or was a moment ago.
func preparedLately(s State, now Instant) bool {
	return s.hasPrepared && (s.prepared > 0 || now.Mono-s.preparedAt < quiet)
}

// SawPrepared takes in how many XA transactions are prepared.
func SawPrepared(s State, n int, now Instant) State {
	s.prepared = n
	if n > 0 {
		s.preparedAt, s.hasPrepared = now.Mono, true
	}
	return s
}

// Prepared is how many prepared XA transactions were seen last.
func (s State) Prepared() int { return s.prepared }

// KeptOut is the state after clients were kept out of a read-only MySQL, or not. It says nothing about the fence.
func KeptOut(s State, done bool) State {
	s.changing = false
	s.change++
	s.seen.Offline = s.seen.Offline || done
	s.keepOutUnsure = s.keepOutUnsure || !done
	return s
}

// keptOutLate: a KeepOut got no answer, and took effect after this site was opened. No client would ever get in again. What a
// person sets on an open site is not touched.
func keptOutLate(s State) bool {
	return s.Open() && s.keepOutUnsure && !s.changing && s.seen.Answered && s.seen.Offline
}

// LetClientsIn is the state after offline_mode was lifted on an open site, or not.
func LetClientsIn(s State, done bool) State {
	s.changing = false
	s.change++
	s.seen.Offline = s.seen.Offline && !done
	return s
}
