// SPDX-License-Identifier: Apache-2.0

package groupevents

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// Whoever drains a node sees only that the eviction is refused: that the role stays, why, and what to do is a condition,
// and an event once for each reason.
func TestARoleThatStaysIsTold(t *testing.T) {
	stays := func(why failover.Reason) failover.Decision {
		return failover.Decision{Topology: failover.TopologyHealthy, Verdict: failover.VerdictNothing, Stays: &failover.Stays{
			Site: "east", Leaving: "node n1 is cordoned", Reason: why, Message: "spec.failover.mode is Observe; set it to Manual or Auto"}}
	}
	find := func(d failover.Decision) conditions.Condition {
		for _, c := range groupstatus.Conditions(d, "", time.Now()) {
			if c.Type == v1alpha1.ConditionPlannedBlocked {
				return c
			}
		}
		t.Fatal("no condition")
		return conditions.Condition{}
	}
	c := find(stays(v1alpha1.ReasonModeObserve))
	if c.Status != "True" || c.Reason != "ModeObserve" || !strings.Contains(c.Message, "n1 is cordoned") || !strings.Contains(c.Message, "set it to Manual") {
		t.Errorf("got %+v", c)
	}
	if c := find(failover.Decision{Topology: failover.TopologyHealthy}); c.Status != "False" {
		t.Errorf("got %+v", c)
	}
	k := Told{Key: types.NamespacedName{Namespace: "shop", Name: "orders"}}
	var said []string
	emit := func(_ string, e events.Event, format string, args ...any) {
		said = append(said, string(e.Reason)+" "+strings.Split(fmt.Sprintf(format, args...), ":")[0])
	}
	for _, d := range []failover.Decision{
		{}, stays(v1alpha1.ReasonModeObserve), stays(v1alpha1.ReasonModeObserve), stays(v1alpha1.ReasonTargetLags), {}, stays(v1alpha1.ReasonTargetLags),
	} {
		k.staysEvent(emit, d)
	}
	want := []string{"PlannedFailoverBlocked ModeObserve", "PlannedFailoverBlocked TargetLags", "PlannedFailoverBlocked TargetLags"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
