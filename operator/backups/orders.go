// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
)

// scheduleVerification orders the verification that is due.
func (b *Backups) scheduleVerification(ctx context.Context, g *groupLook, h backup.Health, out *v1alpha1.BackupProfileStatus) error {
	if !h.HasVerification || b.Install.BackupImage == "" {
		return nil
	}
	var last time.Time
	if out.VerificationScheduled != nil {
		last = out.VerificationScheduled.Time
	}
	due := h.Verification.Decide(h.All, last, g.now)
	if err := b.order(ctx, g, due.Name); err != nil {
		return err
	}
	if out.VerificationScheduled != nil {
		out.VerificationScheduled = timeOf(due.Seen)
	}
	return nil
}

// bySchedule is the value of the annotation if no person set it.
const bySchedule = "schedule"

// order asks for the verification of a backup, as a person does.
func (b *Backups) order(ctx context.Context, g *groupLook, name string) error {
	if name == "" {
		return nil
	}
	for _, all := range g.of {
		for i := range all {
			mb := &all[i]
			if mb.Name != name || mb.DeletionTimestamp != nil {
				continue
			}
			if err := b.orderOf(ctx, mb); err != nil {
				return err
			}
			if err := b.withdraw(ctx, g, all, mb); err != nil {
				return err
			}
		}
	}
	return nil
}

// orderOf notes that a schedule asks for the verification of a backup, unless one is asked for already.
func (b *Backups) orderOf(ctx context.Context, mb *v1alpha1.MysqlBackup) error {
	if mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" {
		return nil
	}
	before := mb.DeepCopy()
	if mb.Annotations == nil {
		mb.Annotations = map[string]string{}
	}
	mb.Annotations[v1alpha1.AnnotationVerifyBackup] = bySchedule
	if err := b.patch(ctx, mb, before); err != nil {
		return fmt.Errorf("order the verification of %s: %w", mb.Name, err)
	}
	return nil
}

// withdraw takes back the orders of schedules for older backups that no Job verifies: they wait for a turn, or for a storage. What is to be
// verified is kept, so every backup would be kept for as long as they wait.
func (b *Backups) withdraw(ctx context.Context, g *groupLook, all []v1alpha1.MysqlBackup, newer *v1alpha1.MysqlBackup) error {
	for i := range all {
		mb := &all[i]
		if mb.Name == newer.Name || mb.Annotations[v1alpha1.AnnotationVerifyBackup] != bySchedule || g.verifying[mb.UID] {
			continue
		}
		before := mb.DeepCopy()
		delete(mb.Annotations, v1alpha1.AnnotationVerifyBackup)
		if err := b.patch(ctx, mb, before); err != nil {
			return fmt.Errorf("take back the verification of %s: %w", mb.Name, err)
		}
	}
	return nil
}

// verifying returns the UIDs of the MysqlBackups of a group that a Job verifies now.
func (b *Backups) verifying(ctx context.Context, group types.NamespacedName, now time.Time) (map[types.UID]bool, error) {
	var jobs batchv1.JobList
	labels := client.MatchingLabels{v1alpha1.LabelBackupTask: v1alpha1.TaskVerify, v1alpha1.LabelGroup: group.Name}
	if err := b.Client.List(ctx, &jobs, client.InNamespace(group.Namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	out := map[types.UID]bool{}
	for i := range jobs.Items {
		// One that cannot run, for want of room or of a volume, stops no other for as long as a verification may take.
		if job := &jobs.Items[i]; holdsTurn(job, v1alpha1.TaskVerify, now) {
			out[metav1.GetControllerOf(job).UID] = true
		}
	}
	return out, nil
}
