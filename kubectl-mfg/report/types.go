// SPDX-License-Identifier: Apache-2.0

// Package report says how a group is, in one typed and versioned value. It is made from the custom resource and, if the
// operator can be reached, from what that saw at its last poll. It is pure: the screen and every other output use this
// value, so they cannot disagree.
package report

import (
	"encoding/json"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Version and kinds of the reports. Fields are only added within a version.
const (
	APIVersion = "report." + v1alpha1.Domain + "/v1alpha1"
	Kind       = "MysqlFailoverGroupReport"
	ListKind   = "MysqlFailoverGroupReportList"
)

// MysqlFailoverGroupReport is the state of one group.
type MysqlFailoverGroupReport struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`

	// Health is what the exit code tells; Problems says why it is not Healthy.
	Health   Health    `json:"health"`
	Problems []Problem `json:"problems,omitempty"`
	// Summary is one word for people.
	Summary Summary `json:"summary"`
	Notes   []Note  `json:"notes,omitempty"`
	Hints   []Hint  `json:"hints,omitempty"`

	Facts Facts  `json:"facts"`
	Phase string `json:"phase,omitempty"`

	ActiveSite      string     `json:"activeSite,omitempty"`
	ActiveSiteSince *time.Time `json:"activeSiteSince,omitempty"`
	Epoch           int64      `json:"epoch"`
	// Hold is true while no site may open writes.
	Hold bool `json:"hold,omitempty"`
	// MySQL is the version of the active site, or all versions when they differ.
	MySQL string `json:"mysql,omitempty"`

	Decision     *Decision   `json:"decision,omitempty"`
	Transition   *Transition `json:"transition,omitempty"`
	LastFailover *Failover   `json:"lastFailover,omitempty"`
	// Planned is the last planned failover, also while it is under way.
	Planned *Planned `json:"planned,omitempty"`
	// OrderedTo is the site of a pending order to fail over that accepts data loss.
	OrderedTo string `json:"orderedTo,omitempty"`
	// Forecast is what would happen if the active site were lost now.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Encryption is set in groups with encryption at rest.
	Encryption *Encryption `json:"encryption,omitempty"`
	// Certificate is the certificate of spec.tls, as the operator reports it; nil for a group without TLS, and while nothing is known.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Cache is the cache store; nil in groups without one.
	Cache *Cache `json:"cache,omitempty"`
	// Backups are the backups; nil in groups without a profile. Restore tells how far the restore of a group made from a backup is.
	Backups *Backups `json:"backups,omitempty"`
	Restore *Restore `json:"restore,omitempty"`
	// PITR is the archive of binary logs; nil in groups without one.
	PITR *PITR `json:"pitr,omitempty"`
	// PausedUntil is set while the operator does nothing on its own.
	PausedUntil *time.Time  `json:"pausedUntil,omitempty"`
	Endpoints   Endpoints   `json:"endpoints"`
	Sites       []Site      `json:"sites"`
	Conditions  []Condition `json:"conditions,omitempty"`
}

// Metadata names the group.
type Metadata struct {
	Name              string     `json:"name"`
	Namespace         string     `json:"namespace"`
	CreationTimestamp *time.Time `json:"creationTimestamp,omitempty"`
	DeletionTimestamp *time.Time `json:"deletionTimestamp,omitempty"`
}

// Health is the one fact that scripts ask for.
type Health string

// The healths.
const (
	Healthy  Health = "Healthy"
	Degraded Health = "Degraded"
	// SplitBrain means that more than one site accepts writes. Nothing is graver.
	SplitBrain Health = "SplitBrain"
	// Unknown means that the operator should have answered and did not: the custom resource tells of no trouble, but there
	// may be no operator to report any.
	Unknown Health = "Unknown"
)

// Summary is one word for people.
type Summary string

// The summaries.
const (
	SummaryReady         Summary = "Ready"
	SummaryDegraded      Summary = "Degraded"
	SummaryUnavailable   Summary = "Unavailable"
	SummaryFailingOver   Summary = "FailingOver"
	SummaryBootstrapping Summary = "Bootstrapping"
	SummaryUnknown       Summary = "Unknown"
	SummarySplitBrain    Summary = "SplitBrain"
)

// Problem is one reason why a group is not healthy.
type Problem struct {
	Reason  v1alpha1.Reason `json:"reason"`
	Site    string          `json:"site,omitempty"`
	Message string          `json:"message"`
	// Consequence is true if it follows from an earlier problem, and ends with that one.
	Consequence bool `json:"consequence,omitempty"`
	// OfSite is true if the message is the site's own, which is also in its Message.
	OfSite bool `json:"-"`
}

// NoteKind is what a note is about.
type NoteKind string

// NotePause is the kind of the note that says until when the group is paused. Other notes have none.
const NotePause NoteKind = "Pause"

// Note is worth knowing and no reason against health. Programs that read reports get its text.
type Note struct {
	Kind NoteKind
	Text string
}

// MarshalJSON writes the text.
func (n Note) MarshalJSON() ([]byte, error) { return json.Marshal(n.Text) }

// UnmarshalJSON reads the text.
func (n *Note) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &n.Text) }

// Hint is what to do next.
type Hint struct {
	Message string `json:"message"`
	Command string `json:"command"`
}

// Source says where the facts come from.
type Source string

const (
	// Live means that the operator answered just now.
	Live Source = "Live"
	// LastKnown means that only the custom resource could be read.
	LastKnown Source = "LastKnown"
)

// Facts is how much the rest may be trusted.
type Facts struct {
	Source Source `json:"source"`
	// ObservedAt is when the operator last looked at the group (Live), or last changed its status (LastKnown).
	ObservedAt *time.Time `json:"observedAt,omitempty"`
	// Operator is the version that answered.
	Operator string `json:"operator,omitempty"`
	// Message says why the operator did not answer.
	Message string `json:"message,omitempty"`
}

// Decision is what the operator made of its last poll.
type Decision struct {
	Topology string `json:"topology"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Transition is a change of the active site that is under way.
type Transition struct {
	Kind      string          `json:"kind"`
	Step      string          `json:"step"`
	From      string          `json:"from,omitempty"`
	To        string          `json:"to"`
	Reason    v1alpha1.Reason `json:"reason"`
	StartedAt time.Time       `json:"startedAt"`
}

// Failover is a past change of the active site.
type Failover struct {
	Epoch    int64           `json:"epoch"`
	Kind     string          `json:"kind"`
	From     string          `json:"from,omitempty"`
	To       string          `json:"to"`
	Reason   v1alpha1.Reason `json:"reason"`
	OpenedAt time.Time       `json:"openedAt"`
	// DurationMillis is the time from the first sign of trouble until the new site was open.
	DurationMillis   int64 `json:"durationMillis"`
	LostTransactions int64 `json:"lostTransactions"`
	// LossExact is false while LostTransactions is a lower bound.
	LossExact bool `json:"lossExact"`
	// WritePauseMillis is how long a planned failover kept writes out.
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	// Reverted is true for a planned failover that did not happen: From is open again. IntendedTo is where the role should
	// have gone, if known.
	Reverted   bool   `json:"reverted,omitempty"`
	IntendedTo string `json:"intendedTo,omitempty"`
}

// Planned is a planned failover.
type Planned struct {
	From             string          `json:"from,omitempty"`
	To               string          `json:"to"`
	Cause            v1alpha1.Reason `json:"cause"`
	Phase            string          `json:"phase"`
	Reason           v1alpha1.Reason `json:"reason,omitempty"`
	Message          string          `json:"message,omitempty"`
	StartedAt        *time.Time      `json:"startedAt,omitempty"`
	FinishedAt       *time.Time      `json:"finishedAt,omitempty"`
	WritePauseMillis *int64          `json:"writePauseMillis,omitempty"`
}

// Clone says how far the copy that a site receives is.
type Clone struct {
	Source     string `json:"source,omitempty"`
	Stage      string `json:"stage,omitempty"`
	Percent    int32  `json:"percent"`
	ETASeconds *int64 `json:"etaSeconds,omitempty"`
}

// Encryption says how far encryption at rest is.
type Encryption struct {
	// Sealed is true once the keyring of every site is in escrow and sealed.
	Sealed bool `json:"sealed"`
	// UnencryptedTablespaces is the greatest number of unencrypted user tablespaces on any site.
	UnencryptedTablespaces int32 `json:"unencryptedTablespaces"`
	// Campaign is the present rotation of all sites; nil if there is none.
	Campaign *Campaign `json:"campaign,omitempty"`
}

// Keyring is the keyring of a site.
type Keyring struct {
	Phase   string `json:"phase,omitempty"`
	Version int64  `json:"version,omitempty"`
	// Work is why it can be written, or soon will be: Bootstrap, Clone or Rotation.
	Work string `json:"work,omitempty"`
	// Stage is how far that work has come: Rotating or Sealing.
	Stage   string `json:"stage,omitempty"`
	Message string `json:"message,omitempty"`
}

// Endpoints are what applications connect to.
type Endpoints struct {
	Writes          string `json:"writes"`
	Reads           string `json:"reads"`
	HealthyReplicas int    `json:"healthyReplicas"`
}

// Site is one site. Pointers are nil if the fact is unknown.
type Site struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Active bool   `json:"active"`
	State  string `json:"state,omitempty"`
	// Reason is why the site is in that state, as the operator noted it last; empty if there is nothing to add.
	Reason v1alpha1.Reason `json:"reason,omitempty"`

	Reachable *bool `json:"reachable,omitempty"`
	// SidecarReachable is false for a site whose MySQL may serve, but which could not be fenced.
	SidecarReachable *bool `json:"sidecarReachable,omitempty"`
	Writable         *bool `json:"writable,omitempty"`
	// Foreign is true for a site that accepts writes, or did as last known, although it is not the active one.
	Foreign         bool     `json:"foreignWriter,omitempty"`
	LagSeconds      *float64 `json:"lagSeconds,omitempty"`
	Behind          *int64   `json:"behind,omitempty"`
	Errant          int64    `json:"errant,omitempty"`
	ErrantSet       string   `json:"errantSet,omitempty"`
	ReplicatingFrom string   `json:"replicatingFrom,omitempty"`
	// Fence is open, read-only, down (no mysqld runs) or unknown.
	Fence string `json:"fence,omitempty"`
	// KeptFenced is true while a person keeps the site fenced: it never takes over.
	KeptFenced bool `json:"keptFenced,omitempty"`

	Clone *Clone `json:"clone,omitempty"`
	// Keyring is set in groups with encryption at rest.
	Keyring *Keyring `json:"keyring,omitempty"`

	Provisioned bool       `json:"provisioned"`
	Version     string     `json:"version,omitempty"`
	Node        string     `json:"node,omitempty"`
	Message     string     `json:"message,omitempty"`
	LastSeen    *time.Time `json:"lastSeen,omitempty"`
	// Volume is how full the data volume is; nil when unknown.
	Volume *wire.VolumeUse `json:"volume,omitempty"`
}

// FenceWord is the fence for people: for a site that a person keeps fenced it says so.
func (s Site) FenceWord() string {
	switch {
	case !s.KeptFenced || s.Fence == wire.FenceOpen:
		return s.Fence
	case s.Fence == "":
		return "kept"
	}
	return s.Fence + ", kept"
}

// StateWord is the state for people. The operator calls a site Fenced as soon as it fences it; while that is open, it is not.
func (s Site) StateWord() string {
	if s.Foreign {
		return "Writable"
	}
	return s.State
}

// Condition is a condition of the custom resource.
type Condition struct {
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Reason  v1alpha1.Reason `json:"reason"`
	Message string          `json:"message,omitempty"`
}

// List holds the reports of several groups.
type List struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Items      []MysqlFailoverGroupReport `json:"items"`
}

// NewList makes a list.
func NewList(items []MysqlFailoverGroupReport) List {
	if items == nil {
		items = []MysqlFailoverGroupReport{}
	}
	return List{APIVersion: APIVersion, Kind: ListKind, Items: items}
}
