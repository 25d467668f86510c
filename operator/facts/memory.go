// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// Memory is what is remembered between polls and may be forgotten at any time: forgetting only makes the system wait
// longer, never act sooner.
type Memory struct {
	// DownSince is when a site was first seen without a usable MySQL, in an unbroken row of polls.
	DownSince map[string]time.Time
	// SilentPolls counts the polls in a row in which the site could neither be seen writable nor be opened.
	SilentPolls map[string]int
	// Executed is the last known executed set of each site.
	Executed map[string]gtid.Set
	// PreviousAll is what each site had in the poll before, to be compared with a later look at the active site.
	PreviousAll map[string]gtid.Set
	// Acks is the best acknowledgement of each site's sidecar.
	Acks map[string]Ack
	// FencedBySQL is when the operator itself read a site's fence back, and under which epoch.
	FencedBySQL map[string]SQLFence
	// GoneSince is when Kubernetes evidence first said that a site cannot run.
	GoneSince map[string]time.Time
	// Diverged holds the errant set of diverged sites.
	Diverged map[string]gtid.Set
	// IndirectSince is when a site's MySQL stopped to answer the operator itself, in an unbroken row of polls.
	IndirectSince map[string]time.Time
	// OtherVolume holds the sites that were last seen on another volume than the one that holds their data.
	OtherVolume map[string]bool
	// Confirmed is, for each site, the pod whose sidecar reported the volume that holds its data.
	Confirmed map[string]string
	// UUID is the last known server UUID of each site.
	UUID map[string]string
	// ReopenSince is when the active site was first asked to open again, in an unbroken row of polls.
	ReopenSince time.Time
	// Lease is the longest lease and fence deadline that each site's sidecar is known to have been started with.
	Lease map[string]time.Duration
	// LeavingOf is since when each site is about to go, in an unbroken row of polls.
	LeavingOf map[string]time.Time
	// LeavingSince is when the active site was first seen about to go, in an unbroken row of polls.
	LeavingSince time.Time
	// LastCandidateAt is when a site last was the only candidate that had caught up, LaggedAt when it last lagged more than readers may see.
	LastCandidateAt, LaggedAt map[string]time.Time
	// FollowedAt is when a site last followed an active site that was open, OpenAt when there last was one.
	FollowedAt map[string]time.Time
	OpenAt     time.Time
	// AloneAt is when a site's live keyring was last seen in its pod alone.
	AloneAt map[string]time.Time
	// DrainSince is when the target's drain was first asked for in this transition.
	DrainSince time.Time
	// WritableAt is when a site was last seen to accept writes by any witness, HeardUntil until when its lease may stand by what its
	// sidecar reported last.
	WritableAt, HeardUntil map[string]time.Time
	// Outlived holds the sites that were seen to accept writes after their lease must have ended.
	Outlived map[string]bool
	// Runs is what is known of the incarnations of the sites.
	Runs Runs
	// Listed holds the sites that the pod of another one was once seen to be started with as a peer.
	Listed map[string]bool
	// StalledSince is when the volume of a site that is open was first seen to take no writes, in an unbroken row of reports.
	StalledSince map[string]time.Time
}

// Ack is the acknowledgement of an epoch by a site's sidecar, SQLFence a fence that the operator carried out and read back itself.
type (
	Ack      = gate.Ack
	SQLFence = gate.ReadBack
)
