// SPDX-License-Identifier: Apache-2.0

// Package backup decides about backups: when one is due, from which site it is taken, when it gets out of the way, which are kept, which is
// verified, and in which phase each is. It does nothing about it. docs/decisions and the design of backups tell why.
package backup

import "time"

// Schedule is when backups of a profile are made.
type Schedule struct {
	Cron    Cron
	Suspend bool
	// Deadline is until when after its time a backup may start.
	Deadline time.Duration
	// Who is namespace, group and profile, by which starts are spread.
	Who string
}

// Due is what a schedule asks for now.
type Due struct {
	// At is the time of the schedule for which a backup is to be made now; zero if none is.
	At time.Time
	// Seen is the last time of the schedule that has been dealt with once this was acted upon: made, or passed over.
	Seen time.Time
	// Missed is the newest time that passed without a backup and is too old to be made up for; zero if there is none.
	Missed time.Time
	// Next is when to look again.
	Next time.Time
}

// stepsMax bounds the search of one call: a schedule of every minute over the longest deadline.
const stepsMax = 24 * 60 * 8

// skewMax is by how much the clocks of two operators may differ.
const skewMax = 10 * time.Minute

// Decide says what is due. seen is the last time that was dealt with, or when the schedule came to be. One far in the future was noted by a
// clock that was ahead: the schedule goes on from now, and does not wait until that time has come.
func (s Schedule) Decide(seen, now time.Time) Due {
	if seen.Sub(now) > skewMax {
		seen = now
	}
	d := Due{Seen: seen}
	first := seen
	if oldest := now.Add(-s.Deadline); first.Before(oldest) {
		// Nothing before it can be started any more.
		first = oldest.Add(-time.Nanosecond)
		if missed := s.Cron.Next(seen); missed.Before(oldest) && !s.Suspend {
			d.Missed, d.Seen = missed, oldest.Add(-time.Nanosecond)
		}
	}
	at := s.Cron.Next(first)
	for range stepsMax {
		start := at.Add(s.Cron.Spread(at, s.Who))
		if at.IsZero() || start.After(now) {
			d.Next = start
			break
		}
		// Of several that are due the newest is made; the others are passed over.
		d.At, d.Seen = at, at
		at = s.Cron.Next(at)
	}
	if s.Suspend {
		d.At = time.Time{} // passed over, so that nothing is made up for when it goes on
	}
	return d
}

// Waiting is a backup that waits for its turn.
type Waiting struct {
	Namespace, Group, Name string
	Since                  time.Time
}

// Turn picks those that may start: the ones that wait longest, at most most together with those that run, and one of each group. running
// are the groups, as namespace/name, of which one runs.
func Turn(waiting []Waiting, running []string, most int) []Waiting {
	busy := map[string]bool{}
	for _, g := range running {
		busy[g] = true
	}
	free := most - len(running)
	var picked []Waiting
	for _, w := range oldestFirst(waiting) {
		group := w.Namespace + "/" + w.Group
		if free <= 0 {
			break
		}
		if busy[group] {
			continue
		}
		busy[group] = true
		picked, free = append(picked, w), free-1
	}
	return picked
}
