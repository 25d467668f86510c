// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Period is a run of commits, in the order of their acknowledgement, that one site accepted without another site's
// commit in between.
type Period struct {
	Site    string
	Commits int
	// FirstStart is when the earliest of its commits was sent, FirstAck when the first was acknowledged.
	FirstStart, FirstAck time.Duration
	// LastStart is when the latest of its commits was sent, LastAck when the last was acknowledged.
	LastStart, LastAck time.Duration
}

// Periods cuts commits into periods. The commits need no order.
func Periods(commits []Commit) []Period {
	sorted := slices.SortedFunc(slices.Values(commits), byAck)
	var periods []Period
	for _, c := range sorted {
		last := len(periods) - 1
		if last < 0 || periods[last].Site != c.Site {
			periods = append(periods, Period{
				Site: c.Site, Commits: 1, FirstStart: c.Start, FirstAck: c.Ack, LastStart: c.Start, LastAck: c.Ack,
			})
			continue
		}
		p := &periods[last]
		p.Commits++
		p.FirstStart = min(p.FirstStart, c.Start)
		p.LastStart = max(p.LastStart, c.Start)
		p.LastAck = c.Ack
	}
	return periods
}

func byAck(a, b Commit) int {
	return cmp.Or(cmp.Compare(a.Ack, b.Ack), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Site, b.Site))
}

// Overlap is a pair of periods of different sites that must not be.
type Overlap struct {
	Earlier, Later Period
	// By is how far the later period reaches into the earlier one; zero or less when the two are apart and the later
	// one merely belongs to a site that had lost its turn.
	By     time.Duration
	Reason string
}

func (o Overlap) String() string {
	return fmt.Sprintf("%s accepted %d commits until %s, %s accepted %d from %s on: %s", o.Earlier.Site, o.Earlier.Commits,
		o.Earlier.LastAck, o.Later.Site, o.Later.Commits, o.Later.FirstStart, o.Reason)
}

// Overlaps is the two-writer check: every place where two sites may have accepted commits at the same time. The order
// is the sequence of active sites that the group is known to have had (from the journal of its failovers); a site may
// accept commits only in its turns. Without an order no site may come back after another one accepted commits.
//
// A commit happened at some moment from its start to its acknowledgement, so two periods are apart for certain only
// if the earlier one's last acknowledgement came before the later one's first start. Anything else counts as an
// overlap, also where it cannot be proven: the check errs towards crying.
func Overlaps(commits []Commit, order []string) []Overlap {
	periods := Periods(commits)
	if order == nil {
		order = firstTurns(periods)
	}
	var overlaps []Overlap
	turn := 0
	for i, p := range periods {
		next := slices.Index(order[min(turn, len(order)):], p.Site)
		switch {
		case i > 0 && p.FirstStart <= periods[i-1].LastAck:
			overlaps = append(overlaps, Overlap{
				Earlier: periods[i-1], Later: p, By: periods[i-1].LastAck - p.FirstStart, Reason: "at the same time",
			})
		case next < 0:
			overlaps = append(overlaps, Overlap{
				Earlier: periods[max(i-1, 0)], Later: p, By: periods[max(i-1, 0)].LastAck - p.FirstStart,
				Reason: fmt.Sprintf("out of turn, the active sites were %v", order),
			})
		}
		if next >= 0 {
			turn += next
		}
	}
	return overlaps
}

// firstTurns gives every site one turn, in the order of appearance.
func firstTurns(periods []Period) []string {
	var order []string
	for _, p := range periods {
		if !slices.Contains(order, p.Site) {
			order = append(order, p.Site)
		}
	}
	return order
}

// Change is a pair of periods between which the site that accepts commits changed.
type Change struct {
	From, To string
	// Margin lies between the last commit acknowledged by the old site and the first one acknowledged by the new.
	Margin time.Duration
	// At is when the new site's first commit was acknowledged.
	At time.Duration
}

// FenceMargins lists the changes of the accepting site and how long nobody accepted anything at each.
func FenceMargins(commits []Commit) []Change {
	var changes []Change
	periods := Periods(commits)
	for i := 1; i < len(periods); i++ {
		before, p := periods[i-1], periods[i]
		changes = append(changes, Change{From: before.Site, To: p.Site, Margin: p.FirstAck - before.LastAck, At: p.FirstAck})
	}
	return changes
}

// FenceMargin is the smallest margin of all changes; false when the accepting site never changed.
func FenceMargin(commits []Commit) (time.Duration, bool) {
	changes := FenceMargins(commits)
	if len(changes) == 0 {
		return 0, false
	}
	return slices.MinFunc(changes, func(a, b Change) int { return cmp.Compare(a.Margin, b.Margin) }).Margin, true
}

// Pause is a time in which a writer got nothing acknowledged.
type Pause struct {
	LastAck, NextAck time.Duration
	From, To         string
}

// Length is how long the pause was.
func (p Pause) Length() time.Duration { return p.NextAck - p.LastAck }

// LongestPause is the longest time without an acknowledgement that ended after a moment: what the clients saw of a
// fault that was made at that moment. It is false when nothing was acknowledged on both sides of it.
func LongestPause(commits []Commit, after time.Duration) (Pause, bool) {
	sorted := slices.SortedFunc(slices.Values(commits), byAck)
	var longest Pause
	for i, c := range sorted {
		if i == 0 || c.Ack <= after {
			continue
		}
		pause := Pause{LastAck: sorted[i-1].Ack, NextAck: c.Ack, From: sorted[i-1].Site, To: c.Site}
		if pause.Length() > longest.Length() {
			longest = pause
		}
	}
	return longest, longest.NextAck > 0
}

// Missing lists the acknowledged rows that a table does not hold, in the order of their acknowledgement.
func Missing(commits []Commit, rows map[Key]bool) []Commit {
	var missing []Commit
	for _, c := range slices.SortedFunc(slices.Values(commits), byAck) {
		if !rows[c.Key] {
			missing = append(missing, c)
		}
	}
	return missing
}

// LongestClientPause is the longest time for which any one connection got nothing acknowledged, of the times that ended
// after one moment and up to another: what the unluckiest client saw of a fault between the two. A connection that was
// acknowledged before the fault and never again counts up to the end, and makes the answer false; so does a fault that
// no connection was there to see.
func LongestClientPause(commits []Commit, after, until time.Duration) (Pause, bool) {
	type client struct {
		writer string
		worker int
	}
	clients := map[client][]Commit{}
	for _, c := range commits {
		if c.Ack <= until {
			who := client{c.Writer, c.Worker}
			clients[who] = append(clients[who], c)
		}
	}
	var longest Pause
	whole := len(clients) > 0
	for _, own := range clients {
		pause, ok := LongestPause(own, after)
		if !ok {
			last := slices.MaxFunc(own, byAck)
			pause = Pause{LastAck: last.Ack, NextAck: until, From: last.Site, To: last.Site}
			whole = false
		}
		if pause.Length() > longest.Length() {
			longest = pause
		}
	}
	return longest, whole
}
