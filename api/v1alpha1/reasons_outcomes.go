// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons that the program in the pods of backups and restores gives (backup/job): ReasonOfBackup turns its words into them.
const (
	// ReasonAccessDenied: the storage of a backup lets nobody in with the credentials that the Secret has, or does not allow what is asked.
	ReasonAccessDenied Reason = "AccessDenied"
	// ReasonNoSuchBucket: the bucket, the container or the volume of a backup is not there.
	ReasonNoSuchBucket Reason = "NoSuchBucket"
	// ReasonUntrustedTLS: the certificate of the storage is not signed by whom caSecretName or the image names, or not for its name.
	ReasonUntrustedTLS Reason = "UntrustedTLS"
	// ReasonStorageFull: the storage of backups has no room left.
	ReasonStorageFull Reason = "StorageFull"
	// ReasonClockSkew: the clocks of the node and of the storage differ by more than the storage allows.
	ReasonClockSkew Reason = "ClockSkew"
	// ReasonStorageUnreachable: the storage of backups does not answer.
	ReasonStorageUnreachable Reason = "StorageUnreachable"
	// ReasonNoDeleteRight: the credentials for the storage may not remove backups.
	ReasonNoDeleteRight Reason = "NoDeleteRight"
	// ReasonForeignOwner: another group writes to this place in the storage.
	ReasonForeignOwner Reason = "ForeignOwner"
	// ReasonAlreadyExists: a backup of that name is in the storage already; none is ever overwritten.
	ReasonAlreadyExists Reason = "AlreadyExists"
	// ReasonNotFound: the storage has no such backup, or none at all.
	ReasonNotFound Reason = "NotFound"
	// ReasonStorageError: the storage of backups said something that has no reason of its own; the message has it.
	ReasonStorageError Reason = "StorageError"
	// ReasonDamagedBackup: what the storage has of a backup is not what was written, or is that of another group.
	ReasonDamagedBackup Reason = "DamagedBackup"
	// ReasonTooNew: the backup was written by a later version of the operator.
	ReasonTooNew Reason = "TooNew"
	// ReasonWrongIdentity: no age identity in the Secret opens the backup, or there is none.
	ReasonWrongIdentity Reason = "WrongIdentity"
	// ReasonTargetNotEmpty: there is data where a backup was to be loaded; nothing was touched.
	ReasonTargetNotEmpty Reason = "TargetNotEmpty"
	// ReasonVolumeTooSmall: the volume has too little room for the data of a backup; nothing was touched.
	ReasonVolumeTooSmall Reason = "VolumeTooSmall"
	// ReasonVersionTooOld: the MySQL here is older than that of the backup; nothing was touched.
	ReasonVersionTooOld Reason = "VersionTooOld"
	// ReasonEncryptionMismatch: a Physical backup fits a group that is encrypted as its own was; nothing was touched.
	ReasonEncryptionMismatch Reason = "EncryptionMismatch"
	// ReasonSettingsMismatch: the backup was made with settings of MySQL that a data directory keeps for ever, and the group has others; nothing
	// was touched.
	ReasonSettingsMismatch Reason = "SettingsMismatch"
	// ReasonTargetBeforeBackup: the backup holds more than the point in time that is asked for; nothing was touched.
	ReasonTargetBeforeBackup Reason = "TargetBeforeBackup"
	// ReasonTargetNotArchived: the archive of binary logs does not reach to the point in time, or knows nothing of it; nothing was touched.
	ReasonTargetNotArchived Reason = "TargetNotArchived"
	// ReasonTargetInGap: the archive of binary logs lacks what leads to the point in time; nothing was touched.
	ReasonTargetInGap Reason = "TargetInGap"
	// ReasonTransactionLost: a failover lost the transaction that is asked for; nothing was touched.
	ReasonTransactionLost Reason = "TransactionLost"
	// ReasonBackupDiverged: the backup holds what a failover lost; nothing was touched.
	ReasonBackupDiverged Reason = "BackupDiverged"
	// ReasonReplayFailed: a transaction of the archive could not be applied to the backup.
	ReasonReplayFailed Reason = "ReplayFailed"
	// ReasonServerFailed: the mysqld that makes, loads or checks a backup did not start, or ended.
	ReasonServerFailed Reason = "ServerFailed"
	// ReasonLoadFailed: the data of a backup could not be loaded.
	ReasonLoadFailed Reason = "LoadFailed"
	// ReasonDiffers: what was loaded is not what the backup says that it holds.
	ReasonDiffers Reason = "Differs"
	// ReasonQueryFailed: the query of a verification failed, or returned nothing that counts as yes.
	ReasonQueryFailed Reason = "QueryFailed"
	// ReasonSourceUnreachable: the site that was to be backed up did not answer.
	ReasonSourceUnreachable Reason = "SourceUnreachable"
	// ReasonSourceRefused: the site did not let the account of backups in, or a right is missing.
	ReasonSourceRefused Reason = "SourceRefused"
	// ReasonSourceLost: the site went away in the midst of a backup.
	ReasonSourceLost Reason = "SourceLost"
	// ReasonSourceBusy: statements that run for long, or a prepared XA transaction, kept a dump from beginning.
	ReasonSourceBusy Reason = "SourceBusy"
	// ReasonDumpFailed: mysqldump ended with an error.
	ReasonDumpFailed Reason = "DumpFailed"
	// ReasonCloneFailed: CLONE ended with an error.
	ReasonCloneFailed Reason = "CloneFailed"
	// ReasonBadConfig: the pod was told something that it cannot use; it does not pass without a change.
	ReasonBadConfig Reason = "BadConfig"
	// ReasonStalled: a backup or a restore was ended because not a byte went on any more; it is tried again.
	ReasonStalled Reason = "Stalled"
	// ReasonTimedOut: a backup, its verification or a restore took longer than it may.
	ReasonTimedOut Reason = "TimedOut"
	// ReasonYielded: the pod was told to give way.
	ReasonYielded Reason = "Yielded"
	// ReasonFailed: it ended in a way that has no reason of its own; the message has it.
	ReasonFailed Reason = "Failed"
)
