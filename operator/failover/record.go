// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

// complete records the change once the target was seen open.
func complete(s Snapshot, d Decision) Decision {
	t := *s.Status.Transition
	if s.Order.Accepted {
		t.Kind = v1alpha1.FailoverForced
	}
	d.Status.Transition = nil
	d.Status.ActiveSince = s.Now
	if t.Kind == v1alpha1.FailoverEmergency && t.Change() != facts.ChangeReopen {
		d.Status.CooldownUntil = s.Now.Add(s.Policy.Cooldown)
	}
	if t.Kind != v1alpha1.FailoverBootstrap {
		d.Status.Records = withRecord(s, t)
	}
	d = d.noteEpoch(s, t)
	d.Persist = true
	if p := s.Status.Planned; t.Moves() && p != nil && !p.Over() {
		d = d.end(*p, s.Now, v1alpha1.PlannedSucceeded, v1alpha1.ReasonOpened, "%s is active, writes were kept out for %s",
			t.To, pausedFor(s, t).Round(time.Millisecond))
		d.Status.Planned.WritePause = pausedFor(s, t)
	}
	if p := d.Status.Planned; t.Kind == v1alpha1.FailoverPlanned && t.Change() == facts.ChangeReopen && p != nil && p.WritePause == 0 {
		reverted := *p
		reverted.WritePause = pausedFor(s, t)
		d.Status.Planned = &reverted
	}
	return d.say(TopologyTransition, VerdictComplete, v1alpha1.ReasonOpened, "%s is active under epoch %d", t.To, s.Status.Epoch).
		then(Select{Site: t.To}).within(time.Millisecond)
}

// closed records a change whose target never opened, or failed before it was seen open, when the next change begins:
// what the first one lost must not be forgotten.
func (d Decision) closed(s Snapshot) Decision {
	t := *s.Status.Transition
	if t.Kind != v1alpha1.FailoverBootstrap {
		d.Status.Records = withRecord(s, t)
	}
	return d
}

// recordsKept is how many changes of the active site stay in status, whatever they say.
const recordsKept = 10

func withRecord(s Snapshot, t Transition) []v1alpha1.FailoverRecord {
	all := append([]v1alpha1.FailoverRecord{record(s, t)}, s.Status.Records...)
	kept := all[:min(len(all), recordsKept)]
	for i := len(kept); i < len(all); i++ {
		if isNeeded(s, all[:i], all[i]) {
			kept = append(kept, all[i])
		}
	}
	return bounded(s, kept)
}

const (
	// recordsBytes bounds the sets of transactions of all records together, as epochsBytes bounds those of the epochs, and for the same reason.
	recordsBytes = 256 << 10
	// evidenceBytes bounds one line of evidence: it may name a set too.
	evidenceBytes = 1 << 10
)

// bounded takes the sets out of the oldest records that have no room for them; what they count stays. Sets that a decision reads stay
// whatever their size is: all that was lost, what the present active site was opened with, and what the successor of a site had that
// may have something of its own (lineage). So status is longer than the bound rather than wrong.
func bounded(s Snapshot, all []v1alpha1.FailoverRecord) []v1alpha1.FailoverRecord {
	reads := make([]bool, len(all))
	room := recordsBytes
	for i, r := range all {
		reads[i] = i == 0 || isNeeded(s, all[:i], r)
		if room -= len(r.LostSet); reads[i] {
			room -= len(r.ToExecuted)
		}
	}
	for i := range all {
		r := &all[i]
		for j, line := range r.Evidence {
			if len(line) > evidenceBytes {
				r.Evidence = slices.Clone(r.Evidence) // status of before has it too
				r.Evidence[j] = strings.ToValidUTF8(line[:evidenceBytes], "") + "..."
			}
		}
		if !reads[i] {
			if room -= len(r.ToExecuted); room < 0 {
				r.ToExecuted = ""
			}
		}
		if room -= len(r.FromExecuted); room < 0 {
			r.FromExecuted = ""
		}
	}
	return all
}

// isNeeded is true for an old record if it alone says that a site may have what was written off (I10): the site can be away for many
// changes, and must not pass for a part of the group's history when it is back.
func isNeeded(s Snapshot, newer []v1alpha1.FailoverRecord, r v1alpha1.FailoverRecord) bool {
	if _, listed := s.Site(r.From); !listed || lineage.Reopens(r) || r.LossExact && r.LostTransactions == 0 {
		return false // a site that is not listed counts for nothing, and one that lost nothing has only what the group has
	}
	return !slices.ContainsFunc(newer, func(n v1alpha1.FailoverRecord) bool { return n.From == r.From || n.To == r.From })
}

// pausedFor is how long writes were kept out. It is none if the clock of an earlier leader, by which the change began, is ahead: not known.
func pausedFor(s Snapshot, t Transition) time.Duration { return max(0, s.Now.Sub(t.StartedAt)) }

func record(s Snapshot, t Transition) v1alpha1.FailoverRecord {
	since := func(at time.Time) int64 { return max(0, at.Sub(t.DetectedAt).Milliseconds()) }
	lost := t.FromExecuted.Subtract(t.ToExecuted)
	r := v1alpha1.FailoverRecord{
		Epoch: s.Status.Epoch, Kind: t.Kind, From: t.From, To: t.To, Reason: t.Reason,
		DetectedAt: metav1.NewMicroTime(t.DetectedAt), StartedAt: metav1.NewMicroTime(t.StartedAt), OpenedAt: metav1.NewMicroTime(s.Now),
		Timeline: []v1alpha1.TimelineEntry{
			{Step: "detected", Millis: 0},
			{Step: "decided", Millis: since(t.StartedAt)},
			{Step: "gatePassed", Millis: since(t.GatePassedAt)},
			{Step: "opened", Millis: since(s.Now)},
		},
		Evidence: t.Evidence, FromExecuted: t.FromExecuted.String(), ToExecuted: t.ToExecuted.String(),
		LostTransactions: lost.Count(), LostSet: lost.String(), FromServerUUID: t.FromUUID,
	}
	if t.Change() == facts.ChangeReopen || t.Moves() {
		r.LossExact = lost.IsEmpty()
	}
	if t.Kind == v1alpha1.FailoverPlanned {
		pause := pausedFor(s, t).Milliseconds()
		r.WritePauseMillis = &pause
	}
	return r
}
