// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// Topology names in one word what the poll saw of the group.
type Topology string

// The topologies.
const (
	TopologyUninitialised  Topology = "Uninitialised"
	TopologyHealthy        Topology = "Healthy"
	TopologyActiveReadOnly Topology = "ActiveReadOnly"
	TopologyActiveDown     Topology = "ActiveDown"
	TopologyActiveSilent   Topology = "ActiveSilent"
	TopologyAllUnreachable Topology = "AllUnreachable"
	TopologyTransition     Topology = "Transition"
)

// Verdict names in one word what the operator does about it.
type Verdict string

// The verdicts.
const (
	VerdictNothing   Verdict = "Nothing"
	VerdictWait      Verdict = "Wait"
	VerdictReopen    Verdict = "Reopen"
	VerdictBootstrap Verdict = "Bootstrap"
	VerdictFailover  Verdict = "Failover"
	VerdictPromote   Verdict = "Promote"
	VerdictComplete  Verdict = "Complete"
	VerdictBlocked   Verdict = "Blocked"
	VerdictAlert     Verdict = "Alert"
)

// Decision is the whole answer of one poll.
type Decision struct {
	Topology Topology
	Verdict  Verdict
	Reason   Reason
	Message  string
	// Status is persisted before any effect if it differs from the snapshot's.
	Status  Durable
	Persist bool
	Memory  Memory
	// Hold is true if the statement holds: no site may open writes.
	Hold bool
	// Effects are performed in order; the first failure ends the pass.
	Effects []Effect
	Views   []views.View
	// Forecast is what would happen if the active site were lost; nil unless the group is healthy.
	Forecast *promotion.Forecast
	// Unwritable is set while the active site is open, but clients cannot write to it.
	Unwritable *views.Unwritable
	// Stays is set while the active site is about to go but keeps its role.
	Stays *Stays
	// OrderWaits is true while a person's order is neither followed nor answered: whether the open site's volume takes writes shows in seconds.
	OrderWaits bool
	// StallStands says why no other site takes over from an active site whose volume takes no writes; empty if no takeover is due.
	StallStands string
	// Next is when to look again at the latest; zero means at the poll interval.
	Next   time.Duration
	urgent bool
}

// Blocked is true if a failover is due or under way and cannot continue without help or a change of the facts.
func (d Decision) Blocked() bool { return d.Verdict == VerdictBlocked || d.Verdict == VerdictAlert }

// Stays says why an active site that is about to go keeps its role. It holds nothing that changes with every poll.
type Stays struct {
	Site, Leaving string
	Reason        Reason
	Message       string
	// Remedies are what people can do about that reason; nil if the message says so itself.
	Remedies []Remedy
}

// check verifies what must hold of every decision before it is performed. A violation is a bug: nothing is performed.
func (d Decision) check(s Snapshot) error {
	before := s.Status
	if named, _ := s.Site(d.Status.ActiveSite); named.KeptFenced && !d.Hold {
		return fmt.Errorf("lets %s open, which a person keeps fenced (I29)", named.Name)
	}
	for i, e := range d.Effects {
		open, ok := e.(Open)
		if !ok {
			continue
		}
		if open.Site != d.Status.ActiveSite {
			return fmt.Errorf("opens %s but the active site is %s (I1)", open.Site, d.Status.ActiveSite)
		}
		if i != len(d.Effects)-1 {
			// This also keeps it to at most one site at a time.
			return fmt.Errorf("opening %s is not the last effect (I1, I2)", open.Site)
		}
		if d.Hold {
			return fmt.Errorf("opens %s while the statement holds (I1)", open.Site)
		}
		if site, _ := s.Site(open.Site); promotion.IsUnescrowed(s, d.Memory, site) != "" {
			return fmt.Errorf("opens %s, whose keyring is not escrowed (I16)", open.Site)
		}
	}
	switch {
	case d.Status.Epoch < before.Epoch:
		return fmt.Errorf("epoch goes back from %d to %d (I2)", before.Epoch, d.Status.Epoch)
	case d.Status.Epoch > before.Epoch && d.Status.Epoch > wire.MaxEpoch:
		return fmt.Errorf("epoch %d is more than a statement can carry (I2): see docs/failover.md", d.Status.Epoch)
	case d.Status.ActiveSite != before.ActiveSite && d.Status.Epoch <= before.Epoch:
		return fmt.Errorf("active site changes from %s to %s under epoch %d (I2)", before.ActiveSite, d.Status.ActiveSite, before.Epoch)
	case d.Status.Transition != nil && d.Status.Transition.Step == v1alpha1.TransitionFencing && !d.Hold:
		return fmt.Errorf("statement does not hold before the promotion gate (I1)")
	case d.Status.Transition.Moves() && d.Status.Transition.Step == v1alpha1.TransitionOpening &&
		!d.Status.Transition.ToExecuted.Contains(d.Status.Transition.FromExecuted):
		return fmt.Errorf("planned failover opens %s without all of %s (I13)", d.Status.Transition.To, d.Status.Transition.From)
	}
	return nil
}

// Urgent is true while a planned failover keeps writes out: nothing but the move itself may take time then. It is also true for
// the decision that ends the move: that one rests on a look that hardly waited for the other sites, so the operator reports them
// after the next look. A move that is blocked, or takes longer than it may, is reported like any other trouble.
func (d Decision) Urgent() bool { return d.urgent }
