// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Listing is what is in the archive.
type Listing struct {
	// Epochs are sorted by number.
	Epochs []Epoch
	// Logs are the files, sorted by epoch, folder, number of the log and where they begin. Segments of a log that is also there as a sealed
	// one are left out: see Replaced.
	Logs []Log
	// Replaced are segments that are no longer needed.
	Replaced Replaced
	// Missing are files whose data the storage does not have, or has with another length, in the order of Logs: somebody else removed or cut it.
	// What they held is a gap. Their manifests still tell what the server had executed.
	Missing []Log
	// Heartbeat is nil if there is none.
	Heartbeat *Heartbeat
	// Pruned is nil if nothing was ever removed.
	Pruned *Pruned
	// Unreadable are manifests that cannot be read, with the reason. The files that they describe are missing, and so are a gap.
	Unreadable []Unreadable
	// Bytes is how much room the data takes, Orphans how much of that no manifest names.
	Bytes, Orphans int64
}

// Unreadable is an object that cannot be read.
type Unreadable struct {
	Key string
	Err error
}

// NewListing sorts epochs and files, and moves segments that a sealed log replaces to Replaced.
func NewListing(epochs []Epoch, logs []Log) Listing {
	l := Listing{Epochs: slices.Clone(epochs)}
	slices.SortFunc(l.Epochs, func(a, b Epoch) int { return cmp.Compare(a.Epoch, b.Epoch) })
	sorted := slices.Clone(logs)
	slices.SortFunc(sorted, compareLogs)
	sealed := map[string]bool{}
	for _, log := range sorted {
		if log.Sealed {
			sealed[log.whole()] = true
		}
	}
	for _, log := range sorted {
		if !log.Sealed && sealed[log.whole()] {
			l.Replaced.addLog(log)
			continue
		}
		l.Logs = append(l.Logs, log)
	}
	return l
}

// withMissing adds files whose data is missing. One that a sealed log replaces is missed by nobody.
func (l Listing) withMissing(gone []Log) Listing {
	sealed := map[string]bool{}
	for _, log := range l.Logs {
		if log.Sealed {
			sealed[log.whole()] = true
		}
	}
	for _, log := range gone {
		if log.Gone = true; !log.Sealed && sealed[log.whole()] {
			log.Object.Bytes = 0 // it takes no room
			l.Replaced.addLog(log)
			continue
		}
		l.Missing = append(l.Missing, log)
	}
	slices.SortFunc(l.Missing, compareLogs)
	return l
}

// told are all files that manifests tell of, those whose data is missing too.
func (l Listing) told() []Log {
	if len(l.Missing) == 0 {
		return l.Logs
	}
	all := slices.Concat(l.Logs, l.Missing)
	slices.SortFunc(all, compareLogs)
	return all
}

// compareLogs puts a sealed log before its segments: both are there if the data of one of them is missing.
func compareLogs(a, b Log) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Site, b.Site), cmp.Compare(a.ServerUUID, b.ServerUUID),
		cmp.Compare(Number(a.Log), Number(b.Log)), cmp.Compare(a.From, b.From), cmp.Compare(a.later(), b.later()))
}

func (l Log) later() int {
	if l.Sealed {
		return 0
	}
	return 1
}

// prunedSet is the set that the archive need not have.
func (l Listing) prunedSet() gtid.Set {
	if l.Pruned == nil {
		return gtid.Set{}
	}
	s, err := gtid.Parse(l.Pruned.GTIDExecuted)
	if err != nil {
		return gtid.Set{} // checked when it was read; an empty set claims less
	}
	return s
}
