// SPDX-License-Identifier: Apache-2.0

// Package backup decides about backups: when one is due, from which site it is taken, when it gives way, which are kept, which is verified,
// and in which phase each is. It only decides. docs/decisions and the design of backups tell why.
package backup

import "time"

// Schedule says when backups of a profile are made.
type Schedule struct {
	Cron    Cron
	Suspend bool
	// Deadline is how long after its time a backup may start.
	Deadline time.Duration
	// Who is namespace, group and profile, by which starts are spread.
	Who string
}

// Due says what is due by a schedule now.
type Due struct {
	// At is the time of the schedule for which a backup is due now; zero if none is.
	At time.Time
	// Seen is the last time of the schedule that is dealt with once the caller has acted on this: made, or skipped.
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

// Decide says what is due. seen is the last time that was dealt with, or when the schedule was created. A clock that was ahead may have
// noted a time far in the future: then the schedule continues from now, and does not wait for that time.
func (s Schedule) Decide(seen, now time.Time) Due {
	if seen.Sub(now) > skewMax {
		seen = now
	}
	d := Due{Seen: seen}
	first := seen
	if oldest := now.Add(-s.Deadline); first.Before(oldest) {
		// Nothing older can still be started.
		first = oldest.Add(-time.Nanosecond)
		if missed := s.Cron.Next(seen); missed.Before(oldest) && !s.Suspend {
			d.Missed, d.Seen = missed, oldest.Add(-time.Nanosecond)
		}
	}
	at := s.Cron.Next(first)
	for range stepsMax {
		// Half of the deadline is left for what a start may wait for: a site, a turn, an API server.
		start := at.Add(s.Cron.Spread(at, s.Who, s.Deadline/2))
		if at.IsZero() || start.After(now) {
			d.Next = start
			break
		}
		// If several are due, the newest is made; the others are skipped.
		d.At, d.Seen = at, at
		at = s.Cron.Next(at)
	}
	if s.Suspend {
		d.At = time.Time{} // skipped, so that nothing is made up for when the schedule continues
	}
	return d
}

// Waiting is a backup that waits for its turn.
type Waiting struct {
	Namespace, Group, Name string
	Since                  time.Time
}

// Turn picks those that may start: the ones that wait longest, one per group, and, with those that run, no more than most. running are
// the groups, as namespace/name, that have one running.
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
