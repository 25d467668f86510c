// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// StatusList is the answer to GET /status.
type StatusList struct {
	Operator string        `json:"operator"`
	IssuedAt time.Time     `json:"issuedAt"`
	Groups   []GroupStatus `json:"groups"`
}

// GroupStatus is one group as the operator saw it at its last poll.
type GroupStatus struct {
	Namespace  string `json:"namespace"`
	Group      string `json:"group"`
	ActiveSite string `json:"activeSite,omitempty"`
	Epoch      int64  `json:"epoch"`
	Hold       bool   `json:"hold,omitempty"`
	// Topology, Verdict, Reason and Message are the last decision.
	Topology   string    `json:"topology"`
	Verdict    string    `json:"verdict"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	ObservedAt time.Time `json:"observedAt"`
	// Forecast is what would happen if the active site were lost now; nil unless the group is healthy.
	Forecast *Forecast    `json:"forecast,omitempty"`
	Sites    []SiteStatus `json:"sites"`
	// Cache is the cache store; nil in a group without one.
	Cache *CacheStatus `json:"cache,omitempty"`
}

// Forecast is what an emergency failover would do if the active site were lost now.
type Forecast struct {
	// Site would take over, by Rule; empty if none is fit.
	Site string `json:"site,omitempty"`
	Rule string `json:"rule,omitempty"`
	// LostTransactions would be lost at least; nil if it cannot be known.
	LostTransactions *int64 `json:"lostTransactions,omitempty"`
	// LostSeconds is the lag of Site; nil if it is not known.
	LostSeconds *float64 `json:"lostSeconds,omitempty"`
	// BlockedBy is the reason why it would not happen by itself; empty if it would.
	BlockedBy string `json:"blockedBy,omitempty"`
	Message   string `json:"message,omitempty"`
}

// SiteStatus is one site as the operator saw it at its last poll.
type SiteStatus struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	State string `json:"state"`
	// Reachable is true if MySQL or the sidecar answered.
	Reachable        bool   `json:"reachable"`
	SidecarReachable bool   `json:"sidecarReachable"`
	Writable         bool   `json:"writable"`
	ReplicatingFrom  string `json:"replicatingFrom,omitempty"`
	// LagSeconds is the age of the newest transaction not applied yet; nil when unknown.
	LagSeconds *float64 `json:"lagSeconds,omitempty"`
	// Behind counts the active site's transactions that this site lacks; nil when unknown.
	Behind       *int64 `json:"behind,omitempty"`
	Errant       int64  `json:"errant,omitempty"`
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	Fence        string `json:"fence,omitempty"`
	Version      string `json:"version,omitempty"`
	Node         string `json:"node,omitempty"`
	Message      string `json:"message,omitempty"`
	// Volume is how full the data volume is; nil when unknown.
	Volume *VolumeUse `json:"volume,omitempty"`
	// LastSeen is when MySQL or the sidecar answered last; zero if that was before this operator began to look.
	LastSeen time.Time `json:"lastSeen,omitempty,omitzero"`
}

// StreamType is what a message of GET /ws/status carries.
type StreamType string

// The types of messages.
const (
	StreamSnapshot StreamType = "snapshot"
	StreamDelta    StreamType = "delta"
	StreamPing     StreamType = "ping"
)

// StreamVersion is the version of the messages of GET /ws/status.
const StreamVersion = "mysql-mfg.io/status/v1"

// StreamMessage is one message of GET /ws/status: first a snapshot of all groups, then deltas with the groups that
// changed. Seq grows by one with every message of a connection.
type StreamMessage struct {
	APIVersion string        `json:"apiVersion"`
	Type       StreamType    `json:"type"`
	Seq        int64         `json:"seq"`
	TS         time.Time     `json:"ts"`
	Groups     []GroupStatus `json:"groups,omitempty"`
	// Gone names groups ("namespace/group") that no longer exist.
	Gone []string `json:"gone,omitempty"`
	// Ages is how many seconds ago the operator last looked at each group ("namespace/group"), by whichever of its two clocks says more,
	// so an age is never too small. A snapshot and a ping have it; a delta means that the operator has just looked. Without it, a ping says nothing of a group whose loop stands still.
	Ages map[string]float64 `json:"ages,omitempty"`
}
