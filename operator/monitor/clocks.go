// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// evenClocks corrects the lag of each replica by the difference between its server's clock and its source's. Otherwise a replica's
// clock that is half a second ahead means half a second of lag, and under load no planned failover to it would be possible.
func evenClocks(sites []failover.Site, seen []*mysql.Status) {
	ahead := map[string]*float64{}
	for i, site := range sites {
		if seen[i] != nil {
			ahead[site.Name] = seen[i].ClockAhead
		}
	}
	for i := range sites {
		own, source := ahead[sites[i].Name], ahead[sites[i].MySQL.ReplicaOf]
		if own != nil && source != nil && seen[i].Replica != nil {
			sites[i].MySQL.LagSeconds = seen[i].Replica.LagBeside(*own - *source)
		}
	}
}
