// SPDX-License-Identifier: Apache-2.0

package failover

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// InDoubt is true if the operator itself did not see the active site open for writes in this poll, or if that site is about to go while
// no site that could take its place has caught up. Work on a candidate beside the loop gets out of the way then.
func InDoubt(s Snapshot, d Decision) bool {
	active, _ := s.Site(s.Status.ActiveSite)
	if d.Stays != nil && d.Stays.Reason == v1alpha1.ReasonTargetLags {
		return true
	}
	return s.Status.ActiveSite != "" && (!active.MySQL.Direct || !active.Sidecar.Answered || !active.Writable())
}

// Target is the site that is being promoted, or that must catch up before a planned failover; empty if there is none. What was decided in
// this poll counts too: work beside the loop must be out of the way before the target is promoted, and may be the very reason why the
// target does not catch up.
func Target(s Snapshot, d Decision) string {
	for _, t := range []*Transition{d.Status.Transition, s.Status.Transition} {
		if t != nil {
			return t.To
		}
	}
	for _, p := range []*Planned{d.Status.Planned, s.Status.Planned} {
		if p != nil && p.Phase == v1alpha1.PlannedWaiting {
			return p.To
		}
	}
	return ""
}
