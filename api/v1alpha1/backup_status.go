// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackupStatus is the state of a group's backups.
type BackupStatus struct {
	// profiles has one entry for each profile of which there are backups or were attempts.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Profiles []BackupProfileStatus `json:"profiles,omitempty"`
}

// BackupProfileStatus is the state of one profile.
type BackupProfileStatus struct {
	// name of the profile.
	//
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// backups counts the completed backups in the storage.
	//
	// +optional
	Backups int32 `json:"backups,omitempty"`
	// bytes that they take together.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// running is the MysqlBackup that is being made.
	//
	// +optional
	Running string `json:"running,omitempty"`
	// lastBackup is the newest completed backup.
	//
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// lastSuccess is when it was completed.
	//
	// +optional
	LastSuccess *metav1.Time `json:"lastSuccess,omitempty"`
	// lastAttempt is when a backup was started last.
	//
	// +optional
	LastAttempt *metav1.Time `json:"lastAttempt,omitempty"`
	// lastScheduled is the last time of the schedule that was acted upon, or passed over.
	//
	// +optional
	LastScheduled *metav1.Time `json:"lastScheduled,omitempty"`
	// next is when the next backup is due.
	//
	// +optional
	Next *metav1.Time `json:"next,omitempty"`
	// lastVerified is the newest backup whose verification passed.
	//
	// +optional
	LastVerified string `json:"lastVerified,omitempty"`
	// verifiedAt is when that was.
	//
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
	// verificationScheduled is the last time of verification.cron that was acted upon, or passed over.
	//
	// +optional
	VerificationScheduled *metav1.Time `json:"verificationScheduled,omitempty"`
	// restoreSeconds is how long the restore of that verification took, in seconds.
	//
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// reason is what keeps the profile from making backups, one CamelCase word; empty if nothing does.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people, with the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// RestorePhase is how far a restore is.
type RestorePhase string

// The phases of a restore.
const (
	// RestorePending means that the backup is looked for and checked.
	RestorePending RestorePhase = "Pending"
	// RestoreLoading means that the first site is given its data.
	RestoreLoading RestorePhase = "Loading"
	// RestoreCompleted means that the first site has everything.
	RestoreCompleted RestorePhase = "Completed"
	// RestoreFailed means that the last try failed; nothing opens, and it is tried again.
	RestoreFailed RestorePhase = "Failed"
)

// RestoreStatus is how far the restore of a new group is.
type RestoreStatus struct {
	// phase is Pending, Loading, Completed or Failed.
	//
	// +optional
	Phase RestorePhase `json:"phase,omitempty"`
	// site that is given the data.
	//
	// +optional
	Site string `json:"site,omitempty"`
	// backup is the name of the backup.
	//
	// +optional
	Backup string `json:"backup,omitempty"`
	// location is where it is: kind, bucket and folder.
	//
	// +optional
	Location string `json:"location,omitempty"`
	// method is how the data of the backup was copied.
	//
	// +optional
	Method BackupMethod `json:"method,omitempty"`
	// startedAt is when the restore began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when it ended.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// progress is how much is done, in percent: 99 once the data is on the volume, 100 once the site has taken it. What is between is in
	// the log of the container load of the site's pod.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress int32 `json:"progress,omitempty"`
	// gtidExecuted is the set of the transactions that were restored.
	//
	// +optional
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// reason is why it is in this phase, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people, with the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
