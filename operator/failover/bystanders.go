// SPDX-License-Identifier: Apache-2.0

package failover

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// InDoubt is true if the active site was not seen open for writes by the operator itself in this poll, or is about to go while nobody has
// caught up who could take its place. Who works on a candidate beside the loop gets out of the way then.
func InDoubt(s Snapshot, d Decision) bool {
	active, _ := s.Site(s.Status.ActiveSite)
	if d.Stays != nil && d.Stays.Reason == v1alpha1.ReasonTargetLags {
		return true
	}
	return s.Status.ActiveSite != "" && (!active.MySQL.Direct || !active.Sidecar.Answered || !active.Writable())
}

// Target is the site that is being promoted, or that a planned failover waits for to catch up; empty if there is none. What was decided in
// this poll counts too: who works beside the loop must be out of the way before the target is promoted, and may be the very reason why
// that does not catch up.
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
