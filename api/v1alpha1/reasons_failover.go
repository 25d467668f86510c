// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of decisions about the active site, of planned failovers and of refusals.
const (
	// ReasonHealthy: the active site accepts writes.
	ReasonHealthy Reason = "Healthy"
	// ReasonWaitingForSites: the first opening waits until MySQL of every primary-candidate is up.
	ReasonWaitingForSites Reason = "WaitingForSites"
	// ReasonFirstSite: the group had no active site, and the best candidate becomes it.
	ReasonFirstSite Reason = "FirstSite"
	// ReasonWaitingForRestart: MySQL of the active site is down for less than spec.failover.crashGrace: it may restart in place.
	ReasonWaitingForRestart Reason = "WaitingForRestart"
	// ReasonBelowThreshold: a site is silent for too few polls to count as lost.
	ReasonBelowThreshold Reason = "BelowThreshold"
	// ReasonReturnedWhole: a site is back and holds everything that was seen, so it is opened again.
	ReasonReturnedWhole Reason = "ReturnedWhole"
	// ReasonActiveSiteDown: MySQL of the active site is down, and its sidecar answers.
	ReasonActiveSiteDown Reason = "ActiveSiteDown"
	// ReasonActiveSiteSilent: the active site does not answer at all.
	ReasonActiveSiteSilent Reason = "ActiveSiteSilent"
	// ReasonActiveSiteBehind: the active site is back and lacks transactions that others have.
	ReasonActiveSiteBehind Reason = "ActiveSiteBehind"
	// ReasonStatusBehind: a site is open under an epoch that status did not know.
	ReasonStatusBehind Reason = "StatusBehind"
	// ReasonActiveSiteCannotOpen: the active site answers, and its sidecar does not open it.
	ReasonActiveSiteCannotOpen Reason = "ActiveSiteCannotOpen"
	// ReasonForced: a person ordered the site, and accepted what may be lost.
	ReasonForced Reason = "Forced"
	// ReasonEverySiteUnreachable: no site answers, so nothing is decided: the operator may be what is cut off.
	ReasonEverySiteUnreachable Reason = "EverySiteUnreachable"
	// ReasonCooldown: the last failover is too recent for another one by itself.
	ReasonCooldown Reason = "Cooldown"
	// ReasonModeManual: spec.failover.mode is Manual: no failover happens by itself.
	ReasonModeManual Reason = "ModeManual"
	// ReasonModeObserve: spec.failover.mode is Observe: the operator changes no role.
	ReasonModeObserve Reason = "ModeObserve"
	// ReasonNoFitCandidate: no site is fit to take the role.
	ReasonNoFitCandidate Reason = "NoFitCandidate"
	// ReasonLossBudget: more would be lost than spec.failover.maxLostTransactions allows.
	ReasonLossBudget Reason = "LossBudget"
	// ReasonMissingTransactions: the site lacks transactions that another site has.
	ReasonMissingTransactions Reason = "MissingTransactions"
	// ReasonForeignWriter: a site that is not the active one accepts writes; it is being fenced.
	ReasonForeignWriter Reason = "ForeignWriter"
	// ReasonAwaitingFenceProof: there is no proof yet that a site accepts no writes.
	ReasonAwaitingFenceProof Reason = "AwaitingFenceProof"
	// ReasonSiteMayStillVouch: a silent site may still answer for the active site, so time alone proves nothing.
	ReasonSiteMayStillVouch Reason = "SiteMayStillVouch"
	// ReasonLeaseOutlived: a site was seen to accept writes after its lease must have ended, so time alone proves nothing.
	ReasonLeaseOutlived Reason = "LeaseOutlived"
	// ReasonDrainingRelayLog: the target applies what it has received.
	ReasonDrainingRelayLog Reason = "DrainingRelayLog"
	// ReasonDrainTimeout: the target did not apply what it has received within spec.failover.drainTimeout.
	ReasonDrainTimeout Reason = "DrainTimeout"
	// ReasonTargetSilent: the site that is to be opened does not answer, for too short a time to give it up.
	ReasonTargetSilent Reason = "TargetSilent"
	// ReasonTargetLost: the site that was to be opened cannot be.
	ReasonTargetLost Reason = "TargetLost"
	// ReasonGatePassed: every proof is there, and the site is opened.
	ReasonGatePassed Reason = "GatePassed"
	// ReasonOpening: the sidecar of the site opens it.
	ReasonOpening Reason = "Opening"
	// ReasonOpened: the site is open.
	ReasonOpened Reason = "Opened"
	// ReasonPaused: a person has paused the group, so no role changes and no pod is replaced by itself.
	ReasonPaused Reason = "Paused"
	// ReasonUnknownSite: the group has no site of that name.
	ReasonUnknownSite Reason = "UnknownSite"
	// ReasonAlreadyActive: the site is the active one.
	ReasonAlreadyActive Reason = "AlreadyActive"
	// ReasonNotFit: the site may not take the role; the message says which rule refuses it.
	ReasonNotFit Reason = "NotFit"
	// ReasonNotHealthy: the group is not healthy, so no planned failover begins.
	ReasonNotHealthy Reason = "NotHealthy"
	// ReasonNotReplicating: the target does not replicate from the active site.
	ReasonNotReplicating Reason = "NotReplicating"
	// ReasonCloneInProgress: a site is being given the data of the active site, which must stay until that is done.
	ReasonCloneInProgress Reason = "CloneInProgress"
	// ReasonTargetLags: the target is too far behind to stop writes for it.
	ReasonTargetLags Reason = "TargetLags"
	// ReasonAborted: a person gave the planned failover up.
	ReasonAborted Reason = "Aborted"
	// ReasonPauseTimeout: a planned failover kept writes out for longer than spec.failover.plannedPauseTimeout.
	ReasonPauseTimeout Reason = "PauseTimeout"
	// ReasonPlannedReverted: a planned failover ended, and the old active site is opened again.
	ReasonPlannedReverted Reason = "PlannedReverted"
	// ReasonEmergencyFailover: an emergency failover took over from a planned one.
	ReasonEmergencyFailover Reason = "EmergencyFailover"
	// ReasonVolumeNotNoted: the site is opened once status holds the name of its data volume.
	ReasonVolumeNotNoted Reason = "VolumeNotNoted"
	// ReasonEarlierPodMayRun: an earlier pod of the site may run on, so what the new one says proves nothing of it.
	ReasonEarlierPodMayRun Reason = "EarlierPodMayRun"
	// ReasonRoleIsMoving: a planned failover is asked about while the role moves.
	ReasonRoleIsMoving Reason = "RoleIsMoving"
	// ReasonRowsMissing: a replica was cloned without rows outside InnoDB that the active site has.
	ReasonRowsMissing Reason = "RowsMissing"
	// ReasonReplicationFiltered: a replica skips transactions of the active site, or did: a replication filter was set by hand.
	ReasonReplicationFiltered Reason = "ReplicationFiltered"
	// ReasonLargeChange: the role stays while a transaction that has changed very many rows is not committed: to end it would take too long.
	ReasonLargeChange Reason = "LargeChange"
	// ReasonSetTooLong: the set of transactions of the active site is too long for the report of its sidecar, so no planned failover begins.
	ReasonSetTooLong Reason = "SetTooLong"
	// ReasonVolumeTakesNoWrites: the sidecar of the site cannot write to its data volume, so the site takes over from nobody until it can.
	ReasonVolumeTakesNoWrites Reason = "VolumeTakesNoWrites"
	// ReasonKeptFenced: a person keeps the site fenced, so it is not opened and takes over from nobody.
	ReasonKeptFenced Reason = "KeptFenced"
	// ReasonInvariantViolated: the operator decided something that must never happen, and did nothing: a bug.
	ReasonInvariantViolated Reason = "InvariantViolated"
)

