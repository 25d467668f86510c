// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of restores.
const (
	// ReasonRestorePending: the first site is about to be given the data of the backup.
	ReasonRestorePending Reason = "RestorePending"
	// ReasonRestoreLoading: the data of the backup is being loaded onto the first site.
	ReasonRestoreLoading Reason = "RestoreLoading"
	// ReasonRestoreCompleted: the first site has the data of the backup, and the group goes on as a new one.
	ReasonRestoreCompleted Reason = "RestoreCompleted"
	// ReasonRestoreFailed: the last try to load the backup failed, and nothing opens; it is tried again.
	ReasonRestoreFailed Reason = "RestoreFailed"
	// ReasonRestoring: nothing opens before the first site has the data of the backup.
	ReasonRestoring Reason = "Restoring"
	// ReasonRestoreVolumeNotNew: an earlier group of the name has left volumes or keyrings, and nothing is restored over living data.
	ReasonRestoreVolumeNotNew Reason = "RestoreVolumeNotNew"
	// ReasonRestoreNoSite: no site may be the first one that is open.
	ReasonRestoreNoSite Reason = "RestoreNoSite"
	// ReasonRestoreImageMissing: the operator was installed without the image of the program that makes and loads backups.
	ReasonRestoreImageMissing Reason = "RestoreImageMissing"
	// ReasonRestoreStarted: the first site of a new group is given the data of a backup.
	ReasonRestoreStarted Reason = "RestoreStarted"
	// ReasonRestoreAgain: what was restored went with the memory of a pod, and is loaded again in a new one.
	ReasonRestoreAgain Reason = "RestoreAgain"
)
