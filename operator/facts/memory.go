// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// Memory is what is remembered between polls, and may be forgotten at any time: forgetting only makes the operator
// wait longer, never act sooner. A poll makes a new one: what is kept of an old one never changes.
type Memory struct {
	Sites map[string]*SiteMemory
	// Runs is what is known about the incarnations of the sites.
	Runs Runs
	// ReopenSince is when the active site was first asked to open again, in an unbroken row of polls.
	ReopenSince time.Time
	// LeavingSince is when the active site was first seen about to go, in an unbroken row of polls.
	LeavingSince time.Time
	// OpenAt is when the active site was last open.
	OpenAt time.Time
	// DrainSince is when the target's drain was first asked for in this transition.
	DrainSince time.Time
}

// SiteMemory is what is remembered about one site. Zero is nothing.
type SiteMemory struct {
	// DownSince is when the site was first seen without a usable MySQL, IndirectSince when its MySQL stopped answering the operator itself,
	// GoneSince when Kubernetes evidence first said that it cannot run, LeavingSince when it was first about to go, StalledSince when its
	// volume was first seen to take no writes while it is open: each in an unbroken row of polls.
	DownSince, IndirectSince, GoneSince, LeavingSince, StalledSince time.Time
	// SilentPolls counts the polls in a row in which the site could neither be seen writable nor be opened.
	SilentPolls int

	// Executed is the last known executed set. Held is that and what the relay logs held, applied or not; nil if this process has not
	// seen the server on the site's own volume yet.
	Executed gtid.Set
	Held     *gtid.Set
	// PreviousAll is what the site had in the poll before, to be compared with a later look at the active site; nil if it did not answer.
	PreviousAll *gtid.Set
	// Diverged is what the site has and the active site lacks; empty if it has not diverged. AheadSince is since when it has more of the
	// active site's own transactions than the active site says it has executed, in an unbroken row of polls in which both could be compared.
	Diverged   gtid.Set
	AheadSince time.Time
	// Unsettled is true while it is not known what this site alone has, after it was replaced as the active one. Each poll finds it out.
	Unsettled bool
	// UUID is the last known server UUID.
	UUID string
	// Filtered is the UUID of the server that was seen with a replication filter, which may have skipped transactions. A clone gives the
	// site another UUID. Status keeps it (I9).
	Filtered string
	// OtherVolume is true if the site was last seen on another volume than the one that holds its data.
	OtherVolume bool
	// Confirmed is the pod whose sidecar reported the volume that holds the data.
	Confirmed string

	// Ack is the best acknowledgement of the sidecar; nil if there is none.
	Ack *Ack
	// FencedBySQL is when the operator itself read the fence back, and under which epoch.
	FencedBySQL SQLFence
	// Lease is the longest lease and fence deadline that the sidecar is known to have been started with.
	Lease time.Duration
	// WritableAt is when any witness last saw the site accept writes, HeardUntil until when its lease may last by what its sidecar
	// reported last. Outlived is true if it was seen to accept writes after its lease must have ended.
	WritableAt, HeardUntil time.Time
	Outlived               bool
	// Listed is true if the pod of another site was once seen to be started with this one as a peer.
	Listed bool

	// LastCandidateAt is when the site last was the only candidate that had caught up, LaggedAt when it last lagged more than readers may
	// see, FollowedAt when it last followed an active site that was open, AloneAt when its live keyring was last seen in its pod alone.
	LastCandidateAt, LaggedAt, FollowedAt, AloneAt time.Time
}

// Of is what is remembered about a site.
func (m Memory) Of(site string) SiteMemory {
	if known := m.Sites[site]; known != nil {
		return *known
	}
	return SiteMemory{}
}

// At returns the memory of a site to be changed, for code that makes a new Memory.
func (m *Memory) At(site string) *SiteMemory {
	if m.Sites == nil {
		m.Sites = map[string]*SiteMemory{}
	}
	if m.Sites[site] == nil {
		m.Sites[site] = &SiteMemory{}
	}
	return m.Sites[site]
}

// With returns a copy in which the memory of one site is changed: readers of the old one see no change.
func (m Memory) With(site string, change func(*SiteMemory)) Memory {
	now := m.Of(site)
	change(&now)
	sites := map[string]*SiteMemory{site: &now}
	for name, other := range m.Sites {
		if name != site {
			sites[name] = other
		}
	}
	m.Sites = sites
	return m
}

// Ack is the acknowledgement of an epoch by a site's sidecar.
type Ack = gate.Ack

// SQLFence is a fence that the operator carried out and read back itself.
type SQLFence = gate.ReadBack
