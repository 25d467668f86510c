// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"slices"
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
	if !h.HasVerification || b.Install.BackupImage == "" || tooSlow(g.of[out.Name], h.Timeout, g.now) {
		return nil
	}
	var last time.Time
	if out.VerificationScheduled != nil {
		last = out.VerificationScheduled.Time
	}
	due := h.Verification.Decide(h.All, last, g.now)
	if err := b.order(ctx, g, out.Name, due.Name); err != nil {
		return err
	}
	if out.VerificationScheduled != nil {
		out.VerificationScheduled = timeOf(due.Seen)
	}
	return nil
}

// tooSlow is true while the profile's last verification by schedule, which ran out of time, waits for its next try: another backup would take as
// long. It is over once the profile gives more time.
func tooSlow(all []v1alpha1.MysqlBackup, timeout time.Duration, now time.Time) bool {
	return slices.ContainsFunc(all, func(mb v1alpha1.MysqlBackup) bool {
		w := mb.Status.VerificationWaits
		return w != nil && w.Reason == v1alpha1.ReasonTimedOut && w.Order == v1alpha1.VerifyBySchedule && w.NotBefore != nil && now.Before(w.NotBefore.Time) && !hasMoreTime(w, timeout)
	})
}

// order asks for the verification of a backup, as a person does, unless it is asked for already. It takes back the orders of schedules for others that
// no Job verifies: they wait for a turn, or for a storage. What is to be verified is kept, so every backup would be kept for as long as they wait.
func (b *Backups) order(ctx context.Context, g *groupLook, profile, name string) error {
	if name == "" {
		return nil
	}
	for i := range g.of[profile] {
		mb := &g.of[profile][i]
		before, stands := mb.DeepCopy(), mb.Annotations[v1alpha1.AnnotationVerifyBackup]
		switch {
		case mb.Name == name && stands == "" && mb.DeletionTimestamp == nil:
			metav1.SetMetaDataAnnotation(&mb.ObjectMeta, v1alpha1.AnnotationVerifyBackup, v1alpha1.VerifyBySchedule)
		case mb.Name != name && stands == v1alpha1.VerifyBySchedule && !g.verifying[mb.UID]:
			delete(mb.Annotations, v1alpha1.AnnotationVerifyBackup)
		default:
			continue
		}
		if err := b.patch(ctx, mb, before); err != nil {
			return fmt.Errorf("change the order for the verification of %s: %w", mb.Name, err)
		}
	}
	return nil
}

// verifying returns the UIDs of the MysqlBackups of a group that a Job verifies now.
func verifying(ctx context.Context, c client.Client, group types.NamespacedName, now time.Time) (map[types.UID]bool, error) {
	var jobs batchv1.JobList
	labels := client.MatchingLabels{v1alpha1.LabelBackupTask: v1alpha1.TaskVerify, v1alpha1.LabelGroup: group.Name}
	if err := c.List(ctx, &jobs, client.InNamespace(group.Namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
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
