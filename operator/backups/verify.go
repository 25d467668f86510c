// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// missingTries is how often a verification must find nothing in the storage before that is its outcome: a volume that is not mounted looks the
// same.
const missingTries = 3

// verify restores a completed backup into a scratch server when its annotation asks for it, and records the result. It returns whether
// that is under way. Each step may be repeated: the verdict is written before the annotation and the Job go.
func (b *Backups) verify(ctx context.Context, k *look) (bool, error) {
	wanted := k.mb.Annotations[v1alpha1.AnnotationVerifyBackup] != ""
	if k.mb.Status.Phase != v1alpha1.BackupCompleted || k.facts.Deleted || k.profile == nil {
		return false, nil
	}
	if !wanted && k.verify.object == nil {
		return false, b.waits(ctx, k, nil)
	}
	switch k.verify.job {
	case backup.JobRunning:
		return true, nil
	case backup.NoJob:
		if k.elsewhere() {
			// The storage that the profile names now has nothing of it: finding nothing there would pass for a bad backup.
			b.Recorder.Emit(k.about(), k.mb, eventElsewhere, "Backup %s is not verified: it lies in %s, and its profile names another storage now", k.mb.Name, k.mb.Status.Location)
			return false, b.answered(ctx, k)
		}
		if k.verificationPauses() {
			return true, nil
		}
		return true, b.startVerification(ctx, k)
	case backup.JobSucceeded, backup.JobFailed:
	}
	if k.undecided() {
		if err := b.postpone(ctx, k); err != nil {
			return false, err
		}
		return true, b.removeJob(ctx, k.verify.object)
	}
	if err := b.verdict(ctx, k, k.verify.class()); err != nil {
		return false, err
	}
	if wanted {
		if err := b.answered(ctx, k); err != nil {
			return false, err
		}
	}
	return false, b.removeJob(ctx, k.verify.object)
}

// tooSlowPause is how long after a verification that ran out of time the next one of its profile begins, unless a person asks for it, or gives
// the profile more time.
const tooSlowPause = 24 * time.Hour

// notTried are the reasons for which nothing of the backup was loaded: the scratch volume is too small or not empty, or the Job was told nonsense.
var notTried = []v1alpha1.Reason{v1alpha1.ReasonVolumeTooSmall, v1alpha1.ReasonTargetNotEmpty, v1alpha1.ReasonBadConfig}

// undecided is true if a verification that has ended says nothing of the backup. Only the program's own word is a verdict, and not if it names
// something that may pass: a storage that is away, or too little time, must not have a good backup called bad, nor hide that it passed before.
func (k *look) undecided() bool {
	a := k.verify
	switch {
	case !a.heard:
		// Its node was lost, it had no room, its pod never came to run, or Kubernetes ended it at its deadline.
		return true
	case a.result.Reason == string(v1alpha1.ReasonNotFound):
		return k.missing() < missingTries
	case slices.Contains(notTried, v1alpha1.Reason(a.result.Reason)):
		return true
	}
	// Its own word, not that of the Job: it may have found the backup damaged just before the deadline of the Job.
	said := backup.ClassOf(a.code)
	return said.Passes() || said == backup.ClassTimedOut || said == backup.ClassSucceeded && a.deadline
}

// missing is how many tries in a row found no backup in the storage, the last one too.
func (k *look) missing() int32 {
	if !k.verify.heard || k.verify.result.Reason != string(v1alpha1.ReasonNotFound) {
		return 0
	}
	w := k.mb.Status.VerificationWaits
	switch {
	case w == nil && attemptOf(k.verify.object) > 1:
		return missingTries // only the verdict takes that away, and it may be written again
	case w == nil:
		return 1
	case w.Tries >= attemptOf(k.verify.object):
		return w.Missing // this one is counted already
	}
	return w.Missing + 1
}

// verificationPauses is true while the next try of a verification must wait. A new order does not.
func (k *look) verificationPauses() bool {
	w := k.mb.Status.VerificationWaits
	return w != nil && w.NotBefore != nil && k.now.Before(w.NotBefore.Time) && w.Order == k.mb.Annotations[v1alpha1.AnnotationVerifyBackup] &&
		!hasMoreTime(w, backupjob.Job{Profile: *k.profile}.Timeout())
}

// hasMoreTime is true if the last try ran out of time, and the next one may take longer: a person did what the message asks for.
func hasMoreTime(w *v1alpha1.BackupVerificationWait, timeout time.Duration) bool {
	return w.Reason == v1alpha1.ReasonTimedOut && w.TimeoutSeconds > 0 && timeout > time.Duration(w.TimeoutSeconds)*time.Second
}

