// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MysqlBackup is one backup of a group. A schedule makes them, and so does anyone who wants one. Removing it removes what is in the
// bucket, unless the annotation mysql-mfg.io/keep-artifact is true. The bucket is the truth: a restore needs no MysqlBackup.
//
// The name is at most 56 characters, so that the names of its Jobs stay within the 63 characters that labels allow.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mysqlbackups,singular=mysqlbackup,shortName=mb,categories=all,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.spec.group`
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.group`,description="The group that it is a backup of"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profile`,description="The profile of the group by which it is made"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Pending, Running, Completed, Failed or Deleting"
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`,description="How much room it takes"
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.verified.outcome`,description="Passed or Failed; empty while nobody has tried to restore it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Site",type=string,JSONPath=`.status.site`,priority=1,description="The site that it was taken from"
// +kubebuilder:printcolumn:name="Progress",type=integer,JSONPath=`.status.progress`,priority=1,description="How much is done, in percent"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1,description="Why it is in this phase"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a backup is at most 56 characters, lower-case letters, digits and '-': choose such a name",fieldPath=".metadata.name",reason=FieldValueInvalid
type MysqlBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is backed up. It cannot change.
	//
	// +required
	Spec MysqlBackupSpec `json:"spec"`
	// status is what came of it.
	//
	// +optional
	Status MysqlBackupStatus `json:"status,omitempty,omitzero"`
}

// MysqlBackupList is a list of backups.
//
// +kubebuilder:object:root=true
type MysqlBackupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the backups.
	//
	// +required
	Items []MysqlBackup `json:"items"`
}

// MysqlBackupSpec says what is backed up.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="what a backup is of cannot change: make another backup",reason=FieldValueForbidden
type MysqlBackupSpec struct {
	// group is the name of the MysqlFailoverGroup, in the same namespace.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Group string `json:"group"`
	// profile is the one of the group's backup.profiles by which it is made.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Profile string `json:"profile"`
	// method is Logical or Physical. Default: the profile's.
	//
	// +optional
	Method BackupMethod `json:"method,omitempty"`
}

// BackupPhase is how far a backup is.
type BackupPhase string

// The phases of a backup.
const (
	// BackupPending means that it waits for its turn, for a site or for the storage.
	BackupPending BackupPhase = "Pending"
	// BackupRunning means that a pod makes it.
	BackupRunning BackupPhase = "Running"
	// BackupCompleted means that its manifest is in the storage.
	BackupCompleted BackupPhase = "Completed"
	// BackupFailed means that there is no backup, and that nobody tries again.
	BackupFailed BackupPhase = "Failed"
	// BackupDeleting means that what is in the storage is being removed.
	BackupDeleting BackupPhase = "Deleting"
)

// BackupOutcome is what came of a verification.
type BackupOutcome string

// The outcomes of a verification.
const (
	BackupPassed        BackupOutcome = "Passed"
	BackupNotRestorable BackupOutcome = "Failed"
)

// MysqlBackupStatus is what came of a backup. Strings have no bound and words no enumeration, as in the status of a group.
type MysqlBackupStatus struct {
	// phase is Pending, Running, Completed, Failed or Deleting.
	//
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`
	// attempts counts the Jobs that were started for it.
	//
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// job is the Job that makes it now.
	//
	// +optional
	Job string `json:"job,omitempty"`
	// method is how the data was copied.
	//
	// +optional
	Method BackupMethod `json:"method,omitempty"`
	// site that it is taken from.
	//
	// +optional
	Site string `json:"site,omitempty"`
	// epoch of the group when it was started.
	//
	// +optional
	// +kubebuilder:validation:Maximum=9007199254740991
	Epoch int64 `json:"epoch,omitempty"`
	// startedAt is when the attempt that counts was started.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when it was completed or given up.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// bytes that it takes in the storage.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// size is the same for people, as in 4.1GiB.
	//
	// +optional
	Size string `json:"size,omitempty"`
	// gtidExecuted is the set of the transactions that it holds.
	//
	// +optional
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// mysqlVersion is that of the server that it was taken from.
	//
	// +optional
	MySQLVersion string `json:"mysqlVersion,omitempty"`
	// location is where it is: kind, bucket and folder.
	//
	// +optional
	Location string `json:"location,omitempty"`
	// storageDigest tells that place from every other: a digest of all that decides where its objects lie, of which location leaves out the
	// server and the volume. A backup of an operator that wrote none has none.
	//
	// +optional
	StorageDigest string `json:"storageDigest,omitempty"`
	// encrypted is true if it can be read with an age identity alone.
	//
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// progress is how much is done, in percent, from 0 to 100; an estimate.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress int32 `json:"progress,omitempty"`
	// verified says what came of the last verification; empty if there was none.
	//
	// +optional
	Verified *BackupVerified `json:"verified,omitempty"`
	// verificationWaits says why the verification that was asked for has no outcome yet, and when it is tried again; empty if none waits.
	//
	// +optional
	VerificationWaits *BackupVerificationWait `json:"verificationWaits,omitempty"`
	// reason is why it is in this phase, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people, with the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// BackupVerificationWait is a verification whose tries said nothing of the backup: the storage was away, or the pod went.
type BackupVerificationWait struct {
	// tries counts those that ended without an outcome.
	Tries int32 `json:"tries"`
	// missing counts the last of them in a row that did not find the backup in its storage.
	//
	// +optional
	Missing int32 `json:"missing,omitempty"`
	// order is the value of the annotation that asked for it; another value has it tried at once.
	//
	// +optional
	Order string `json:"order,omitempty"`
	// notBefore is when it is tried again at the earliest.
	//
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// timeoutSeconds is the time that it had.
	//
	// +optional
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// reason is why the last try ended, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// BackupVerified is what came of restoring a backup into a scratch server.
type BackupVerified struct {
	// at is when the verification ended.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// outcome is Passed or Failed.
	Outcome BackupOutcome `json:"outcome"`
	// replayedTo is the commit time of the last transaction that was applied from archived binary logs.
	//
	// +optional
	ReplayedTo *metav1.Time `json:"replayedTo,omitempty"`
	// restoreSeconds is how long the restore took, in seconds.
	//
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// message says what failed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
