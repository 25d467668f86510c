// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Planned is a planned failover: asked for, under way or over; see v1alpha1.PlannedFailoverStatus.
type Planned struct {
	From, To              string
	Cause                 Reason
	Phase                 v1alpha1.PlannedPhase
	Reason                Reason
	Message               string
	Remedies              []Remedy
	StartedAt, FinishedAt time.Time
	WritePause            time.Duration
	Answered              bool
}

// The reasons of an active site that is open, but whose volume takes no writes: its sidecar's own words.
const (
	ReasonDiskStalled = Reason(wire.WriteDiskStalled)
	ReasonDiskFailed  = Reason(wire.WriteDiskFailed)
)

// Transition is a change of the active site under way; see v1alpha1.Transition.
type Transition struct {
	Kind         v1alpha1.FailoverKind
	Step         v1alpha1.TransitionStep
	From, To     string
	FromUUID     string
	Reason       Reason
	DetectedAt   time.Time
	StartedAt    time.Time
	GatePassedAt time.Time
	FromExecuted gtid.Set
	ToExecuted   gtid.Set
	Evidence     []string
}

// Change is what a transition does with the role.
type Change string

// The changes.
const (
	// ChangeFirst gives the role to the first active site, if no site is known to have had it.
	ChangeFirst Change = "First"
	// ChangeTakeover gives it to another site because the active one is lost, or by order.
	ChangeTakeover Change = "Takeover"
	// ChangeMove gives it to another site while the active one is alive.
	ChangeMove Change = "Move"
	// ChangeReopen opens again the site that has it: after a move that was given up, or behind the gate for an earlier pod of it.
	ChangeReopen Change = "Reopen"
)

// Over is true once the outcome is known.
func (p *Planned) Over() bool {
	return p.Phase != v1alpha1.PlannedWaiting && p.Phase != v1alpha1.PlannedMoving
}

// OverDisk is true for a change that replaces a site because its volume takes no writes. The site is not opened again for what it
// alone has: that is fetched from it while it answers.
func (t *Transition) OverDisk() bool {
	return t.Reason == ReasonDiskStalled || t.Reason == ReasonDiskFailed
}

// Change depends on which site had the role and which one gets it.
func (t *Transition) Change() Change {
	switch {
	case t.From == "":
		return ChangeFirst
	case t.From == t.To:
		return ChangeReopen
	case t.Kind == v1alpha1.FailoverPlanned:
		return ChangeMove
	}
	return ChangeTakeover
}

// Moves is true for a transition that moves the role from a site that is alive to another. A nil one moves nothing.
func (t *Transition) Moves() bool { return t != nil && t.Change() == ChangeMove }

// Replaces is true if one site gets the role that another has.
func (t *Transition) Replaces() bool { return t.Change() == ChangeMove || t.Change() == ChangeTakeover }

// Patience is how long a poll waits for a site; silent is true if the site did not answer the poll before. It is short only for as long
// as a failover may take: one that drags on needs every site, and a site that always takes longer would never be heard.
func (t *Transition) Patience(site string, silent bool, now time.Time, p Policy) time.Duration {
	switch {
	case t.Urgent(now, p) && site != t.From && site != t.To:
		return BystanderTimeout
	case silent && t.isFresh(now, p) && site == t.From:
		return LostTimeout
	}
	return AskTimeout
}

// isFresh is true for as long as an emergency failover takes that waits only for a lease.
func (t *Transition) isFresh(now time.Time, p Policy) bool {
	return t != nil && t.Kind == v1alpha1.FailoverEmergency && within(now, t.StartedAt, 2*LeaseEnd(p.LeaseTimeout+p.FenceTimeout))
}

// within is true for as long as something has begun that lately. A beginning that lies ahead was noted by an earlier leader, whose clock is
// ahead: that was longer ago than a new leader takes to come, so it is not lately.
func within(now, began time.Time, limit time.Duration) bool {
	age := now.Sub(began)
	return age >= 0 && age < limit
}

// Urgent is true as long as a planned failover, and the way back from it, may take.
func (t *Transition) Urgent(now time.Time, p Policy) bool {
	return t != nil && t.Kind == v1alpha1.FailoverPlanned && within(now, t.StartedAt, 2*p.PlannedPauseTimeout)
}
