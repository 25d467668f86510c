// SPDX-License-Identifier: Apache-2.0

package archive

import "github.com/mysql-mfg/mfg/internal/gtid"

// ServerLog is a log that a server has, with what it had executed before.
type ServerLog struct {
	Name     string
	Previous gtid.Set
}

// Covered is what need not be archived any more: what the archive holds of the history, and what is before it.
func Covered(p Past) gtid.Set { return p.Archived.Union(p.Base) }

// Resume is the index of the first of a server's logs that holds anything that is not covered, and of the last one otherwise: that is where
// archiving begins in a new epoch. Files overlap then, and nothing is left out. A log ends where the next one begins.
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
	// To is where the segments that lie one behind the other end; 0 if there are none. Sealed is true if the log is there whole.
	To     int64
	Sealed bool
	// Previous, Set and Checksums are those of the files from the beginning: what a file that goes on from To is told.
	Previous, Set gtid.Set
	Checksums     bool
}

// HeldOf finds what a folder has of a log.
func HeldOf(l Listing, folder LogManifest, log string) Held {
	var h Held
	for _, f := range l.Logs { // sorted
		if f.folder() != folder.folder() || f.Log != log || f.From != h.To {
			continue
		}
		if f.From == 0 {
			h.Previous = f.Previous
		}
		h.To, h.Sealed, h.Checksums, h.Set = f.To, f.Sealed, f.Checksums, h.Set.Union(f.Set)
	}
	return h
}
