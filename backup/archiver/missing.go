// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"slices"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// clear removes manifests of our folder that cannot be read, and those whose data is missing, and returns the listing without them: what they told of is
// uploaded once more while the server has it.
func (w *work) clear(ctx context.Context, l archive.Listing, st serverState) (left archive.Listing, removed int, err error) {
	left, bad, err := w.clearUnreadable(ctx, l, st)
	if err != nil {
		return left, bad, err
	}
	left, gone, err := w.clearMissing(ctx, left, st)
	return left, bad + gone, err
}

// clearUnreadable leaves the manifests of logs that the server does not have any more: while they are there, the data that they named is not swept.
func (w *work) clearUnreadable(ctx context.Context, l archive.Listing, st serverState) (left archive.Listing, removed int, err error) {
	left, left.Unreadable = l, nil
	defer func() { w.tellUnreadable(left.Unreadable) }()
	for i, u := range l.Unreadable {
		gone := false
		if slices.Contains(st.Logs, u.Log()) {
			gone, err = w.archive.RemoveUnreadable(ctx, w.folder(), u)
		}
		switch {
		case err != nil:
			left.Unreadable = append(left.Unreadable, l.Unreadable[i:]...)
			return left, removed, tolerated(err)
		case gone:
			removed++
		default:
			left.Unreadable = append(left.Unreadable, u)
		}
	}
	return left, removed, nil
}

// tolerated is nil for credentials that may not delete: what cannot be removed stays, and archiving goes on beside it.
func tolerated(err error) error {
	if bucket.KindOf(err) == bucket.NoDeleteRight {
		return nil
	}
	return err
}

// clearMissing leaves the manifests of logs that the server does not have any more: they say exactly what the gap is.
func (w *work) clearMissing(ctx context.Context, l archive.Listing, st serverState) (left archive.Listing, removed int, err error) {
	w.tellMissing(l.Missing)
	left, left.Missing = l, nil
	for i, m := range l.Missing {
		if !isOf(m, w.folder()) || !slices.Contains(st.Logs, m.Log) {
			left.Missing = append(left.Missing, m)
			continue
		}
		if err := w.archive.Remove(ctx, m); err != nil {
			left.Missing = append(left.Missing, l.Missing[i:]...)
			return left, removed, tolerated(err)
		}
		removed++
	}
	return left, removed, nil
}

// takeIn takes in a new listing. If anything is gone with what told of it, the ledger does not know it any more, and the work is far behind it: the epoch is
// taken over once more, which archives again what the server still has.
func (w *work) takeIn(before int, l archive.Listing) {
	if lost := w.ledger.replace(before, l); !lost.IsEmpty() {
		w.p.log.Error("archived transactions are gone from the storage: somebody else removed them, or spoilt what tells of them", "transactions", lost.Count())
		w.again()
	}
}

// again has the epoch taken over once more.
func (w *work) again() {
	w.stale.Store(true)
	w.p.nudge()
}

// tellMissing logs what is missing when that has changed.
func (w *work) tellMissing(missing []archive.Log) {
	if n := len(missing); n > 0 && n != w.missed {
		w.p.log.Error("archived files are missing in the storage: somebody else removed or cut them", "files", n, "first", missing[0].Name())
	}
	w.missed = len(missing)
}

// tellUnreadable logs which objects cannot be read and stay, when that has changed. What a manifest told of is a gap in status, which does not say why.
func (w *work) tellUnreadable(left []archive.Unreadable) {
	if n := len(left); n > 0 && n != w.unreadable {
		w.p.log.Error("objects of the archive cannot be read, and stay: what they told of is missing", "files", n, "first", left[0].Key, "error", left[0].Err)
	}
	w.unreadable = len(left)
}

// isOf is true for a file of a folder.
func isOf(f archive.Log, folder archive.LogManifest) bool {
	return f.Epoch == folder.Epoch && f.Site == folder.Site && f.ServerUUID == folder.ServerUUID
}
