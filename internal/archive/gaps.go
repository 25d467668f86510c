// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// gapsOf goes through the files in order. Each says what was executed before it, and one whose data is missing what was executed in it.
func gapsOf(p Past, logs []Log) []Gap {
	var gaps []Gap
	var after time.Time
	have := p.Archived.Union(p.Base)
	open := 0 // from here on, gaps are of missing files, and the next file that is there bounds them
	for _, log := range logs {
		first, inHistory := log.First(), !log.Gone && !log.Set.Intersect(p.Archived).IsEmpty()
		if inHistory && !first.IsZero() {
			for i := range gaps[open:] {
				gaps[open+i].Before = first
			}
			open = len(gaps)
		}
		if missing := shownBy(p, log).Subtract(have); !missing.IsEmpty() {
			have = have.Union(missing)
			gaps = addGap(gaps, open, Gap{GTIDs: missing, After: startOf(p, missing, after, boundOf(log)), Before: boundOf(log), Epoch: log.Epoch, Site: log.Site})
			if !log.Gone {
				open = len(gaps)
			}
		}
		if reached := reachedBy(p, log); inHistory && reached.After(after) {
			after = reached
		}
	}
	return gaps
}

// reachedBy is a time that the history reached with a file. Of one that also holds what a failover lost, only its begin is known to be before
// what follows: while the old site wrote that, the new one may have committed already.
func reachedBy(p Past, log Log) time.Time {
	if p.epoch(log.Epoch).within(log.Set).Equal(log.Set) {
		return log.Last()
	}
	return log.First()
}

// startOf is a time after which transactions that are missing were committed: none of them is older than an epoch that opened without them.
// The operator's clock told when that was, so a time that is not before the bound says nothing.
func startOf(p Past, missing gtid.Set, after, bound time.Time) time.Time {
	for _, e := range p.Epochs {
		if opened, err := gtid.Parse(e.GTIDExecuted); e.Known && !e.Unknown && err == nil && opened.Intersect(missing).IsEmpty() && e.PromotedAt.After(after) && e.PromotedAt.Before(bound) {
			after = e.PromotedAt
		}
	}
	return after
}

// shownBy is what a file shows to have been executed, as far as it belongs to the history.
func shownBy(p Past, log Log) gtid.Set { return p.epoch(log.Epoch).within(log.Previous.Union(log.Set)) }

// boundOf is a time before which everything was committed that a file shows, as far as the file itself tells.
func boundOf(log Log) time.Time {
	if first := log.First(); !log.Gone && !first.IsZero() {
		return first
	}
	return log.SeenAt
}

// addGap makes one gap of missing files in a row, from gaps[open] on, if they are of one epoch, which has one site.
func addGap(gaps []Gap, open int, g Gap) []Gap {
	if n := len(gaps) - 1; n >= open && gaps[n].Epoch == g.Epoch {
		gaps[n].GTIDs, gaps[n].Before = gaps[n].GTIDs.Union(g.GTIDs), g.Before
		return gaps
	}
	return append(gaps, g)
}
