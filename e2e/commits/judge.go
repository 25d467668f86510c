// SPDX-License-Identifier: Apache-2.0

// Package commits judges by what the servers themselves remember: the binary logs of all sites, in which every
// transaction carries the moment at which the server that first committed it did so. Writers know only what was
// acknowledged to them; the logs hold every commit, also those whose client got no answer.
//
// The nodes of the lab share one machine and so one clock, which makes the servers' timestamps comparable.
package commits

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Transaction is one that is in the binary log of a site.
type Transaction struct {
	Site string
	GTID string
	// At is when the site itself committed it, and Original when the server did that committed it first.
	At, Original time.Time
	// Server is the one that first committed it, Writer the one whose log this is: by their server_id.
	Server, Writer uint32
}

// Own tells whether a client of this site made the transaction, or an event of its scheduler, and not the applier. Both signs
// must be there: the applier keeps the number and the time of the server that a transaction comes from.
func (t Transaction) Own() bool { return t.Server == t.Writer && t.At.Equal(t.Original) }

// Turn is a time in which a site may accept commits.
type Turn struct {
	Site  string
	Epoch int64
	// Began is when the epoch was persisted. No site opens before that. It is zero for the turn that was already on.
	Began time.Time
}

func (t Turn) String() string { return fmt.Sprintf("%s under epoch %d", t.Site, t.Epoch) }

// Overlap is a run of transactions that a site committed although it was not its turn.
type Overlap struct {
	Site  string
	Count int
	First Transaction
	// Until is the last of them.
	Until time.Time
	// Turn is the one that was on, and Since its first commit. Since is zero if nobody had committed in it.
	Turn  Turn
	Since time.Time
}

func (o Overlap) String() string {
	text := fmt.Sprintf("%s committed %d transactions of its own from %s (%s) to %s, in the turn of %s", o.Site, o.Count,
		o.First.At.Format(micro), o.First.GTID, o.Until.Format(micro), o.Turn)
	if o.Since.IsZero() {
		return text + ", which had committed nothing yet"
	}
	return text + ", which committed from " + o.Since.Format(micro) + " on"
}

const micro = "15:04:05.000000"

// Overlaps is the two-writer check by the servers' timestamps: every place where a site committed a transaction of its own
// after a site of a later epoch had committed its first, before its epoch was persisted, or without ever having had a turn.
// The transactions need no order; those that are not a site's own do not count.
//
// A commit belongs to the earliest turn that it can belong to, so a site that has a later turn again may be blamed a few
// transactions late, but never passes.
func Overlaps(all []Transaction, turns []Turn) []Overlap {
	var overlaps []Overlap
	turn, since := 0, time.Time{}
	open := false // the last overlap goes on
	for _, t := range ownInOrder(all) {
		next := turnOf(t, turns, turn)
		if next < 0 {
			if last := len(overlaps) - 1; open && overlaps[last].Site == t.Site {
				overlaps[last].Count++
				overlaps[last].Until = t.At
				continue
			}
			o := Overlap{Site: t.Site, Count: 1, First: t, Until: t.At, Since: since}
			if turn < len(turns) {
				o.Turn = turns[turn]
			}
			overlaps, open = append(overlaps, o), true
			continue
		}
		if next != turn || since.IsZero() {
			since = t.At
		}
		if next != turn {
			open = false
		}
		turn = next
	}
	return overlaps
}

// turnOf is the first turn from one on in which a transaction may have been committed, or -1.
func turnOf(t Transaction, turns []Turn, from int) int {
	for n := from; n < len(turns); n++ {
		if turns[n].Site == t.Site && !t.At.Before(turns[n].Began) {
			return n
		}
	}
	return -1
}

func ownInOrder(all []Transaction) []Transaction {
	own := slices.DeleteFunc(slices.Clone(all), func(t Transaction) bool { return !t.Own() })
	slices.SortFunc(own, func(a, b Transaction) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Site, b.Site), cmp.Compare(a.GTID, b.GTID))
	})
	return own
}

// Since are the transactions that were committed from a moment on.
func Since(all []Transaction, from time.Time) []Transaction {
	return slices.DeleteFunc(slices.Clone(all), func(t Transaction) bool { return t.At.Before(from) })
}

// FirstTurns are the sites in the order of their first transaction of their own: the turns, where no site may come back.
func FirstTurns(all []Transaction) []string {
	var order []string
	for _, t := range ownInOrder(all) {
		if !slices.Contains(order, t.Site) {
			order = append(order, t.Site)
		}
	}
	return order
}

// Handover is the time between the last commit of one site and the first of the next.
type Handover struct {
	From, To string
	Margin   time.Duration
}

// Handovers lists how long nobody committed anything at each change of the committing site, by the servers' timestamps.
func Handovers(all []Transaction) []Handover {
	var changes []Handover
	own := ownInOrder(all)
	for i := 1; i < len(own); i++ {
		if own[i].Site != own[i-1].Site {
			changes = append(changes, Handover{From: own[i-1].Site, To: own[i].Site, Margin: own[i].At.Sub(own[i-1].At)})
		}
	}
	return changes
}

// Holes compares the logs with what was acknowledged by each site: logs that hold fewer transactions of a site's own than it
// acknowledged are not all that there was, and prove nothing.
func Holes(all []Transaction, acknowledged map[string]int) []string {
	own := map[string]int{}
	for _, t := range ownInOrder(all) {
		own[t.Site]++
	}
	var holes []string
	for site, want := range acknowledged {
		if own[site] < want {
			holes = append(holes, fmt.Sprintf("the binary logs of %s hold %d transactions of its own, and it acknowledged %d", site, own[site], want))
		}
	}
	slices.Sort(holes)
	return holes
}
