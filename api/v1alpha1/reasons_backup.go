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
	// ReasonBackupStorageChanged: the profile has another storage since an attempt, which may have stored the backup in the former one.
	ReasonBackupStorageChanged Reason = "BackupStorageChanged"
	// ReasonBackupProfileMissing: the group or its profile that the backup names is not there.
	ReasonBackupProfileMissing Reason = "BackupProfileMissing"
	// ReasonBackupDeleting: what the storage has of the backup is being removed.
	ReasonBackupDeleting Reason = "BackupDeleting"
)

// Reasons of the backups of a group.
const (
	// ReasonBackupImageMissing: the operator was installed without the image that makes backups (--backup-image).
	ReasonBackupImageMissing Reason = "BackupImageMissing"
	// ReasonNoBackupYet: a profile has no backup yet.
	ReasonNoBackupYet Reason = "NoBackupYet"
	// ReasonFirstBackupScheduled: a profile has no backup yet, and the first one is not due.
	ReasonFirstBackupScheduled Reason = "FirstBackupScheduled"
	// ReasonBackupOverdue: a backup was due by the schedule, and is not there.
	ReasonBackupOverdue Reason = "BackupOverdue"
	// ReasonBackupMissed: a time of a schedule passed without a backup, because no operator ran to make it.
	ReasonBackupMissed Reason = "BackupMissed"
	// ReasonBackupElsewhere: a profile was removed and made again with another storage, while there are backups in the old one.
	ReasonBackupElsewhere Reason = "BackupElsewhere"
	// ReasonRetentionHeld: old backups stay, because another group is to begin with one of them and does not have it yet.
	ReasonRetentionHeld Reason = "RetentionHeld"
	// ReasonBackupScheduleUnusable: a schedule cannot be read, or names a time zone that is not known.
	ReasonBackupScheduleUnusable Reason = "BackupScheduleUnusable"
	// ReasonBackupsMade: every profile has a backup, and none that was due is missing.
	ReasonBackupsMade Reason = "BackupsMade"
	// ReasonBackupVerified: a backup was restored into a scratch server, and is what it should be.
	ReasonBackupVerified Reason = "BackupVerified"
	// ReasonBackupNotRestorable: a backup could not be restored into a scratch server, or is not what it should be.
	ReasonBackupNotRestorable Reason = "BackupNotRestorable"
	// ReasonBackupNotVerified: no verification has passed yet, or the last one is older than it should be.
	ReasonBackupNotVerified Reason = "BackupNotVerified"
	// ReasonBackupVerificationWaits: a verification ended without an outcome, because of something that may pass, and is tried again.
	ReasonBackupVerificationWaits Reason = "BackupVerificationWaits"
	// ReasonBackupArtifactKept: a MysqlBackup went, and what is in the storage stays: it was asked for, or cannot be removed.
	ReasonBackupArtifactKept Reason = "BackupArtifactKept"
	// ReasonBackupExpired: a backup was removed, because no rule of the retention keeps it.
	ReasonBackupExpired Reason = "BackupExpired"
	// ReasonBackupRemovalFailed: a backup could not be removed from the storage; it is tried again.
	ReasonBackupRemovalFailed Reason = "BackupRemovalFailed"
)
