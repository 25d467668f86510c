// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// ownedFor is for how long it is believed that the place is ours after it was asked.
const ownedFor = 2 * time.Minute

// mayWrite is asked before anything counts in the archive (I26): it is still this site's turn, and the place was this group's a moment ago.
func (w *work) mayWrite(ctx context.Context) error {
	if err := w.p.stillMine(ctx, w.epoch); err != nil {
		return err
	}
	if w.p.now().Sub(time.Unix(0, w.owned.Load())) < ownedFor {
		return nil
	}
	return w.stillOurs(ctx)
}

// stillOurs fails if the place has become another group's: people give it away once they take a group for gone, and it may be there all the same. Two groups
// have epochs of the same numbers, and each would remove what the other one wrote.
func (w *work) stillOurs(ctx context.Context) error {
	asked := w.p.now()
	foreign, err := w.archive.IsForeign(ctx, w.p.config.GroupUID)
	switch {
	case err != nil:
		return err
	case foreign:
		w.again() // which ends here, and in Claim
		return failf(Reason(bucket.Foreign), "the place of the archive, %s, is another group's now, by its owner.json; two histories are never mixed: give the profile another prefix", w.archive.Location())
	}
	w.owned.Store(asked.UnixNano())
	return nil
}
