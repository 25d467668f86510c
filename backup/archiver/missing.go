// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"slices"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// clear removes manifests of our folder that cannot be read, and those whose data is missing: what they told of is uploaded once more while the server
// has it.
func (w *work) clear(ctx context.Context, l archive.Listing, st serverState) (archive.Listing, error) {
	for _, u := range l.Unreadable {
		if err := w.archive.RemoveUnreadable(ctx, w.folder(), u); err != nil {
			return l, err
		}
	}
	l, _, err := w.clearMissing(ctx, l, st)
	return l, err
}

// clearMissing removes the manifests of our folder whose data is missing, and returns the listing without them. It leaves those of logs that the server
// does not have any more: they say exactly what the gap is. Credentials that may not delete leave them too.
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
			if bucket.KindOf(err) == bucket.NoDeleteRight {
				err = nil
			}
			return left, removed, err
		}
		removed++
	}
	return left, removed, nil
}

// tellMissing logs what is missing when that has changed.
func (w *work) tellMissing(missing []archive.Log) {
	if n := len(missing); n > 0 && n != w.missed {
		w.p.log.Error("archived files are missing in the storage: somebody else removed or cut them", "files", n, "first", missing[0].Name())
	}
	w.missed = len(missing)
}

// isOf is true for a file of a folder.
func isOf(f archive.Log, folder archive.LogManifest) bool {
	return f.Epoch == folder.Epoch && f.Site == folder.Site && f.ServerUUID == folder.ServerUUID
}
