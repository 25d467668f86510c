// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TransitionStep is how far a change of the active site has come.
type TransitionStep string

// The steps of a transition.
const (
	// TransitionFencing means that the new epoch is persisted, nobody may open writes; fence proof is gathered and the target drained.
	TransitionFencing TransitionStep = "Fencing"
	// TransitionOpening means that the promotion gate was passed under this epoch; only the target may open writes.
	TransitionOpening TransitionStep = "Opening"
)

// FailoverKind says why the active site changes.
type FailoverKind string

// The kinds of a change of the active site.
const (
	FailoverBootstrap FailoverKind = "Bootstrap"
	FailoverEmergency FailoverKind = "Emergency"
	FailoverPlanned   FailoverKind = "Planned"
	FailoverForced    FailoverKind = "Forced"
)

// Transition is the durable intent of a change of the active site that is under way. status.epoch and
// status.activeSite already name its target.
type Transition struct {
	// kind is Bootstrap, Emergency, Planned or Forced.
	//
	// +required
	Kind FailoverKind `json:"kind"`
	// step is how far it has come: Fencing or Opening.
	//
	// +required
	Step TransitionStep `json:"step"`
	// from is the old active site.
	//
	// +optional
	From string `json:"from,omitempty"`
	// to is the new active site.
	//
	// +required
	To string `json:"to"`
	// reason is why the active site changes, one CamelCase word.
	//
	// +required
	Reason Reason `json:"reason"`
	// startedAt is when the new epoch was persisted.
	//
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`
	// detectedAt is when the trouble that led here was first seen.
	//
	// +optional
	DetectedAt metav1.MicroTime `json:"detectedAt,omitempty,omitzero"`
	// fromServerUUID is the server UUID of the old active site: its own transactions carry it.
	//
	// +optional
	FromServerUUID string `json:"fromServerUUID,omitempty"`
	// fromExecuted is the last known executed GTID set of the old active site.
	//
	// +optional
	FromExecuted string `json:"fromExecuted,omitempty"`
	// evidence names what passed the promotion gate.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Evidence []string `json:"evidence,omitempty"`
	// gatePassedAt is when the promotion gate was passed.
	//
	// +optional
	GatePassedAt *metav1.MicroTime `json:"gatePassedAt,omitempty"`
	// toExecuted is the GTID set of the target at its promotion, after its relay log was drained.
	//
	// +optional
	ToExecuted string `json:"toExecuted,omitempty"`
}

// PlannedPhase is how far a planned failover has come.
type PlannedPhase string

// The phases of a planned failover. The last four are its outcome.
const (
	// PlannedWaiting means that the target catches up; nothing was changed yet.
	PlannedWaiting PlannedPhase = "Waiting"
	// PlannedMoving means that writes are kept out while the role moves.
	PlannedMoving    PlannedPhase = "Moving"
	PlannedSucceeded PlannedPhase = "Succeeded"
	PlannedRefused   PlannedPhase = "Refused"
	// PlannedReverted means that the old active site was opened again, or that an emergency failover took over.
	PlannedReverted PlannedPhase = "Reverted"
	PlannedAborted  PlannedPhase = "Aborted"
)

// Remedy is one thing that a person can do: words, a command, or both. Of several, the words of the later ones say how they go
// together: "or ...", "then".
type Remedy struct {
	// text says what to do.
	//
	// +optional
	Text string `json:"text,omitempty"`
	// command does it, whole, to be copied.
	//
	// +optional
	Command string `json:"command,omitempty"`
}

// PlannedFailoverStatus is a planned failover.
type PlannedFailoverStatus struct {
	// from is the active site when it was asked for.
	//
	// +optional
	From string `json:"from,omitempty"`
	// to is the site that is to take over.
	//
	// +required
	To string `json:"to"`
	// cause is who asked: Requested (the annotation), SiteLeaving (its pod or node goes away), OrderedUpdate or VolumeFails (its volume
	// returns errors).
	//
	// +required
	Cause Reason `json:"cause"`
	// phase is Waiting, Moving, Succeeded, Refused, Reverted or Aborted.
	//
	// +required
	Phase PlannedPhase `json:"phase"`
	// reason of the phase, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// remedies are what a person can do about a planned failover that was asked for and did not come about.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Remedies []Remedy `json:"remedies,omitempty"`
	// startedAt is when it was accepted.
	//
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// finishedAt is when its outcome was known.
	//
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// writePauseMillis is for how long writes were kept out at most, in milliseconds, as the operator measured it.
	//
	// +optional
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	// answered is true once the annotation that asked for it was taken off the group.
	//
	// +optional
	Answered bool `json:"answered,omitempty"`
}

// Forecast is what would happen if the active site were lost now.
type Forecast struct {
	// site that would take over; empty if none could.
	//
	// +optional
	Site string `json:"site,omitempty"`
	// rule by which it ranks first, one CamelCase word: OnlyCandidate, MostTransactions, VolumeStays, LeastToApply, Priority or Name.
	//
	// +optional
	Rule string `json:"rule,omitempty"`
	// lostTransactions would be lost at least, in steps so that it does not change with every poll: 0, <10, <100, <1000, <10000 or
	// >=10000; empty while it is not known. The number is in GET /status and the metrics.
	//
	// +optional
	LostTransactions string `json:"lostTransactions,omitempty"`
	// lag of that site in seconds, in the steps of status.replicationLag; empty while it is not known.
	//
	// +optional
	Lag string `json:"lag,omitempty"`
	// blockedBy is what would keep the failover from happening by itself, as the reason of FailoverBlocked.
	//
	// +optional
	BlockedBy Reason `json:"blockedBy,omitempty"`
	// message says it to people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// FailoverRecord is one change of the active site, kept in status, newest first.
type FailoverRecord struct {
	// epoch that the change began.
	//
	// +required
	Epoch int64 `json:"epoch"`
	// kind is Bootstrap, Emergency, Planned or Forced.
	//
	// +required
	Kind FailoverKind `json:"kind"`
	// from is the old active site.
	//
	// +optional
	From string `json:"from,omitempty"`
	// to is the new active site.
	//
	// +required
	To string `json:"to"`
	// reason is why the active site changed, one CamelCase word.
	//
	// +required
	Reason Reason `json:"reason"`

	// detectedAt is when the trouble was first seen.
	//
	// +optional
	DetectedAt metav1.MicroTime `json:"detectedAt,omitempty,omitzero"`
	// startedAt is when the new epoch was persisted.
	//
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`
	// openedAt is when the new active site took writes.
	//
	// +required
	OpenedAt metav1.MicroTime `json:"openedAt"`
	// timeline holds the steps with the milliseconds since detectedAt.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// evidence names what passed the promotion gate.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Evidence []string `json:"evidence,omitempty"`

	// fromServerUUID is the server UUID of the old active site: its own transactions carry it.
	//
	// +optional
	FromServerUUID string `json:"fromServerUUID,omitempty"`
	// fromExecuted is the last known executed GTID set of the old active site; empty in older records for whose sets status had no room.
	//
	// +optional
	FromExecuted string `json:"fromExecuted,omitempty"`
	// toExecuted is the GTID set of the new active site at its promotion; empty in older records for whose sets status had no room.
	//
	// +optional
	ToExecuted string `json:"toExecuted,omitempty"`
	// lostTransactions is how many transactions of the old active site are missing on the new one: a lower bound
	// until lossExact.
	//
	// +required
	LostTransactions int64 `json:"lostTransactions"`
	// lossExact is true once the old active site was seen again and its whole set compared.
	//
	// +required
	LossExact bool `json:"lossExact"`
	// lostSet is the GTID set of the transactions known to be missing.
	//
	// +optional
	LostSet string `json:"lostSet,omitempty"`
	// lostRows counts the rows of the lost transactions by table, from the binary log of the returned site.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LostRows []LostRows `json:"lostRows,omitempty"`
	// lostRowsState is Counted once lostRows is whole, or why it cannot be counted, in words.
	//
	// +optional
	LostRowsState string `json:"lostRowsState,omitempty"`
	// writePauseMillis is for how long a planned failover kept writes out at most, in milliseconds.
	//
	// +optional
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
}

