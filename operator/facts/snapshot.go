// SPDX-License-Identifier: Apache-2.0

// Package facts holds what one poll saw of a group, and what is remembered from earlier ones: plain values, without a client, a clock
// or a decision. operator/monitor gathers them, operator/failover decides on them.
package facts

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// Reason explains a verdict; it is shown as the reason of conditions, events and log lines.
type Reason = v1alpha1.Reason

// Remedy is what a person can do; see wire.Remedy. Each is made beside its refusal.
type Remedy = wire.Remedy

// Policy is what the group's spec says about failover, defaults filled in.
type Policy struct {
	Mode         v1alpha1.FailoverMode
	PollInterval time.Duration
	Threshold    int
	CrashGrace   time.Duration
	Cooldown     time.Duration
	// StallTimeout is how long the volume of the active site may take no writes; zero means for ever.
	StallTimeout time.Duration
	DrainTimeout time.Duration
	LeaseTimeout time.Duration
	FenceTimeout time.Duration
	// MaxLost blocks an emergency failover that is known to lose more transactions; nil means no limit.
	MaxLost *int64
	// ForceTo names the site that a person orders to be promoted although writes may be lost; empty normally.
	ForceTo string
	// PlannedTo names the site to which a person asks the role to be moved without loss; empty normally.
	PlannedTo string
	// AbortPlanned gives up a planned failover that has not passed its gate.
	AbortPlanned bool
	// PlannedLagTimeout and PlannedPauseTimeout bound the wait before and after writes are stopped.
	PlannedLagTimeout, PlannedPauseTimeout time.Duration
	// PausedUntil is until when the operator changes no role without an order; zero normally.
	PausedUntil time.Time
	// MaxReadLag takes a replica that lags more out of the Service of the readers; zero means no limit.
	MaxReadLag time.Duration
	// Cache is how a planned failover waits for the cache of its target.
	Cache CachePolicy
	// AwaitsRestore keeps every site of a new group shut until its first one has the data of a backup. RestoredSite is that one, and the
	// only one that may be opened first; empty for a group that begins empty, or has been open.
	AwaitsRestore bool
	RestoredSite  string
}

// LeaseEnd is how long after the last answer a lease counts as run out, if it and the fence's deadline are that long together.
func LeaseEnd(lease time.Duration) time.Duration { return lease + gate.Margin(lease) }

// How long one poll waits for a site that does not answer.
const (
	// AskTimeout is the most.
	AskTimeout = wire.ReportPatience
	// BystanderTimeout is for a site that has no part in a planned failover while that keeps writes out.
	BystanderTimeout = 100 * time.Millisecond
	// LostTimeout is for the site that an emergency failover takes the role from, once it was silent: the failover waits for the end of its
	// lease then. It is longer than a round trip between regions, so that a site that comes back is heard.
	LostTimeout = 250 * time.Millisecond
)

// Snapshot is everything that was seen in one poll. Sites are sorted by name.
type Snapshot struct {
	Now time.Time
	// Group is how commands for people name the group.
	Group  Group
	Policy Policy
	Status Durable
	Sites  []Site
	// Order is a person's order, as it counts in this decision; Decide and Explain fill it in.
	Order Order
	// LeaderSince is when this process became the leader. What an earlier leader answered is not known, so it counts as
	// if it had answered every site just then.
	LeaderSince time.Time
	// FormerUntil is until when another process may have answered, if that is known: an earlier leader that says in the Lease how long it
	// answers after each renewal. Zero means that it is not known, and LeaderSince counts.
	FormerUntil time.Time
	// Answered is, for each site, when this operator last answered its sidecar under an epoch below Status.Epoch.
	Answered map[string]time.Time
	// Renewed is, for each site, when this operator last answered its sidecar under any epoch.
	Renewed map[string]time.Time
	// Permitted is, for each site, when this operator last gave its sidecar a statement on which it may open.
	Permitted map[string]time.Time
	// Nodes are those of the runs in Status and of the pods that are seen, EndedPods the pods that were seen to go after their kubelet
	// had reported that all their containers ended.
	Nodes     map[string]Node
	EndedPods map[string]bool
}

// Order is a person's order to promote a site although writes may be lost, as it stands in one decision.
type Order struct {
	// To is the site that it names; empty if there is none, or if not even an order promotes that site: then the order moves nothing.
	To string
	// Accepted is true if it names the target of the change under way, whatever keeps that target from being promoted now: after one lost
	// answer the person has still accepted what the target lacks.
	Accepted bool
}

// Elsewhere is true if the role is ordered to another site than that one.
func (o Order) Elsewhere(site string) bool { return o.To != "" && o.To != site }

// Durable is the part of the group's status that decisions rest on. It is persisted before any effect.
type Durable struct {
	Epoch         int64
	ActiveSite    string
	ActiveSince   time.Time
	CooldownUntil time.Time
	Transition    *Transition
	Records       []v1alpha1.FailoverRecord
	// Epochs is what each epoch began with, the newest first.
	Epochs  []v1alpha1.EpochRecord
	Planned *Planned
	// Outlived are the sites that were seen to accept writes after their lease must have ended, sorted.
	Outlived []string
	// Filtered is the UUID of the server of each site that was seen with a replication filter, also of one that left the specification; nil
	// if there is none.
	Filtered map[string]string
	// Runs are the incarnations of each site that are not known to have ended, in the order in which they were seen.
	Runs map[string][]Run
	// RowsOutside is how many tables with rows outside InnoDB the active site had when it was last seen open.
	RowsOutside int
}

// Site returns a site by name.
func (s Snapshot) Site(name string) (Site, bool) {
	for _, site := range s.Sites {
		if site.Name == name {
			return site, true
		}
	}
	return Site{}, false
}

// Paused is true while a person keeps the operator from changing roles without an order.
func (s Snapshot) Paused() bool { return s.Now.Before(s.Policy.PausedUntil) }

// Age is how long ago something was noted in status. A time of status has no monotonic part, and may be of an earlier leader with another
// clock. One that lies ahead is: then the age is counted from when this process began to lead, which was later. An age is never negative.
func (s Snapshot) Age(at time.Time) time.Duration {
	if at.After(s.Now) {
		at = s.LeaderSince
	}
	return max(0, s.Now.Sub(at))
}

// Led is how long ago something was noted in status, but no longer than this process leads: what waits for it waits its whole time again
// (I9), whatever the clock of an earlier leader said.
func (s Snapshot) Led(at time.Time) time.Duration {
	return min(s.Age(at), s.Age(s.LeaderSince))
}

// OthersUntil is until when another process may have answered a site.
func (s Snapshot) OthersUntil() time.Time {
	if s.FormerUntil.IsZero() || s.FormerUntil.After(s.LeaderSince) {
		return s.LeaderSince // once this one leads, no other does
	}
	return s.FormerUntil
}
