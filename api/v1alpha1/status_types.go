// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MysqlFailoverGroupStatus is what was observed and what is durably intended.
//
// Two owners write it, each through its own field manager:
//   - mfg-monitor-status (operator/monitor): activeSite, activeSiteSince, epoch, transition, cooldownUntil, phase,
//     sites[].{state,reason,message}, readySites, replicationLag, failovers and the conditions
//     Available, ReplicationHealthy, FailoverBlocked, Ready, Degraded.
//   - mfg-operator-status (operator/controller): observedGeneration, sites[].{provisioned,node,image,version},
//     encryptionAtRest and the conditions Progressing, TLSReady, UnbuiltFeatures, EncryptionAtRestReady,
//     BackupReady, CacheReady.
type MysqlFailoverGroupStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	Phase           GroupPhase   `json:"phase,omitempty"`
	ActiveSite      string       `json:"activeSite,omitempty"`
	ActiveSiteSince *metav1.Time `json:"activeSiteSince,omitempty"`
	Epoch           int64        `json:"epoch,omitempty"`
	Transition      *Transition  `json:"transition,omitempty"`
	CooldownUntil   *metav1.Time `json:"cooldownUntil,omitempty"`
	ReadySites      string       `json:"readySites,omitempty"`

	Sites     []SiteStatus     `json:"sites,omitempty"`
	Failovers []FailoverRecord `json:"failovers,omitempty"`

	EncryptionAtRest *EncryptionAtRestStatus `json:"encryptionAtRest,omitempty"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GroupPhase is a summary for people; programs read conditions.
type GroupPhase string

// The phases of a group.
const (
	GroupBootstrapping GroupPhase = "Bootstrapping"
	GroupRunning       GroupPhase = "Running"
	GroupDegraded      GroupPhase = "Degraded"
	GroupFailingOver   GroupPhase = "FailingOver"
	GroupUnavailable   GroupPhase = "Unavailable"
)

// TransitionStep is how far a change of the active site has come.
type TransitionStep string

const (
	// TransitionFencing: the new epoch is persisted, nobody may open writes; fence proof is gathered and the target drained.
	TransitionFencing TransitionStep = "Fencing"
	// TransitionOpening: the promotion gate was passed under this epoch; only the target may open writes.
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
	Kind      FailoverKind     `json:"kind"`
	Step      TransitionStep   `json:"step"`
	From      string           `json:"from,omitempty"`
	To        string           `json:"to"`
	Reason    string           `json:"reason"`
	StartedAt metav1.MicroTime `json:"startedAt"`
	// DetectedAt is when the trouble that led here was first seen.
	DetectedAt metav1.MicroTime `json:"detectedAt,omitempty,omitzero"`
	// FromExecuted is the last known executed GTID set of the old active site.
	FromExecuted string `json:"fromExecuted,omitempty"`
	// Evidence names what passed the promotion gate.
	Evidence []string `json:"evidence,omitempty"`
	// GatePassedAt is when the promotion gate was passed.
	GatePassedAt *metav1.MicroTime `json:"gatePassedAt,omitempty"`
	// ToExecuted is the GTID set of the target at its promotion, after its relay log was drained.
	ToExecuted string `json:"toExecuted,omitempty"`
}

// SiteState is what a site is right now, in one word.
type SiteState string

// The states of a site.
const (
	SitePending     SiteState = "Pending"
	SitePrimary     SiteState = "Primary"
	SiteReplica     SiteState = "Replica"
	SiteFenced      SiteState = "Fenced"
	SiteCloning     SiteState = "Cloning"
	SiteDiverged    SiteState = "Diverged"
	SiteUnreachable SiteState = "Unreachable"
	SiteDetached    SiteState = "Detached"
)

// SiteStatus is one site as seen by the operator.
type SiteStatus struct {
	Name    string    `json:"name"`
	State   SiteState `json:"state,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	// Errant is the GTID set that this site has and the active site lacks.
	Errant string `json:"errant,omitempty"`

	// Provisioned is true once the site's data is part of the group: it was the first active site, or was cloned.
	Provisioned bool   `json:"provisioned,omitempty"`
	Node        string `json:"node,omitempty"`
	Image       string `json:"image,omitempty"`
	Version     string `json:"version,omitempty"`
}

