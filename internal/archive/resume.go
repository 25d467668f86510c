// SPDX-License-Identifier: Apache-2.0

package archive

import "github.com/mysql-mfg/mfg/internal/gtid"

// ServerLog is a log of a server, with what the server had executed before it.
type ServerLog struct {
	Name     string
	Previous gtid.Set
}

// Covered is what need not be archived any more: what the archive holds of the history, and what was before the archive.
func Covered(p Past) gtid.Set { return p.Archived.Union(p.Base) }

// Resume is the index of the first of a server's logs that holds anything that is not covered, else of the last one: archiving begins
// there in a new epoch. So files overlap, and nothing is left out. A log ends where the next one begins.
func Resume(logs []ServerLog, covered gtid.Set) int {
	for i := 0; i+1 < len(logs); i++ {
		if !covered.Contains(logs[i+1].Previous.Subtract(logs[i].Previous)) {
			return i
		}
	}
	return max(0, len(logs)-1)
}

// Held says how far a log is archived in the folder of one epoch and server.
type Held struct {
	// To is where the unbroken row of segments ends; 0 if there are none. Sealed is true if the whole log is there.
	To     int64
	Sealed bool
	// Previous, Set and Checksums are those of the files from the beginning: a file that continues from To needs them.
	Previous, Set gtid.Set
	Checksums     bool
}

// HeldOf finds how much of a log a folder holds. What is missing behind its manifest counts: nothing can be written in its place before the
// manifest is removed. So does a segment whose manifest cannot be read, if a later one tells where it ends.
func HeldOf(l Listing, folder LogManifest, log string) Held {
	var h Held
	for _, f := range l.told() { // sorted
		if f.folder() != folder.folder() || f.Log != log || f.From != h.To && !l.hides(f, h.To) {
			continue
		}
		if h.To == 0 {
			h.Previous = f.Previous
		}
		h.To, h.Sealed, h.Checksums = f.To, f.Sealed, f.Checksums
		h.Set = h.Set.Union(f.Previous.Subtract(h.Previous)).Union(f.Set) // with what cannot be read before it
	}
	return h
}

// hides is true if what comes before a segment, from a position on, is one with a manifest that cannot be read.
func (l Listing) hides(f Log, from int64) bool {
	before := f.LogManifest
	before.From = from
	return f.From > from && InTheWay(l.Unreadable, before)
}
