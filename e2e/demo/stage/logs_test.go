// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"testing"

	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// What a test did itself is left out, and nothing else.
func TestExcused(t *testing.T) {
	const uuid = "11111111-1111-1111-1111-111111111111"
	own := func(site, id string) commits.Transaction {
		all := logged(site, 1, 1)
		all[0].GTID = uuid + ":" + id
		return all[0]
	}
	applied := own("east", "2")
	applied.Server = 2
	w := &Witnesses{logs: &Logs{excused: map[string]gtid.Set{}}}
	if err := w.Excuse("east", uuid+":2-3"); err != nil {
		t.Fatal(err)
	}
	if err := w.Excuse("east", "no set"); err == nil {
		t.Error("what is no set excuses nothing")
	}
	left, err := w.logs.without([]commits.Transaction{own("east", "1"), own("east", "2"), own("east", "3"), own("west", "2"), applied})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range left {
		got = append(got, l.Site+l.GTID[len(uuid):])
	}
	if len(got) != 3 || got[0] != "east:1" || got[1] != "west:2" || got[2] != "east:2" {
		t.Errorf("left %v", got)
	}
}
