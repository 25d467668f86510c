// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// verifyTries is how often a verification is tried that has no result, because the storage was away or the pod went.
const verifyTries = 3

// verify restores a completed backup into a scratch server when its annotation asks for it, and records the result. It returns whether
// that is under way. Each step may be repeated: the verdict is written before the annotation and the Job go.
func (b *Backups) verify(ctx context.Context, k *look) (bool, error) {
	wanted := k.mb.Annotations[v1alpha1.AnnotationVerifyBackup] != ""
	if k.mb.Status.Phase != v1alpha1.BackupCompleted || k.facts.Deleted || k.profile == nil || !wanted && k.verify.object == nil {
		return false, nil
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
		return true, b.startVerification(ctx, k, 1)
	case backup.JobSucceeded, backup.JobFailed:
	}
	tries := attemptOf(k.verify.object)
	class := k.verify.class()
	if class.Passes() && tries < verifyTries {
		if k.verify.object.DeletionTimestamp == nil {
			b.turns.remember(k.key(), tries)
		}
		return true, b.removeJob(ctx, k.verify.object)
	}
	if err := b.verdict(ctx, k, class); err != nil {
		return false, err
	}
	if wanted {
		if err := b.answered(ctx, k); err != nil {
			return false, err
		}
	}
	return false, b.removeJob(ctx, k.verify.object)
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

func (b *Backups) startVerification(ctx context.Context, k *look, try int32) error {
	if b.Install.BackupImage == "" {
		return nil // the condition of the group says what is missing
	}
	ok, err := b.jobTurn(ctx, v1alpha1.TaskVerify, types.NamespacedName{Namespace: k.mb.Namespace, Name: v1alpha1.VerifyJob(k.mb.Name)})
	if !ok || err != nil {
		return err
	}
	job := k.job(b.Install)
	// Every site has the configuration of the keyring component, and tells how large the data may be.
	job.Site, job.Attempt = siteOf(k.group, cmp.Or(k.seen.ActiveSite, k.group.Status.ActiveSite, k.mb.Status.Site)), max(try, b.turns.tried(k.key())+1)
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
	status.Verified = v
	if err := b.persist(ctx, k, status); err != nil {
		return err
	}
	b.turns.forgetTries(k.key())
	if old == nil || !old.At.Equal(v.At) {
		b.tellVerified(k, v, class)
	}
	return nil
}
