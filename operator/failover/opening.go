// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// opening continues a transition whose gate was passed: no site but the target can be open under this epoch or an
// older one, so the target is the active site in all but name.
func opening(s Snapshot, d Decision) Decision {
	t := s.Status.Transition
	target, _ := s.Site(t.To)
	down := s.Now.Sub(memory.OrNow(d.Memory.Of(t.To).IndirectSince, s.Now))
	stuck := opensLate(s, d.Memory)
	switch {
	case target.Writable():
		d.Hold = maySoonClose(s, d.Memory, target) // I16, I29: as in steady
		return complete(s, d)
	case s.Order.Elsewhere(t.To):
		return due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonForced)
	case target.Sidecar.Answered && target.MySQL.Direct && target.KeptFenced:
		return keptFenced(s, d.closed(s), target) // a person has kept it fenced since its gate was passed
	case target.Sidecar.Answered && target.MySQL.Direct && (target.OtherVolume || !target.MySQL.Executed.Contains(t.ToExecuted)):
		if s.Order.To != "" { // the order names this very site
			return accepted(s, d, target)
		}
		// What the site had when its gate was passed is gone. If it were opened now, it would be a copy from the past (I7, I12).
		d.Memory.At(t.To).Executed = t.ToExecuted
		lineage.MarkUnsettled(s, &d.Memory)
		return due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
	case target.Sidecar.Answered && target.MySQL.Direct:
		if r, may := target.WritesBeside(target.Pod.UID); may {
			return anew(s, d.closed(s), target, r) // another pod was allowed to open, and may be open
		}
		if next := due(s, d.closed(s), TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteCannotOpen); stuck && next.Verdict != VerdictBlocked {
			return next
		}
		if why := promotion.IsUnescrowed(s, d.Memory, target); why != "" {
			return d.keptShut(s, TopologyTransition, t.To, why)
		}
		d.Hold = false
		if d = reopening(s, d, target); stuck {
			return d.triedOn(s, target)
		}
		return d
	case target.Sidecar.Answered && down < s.Policy.CrashGrace, d.Memory.Of(t.To).SilentPolls < s.Policy.Threshold && !target.Sidecar.Answered:
		return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonOpening, "%s stopped answering while it was being opened", t.To)
	}
	return due(s, d.closed(s), TopologyActiveSilent, v1alpha1.ReasonActiveSiteSilent)
}

// opensLate is true once a target takes longer to open than any step may, by the clock of this process. Both have to say so: a clock that
// was set back in this very moment must not cost a target its role.
func opensLate(s Snapshot, m Memory) bool {
	return s.Led(s.Status.Transition.GatePassedAt) > s.Policy.DrainTimeout && late(s, m.DrainSince)
}

// reopening tries again to open a target.
func reopening(s Snapshot, d Decision, target Site) Decision {
	d = d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonOpening, "%s is being opened: %s", target.Name, target.Sidecar.Report.Message).
		then(Select{Site: target.Name}).within(s.Policy.PollInterval / 4)
	return d.then(toOpen(s, target)...)
}

// accepted continues with a target that a person ordered, although it has lost what it had when its gate was passed. Its
// record must not claim more than it holds by now.
func accepted(s Snapshot, d Decision, target Site) Decision {
	t := *s.Status.Transition
	lacks := t.ToExecuted.Subtract(target.MySQL.Executed)
	t.Kind, t.ToExecuted = v1alpha1.FailoverForced, target.MySQL.Executed
	d.Status.Transition = &t
	d = d.noteEpoch(s, t)
	d.Persist, d.Hold = true, true
	return d.say(TopologyTransition, VerdictWait, v1alpha1.ReasonForced, "a person ordered %s, and accepted that it lacks %s, which it had", t.To, lacks).
		within(time.Millisecond)
}