// postpone writes down what the verification waits for, and when it is tried again. What an earlier one found stays.
func (b *Backups) postpone(ctx context.Context, k *look) error {
	tries, before := attemptOf(k.verify.object), k.mb.Status.VerificationWaits
	if before != nil && before.Tries >= tries {
		return nil // written down already; the Job is still going
	}
	ended := k.verify.finishedAt
	if ended.IsZero() || ended.After(k.now) {
		ended = k.now
	}
	w := &v1alpha1.BackupVerificationWait{
		Tries: tries, Missing: k.missing(), Order: k.mb.Annotations[v1alpha1.AnnotationVerifyBackup], NotBefore: timeOf(backup.VerifyNotBefore(ended, tries)),
		Reason: v1alpha1.ReasonFailed, Message: clip(k.verify.text()),
	}
	if k.verify.deadline && k.verify.started {
		w.Reason = v1alpha1.ReasonTimedOut
	}
	if reason, known := v1alpha1.ReasonOfBackup(k.verify.result.Reason); known {
		w.Reason = reason
	}
	if w.Reason == v1alpha1.ReasonTimedOut { // the next one would need as long: it would load the storage, and hold a turn, almost without a pause
		w.NotBefore, w.TimeoutSeconds = timeOf(ended.Add(tooSlowPause)), int64(backupjob.Given(k.verify.object)/time.Second)
	}
	if err := b.waits(ctx, k, w); err != nil {
		return err
	}
	if before == nil || before.Reason != w.Reason {
		b.count(k, k.verify.class())
		b.Recorder.Emit(k.about(), k.mb, eventVerificationWaits, "Backup %s could not be verified, and is tried again: %s", k.mb.Name, w.Message)
	}
	return nil
}

// waits writes down what the verification waits for; nil for nothing.
func (b *Backups) waits(ctx context.Context, k *look, w *v1alpha1.BackupVerificationWait) error {
	status := *k.mb.Status.DeepCopy()
	status.VerificationWaits = w
	return b.persist(ctx, k, status)
}

// answered removes the order for a verification.
func (b *Backups) answered(ctx context.Context, k *look) error {
	before := k.mb.DeepCopy()
	delete(k.mb.Annotations, v1alpha1.AnnotationVerifyBackup)
	if err := b.patch(ctx, k.mb, before); err != nil {
		return fmt.Errorf("answer the order for a verification: %w", err)
	}
	return nil
}

func (b *Backups) startVerification(ctx context.Context, k *look) error {
	if b.Install.BackupImage == "" {
		return nil // the condition of the group says what is missing
	}
	ok, err := b.jobTurn(ctx, v1alpha1.TaskVerify, types.NamespacedName{Namespace: k.mb.Namespace, Name: v1alpha1.VerifyJob(k.mb.Name)})
	if !ok || err != nil {
		return err
	}
	job, tries := k.job(b.Install), int32(0)
	if w := k.mb.Status.VerificationWaits; w != nil {
		tries = w.Tries
	}
	// Every site has the configuration of the keyring component, and tells how large the data may be.
	job.Site, job.Attempt = siteOf(k.group, cmp.Or(k.seen.ActiveSite, k.group.Status.ActiveSite, k.mb.Status.Site)), tries+1
	return b.run(ctx, job, backupjob.Job.Verify)
}

// verdict records the result of the verification.
func (b *Backups) verdict(ctx context.Context, k *look, class backup.Class) error {
	status := *k.mb.Status.DeepCopy()
	at := k.verify.finishedAt
	if at.IsZero() || at.After(k.now) {
		at = k.now
		if v := status.Verified; v != nil && k.verify.object.DeletionTimestamp != nil {
			return nil // told already
		}
	}
	v := &v1alpha1.BackupVerified{At: timeOf(at), Outcome: v1alpha1.BackupPassed, RestoreSeconds: int64(k.verify.result.RestoreSeconds)}
	if class != backup.ClassSucceeded || !k.verify.heard || k.verify.result.Backup != k.mb.Name {
		v.Outcome, v.Message = v1alpha1.BackupNotRestorable, clip(k.verify.text())
	} else {
		v.Message = clip(strings.Join(k.verify.result.Warnings, "; "))
		if to := k.verify.result.ReplayedTo; to != nil {
			v.ReplayedTo = timeOf(*to)
		}
	}
	old := status.Verified
	status.Verified, status.VerificationWaits = v, nil
	if err := b.persist(ctx, k, status); err != nil {
		return err
	}
	if old == nil || !old.At.Equal(v.At) {
		b.tellVerified(k, v, class)
	}
	return nil
}
