// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// resetRemedy is what to do once binary logs were reset. A new epoch makes it worse: it does not know what is archived, which then passes for lost.
const resetRemedy = "archive to another prefix, with a profile of its own, and make a backup with that; plan no failover before"

// continues fails if the server is another one, or lacks what it had executed before, or what the archive holds of the history that leads to this epoch. Then
// its binary logs were reset, or older data was put back, and its next transactions have the numbers of others that are archived (I26).
func (w *work) continues(st serverState) error {
	if st.UUID != w.uuid {
		return failf(LogsReset, "the server has another UUID than when this epoch began")
	}
	had, compared := w.had, w.compared
	if !compared && w.ledger.knows(w.epoch) { // before, what a failover lost would pass for a part of the history
		had, compared = had.Union(archive.Covered(archive.History(w.ledger.listing()))), true
	}
	if lacks := had.Subtract(st.Executed); !lacks.IsEmpty() {
		return failf(LogsReset, "the server lacks %d transactions that it had executed, or that the archive holds (%.200s): its binary logs were reset, or older data was put back; %s",
			lacks.Count(), lacks, resetRemedy)
	}
	w.had, w.compared = st.Executed, compared
	return nil
}

// executed is what our server had executed, by what is archived in our folder.
func (d *ledger) executed() (all gtid.Set) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, files := range [][]archive.Log{d.files, d.missing} {
		for _, f := range files {
			if isOf(f, d.ours) {
				all = all.Union(f.Previous).Union(f.Set)
			}
		}
	}
	return all
}
