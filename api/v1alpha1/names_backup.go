// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Labels and annotations of backups.
const (
	// LabelBackup is the MysqlBackup that a Job, its pods or a volume belong to.
	LabelBackup = Domain + "/backup"
	// LabelBackupProfile is the profile of a MysqlBackup and of its Jobs.
	LabelBackupProfile = Domain + "/backup-profile"
	// LabelBackupTask, on a Job and its pods, is what it does: backup, verify, restore, delete or sweep.
	LabelBackupTask = Domain + "/backup-task"

	// AnnotationKeepArtifact, with the value true, has a MysqlBackup go and leaves what is in the storage.
	AnnotationKeepArtifact = Domain + "/keep-artifact"
	// AnnotationVerifyBackup, with any value, has a MysqlBackup verified now. The operator takes it off when it is done or refused.
	AnnotationVerifyBackup = Domain + "/verify-backup"
	// VerifyBySchedule is its value if the operator set it. The operator takes such an order back when a newer backup is to be verified instead.
	VerifyBySchedule = "schedule"
	// AnnotationScheduledAt, on a MysqlBackup, is the time of the schedule that it was made for, as in RFC 3339.
	AnnotationScheduledAt = Domain + "/scheduled-at"

	// AnnotationBackupAttempt, on a Job, is the number of the attempt that it is, as in status.attempts.
	AnnotationBackupAttempt = Domain + "/backup-attempt"

	// FinalizerBackup keeps a MysqlBackup until what is in the storage has been removed.
	FinalizerBackup = Domain + "/artifact"

	// NameBackup is the app.kubernetes.io/name of backup Jobs and their pods.
	NameBackup = "mysql-backup"
)

// What a Job of LabelBackupTask does.
const (
	TaskBackup  = "backup"
	TaskVerify  = "verify"
	TaskRestore = "restore"
	TaskDelete  = "delete"
	TaskSweep   = "sweep"
)

// Keys of the Secrets that backups read.
const (
	BackupIdentityKey    = "identity"
	BackupAccessKeyID    = "accessKeyID"
	BackupSecretKey      = "secretAccessKey"
	BackupSessionToken   = "sessionToken"
	BackupCAKey          = "ca.crt"
	BackupGCSCredentials = "credentials.json"
	BackupAccountName    = "accountName"
	BackupAccountKey     = "accountKey"
)

// The longest name of a MysqlBackup: the longest prefix of a Job's name fits before it in the 63 characters of a label.
const backupNameMax = 56

// BackupJob is the name of the Job that makes a backup. The names of backups are at most 56 characters.
func BackupJob(backup string) string { return "backup-" + backup }

// VerifyJob is the name of the Job that verifies a backup.
func VerifyJob(backup string) string { return "verify-" + backup }

// DeleteJob is the name of the Job that removes a backup from its storage.
func DeleteJob(backup string) string { return "delete-" + backup }

// RestoreJob is the name of the Job that restores a group.
func RestoreJob(group string) string { return "restore-" + group }

// SweepJob is the name of the Job that removes what killed attempts of a profile left. Names that are too long are shortened, with a hash
// of the whole.
func SweepJob(group, profile string) string {
	name := "sweep-" + group + "-" + profile
	if len(name) <= jobNameMax {
		return name
	}
	sum := sha256.Sum256([]byte(group + "/" + profile))
	tail := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:jobNameMax-len(tail)], "-") + tail
}

// jobNameMax is how long the name of a Job may be: it is a label of its pods.
const jobNameMax = 63

// ScheduledBackup is the name of the MysqlBackup for one time of a schedule, the same each time that it is asked for, so that no time
// is acted upon twice. Names that are too long are shortened, with a hash of the whole.
func ScheduledBackup(group, profile string, at time.Time) string {
	name := group + "-" + profile + "-" + at.UTC().Format(scheduledForm)
	if len(name) <= backupNameMax {
		return name
	}
	return ScheduledBackupApart(group, profile, at)
}

const scheduledForm = "20060102-1504"

// ScheduledBackupApart is another name for the same, with a hash: profile b-c of group a and profile c of group a-b would give their backups one name.
func ScheduledBackupApart(group, profile string, at time.Time) string {
	when := at.UTC().Format(scheduledForm)
	sum := sha256.Sum256([]byte(group + "/" + profile))
	tail := "-" + hex.EncodeToString(sum[:4]) + "-" + when
	head := group + "-" + profile
	return strings.TrimRight(head[:min(len(head), backupNameMax-len(tail))], "-") + tail
}
