// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Held is what the active site has, and what its archive has.
type Held struct {
	// Executed is what the active site has, ServerUUID the UUID of its server.
	Executed   gtid.Set
	ServerUUID string
	// Archived is what the archive has; it is unknown if the set was too long to report.
	Archived      gtid.Set
	ArchivedKnown bool
}

// Earliest returns the first point in time that the group can be restored to: the completion of the oldest backup from which on nothing is
// missing, and that no verification found unusable; zero if there is none.
func Earliest(backups []v1alpha1.MysqlBackup, place v1alpha1.StoragePlace, h Held) time.Time {
	var ends []time.Time
	for i := range backups {
		b := &backups[i]
		unusable := b.Status.Verified != nil && b.Status.Verified.Outcome == v1alpha1.BackupNotRestorable
		if isKept(b, place) && !unusable && b.DeletionTimestamp == nil && b.Status.FinishedAt != nil && h.goesOnFrom(b) {
			ends = append(ends, b.Status.FinishedAt.UTC())
		}
	}
	if len(ends) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(ends, time.Time.Compare)
}

// goesOnFrom is true if every transaction is in the backup, or in the archive, or is still on its way into it: the last ones of the server
// that writes. A backup with what a failover lost leads nowhere.
func (h Held) goesOnFrom(b *v1alpha1.MysqlBackup) bool {
	set, err := gtid.Parse(b.Status.GTIDExecuted)
	if err != nil {
		return false
	}
	if !h.ArchivedKnown || set.IsEmpty() {
		return true // unknown; a restore looks for itself, and refuses what is not there
	}
	if !h.diverged(set).IsEmpty() {
		return false // a restore to any point refuses it
	}
	covered := set.Union(h.Archived)
	missing := h.Executed.Subtract(covered)
	// Transactions of other servers are older than the promotion of this one, and are archived with its first log.
	return missing.Intersect(covered.UpTo()).IsEmpty() && missing.Subtract(h.Executed.OfServer(h.ServerUUID)).IsEmpty()
}

// diverged is what a backup holds of which neither the active site nor its archive knows: a failover lost it. What the site that writes has numbered itself
// is only newer than what is known of it.
func (h Held) diverged(set gtid.Set) gtid.Set {
	if h.Executed.IsEmpty() {
		return gtid.Set{} // unknown
	}
	beyond := set.Subtract(h.Executed).Subtract(h.Archived)
	return beyond.Subtract(beyond.OfServer(h.ServerUUID))
}
