// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// outcomes are what the program in the pods of backups and restores may give as its reason.
var outcomes = func() map[string]Reason {
	known := map[string]Reason{}
	for _, r := range []Reason{
		ReasonAccessDenied, ReasonNoSuchBucket, ReasonUntrustedTLS, ReasonStorageFull, ReasonClockSkew, ReasonStorageUnreachable,
		ReasonNoDeleteRight, ReasonForeignOwner, ReasonAlreadyExists, ReasonNotFound, ReasonStorageError, ReasonStalled, ReasonDamagedBackup, ReasonTooNew,
		ReasonWrongIdentity, ReasonTargetNotEmpty, ReasonVolumeTooSmall, ReasonVersionTooOld, ReasonEncryptionMismatch, ReasonSettingsMismatch, ReasonServerFailed,
		ReasonLoadFailed, ReasonDiffers, ReasonQueryFailed, ReasonSourceUnreachable, ReasonSourceRefused, ReasonSourceLost, ReasonSourceBusy,
		ReasonDumpFailed, ReasonCloneFailed, ReasonBadConfig, ReasonTimedOut, ReasonYielded, ReasonFailed,
		ReasonTargetBeforeBackup, ReasonTargetNotArchived, ReasonTargetInGap, ReasonTransactionLost, ReasonBackupDiverged, ReasonReplayFailed,
	} {
		known[string(r)] = r
	}
	return known
}()

// ReasonOfBackup is the reason that a word of the program in the pods of backups and restores stands for; false for any other word. Whoever
// can write a termination message may have written it.
func ReasonOfBackup(word string) (Reason, bool) {
	r, known := outcomes[word]
	return r, known
}