// FailoverRecord is one change of the active site, kept in status, newest first.
type FailoverRecord struct {
	Epoch  int64        `json:"epoch"`
	Kind   FailoverKind `json:"kind"`
	From   string       `json:"from,omitempty"`
	To     string       `json:"to"`
	Reason string       `json:"reason"`

	DetectedAt metav1.MicroTime `json:"detectedAt,omitempty,omitzero"`
	StartedAt  metav1.MicroTime `json:"startedAt"`
	OpenedAt   metav1.MicroTime `json:"openedAt"`
	// Timeline holds milliseconds since DetectedAt.
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	Evidence []string        `json:"evidence,omitempty"`

	FromExecuted string `json:"fromExecuted,omitempty"`
	ToExecuted   string `json:"toExecuted,omitempty"`
	// LostTransactions is how many transactions of the old active site are missing on the new one: a lower bound
	// until LossExact.
	LostTransactions int64 `json:"lostTransactions"`
	// LossExact is true once the old active site was seen again and its whole set compared.
	LossExact bool   `json:"lossExact"`
	LostSet   string `json:"lostSet,omitempty"`
}

// TimelineEntry is one step of a failover.
type TimelineEntry struct {
	Step   string `json:"step"`
	Millis int64  `json:"millis"`
}

// KeyringPhase is the phase of a site's keyring (specification 3.1).
type KeyringPhase string

// The keyring phases.
const (
	KeyringPending  KeyringPhase = "Pending"
	KeyringUnsealed KeyringPhase = "Unsealed"
	KeyringEscrowed KeyringPhase = "Escrowed"
	KeyringSealed   KeyringPhase = "Sealed"
	KeyringFailed   KeyringPhase = "Failed"
)

// EncryptionAtRestStatus is the state of data-at-rest encryption.
type EncryptionAtRestStatus struct {
	Sealed bool                `json:"sealed"`
	Sites  []SiteKeyringStatus `json:"sites,omitempty"`
}

// SiteKeyringStatus is the keyring of one site.
type SiteKeyringStatus struct {
	Name           string         `json:"name"`
	Phase          KeyringPhase   `json:"phase,omitempty"`
	KeyringSecret  string         `json:"keyringSecret,omitempty"`
	KeyringVersion int64          `json:"keyringVersion,omitempty"`
	KeyringDigest  string         `json:"keyringDigest,omitempty"`
	Coverage       CoverageStatus `json:"coverage,omitempty,omitzero"`
}

// CoverageStatus is what is encrypted on one site, as read from its MySQL.
type CoverageStatus struct {
	KeyringComponent          string `json:"keyringComponent,omitempty"`
	KeyringReadOnly           bool   `json:"keyringReadOnly"`
	SystemTablespaceEncrypted bool   `json:"systemTablespaceEncrypted"`
	UnencryptedTablespaces    int32  `json:"unencryptedTablespaces"`
	RedoLogEncrypted          bool   `json:"redoLogEncrypted"`
	UndoLogEncrypted          bool   `json:"undoLogEncrypted"`
	BinlogEncrypted           bool   `json:"binlogEncrypted"`
}

// Condition types.
const (
	ConditionReady              = "Ready"
	ConditionAvailable          = "Available"
	ConditionProgressing        = "Progressing"
	ConditionDegraded           = "Degraded"
	ConditionReplicationHealthy = "ReplicationHealthy"
	ConditionFailoverBlocked    = "FailoverBlocked"
	ConditionTLSReady           = "TLSReady"
	ConditionEncryptionReady    = "EncryptionAtRestReady"
	ConditionBackupReady        = "BackupReady"
	ConditionCacheReady         = "CacheReady"
	ConditionUnbuiltFeatures    = "UnbuiltFeatures"
)
