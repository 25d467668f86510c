// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// What happens to backups.
var (
	eventRunning           = events.Normal(v1alpha1.ReasonBackupRunning, "Backup")
	eventCompleted         = events.Normal(v1alpha1.ReasonBackupCompleted, "Backup")
	eventYielded           = events.Normal(v1alpha1.ReasonBackupYielded, "Yield")
	eventRetried           = events.Warning(v1alpha1.ReasonBackupRetried, "Retry")
	eventFailed            = events.Warning(v1alpha1.ReasonBackupFailed, "GiveUp")
	eventTimedOut          = events.Warning(v1alpha1.ReasonBackupTimedOut, "GiveUp")
	eventTooLate           = events.Warning(v1alpha1.ReasonBackupTooLate, "GiveUp")
	eventStorageChanged    = events.Warning(v1alpha1.ReasonBackupStorageChanged, "GiveUp")
	eventNoProfile         = events.Warning(v1alpha1.ReasonBackupProfileMissing, "GiveUp")
	eventMissed            = events.Warning(v1alpha1.ReasonBackupMissed, "PassOver")
	eventVerified          = events.Normal(v1alpha1.ReasonBackupVerified, "Verify")
	eventNotRestorable     = events.Warning(v1alpha1.ReasonBackupNotRestorable, "Verify")
	eventVerificationWaits = events.Warning(v1alpha1.ReasonBackupVerificationWaits, "Retry")
	eventElsewhere         = events.Warning(v1alpha1.ReasonBackupElsewhere, "PassOver")
	eventArtifactKept      = events.Warning(v1alpha1.ReasonBackupArtifactKept, "Keep")
	eventExpired           = events.Normal(v1alpha1.ReasonBackupExpired, "Remove")
	eventRemovalFailed     = events.Warning(v1alpha1.ReasonBackupRemovalFailed, "Retry")
)

var eventOf = map[v1alpha1.Reason]events.Event{
	v1alpha1.ReasonBackupRunning: eventRunning, v1alpha1.ReasonBackupCompleted: eventCompleted, v1alpha1.ReasonBackupYielded: eventYielded,
	v1alpha1.ReasonBackupRetried: eventRetried, v1alpha1.ReasonBackupFailed: eventFailed, v1alpha1.ReasonBackupTimedOut: eventTimedOut,
	v1alpha1.ReasonBackupTooLate: eventTooLate, v1alpha1.ReasonBackupProfileMissing: eventNoProfile,
	v1alpha1.ReasonBackupStorageChanged: eventStorageChanged,
}

// The metrics of backups; each has the profile as its last label.
var (
	metricReady = metrics.Gauge(metrics.Group, "operator_backup_ready",
		"1 if the last backup of the profile succeeded, or the first is not due yet, and none that was due is missing, else 0.", "profile")
	metricVerified = metrics.Gauge(metrics.Group, "operator_backup_verified",
		"1 if the last verification of the profile passed and none that was due is missing, else 0; only of profiles with verification.", "profile")
	metricLastSuccess = metrics.Gauge(metrics.Group, "operator_backup_last_success_timestamp_seconds",
		"When the newest backup of the profile was completed, in Unix time.", "profile")
	metricVerifiedAt = metrics.Gauge(metrics.Group, "operator_backup_verified_timestamp_seconds",
		"When a verification of the profile passed last, in Unix time.", "profile")
	metricRestoreSeconds = metrics.Gauge(metrics.Group, "operator_backup_restore_seconds",
		"How long the restore of that verification took.", "profile")
	metricDuration = metrics.Gauge(metrics.Group, "operator_backup_last_duration_seconds",
		"How long the newest backup of the profile took, without the time that it waited.", "profile")
	metricBytes = metrics.Gauge(metrics.Group, "operator_backup_last_bytes",
		"How many bytes the newest backup of the profile takes in the storage.", "profile")
	metricCount = metrics.Gauge(metrics.Group, "operator_backup_completed",
		"Completed backups of the profile.", "profile")
	metricRunning = metrics.Gauge(metrics.Group, "operator_backup_running",
		"1 while a backup of the profile is being made, else 0.", "profile")
	metricFailures = metrics.Counter(metrics.Group, "operator_backup_failures_total",
		"Attempts that ended without a backup, and verifications that failed, by what it was: storage, source, yielded, lost, timeout, config, refused, damaged, other.",
		"profile", "reason")
)

// tell reports what changed.
func (b *Backups) tell(k *look, before, after *v1alpha1.MysqlBackupStatus) {
	if before.Phase == after.Phase && before.Reason == after.Reason {
		return
	}
	e, is := eventOf[after.Reason]
	waits := after.Reason == v1alpha1.ReasonBackupProfileMissing && after.Phase == v1alpha1.BackupPending
	if !is || waits || after.Reason == v1alpha1.ReasonBackupRetried && before.Phase != v1alpha1.BackupRunning {
		return
	}
	b.Recorder.Emit(k.about(), k.mb, e, "Backup %s of profile %s: %s", k.mb.Name, k.mb.Spec.Profile, eventText(after))
	if after.Reason != v1alpha1.ReasonBackupRunning && after.Reason != v1alpha1.ReasonBackupCompleted {
		b.count(k, k.failureClass(after.Reason))
	}
}

func eventText(s *v1alpha1.MysqlBackupStatus) string {
	if s.Reason == v1alpha1.ReasonBackupCompleted {
		return "it is in " + s.Location + ", with " + s.Size
	}
	return s.Message
}

// classOf maps the reasons that already tell the class.
var classOf = map[v1alpha1.Reason]backup.Class{
	v1alpha1.ReasonBackupYielded: backup.ClassYielded, v1alpha1.ReasonBackupTimedOut: backup.ClassTimedOut,
	v1alpha1.ReasonBackupTooLate: backup.ClassTimedOut, v1alpha1.ReasonBackupProfileMissing: backup.ClassConfig,
	v1alpha1.ReasonBackupStorageChanged: backup.ClassConfig,
}

func (k *look) failureClass(reason v1alpha1.Reason) backup.Class {
	if class, is := classOf[reason]; is {
		return class
	}
	if class := k.made.class(); class != "" {
		return class
	}
	return backup.ClassLost
}

func (b *Backups) count(k *look, class backup.Class) {
	metricFailures.WithLabelValues(k.mb.Namespace, k.mb.Spec.Group, k.mb.Spec.Profile, string(class)).Inc()
}

// about returns the object of an event: the group, or the MysqlBackup if there is none.
func (k *look) about() runtime.Object {
	if k.group != nil {
		return k.group
	}
	return k.mb
}

func (b *Backups) tellKept(k *look) {
	if k.kept != "" && k.mb.Status.Attempts > 0 {
		b.Recorder.Emit(k.about(), k.mb, eventArtifactKept, "Backup %s goes, and what is in %s stays: %s", k.mb.Name, k.mb.Status.Location, k.kept)
	}
}

func (b *Backups) tellVerified(k *look, v *v1alpha1.BackupVerified, class backup.Class) {
	if v.Outcome == v1alpha1.BackupPassed {
		b.Recorder.Emit(k.about(), k.mb, eventVerified, "Backup %s was restored into a scratch server in %d s, and is what it should be", k.mb.Name, v.RestoreSeconds)
		return
	}
	b.count(k, class)
	b.Recorder.Emit(k.about(), k.mb, eventNotRestorable, "Backup %s could not be restored: %s", k.mb.Name, v.Message)
}
