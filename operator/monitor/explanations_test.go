// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/failover"
)

func TestExplanationsOfTheLastDecision(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "orders"}
	var all Explanations
	if _, known := all.Explain("shop", "orders"); known {
		t.Error("explained a group that was never looked at")
	}
	s := failover.Snapshot{Now: time.Unix(1, 0), Status: failover.Durable{Epoch: 3, ActiveSite: "a"}}
	d := failover.Decide(s, failover.Memory{})
	all.Keep(key, s, failover.Memory{}, d)
	e, known := all.Explain("shop", "orders")
	if !known || e.Verdict != string(d.Verdict) || e.Reason != string(d.Reason) || !e.At.Equal(s.Now) {
		t.Errorf("got %+v for %s %s", e, d.Verdict, d.Reason)
	}
	all.Drop(key)
	if _, known := all.Explain("shop", "orders"); known {
		t.Error("explained a group that is gone")
	}
}
