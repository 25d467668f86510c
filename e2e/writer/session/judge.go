// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// Verdict is what follows from the journals of session writers.
type Verdict struct {
	// Acked counts writes, Sessions those that wrote.
	Acked, Sessions int
	// Lost are the writes that were acknowledged and not found again, LostSessions how many sessions they belonged to.
	Lost         []journal.Loss
	LostSessions int
	// Servers are the processes that took writes, in their order.
	Servers []string
	// Overlaps are moments at which two of them may have taken writes: one that was not the master with the traffic.
	Overlaps []journal.Overlap
}

type who struct {
	writer string
	worker int
}

// Judge draws the verdict.
func Judge(journals ...journal.Journal) Verdict {
	acked := journal.Commits(journals...)
	v := Verdict{Acked: len(acked)}
	sessions, lost := map[who]bool{}, map[who]bool{}
	for _, c := range acked {
		sessions[who{c.Writer, c.Worker}] = true
	}
	for _, j := range journals {
		v.Lost = append(v.Lost, j.Lost...)
	}
	for _, l := range v.Lost {
		lost[who{l.Writer, l.Worker}] = true
	}
	v.Sessions, v.LostSessions = len(sessions), len(lost)
	for _, p := range journal.Periods(acked) {
		v.Servers = append(v.Servers, p.Site)
	}
	// Each store that took writes had a turn, by this order: what is left are writes at the same time.
	v.Overlaps = journal.Overlaps(acked, v.Servers)
	return v
}

// LostBetween counts the sessions that were found to be lost between two moments.
func LostBetween(losses []journal.Loss, from, until time.Duration) int {
	lost := map[who]bool{}
	for _, l := range losses {
		if l.At >= from && l.At < until {
			lost[who{l.Writer, l.Worker}] = true
		}
	}
	return len(lost)
}
