// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Topology is what is seen, in one word.
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

// Verdict is what is done about it, in one word.
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

// Reason explains a verdict; it is shown as the reason of conditions, events and log lines.
type Reason string

// The reasons.
const (
	ReasonHealthy             Reason = "Healthy"
	ReasonWaitingForSites     Reason = "WaitingForSites"
	ReasonFirstSite           Reason = "FirstSite"
	ReasonCrashGrace          Reason = "WaitingForRestart"
	ReasonBelowThreshold      Reason = "BelowThreshold"
	ReasonReturnedWhole       Reason = "ReturnedWhole"
	ReasonActiveSiteDown      Reason = "ActiveSiteDown"
	ReasonActiveSiteSilent    Reason = "ActiveSiteSilent"
	ReasonActiveSiteBehind    Reason = "ActiveSiteBehind"
	ReasonStatusBehind        Reason = "StatusBehind"
	ReasonCannotOpen          Reason = "ActiveSiteCannotOpen"
	ReasonForced              Reason = "Forced"
	ReasonEverySiteDown       Reason = "EverySiteUnreachable"
	ReasonCooldown            Reason = "Cooldown"
	ReasonModeManual          Reason = "ModeManual"
	ReasonModeObserve         Reason = "ModeObserve"
	ReasonNoCandidate         Reason = "NoFitCandidate"
	ReasonLossBudget          Reason = "LossBudget"
	ReasonMissingTransactions Reason = "MissingTransactions"
	ReasonForeignWriter       Reason = "ForeignWriter"
	ReasonAwaitingFence       Reason = "AwaitingFenceProof"
	ReasonVouched             Reason = "SiteMayStillVouch"
	ReasonDraining            Reason = "DrainingRelayLog"
	ReasonDrainTimeout        Reason = "DrainTimeout"
	ReasonTargetSilent        Reason = "TargetSilent"
	ReasonTargetLost          Reason = "TargetLost"
	ReasonGatePassed          Reason = "GatePassed"
	ReasonOpening             Reason = "Opening"
	ReasonOpened              Reason = "Opened"
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
	// Hold is what the statement says: nobody may open writes.
	Hold bool
	// Effects are performed in order; the first failure ends the pass.
	Effects []Effect
	Views   []View
	// Next is when to look again at the latest; zero means at the poll interval.
	Next time.Duration
}

// Blocked is true if a failover is due or under way and cannot go on without help or a change of the facts.
func (d Decision) Blocked() bool { return d.Verdict == VerdictBlocked || d.Verdict == VerdictAlert }

// View is what one site is.
type View struct {
	Name    string
	State   v1alpha1.SiteState
	Reason  string
	Message string
	Errant  gtid.Set
	// Behind counts the active site's transactions that this site has not applied; negative when unknown.
	Behind  int64
	Role    string
	Healthy bool
	// Gone is true for a site that left the spec and needs no more looking after.
	Gone bool
}

// check verifies what must hold of every decision before it is performed. A violation is a bug: nothing is performed.
func (d Decision) check(before Durable) error {
	opens := 0
	for i, e := range d.Effects {
		open, ok := e.(Open)
		if !ok {
			continue
		}
		opens++
		if open.Site != d.Status.ActiveSite {
			return fmt.Errorf("opens %s but the active site is %s (I1)", open.Site, d.Status.ActiveSite)
		}
		if i != len(d.Effects)-1 {
			return fmt.Errorf("opening %s is not the last effect (I2)", open.Site)
		}
		if d.Hold {
			return fmt.Errorf("opens %s while the statement holds (I1)", open.Site)
		}
	}
	switch {
	case opens > 1:
		return fmt.Errorf("opens %d sites (I1)", opens)
	case d.Status.Epoch < before.Epoch:
		return fmt.Errorf("epoch goes back from %d to %d (I2)", before.Epoch, d.Status.Epoch)
	case d.Status.ActiveSite != before.ActiveSite && d.Status.Epoch <= before.Epoch:
		return fmt.Errorf("active site changes from %s to %s under epoch %d (I2)", before.ActiveSite, d.Status.ActiveSite, before.Epoch)
	case d.Status.Transition != nil && d.Status.Transition.Step == v1alpha1.TransitionFencing && !d.Hold:
		return fmt.Errorf("statement does not hold before the promotion gate (I1)")
	}
	return nil
}
