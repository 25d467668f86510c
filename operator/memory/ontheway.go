// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// onTheWay is how long a replica may have more of the active site's own transactions than the active site says it has executed. MySQL sends a
// transaction once it is in the binary log, and counts it as executed only after the storage engine has committed it: on a server that starves,
// or whose commits wait for a lock, seconds can pass in between.
const onTheWay = 10 * time.Second

// withoutOnTheWay is what a site has and the active site lacks, without transactions that the active site is about to commit itself: those
// that it has numbered. No other server gives these numbers, because a clone is another server (decision 0014). If they stay for longer, the
// active site has lost data, as after a volume was put back, and the site has diverged after all (I10).
func withoutOnTheWay(s facts.Snapshot, old facts.Memory, is *facts.SiteMemory, active facts.Site, errant gtid.Set, site string) gtid.Set {
	own := errant.OfServer(active.MySQL.ServerUUID)
	if own.IsEmpty() {
		return errant
	}
	is.AheadSince = OrNow(old.Of(site).AheadSince, s.Now)
	if s.Now.Sub(is.AheadSince) >= onTheWay {
		return errant
	}
	return errant.Subtract(own)
}
