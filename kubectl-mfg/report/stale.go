// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// stale says that the operator has not looked at the group for a while: what it says is old.
func stale(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus) []Problem {
	if live == nil {
		return nil
	}
	// Both times are of the operator's clock, so the clock of this machine does not matter.
	age := view.Status.IssuedAt.Sub(live.ObservedAt)
	if age <= staleAfter(cr) {
		return nil
	}
	return []Problem{{Reason: v1alpha1.ReasonStale, Message: fmt.Sprintf("the operator last looked at this group %s ago", age.Round(time.Second))}}
}

// IsStale is true if one of the problems is that the operator has not looked for a while.
func IsStale(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Reason == v1alpha1.ReasonStale })
}

func staleAfter(cr *v1alpha1.MysqlFailoverGroup) time.Duration {
	poll := cr.Spec.Failover.PollInterval.Duration
	if poll <= 0 {
		poll = defaultPollInterval
	}
	return max(staleAtLeast, staleAfterPolls*poll)
}