// Causes of planned failovers.
const (
	// ReasonRequested: a person asked for the planned failover.
	ReasonRequested Reason = "Requested"
	// ReasonSiteLeaving: the active site is about to go, so its role is moved away.
	ReasonSiteLeaving Reason = "SiteLeaving"
	// ReasonOrderedUpdate: the pod of the active site is to be updated, so its role is moved away.
	ReasonOrderedUpdate Reason = "OrderedUpdate"
	// ReasonVolumeFails: the data volume of the active site takes no writes, so its role is moved away.
	ReasonVolumeFails Reason = "VolumeFails"
)

// Reasons of the state of a site.
const (
	// ReasonRemoved: the site left the specification, and is kept in sight until its pod is gone.
	ReasonRemoved Reason = "Removed"
	// ReasonImpossibleEpoch: the sidecar of the site reports an epoch that the group can never have reached, and is not believed.
	ReasonImpossibleEpoch Reason = "ImpossibleEpoch"
	// ReasonNotProvisioned: the site waits for its copy of the active site's data.
	ReasonNotProvisioned Reason = "NotProvisioned"
	// ReasonNoAnswer: neither the sidecar nor MySQL of the site answers.
	ReasonNoAnswer Reason = "NoAnswer"
	// ReasonMySQLDown: the sidecar of the site answers, and MySQL does not.
	ReasonMySQLDown Reason = "MySQLDown"
	// ReasonErrantTransactions: the site has transactions that the active site lacks, and is held for a person.
	ReasonErrantTransactions Reason = "ErrantTransactions"
	// ReasonPreparedXA: an XA transaction is prepared on the replica, so its sidecar keeps readers out.
	ReasonPreparedXA Reason = "PreparedXA"
	// ReasonReadersKeptOut: the sidecar of the replica keeps readers out, as it does for a moment after a start.
	ReasonReadersKeptOut Reason = "ReadersKeptOut"
	// ReasonNotEscrowed: the site is about to go, and its eviction is refused: its pod has the only copy of its keyring.
	ReasonNotEscrowed Reason = "NotEscrowed"
	// ReasonEscrowMissing: the site is about to go, and its eviction is refused: the escrow Secret of its keyring is gone.
	ReasonEscrowMissing Reason = "EscrowMissing"
	// ReasonOnlyCandidate: the site is about to go, and its eviction is refused: it is the only one that may take over.
	ReasonOnlyCandidate Reason = "OnlyCandidate"
)
