// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MysqlFailoverGroupStatus is what was observed and what is durably intended.
//
// Two owners write it, each through its own field manager:
//   - mfg-monitor-status (operator/monitor): activeSite, activeSiteSince, epoch, transition, cooldownUntil, phase,
//     rowsOutsideInnoDB, sites[].{state,reason,message,errant,outlivedLease}, readySites, replicationLag, lastFailover, failovers and the conditions
//     Available, ReplicationHealthy, FailoverBlocked, Ready, Degraded.
//   - mfg-operator-status (operator/controller): observedGeneration, sites[].{provisioned,volumeID,unlisted,node,image,version,clone},
//     encryptionAtRest, passwords and the conditions Progressing, TLSReady, UnbuiltFeatures, EncryptionAtRestReady,
//     BackupReady, CacheReady, DNSReady, TaintsReady.
//
// lastRequests is written by operator/request alone, for both, with a field manager for each kind.
//
// Strings here have no bound and words no enumeration in the schema, on purpose: a rejected status write would stop a
// failover. Lists have bounds far above what is written.
type MysqlFailoverGroupStatus struct {
	// observedGeneration is the generation of the spec that the operator has acted upon.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// claim says which release of the operator operates the group. Others leave it alone.
	//
	// +optional
	Claim *GroupClaim `json:"claim,omitempty"`

	// phase sums up the group in one word: Bootstrapping, Running, Degraded, FailingOver or Unavailable. Programs read
	// conditions instead.
	//
	// +optional
	Phase GroupPhase `json:"phase,omitempty"`
	// activeSite is the site that takes writes, or is about to.
	//
	// +optional
	ActiveSite string `json:"activeSite,omitempty"`
	// activeSiteSince is when the active site was opened.
	//
	// +optional
	ActiveSiteSince *metav1.Time `json:"activeSiteSince,omitempty"`
	// epoch grows by one with every change of the active site.
	//
	// +optional
	// +kubebuilder:validation:Maximum=9007199254740991
	Epoch int64 `json:"epoch,omitempty"`
	// transition is the change of the active site that is under way.
	//
	// +optional
	Transition *Transition `json:"transition,omitempty"`
	// plannedFailover is the last planned failover that was asked for, and what came of it.
	//
	// +optional
	PlannedFailover *PlannedFailoverStatus `json:"plannedFailover,omitempty"`
	// forecast is what an emergency failover would do if the active site were lost now.
	//
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
	// cooldownUntil is until when no emergency failover starts by itself.
	//
	// +optional
	CooldownUntil *metav1.Time `json:"cooldownUntil,omitempty"`
	// rowsOutsideInnoDB counts the tables with rows outside InnoDB that the active site had when it was last seen open. A clone brings
	// none of these rows; a site that was cloned without them is no candidate.
	//
	// +optional
	RowsOutsideInnoDB int32 `json:"rowsOutsideInnoDB,omitempty"`
	// readySites is how many sites are ready, of how many, as in 3/3.
	//
	// +optional
	ReadySites string `json:"readySites,omitempty"`
	// replicationLag is the largest replication lag of any replica, as in 0s; empty when it is not known.
	//
	// +optional
	ReplicationLag string `json:"replicationLag,omitempty"`
	// lastFailover is the kind of the last change of the active site, or Blocked while one is due and may not run.
	//
	// +optional
	LastFailover string `json:"lastFailover,omitempty"`

	// sites holds one entry for each site.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []SiteStatus `json:"sites,omitempty"`
	// failovers are the last changes of the active site, newest first; 10 are kept.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Failovers []FailoverRecord `json:"failovers,omitempty"`

	// encryptionAtRest is the state of data-at-rest encryption.
	//
	// +optional
	EncryptionAtRest *EncryptionAtRestStatus `json:"encryptionAtRest,omitempty"`

	// passwords says how far the replacement of passwords is; empty if there never was one.
	//
	// +optional
	Passwords *PasswordsStatus `json:"passwords,omitempty"`

	// lastRequests are the last answers to what was asked for by annotation, one for each kind of request.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=64
	LastRequests []LastRequest `json:"lastRequests,omitempty"`

	// conditions say what is true now; their messages name the next step.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// GroupClaim names the release of the operator that operates a group. It is written once, and again when another release takes
// over; that it stands shows the Lease, which its leader renews.
type GroupClaim struct {
	// lease is the leader-election Lease of the release, as namespace/name.
	Lease string `json:"lease"`
	// holder is the pod that claimed the group.
	//
	// +optional
	Holder string `json:"holder,omitempty"`
	// since is when it was claimed.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty"`
}

// PasswordPhase is how far the replacement of passwords is.
type PasswordPhase string

// The phases of a replacement of passwords.
const (
	// PasswordsIntroducing means that the sites are given the new passwords beside the old ones. Everybody uses the old ones.
	PasswordsIntroducing PasswordPhase = "Introducing"
	// PasswordsSwitching means that every site takes both, and everybody changes to the new ones; then the old ones are refused.
	PasswordsSwitching PasswordPhase = "Switching"
)

// PasswordsStatus is the replacement of the passwords of the operator's own MySQL accounts. It holds no password.
type PasswordsStatus struct {
	// phase is Introducing or Switching; empty while nothing is replaced.
	//
	// +optional
	Phase PasswordPhase `json:"phase,omitempty"`
	// accounts whose passwords are being replaced.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Accounts []string `json:"accounts,omitempty"`
	// reason is what it waits for, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// finishedAt is when passwords were replaced last.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
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

// LastFailoverBlocked is the value of status.lastFailover while a failover is due and may not run.
const LastFailoverBlocked = "Blocked"

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
	// rule by which it ranks first, one CamelCase word: OnlyCandidate, MostTransactions, LeastToApply, Priority or Name.
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

// SiteIncarnation is a pod of a site on a machine.
type SiteIncarnation struct {
	// podUID is the UID of the pod.
	//
	// +required
	PodUID string `json:"podUID"`
	// node is the name of its node.
	//
	// +optional
	Node string `json:"node,omitempty"`
	// machine is what was behind that name: the UID of the node and the UUID of its system.
	//
	// +optional
	Machine string `json:"machine,omitempty"`
	// volumeID is the random name of the data volume that its sidecar reported.
	//
	// +optional
	VolumeID string `json:"volumeID,omitempty"`
	// leaseMillis is for how long it may stay open without an answer, the time for its fence included.
	//
	// +optional
	LeaseMillis int64 `json:"leaseMillis,omitempty"`
	// closed is true once another pod was opened after proof that this one accepts no writes. It may still tell the active site that that
	// is active.
	//
	// +optional
	Closed bool `json:"closed,omitempty"`
}

// SiteStatus is one site as seen by the operator.
type SiteStatus struct {
	// name of the site.
	//
	// +required
	Name string `json:"name"`
	// state is what the site is right now: Pending, Primary, Replica, Fenced, Cloning, Diverged, Unreachable or Detached.
	//
	// +optional
	State SiteState `json:"state,omitempty"`
	// reason is why the site is in that state, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people and names the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// errant is the GTID set that this site has and the active site lacks, as far as it was seen last.
	//
	// +optional
	Errant string `json:"errant,omitempty"`
	// outlivedLease is true if the site was seen to accept writes after its lease must have ended, and its sidecar was not heard to have
	// one since. Nobody fences it then, so it is replaced only on proof that it accepts no writes, and not after a time.
	//
	// +optional
	OutlivedLease bool `json:"outlivedLease,omitempty"`
	// incarnations are the pods of the site that have run and are not known to have ended, in the order in which they were seen. While
	// there is more than one, what the newest says proves nothing for the site.
	//
	// +optional
	// +listType=atomic
	Incarnations []SiteIncarnation `json:"incarnations,omitempty"`

	// clone is the copy that the site receives, while it does.
	//
	// +optional
	Clone *CloneProgress `json:"clone,omitempty"`
	// provisioned is true once the site's data is part of the group: it was the first active site, or was cloned.
	//
	// +optional
	Provisioned bool `json:"provisioned,omitempty"`
	// volumeID names the data volume on which the site was provisioned, after a random name that is kept on the volume.
	// A site that shows up with another volume has lost that data.
	//
	// +optional
	VolumeID string `json:"volumeID,omitempty"`
	// unlisted is true for a site that was added to a group with data and has not got its own yet: no pod of another site was started
	// with it as a peer, so it can keep nobody's lease, and no failover waits for it. It goes for good, before any pod is made that
	// asks the site.
	//
	// +optional
	Unlisted bool `json:"unlisted,omitempty"`
	// node is where the sidecar of the site's pod started last. It stays while a replacement of that pod waits, since the
	// old one may still run there.
	//
	// +optional
	Node string `json:"node,omitempty"`
	// image that the site's pod runs.
	//
	// +optional
	Image string `json:"image,omitempty"`
	// version of the site's MySQL.
	//
	// +optional
	Version string `json:"version,omitempty"`
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
	// fromExecuted is the last known executed GTID set of the old active site.
	//
	// +optional
	FromExecuted string `json:"fromExecuted,omitempty"`
	// toExecuted is the GTID set of the new active site at its promotion.
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

// CloneProgress is how far a clone has come, from clone_progress of the recipient.
type CloneProgress struct {
	// source is the site whose data is copied.
	//
	// +optional
	Source string `json:"source,omitempty"`
	// stage is the stage that runs, as MySQL names it, such as FILE COPY.
	//
	// +optional
	Stage string `json:"stage,omitempty"`
	// percent of the estimated bytes that has arrived, in steps of 5.
	//
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// etaSeconds is how long the rest will take at the pace so far, in seconds, rounded up to 10.
	//
	// +optional
	ETASeconds *int64 `json:"etaSeconds,omitempty"`
	// order is why the site is cloned although it had data: the value of the annotation reclone-site, or onDivergence.
	// Empty for a clone that throws nothing away.
	//
	// +optional
	Order string `json:"order,omitempty"`
	// startedAt is when the clone was ordered or began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
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

// Condition types; what each means while it is true.
const (
	// ConditionReady: every site is up, replicates and is fit for its role.
	ConditionReady = "Ready"
	// ConditionAvailable: a site is open for writes, and a write as a client makes it succeeds there.
	ConditionAvailable = "Available"
	// ConditionProgressing: objects of the group are being made, updated or removed, or volumes grow.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: the group works, and something that keeps it safe is missing: a site, its replication, or its fitness.
	ConditionDegraded = "Degraded"
	// ConditionReplicationHealthy: every replica replicates from the active site.
	ConditionReplicationHealthy = "ReplicationHealthy"
	// ConditionFailoverBlocked: a failover is due or under way, and needs a person or a change of the facts.
	ConditionFailoverBlocked = "FailoverBlocked"
	// ConditionTLSReady: the group's certificate is there, names what it must, and MySQL shows it.
	ConditionTLSReady = "TLSReady"
	// ConditionEncryptionReady: every keyring is sealed, and what the specification asks for is encrypted.
	ConditionEncryptionReady = "EncryptionAtRestReady"
	// ConditionBackupReady: backups are made; always false in this version, which makes none.
	ConditionBackupReady = "BackupReady"
	// ConditionCacheReady: the cache store follows the active site; always false in this version, which runs none.
	ConditionCacheReady = "CacheReady"
	// ConditionUnbuiltFeatures: the specification asks for something that this version does not have.
	ConditionUnbuiltFeatures = "UnbuiltFeatures"
	// ConditionSpecRefused: the specification asks for something that is not allowed, and the group runs without it.
	ConditionSpecRefused = "SpecRefused"
	// ConditionPaused: the operator takes no decision about this group until the time in pause-until.
	ConditionPaused = "Paused"
	// ConditionPlannedBlocked: the active site is about to go, and its role cannot be moved away.
	ConditionPlannedBlocked = "PlannedFailoverBlocked"
	// ConditionDNSReady: the DNS name points to the active site.
	ConditionDNSReady = "DNSReady"
	// ConditionTaintsReady: the nodes carry the taints that follow the roles.
	ConditionTaintsReady = "TaintsReady"
)
