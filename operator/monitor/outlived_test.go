// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestTheNextOperatorKnowsWhoOutlivedItsLeaseI9: what was seen before it began must not be forgotten, or it would act sooner.
func TestTheNextOperatorKnowsWhoOutlivedItsLeaseI9(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	views := []failover.View{{Name: "east"}, {Name: "south"}, {Name: "west"}}
	want := []string{"east", "west"}
	durable, err := fromStatus(l.statusOf(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, Outlived: want}, views))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := fromStatus(l.statusOf(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, RowsOutside: 2}, views)); err != nil || rows.RowsOutside != 2 {
		t.Errorf("I9: rows outside InnoDB: %d, %v", rows.RowsOutside, err)
	}
	if diff := cmp.Diff(want, durable.Outlived); diff != "" {
		t.Errorf("I9: outlived their lease (-want +got):\n%s", diff)
	}
}
