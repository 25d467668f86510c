// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of backups.
const (
	// ReasonBackupWaits: the backup waits until fewer others run.
	ReasonBackupWaits Reason = "BackupWaits"
	// ReasonBackupWaitsForFailover: the backup waits until it is clear which site is active.
	ReasonBackupWaitsForFailover Reason = "BackupWaitsForFailover"
	// ReasonNoBackupSource: no site can be backed up; the message names what is wrong with each.
	ReasonNoBackupSource Reason = "NoBackupSource"
	// ReasonBackupSourceChosen: the site that the backup is taken from was chosen.
	ReasonBackupSourceChosen Reason = "BackupSourceChosen"
	// ReasonBackupRunning: a pod makes the backup.
	ReasonBackupRunning Reason = "BackupRunning"
	// ReasonBackupYielded: the backup was stopped, because its site is needed; it starts again, on another site if there is one.
	ReasonBackupYielded Reason = "BackupYielded"
	// ReasonBackupRetried: an attempt ended without a backup, and another follows.
	ReasonBackupRetried Reason = "BackupRetried"
	// ReasonBackupCompleted: the manifest of the backup is in the storage.
	ReasonBackupCompleted Reason = "BackupCompleted"
	// ReasonBackupFailed: the last attempt ended without a backup, and no other follows.
	ReasonBackupFailed Reason = "BackupFailed"
	// ReasonBackupTimedOut: an attempt took longer than the timeout of the profile.
	ReasonBackupTimedOut Reason = "BackupTimedOut"
	// ReasonBackupTooLate: the backup could not be started before the startingDeadline of the schedule.
	ReasonBackupTooLate Reason = "BackupTooLate"
	// ReasonBackupProfileMissing: the group or its profile that the backup names is not there.
	ReasonBackupProfileMissing Reason = "BackupProfileMissing"
	// ReasonBackupDeleting: what the storage has of the backup is being removed.
	ReasonBackupDeleting Reason = "BackupDeleting"
)
