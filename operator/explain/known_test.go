// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestAnOrderThatOpensNothingIsNoAdvice: only who is opened again by order is said to be.
func TestAnOrderThatOpensNothingIsNoAdvice(t *testing.T) {
	for verdict, want := range map[failover.Verdict]int{failover.VerdictReopen: 1, failover.VerdictBlocked: 0, failover.VerdictFailover: 0, failover.VerdictWait: 0} {
		a := factstest.Seen("a", "A:1-9", 4)
		x := explained{s: factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, a), active: a, d: failover.Decision{Verdict: verdict, Reason: v1alpha1.ReasonForced}}
		if r := x.returned(); len(r.Remedies) != want {
			t.Errorf("%s: %+v", verdict, r.Remedies)
		}
	}
}
