// SPDX-License-Identifier: Apache-2.0

// Package pitr decides about the archive of binary logs of a group: what may be removed from it, whether it grows as it should, from which
// backup on it can be applied, and how long the sites keep what it does not have yet. It is pure; operator/archiving is its shell. The
// format of the archive is internal/archive's, and only the archiver and restores read its contents.
package pitr

import (
	"cmp"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// CutoffOf answers the archiver of a group. backups are all MysqlBackups of the group, place is where its archive lies; nowhere if it has none.
func CutoffOf(group *v1alpha1.MysqlFailoverGroup, backups []v1alpha1.MysqlBackup, place v1alpha1.StoragePlace) wire.Cutoff {
	st := &group.Status
	out := wire.Cutoff{Namespace: group.Namespace, Group: group.Name, Epoch: st.Epoch, Site: st.ActiveSite, Epochs: epochs(st)}
	if oldest, ok := Retained(backups, place); ok {
		at := oldest.At
		if needed, is := neededFrom(backups, place); is && needed.Before(at) {
			at = needed
		}
		out.Cutoff, out.Backup, out.GTIDExecuted = &at, oldest.Name, oldest.Executed.String()
		out.Backups = oldest.Unread
	}
	return out
}

// Oldest is the oldest kept backup.
type Oldest struct {
	Name string
	// At is when it began: what it holds was committed before or while it was made.
	At time.Time
	// Executed is what every kept backup holds: one of a lagging replica may begin later than another, and hold less.
	Executed gtid.Set
	// Unread are the names of all kept backups if the set of any was too long to report. Then Executed is empty: the storage has the sets.
	Unread []string
}

// Retained returns the oldest of the backups in the archive's storage, of any profile. It is false if there is none, if it is not known when
// one began, or if there are more to read than an archiver can be told: then nothing may be removed (I27). One that is being removed counts
// while its MysqlBackup exists.
func Retained(backups []v1alpha1.MysqlBackup, place v1alpha1.StoragePlace) (Oldest, bool) {
	// The location alone decides: a server with another name may be the same one, and then its backups need this archive.
	place.Digest = ""
	var out Oldest
	var names []string
	allKnown := true
	for i := range backups {
		b := &backups[i]
		if !isKept(b, place) {
			continue
		}
		if b.Status.StartedAt == nil {
			return Oldest{}, false
		}
		set, known := heldBy(b)
		allKnown = allKnown && known
		names = append(names, b.Name)
		if len(names) == 1 {
			out.Executed = set
		}
		out.Executed = out.Executed.Intersect(set)
		if len(names) == 1 || b.Status.StartedAt.Time.Before(out.At) {
			out.Name, out.At = b.Name, b.Status.StartedAt.UTC()
		}
	}
	switch {
	case len(names) == 0 || !allKnown && len(names) > wire.MaxCutoffBackups:
		return Oldest{}, false
	case !allKnown:
		slices.Sort(names)
		out.Executed, out.Unread = gtid.Set{}, names
	}
	return out, true
}

// madeBack is how long before its beginning everything was committed that a backup lacks: its site lags a day at most (source.maxLag). The rest is
// for clocks, and for lag that was measured a moment before.
const madeBack = 25 * time.Hour

// neededFrom returns since when the archive is needed by a backup that is being made there; false if none is. What that one will hold is not
// known, and can be less than all kept ones hold if its site lags: what it lacks must still be there when it is completed (I27).
func neededFrom(backups []v1alpha1.MysqlBackup, place v1alpha1.StoragePlace) (from time.Time, is bool) {
	place.Digest = ""
	for i := range backups {
		st := &backups[i].Status
		// One that waits for its next try may have a manifest that was not found yet.
		open := st.Phase == v1alpha1.BackupRunning || st.Phase == v1alpha1.BackupPending
		if !open || st.StartedAt == nil || !st.LiesIn(place) {
			continue
		}
		if began := st.StartedAt.Add(-madeBack).UTC(); !is || began.Before(from) {
			from, is = began, true
		}
	}
	return from, is
}

// heldBy returns what a backup holds. That is unknown if its set was too long to report: then status says nothing, as for an empty set.
func heldBy(b *v1alpha1.MysqlBackup) (gtid.Set, bool) {
	set, err := gtid.Parse(b.Status.GTIDExecuted)
	return set, err == nil && !set.IsEmpty()
}

// isKept is true for a backup that a restore could begin with, as far as its MysqlBackup tells.
func isKept(b *v1alpha1.MysqlBackup, place v1alpha1.StoragePlace) bool {
	if place.Location == "" || !b.Status.LiesIn(place) {
		return false
	}
	return b.Status.Phase == v1alpha1.BackupCompleted || b.Status.Phase == v1alpha1.BackupDeleting && b.Status.FinishedAt != nil
}

// epochs returns what each epoch began with, the newest first. A group of an earlier version has only its records, and an epoch with an
// unknown beginning is left out: what is left out is never taken for lost.
func epochs(st *v1alpha1.MysqlFailoverGroupStatus) []wire.CutoffEpoch {
	known := map[int64]bool{}
	out := []wire.CutoffEpoch{}
	for _, e := range st.Epochs {
		known[e.Epoch] = true
		out = append(out, wire.CutoffEpoch{Epoch: e.Epoch, Site: e.Site, ServerUUID: e.ServerUUID, PromotedAt: e.PromotedAt.UTC(), Kind: string(e.Kind),
			GTIDExecuted: e.GTIDExecuted})
	}
	for _, r := range st.Failovers {
		if known[r.Epoch] {
			continue
		}
		known[r.Epoch] = true
		if r.ToExecuted != "" { // a record that had no room for its set does not say that its epoch began with nothing
			out = append(out, wire.CutoffEpoch{Epoch: r.Epoch, Site: r.To, PromotedAt: r.OpenedAt.UTC(), Kind: string(r.Kind), GTIDExecuted: r.ToExecuted})
		}
	}
	if st.Epoch == 1 && !known[1] && st.Transition == nil && st.ActiveSiteSince != nil {
		// The first one began with what there was; nothing came before it that it could have lost.
		out = append(out, wire.CutoffEpoch{Epoch: 1, Site: st.ActiveSite, PromotedAt: st.ActiveSiteSince.UTC(), Kind: string(v1alpha1.FailoverBootstrap)})
	}
	slices.SortFunc(out, func(a, b wire.CutoffEpoch) int { return cmp.Compare(b.Epoch, a.Epoch) })
	return fitting(out[:min(len(out), wire.MaxCutoffEpochs)])
}

// epochsMost bounds the sets of the epochs of an answer, which has them twice: of 64 epochs with long sets, the oldest are left out. The archive
// has those already.
const epochsMost = 128 << 10

func fitting(newestFirst []wire.CutoffEpoch) []wire.CutoffEpoch {
	bytes := 0
	for i, e := range newestFirst {
		if bytes += len(e.GTIDExecuted); bytes > epochsMost && i > 0 {
			return newestFirst[:i]
		}
	}
	return newestFirst
}
