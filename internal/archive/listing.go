// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"path"
	"slices"
	"strings"

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
	// Unreadable are manifests that cannot be read, with the reason. The files that they describe are missing. That is a gap if a later file
	// tells what had been executed, and shows nowhere if there is none (Past.Unseen).
	Unreadable []Unreadable
	// Bytes is how much room the data takes, Orphans how much of that no manifest names.
	Bytes, Orphans int64
}

// Unreadable is an object that cannot be read.
type Unreadable struct {
	Key string
	Err error
}

// Log is the name of the log that a manifest in a folder tells of.
func (u Unreadable) Log() string {
	_, log := fileOf(u.Key)
	return path.Base(log)
}

// InTheWay is true if one of these is where the manifest of a file would be: nothing is written over it.
func InTheWay(all []Unreadable, m LogManifest) bool {
	return slices.ContainsFunc(all, func(u Unreadable) bool { return u.Key == m.key() })
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

// unseenEnd finds an object that cannot be read and that no readable one makes up for; nil if there is none.
func unseenEnd(l Listing) *Unreadable {
	for i, u := range l.Unreadable {
		if u.Key != heartbeatKey && !l.outlivedBy(u.Key) { // the heartbeat only says until when there was nothing more
			return &l.Unreadable[i]
		}
	}
	return nil
}

// outlivedBy is true if a readable file shows what an unreadable object held. That of a log is shown by a file of a later epoch or behind it in
// its folder, which tells what had been executed before, and by a segment of the same log; that of an epoch by any file of the epoch.
func (l Listing) outlivedBy(key string) bool {
	folder := path.Dir(key)
	epoch, _, _ := strings.Cut(path.Base(folder), "-") // its digits are padded
	return slices.ContainsFunc(slices.Concat(l.Logs, l.Missing), func(log Log) bool {
		if folder == epochsFolder {
			return Epoch{Epoch: log.Epoch}.key() == key
		}
		if log.folder() == folder {
			return log.key() > key || log.whole()+manifestEnd == key
		}
		return path.Base(log.folder()) > epoch+"." // behind every folder of that epoch: a dot comes after the hyphen
	})
}
