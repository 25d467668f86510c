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
	// pitr is the state of the archive of binary logs; empty in a group without one.
	//
	// +optional
	PITR *PITRStatus `json:"pitr,omitempty"`
}

// PITRStatus is the state of the archive of binary logs. It says what was true at most 10 s ago, and at most 70 s ago where only times have
// changed.
type PITRStatus struct {
	// site that archives.
	//
	// +optional
	Site string `json:"site,omitempty"`
	// earliest is the first point in time that the group can be brought back to: when the oldest backup that is kept was completed; without
	// one nothing can.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`
	// latest is the last one: everything that was committed until then is archived.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`
	// archivedGTID is the set of the transactions in the archive; empty if it is longer than status takes.
	//
	// +optional
	ArchivedGTID string `json:"archivedGTID,omitempty"`
	// lag is how old latest was when this was written, in steps so that it does not change all the time: <30s, <1m, <5m, <15m, <1h, <6h, <1d or
	// >=1d. The number is in the metrics.
	//
	// +optional
	Lag string `json:"lag,omitempty"`
	// gaps are transactions that are missing in the archive, the newest last: no point from there on to the next backup can be recovered.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Gaps []PITRGap `json:"gaps,omitempty"`
	// gapCount counts all gaps, also those for which there was no room.
	//
	// +optional
	GapCount int32 `json:"gapCount,omitempty"`
	// bytes that the archive takes in the storage.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// holding is true while the sites are kept from purging binary logs, because the archive does not have them yet.
	//
	// +optional
	Holding bool `json:"holding,omitempty"`
	// pruneMessage says why the archiver cannot remove what no kept backup needs, such as credentials that may not delete; empty if it can. The
	// archive grows meanwhile, and everything in it can still be recovered.
	//
	// +optional
	PruneMessage string `json:"pruneMessage,omitempty"`
	// reason is what keeps the archive from growing, one CamelCase word; empty if nothing does.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people, with the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// PITRGap is what is missing in the archive.
type PITRGap struct {
	// gtids are the transactions; empty if the set is too long.
	//
	// +optional
	GTIDs string `json:"gtids,omitempty"`
	// transactions is how many they are.
	//
	// +optional
	Transactions int64 `json:"transactions,omitempty"`
	// after is the last commit before them that is archived.
	//
	// +optional
	After *metav1.MicroTime `json:"after,omitempty"`
	// before is the first commit after them that is archived.
	//
	// +optional
	Before *metav1.MicroTime `json:"before,omitempty"`
	// epoch in which they were written.
	//
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// site that they were written on.
	//
	// +optional
	Site string `json:"site,omitempty"`
}

// BackupProfileStatus is the state of one profile.
type BackupProfileStatus struct {
	// name of the profile.
	//
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// backups counts the completed backups in the storage that this group made: not those of a deleted group that had its name.
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
	// schedule is the present schedule as it was acted upon last: cron, time zone, and whether it is suspended.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// scheduleSince is since when it is this one; empty if that was before the operator noted it. What was due by another schedule, or while it
	// was suspended, is not missing.
	//
	// +optional
	ScheduleSince *metav1.Time `json:"scheduleSince,omitempty"`
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
	// verificationSchedule is verification.cron and the time zone as they were acted upon last.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	VerificationSchedule string `json:"verificationSchedule,omitempty"`
	// verificationSince is since when it is this one; empty if that was before the operator noted it.
	//
	// +optional
	VerificationSince *metav1.Time `json:"verificationSince,omitempty"`
	// restoreSeconds is how long the restore of that verification took, in seconds.
	//
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// reason is what keeps the profile from making backups or from removing old ones, one CamelCase word; empty if nothing does.
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
	// target is the point in time that was asked for, in words; empty if it is the backup.
	//
	// +optional
	Target string `json:"target,omitempty"`
	// replayedTo is the commit of the last transaction that was taken from the archive: the point in time that was reached.
	//
	// +optional
	ReplayedTo *metav1.MicroTime `json:"replayedTo,omitempty"`
	// replayed is how many transactions were taken from the archive.
	//
	// +optional
	Replayed int64 `json:"replayed,omitempty"`
	// reason is why it is in this phase, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people, with the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
