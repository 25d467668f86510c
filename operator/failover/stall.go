// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// An active site can be open, with a sidecar and a MySQL that answer, while its data volume takes no writes: every commit hangs, or
// fails. It looks healthy to every other rule. After stallTimeout a site whose own volume takes writes replaces it (decision 0020).

// StalledFor is how long the volume has taken no writes: the shorter of what the polls saw and what the probe says, which looks more often.
func StalledFor(s Snapshot, m Memory, a Site) time.Duration {
	if !a.Stalls() {
		return 0
	}
	return min(s.Now.Sub(memory.OrNow(m.Of(a.Name).StalledSince, s.Now)), time.Duration(a.Sidecar.Report.WriteProbe.ForMillis)*time.Millisecond)
}

// mayTakeNoWrites says that it is not known whether a candidate is any better than a site whose volume is stalled, or "". It takes nothing
// for granted: replicas may be on the same storage. That a candidate is no better makes it unfit (promotion.IsVolumeFailing).
func mayTakeNoWrites(site Site) string {
	p := site.Sidecar.Report.VolumeProbe
	if p == nil || time.Duration(p.AgeMillis)*time.Millisecond > promotion.VolumeValid || p.Outcome != wire.WriteDone {
		return "it is not known whether its own volume takes writes" // the stall goes on; a move to another stall would cost data too
	}
	return ""
}

// orderedAway follows a person's order to leave a site whose volume takes no writes. It is open, but no client gets a commit acknowledged, so the
// order throws away no more than at any site that is down. It may be the only way out: in mode Manual, in a pause, in the cooldown, above the loss
// budget or without a stallTimeout.
func orderedAway(s Snapshot, d Decision, a Site, lasted time.Duration) Decision {
	if _, known := s.Site(s.Order.To); !known || !s.Order.Elsewhere(a.Name) || !a.Stalls() {
		return d // it acknowledges writes, or nothing is ordered
	}
	if lasted < promotion.StallLasts {
		// It may only be slow. The order must not be answered as one for a site that accepts writes: it would be gone when that shows. After a
		// change of leader this begins again.
		d.OrderWaits = true
		return d.within(promotion.StallLasts - lasted)
	}
	d.Effects = nil
	d = due(s, d, TopologyTransition, v1alpha1.ReasonForced)
	d.Status.Transition.DetectedAt = d.Memory.Of(a.Name).StalledSince
	return d
}

// stalled replaces an active site whose volume has taken no writes for stallTimeout, or says why it may not.
func stalled(s Snapshot, d Decision, a Site) Decision {
	limit, lasted := s.Policy.StallTimeout, StalledFor(s, d.Memory, a)
	if d = orderedAway(s, d, a, lasted); d.Status.Transition != nil {
		return d
	}
	if limit <= 0 || lasted == 0 {
		return d
	}
	if lasted < limit {
		return d.within(limit - lasted)
	}
	best, each := promotion.Candidate{}, []string(nil)
	for _, c := range promotion.Rank(s, d.Memory) {
		if c.Site.Name == a.Name {
			continue
		}
		if why := cmp.Or(c.Unfit.Why, mayTakeNoWrites(c.Site)); why != "" {
			each = append(each, c.Site.Name+": "+why)
		} else if best.Site.Name == "" {
			best = c
		}
	}
	found := best.Site.Name != ""
	if no := promotion.FirstAgainst(promotion.Permissions, promotion.Ask(s, d.Memory, best, found)); no.Reason != "" {
		message := no.Message
		if !found && s.Policy.Mode == v1alpha1.FailoverAuto && !s.Paused() {
			slices.Sort(each) // the ranking may change with every look
			message = "no site is fit (" + strings.Join(each, ", ") + ")"
		}
		d.StallStands = message
		return d
	}
	why := Reason(a.Sidecar.Report.WriteProbe.Reason)
	refused := promotion.Preflight(s, d.Memory, a, best.Site.Name).Reason
	// A large open change only makes a planned move longer, and an emergency failover would lose more. It would go to a volume that goes, too.
	if may := slices.Contains([]Reason{"", v1alpha1.ReasonLargeChange, v1alpha1.ReasonVolumeTerminating}, refused); why == ReasonDiskFailed && may && !triedPlanned(s) {
		if near, _ := promotion.IsClose(a, best.Site); near {
			// Its commits fail rather than hang, so it can be fenced with all that it holds: that loses nothing.
			return d.move(s, Planned{From: a.Name, To: best.Site.Name, Cause: v1alpha1.ReasonVolumeFails, StartedAt: s.Now})
		}
	}
	d.Effects = nil
	d = d.begin(s, v1alpha1.FailoverEmergency, best.Site.Name, why)
	d.Status.Transition.DetectedAt = d.Memory.Of(a.Name).StalledSince
	return d.say(TopologyTransition, VerdictFailover, why, "the data volume of %s has taken no writes for %s: failover %s -> %s under epoch %d",
		a.Name, lasted.Round(time.Second), a.Name, best.Site.Name, d.Status.Epoch)
}

// triedPlanned is true if the last planned failover was to end the same trouble, and was reverted less than leavingRetryMost ago.
func triedPlanned(s Snapshot) bool {
	p := s.Status.Planned
	return p != nil && p.Cause == v1alpha1.ReasonVolumeFails && p.Phase == v1alpha1.PlannedReverted && s.Age(p.FinishedAt) < leavingRetryMost
}