// EpochRecord is with what an epoch began.
type EpochRecord struct {
	// epoch that began.
	//
	// +required
	Epoch int64 `json:"epoch"`
	// site that is active under it.
	//
	// +required
	Site string `json:"site"`
	// serverUUID is that of the site's server when it was promoted.
	//
	// +optional
	ServerUUID string `json:"serverUUID,omitempty"`
	// promotedAt is when the promotion gate was passed.
	//
	// +required
	PromotedAt metav1.MicroTime `json:"promotedAt"`
	// kind is Bootstrap, Emergency, Planned or Forced.
	//
	// +required
	Kind FailoverKind `json:"kind"`
	// gtidExecuted is the set of the transactions that the site had then: what another one had beyond it is lost.
	//
	// +optional
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
}

// LostRowsCounted is the lostRowsState of a record whose rows are all counted.
const LostRowsCounted = "Counted"

// LostRows counts the rows of one table in lost transactions.
type LostRows struct {
	// schema of the table. The entry with neither schema nor table sums up tables that did not fit.
	//
	// +optional
	Schema string `json:"schema,omitempty"`
	// table is its name.
	//
	// +optional
	Table string `json:"table,omitempty"`
	// inserted rows.
	//
	// +required
	Inserted int64 `json:"inserted"`
	// updated rows.
	//
	// +required
	Updated int64 `json:"updated"`
	// deleted rows.
	//
	// +required
	Deleted int64 `json:"deleted"`
}

// TimelineEntry is one step of a failover.
type TimelineEntry struct {
	// step is one word, detected, decided, gatePassed or opened.
	//
	// +required
	Step string `json:"step"`
	// millis is when it was done, in milliseconds since detectedAt.
	//
	// +required
	Millis int64 `json:"millis"`
}
