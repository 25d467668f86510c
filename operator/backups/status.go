// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/backup"
)

func sameStatus(a, b *v1alpha1.MysqlBackupStatus) bool { return equality.Semantic.DeepEqual(a, b) }

func timeOf(t time.Time) *metav1.Time { return &metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// status is the new status of the MysqlBackup for the decided step.
func (b *Backups) status(k *look, step backup.Step) v1alpha1.MysqlBackupStatus {
	s := *k.mb.Status.DeepCopy()
	before := s.Phase
	s.Phase = step.Phase
	// The end of the previous attempt shows until the next one begins: that it waits is no news.
	told := s.Reason == v1alpha1.ReasonBackupRetried && step.Reason == v1alpha1.ReasonBackupWaits
	if step.Reason != "" && !told {
		s.Reason, s.Message = step.Reason, clip(k.message(step))
		if step.Reason == v1alpha1.ReasonNoBackupSource && k.choice.Reason != "" {
			s.Reason = k.choice.Reason
		}
	}
	switch {
	case step.Action == backup.StartJob:
		s.Attempts++
		s.Job, s.Site, s.Epoch, s.StartedAt, s.FinishedAt = v1alpha1.BackupJob(k.mb.Name), k.facts.Site, k.seen.Epoch, timeOf(k.now), nil
		job := k.job(b.Install)
		s.Method, s.Encrypted = job.Method(), k.profile.Encryption != nil
		place := k.place()
		s.Location, s.StorageDigest = place.Location, place.Digest
		s.Message = attemptText(&s)
	case before != v1alpha1.BackupCompleted && s.Phase == v1alpha1.BackupCompleted:
		completed(&s, k)
	case before != v1alpha1.BackupFailed && s.Phase == v1alpha1.BackupFailed:
		s.Job, s.FinishedAt = "", timeOf(k.now)
	case s.Phase == v1alpha1.BackupPending:
		s.Job = ""
	}
	return s
}

func attemptText(s *v1alpha1.MysqlBackupStatus) string {
	return fmt.Sprintf("attempt %d, from %s", s.Attempts, s.Site)
}

// completed copies what the manifest says, once that was read.
func completed(s *v1alpha1.MysqlBackupStatus, k *look) {
	r := k.made.result
	s.Job, s.Progress, s.Bytes, s.Size, s.Encrypted = "", 100, r.StoredBytes, sizeOf(r.StoredBytes), r.Encrypted
	s.MySQLVersion, s.FinishedAt = r.MySQLVersion, timeOf(k.now)
	if set, err := gtid.Parse(r.GTIDExecuted); err == nil {
		s.GTIDExecuted = set.String()
	}
	// A node's wrong clock must not make a backup end before it began, or in the future: retention uses that time.
	if at := k.made.finishedAt; s.StartedAt != nil && at.After(s.StartedAt.Time) && at.Before(k.now) {
		s.FinishedAt = timeOf(at)
	}
}

// message says the step to people.
func (k *look) message(step backup.Step) string {
	if text, is := texts[step.Reason]; is {
		return text(k)
	}
	return ""
}

// texts are the messages for the reasons of steps.
var texts = map[v1alpha1.Reason]func(*look) string{
	v1alpha1.ReasonBackupWaits:    func(k *look) string { return k.waits },
	v1alpha1.ReasonNoBackupSource: func(k *look) string { return k.choice.Message },
	v1alpha1.ReasonBackupYielded:  func(k *look) string { return "the backup gave way on " + k.mb.Status.Site + ": " + k.yields },
	v1alpha1.ReasonBackupRunning:  func(k *look) string { return cmp.Or(k.made.pod, attemptText(&k.mb.Status)) },
	v1alpha1.ReasonBackupRetried: func(k *look) string {
		if k.mb.Status.Reason == v1alpha1.ReasonBackupRetried {
			return k.mb.Status.Message // told already
		}
		if k.made.job == backup.NoJob || k.made.job == backup.JobRunning {
			return "the attempt was not made, or its Job was removed; another follows: " + k.mb.Status.Message
		}
		return fmt.Sprintf("attempt %d ended without a backup, and another follows: %s", k.mb.Status.Attempts, k.made.text())
	},
	v1alpha1.ReasonBackupCompleted: func(k *look) string { return strings.Join(k.made.result.Warnings, "; ") },
	v1alpha1.ReasonBackupFailed: func(k *look) string {
		if k.made.job == backup.NoJob {
			return "its Job is gone, and it is too late for another"
		}
		return fmt.Sprintf("attempt %d ended without a backup: %s", k.mb.Status.Attempts, k.made.text())
	},
	v1alpha1.ReasonBackupTimedOut: func(k *look) string {
		return "the attempt took longer than the timeout of profile " + k.mb.Spec.Profile + ": raise it, or look at what was slow"
	},
	v1alpha1.ReasonBackupTooLate: func(k *look) string {
		return "it could not be made before its startingDeadline; before that: " + k.mb.Status.Message
	},
	v1alpha1.ReasonBackupStorageChanged: func(k *look) string {
		return fmt.Sprintf("attempt %d may have stored it in %s, and profile %s has another storage now: look there for it, and make another backup",
			k.mb.Status.Attempts, k.mb.Status.Location, k.mb.Spec.Profile)
	},
	v1alpha1.ReasonBackupProfileMissing: func(k *look) string {
		text := "group " + k.mb.Spec.Group + " has no profile " + k.mb.Spec.Profile + " in spec.backup.profiles"
		if k.group == nil {
			text = "there is no group " + k.mb.Spec.Group + " in this namespace"
		}
		if p := k.facts.Phase; (p == "" || p == v1alpha1.BackupPending) && !k.facts.Late {
			text += ": the backup waits for it until " + k.deadline().UTC().Format(time.RFC3339)
		}
		return text
	},
	v1alpha1.ReasonBackupDeleting: (*look).deletingText,
}

func (k *look) deletingText() string {
	switch {
	case k.kept != "":
		return "what is in the storage stays: " + k.kept
	case k.removal.job == backup.JobFailed:
		return "it could not be removed from the storage, and is tried again: " + k.removal.text()
	}
	return k.waits
}

func (k *look) place() v1alpha1.StoragePlace {
	return placeOf(k.profile, k.mb.Namespace, k.mb.Spec.Group)
}

// placeOf is where the backups of a group by a profile are.
func placeOf(p *v1alpha1.BackupProfile, namespace, group string) v1alpha1.StoragePlace {
	return v1alpha1.StoragePlace{Location: p.Storage.Location(namespace, group), Digest: p.Storage.Digest(namespace, group)}
}

// elsewhere is true if the backup is in a storage other than the one that its profile names now.
func (k *look) elsewhere() bool {
	return isElsewhere(&k.mb.Status, k.place())
}

// isElsewhere is false for a backup that was never begun: it is nowhere yet.
func isElsewhere(s *v1alpha1.MysqlBackupStatus, place v1alpha1.StoragePlace) bool {
	return s.Location != "" && !s.LiesIn(place)
}

// sizeOf formats a number of bytes for people.
func sizeOf(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%dB", n)
	}
	value, names := float64(n)/unit, "KMGTPE"
	for i := range len(names) {
		if value < unit || i == len(names)-1 {
			return fmt.Sprintf("%.1f%ciB", value, names[i])
		}
		value /= unit
	}
	return ""
}
