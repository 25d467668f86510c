// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"slices"
	"sync"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// ledger is what is in the archive, as it was listed and changed by us since. It is the archiver's whole memory, and made again from the
// bucket whenever an epoch begins.
type ledger struct {
	mu         sync.Mutex
	epochs     []archive.Epoch
	files      []archive.Log
	missing    []archive.Log
	unreadable []archive.Unreadable
	replaced   archive.Replaced
	heartbeat  *archive.Heartbeat
	pruned     *archive.Pruned
	// ours is the folder that we write.
	ours archive.LogManifest
}

func newLedger(l archive.Listing, ours archive.LogManifest) *ledger {
	return &ledger{epochs: l.Epochs, files: l.Logs, missing: l.Missing, unreadable: l.Unreadable, replaced: l.Replaced, heartbeat: l.Heartbeat, pruned: l.Pruned,
		ours: ours}
}

// listing is a copy.
func (d *ledger) listing() archive.Listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := archive.NewListing(d.epochs, d.files)
	l.Missing, l.Unreadable, l.Heartbeat, l.Pruned = d.missing, d.unreadable, d.heartbeat, d.pruned
	l.Bytes = d.replaced.Bytes
	for _, f := range d.files {
		l.Bytes += f.Object.Bytes
	}
	l.Replaced = l.Replaced.With(d.replaced)
	return l
}

func (d *ledger) add(l archive.Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = append(slices.Clip(d.files), l)
}

func (d *ledger) beat(h archive.Heartbeat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heartbeat = &h
}

// replace takes in a new listing, and keeps what was added while it was made. lost are transactions of the history that were there, and are not there now nor
// told as missing: somebody else removed them, with what told of them.
func (d *ledger) replace(before int, l archive.Listing) (lost gtid.Set) {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := slices.Clone(l.Logs)
	for _, f := range d.files[min(before, len(d.files)):] {
		if !slices.ContainsFunc(files, func(o archive.Log) bool { return o.Object.Key == f.Object.Key && o.Epoch == f.Epoch }) {
			files = append(files, f)
		}
	}
	lost = coveredBy(l, d.files).Subtract(coveredBy(l, files))
	for _, m := range l.Missing {
		lost = lost.Subtract(m.Set)
	}
	d.epochs, d.files, d.missing, d.unreadable, d.replaced, d.pruned = l.Epochs, files, l.Missing, l.Unreadable, l.Replaced, l.Pruned
	if l.Heartbeat != nil {
		d.heartbeat = l.Heartbeat
	}
	return lost
}

// coveredBy is what is covered if a listing has these files. So what we pruned is not lost: the listing tells that it was pruned.
func coveredBy(l archive.Listing, files []archive.Log) gtid.Set {
	with := archive.NewListing(l.Epochs, files)
	with.Missing, with.Pruned = l.Missing, l.Pruned
	return archive.Covered(archive.History(with))
}

// count is how many files there are: what is added later comes behind them.
func (d *ledger) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files)
}

// held is how far a log is archived in our folder.
func (d *ledger) held(log string) archive.Held { return archive.HeldOf(d.listing(), d.ours, log) }

// inTheWay is true if a manifest that cannot be read is where that of a file would be.
func (d *ledger) inTheWay(m archive.LogManifest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return archive.InTheWay(d.unreadable, m)
}

// knows is true if the archive has an object of the epoch.
func (d *ledger) knows(epoch int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.epochs, func(e archive.Epoch) bool { return e.Epoch == epoch })
}

// unsealed are the logs of our folder that are there in segments alone, but for the newest, and those of which the one file cannot be written.
func (d *ledger) unsealed(open string) []string {
	var logs []string
	l := d.listing()
	for _, f := range l.Logs {
		if isOf(f, d.ours) && !f.Sealed && archive.Number(f.Log) < archive.Number(open) && !slices.Contains(logs, f.Log) && !archive.HeldOf(l, d.ours, f.Log).Sealed {
			logs = append(logs, f.Log)
		}
	}
	return slices.DeleteFunc(logs, func(log string) bool {
		whole := d.ours
		whole.Log, whole.Sealed = log, true
		return archive.InTheWay(l.Unreadable, whole)
	})
}

// segments are those of a log in our folder.
func (d *ledger) segments(log string) []archive.Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []archive.Log
	for _, f := range d.files {
		if isOf(f, d.ours) && f.Log == log && !f.Sealed {
			out = append(out, f)
		}
	}
	return out
}

// drop forgets a file that was removed.
func (d *ledger) drop(gone archive.Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = slices.DeleteFunc(slices.Clone(d.files), func(f archive.Log) bool {
		return f.Object.Key == gone.Object.Key && f.Epoch == gone.Epoch && f.ServerUUID == gone.ServerUUID
	})
}
