// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestClocksAreEvened: the lag of a replica is told beside its own source, and stands as it is where either clock is not known.
func TestClocksAreEvened(t *testing.T) {
	at := func(ahead float64) *mysql.Status {
		return &mysql.Status{ClockAhead: &ahead, Replica: mysql.ReplicaBehind(0.55)}
	}
	for name, tc := range map[string]struct {
		east, west *mysql.Status
		of         string
		want       float64
	}{
		"half a second ahead of its source": {at(2), at(2.5), "east", 0.05},
		"as its source":                     {at(2), at(2), "east", 0.55},
		"its source did not answer":         {nil, at(2.5), "east", 0.55},
		"its source took too long":          {&mysql.Status{}, at(2.5), "east", 0.55},
		"it took too long":                  {at(2), &mysql.Status{Replica: mysql.ReplicaBehind(0.55)}, "east", 0.55},
		"it follows somebody else":          {at(2), at(2.5), "", 0.55},
	} {
		sites := []failover.Site{{Name: "east"}, {Name: "west"}}
		sites[1].MySQL = merge(tc.west, failover.Sidecar{})
		sites[1].MySQL.ReplicaOf = tc.of
		evenClocks(sites, []*mysql.Status{tc.east, tc.west})
		if got := sites[1].MySQL.LagSeconds; got == nil || *got-tc.want > 1e-6 || tc.want-*got > 1e-6 {
			t.Errorf("%s: %v, want %v", name, *got, tc.want)
		}
	}
}
