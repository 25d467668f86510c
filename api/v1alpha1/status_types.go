// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MysqlFailoverGroupStatus is what was observed and what is durably intended.
//
// Two owners write it, each through its own field manager:
//   - mfg-monitor-status (operator/monitor): activeSite, activeSiteSince, epoch, transition, cooldownUntil, phase,
//     rowsOutsideInnoDB, sites[].{state,reason,message,errant,keptFenced,outlivedLease}, formerSites, readySites, replicationLag, lastFailover, failovers, epochs and the conditions
//     Available, ReplicationHealthy, FailoverBlocked, Ready, Degraded.
//   - mfg-operator-status (operator/controller): observedGeneration, sites[].{provisioned,volumeID,unlisted,node,image,version,clone},
//     encryptionAtRest, passwords, restore, tls, upgrade and the conditions Progressing, TLSReady, TLSRequired, UnbuiltFeatures,
//     EncryptionAtRestReady, RestoreReady, DNSReady, TaintsReady, UpgradePending.
//
// backup.profiles and the conditions BackupReady and BackupVerified are written by operator/backups, through mfg-backup-status; backup.pitr and
// the condition PITRReady by operator/archiving, through mfg-pitr-status.
//
// cache and the condition CacheReady are written by operator/cache/loop, through mfg-cache-status.
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
	// formerSites are the sites that left the spec and of which something counts if they come back.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	FormerSites []FormerSite `json:"formerSites,omitempty"`
	// failovers are the last changes of the active site, newest first; 10 are kept, and older ones that
	// alone say of a site that it was replaced and may have what the group lost.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Failovers []FailoverRecord `json:"failovers,omitempty"`
	// epochs is with what each epoch began, newest first; 64 are kept. An archive of binary logs is read by them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Epochs []EpochRecord `json:"epochs,omitempty"`

	// encryptionAtRest is the state of data-at-rest encryption.
	//
	// +optional
	EncryptionAtRest *EncryptionAtRestStatus `json:"encryptionAtRest,omitempty"`

	// cache is the state of the cache store.
	//
	// +optional
	Cache *CacheStatus `json:"cache,omitempty"`

	// backup is the state of the backups.
	//
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`
	// restore is how far the restore by initFromBackup is; empty if none was asked for.
	//
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// tls is how far the group is on its way to TLS.
	//
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`

	// passwords says how far the replacement of passwords is; empty if there never was one.
	//
	// +optional
	Passwords *PasswordsStatus `json:"passwords,omitempty"`

	// application is the database and the account that were made for spec.application; empty until they were.
	//
	// +optional
	Application *ApplicationStatus `json:"application,omitempty"`

	// upgrade tells what only another version of the operator changes about the pods from what was asked for.
	//
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

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
