// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// failedMax is how many failed backups of a schedule are kept for people to look at.
const failedMax = 10

// expire removes what no rule keeps: the MysqlBackup, and with it its data in the storage.
func (b *Backups) expire(ctx context.Context, g *groupLook, p *v1alpha1.BackupProfile, all []backup.Artifact) error {
	var gone []string
	if r := p.Retention; r != nil {
		rule := backup.Retention{Count: int(r.Count), MinCount: int(r.MinCount)}
		if r.MaxAge != nil {
			rule.MaxAge = r.MaxAge.Duration
		}
		gone = backup.Expired(all, rule, g.now)
	}
	if len(gone) > 0 {
		restored, err := b.beingRestored(ctx, g.key)
		if err != nil {
			return err
		}
		gone = slices.DeleteFunc(gone, func(name string) bool { return restored[name] || restored[""] })
	}
	expired := len(gone)
	gone = append(gone, g.oldFailures(p.Name)...)
	for i, name := range gone {
		at := slices.IndexFunc(g.of[p.Name], func(mb v1alpha1.MysqlBackup) bool { return mb.Name == name })
		mb := &g.of[p.Name][at]
		uid := mb.UID
		if err := b.Client.Delete(ctx, mb, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove backup %s: %w", name, err)
		}
		if i < expired {
			b.Recorder.Emit(g.group, nil, eventExpired, "Backup %s of profile %s is removed: no rule of the retention keeps it", name, p.Name)
		}
	}
	return nil
}

// oldFailures returns the failed backups of a schedule beyond those that are kept. They hold no data.
func (g *groupLook) oldFailures(profile string) []string {
	var failed []v1alpha1.MysqlBackup
	for _, mb := range g.of[profile] {
		if mb.Status.Phase == v1alpha1.BackupFailed && mb.DeletionTimestamp == nil && mb.Annotations[v1alpha1.AnnotationScheduledAt] != "" {
			failed = append(failed, mb)
		}
	}
	slices.SortFunc(failed, func(a, b v1alpha1.MysqlBackup) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var out []string
	for _, mb := range failed[min(len(failed), failedMax):] {
		out = append(out, mb.Name)
	}
	return out
}

// beingRestored returns the backups of a group from which other groups are being made, and "" if one of those has not chosen yet.
func (b *Backups) beingRestored(ctx context.Context, of types.NamespacedName) (map[string]bool, error) {
	var groups v1alpha1.MysqlFailoverGroupList
	if err := b.Client.List(ctx, &groups, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	out := map[string]bool{}
	for i := range groups.Items {
		g := &groups.Items[i]
		from := g.Spec.InitFromBackup
		if from == nil || g.Status.Restore != nil && g.Status.Restore.Phase == v1alpha1.RestoreCompleted || g.Status.Epoch > 0 {
			continue
		}
		source := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
		if f := from.From; f != nil {
			source = types.NamespacedName{Namespace: cmp.Or(f.Namespace, g.Namespace), Name: cmp.Or(f.Group, g.Name)}
		}
		if source != of {
			continue
		}
		name := from.Backup
		if g.Status.Restore != nil && g.Status.Restore.Backup != "" {
			name = g.Status.Restore.Backup
		}
		out[name] = true
	}
	return out, nil
}

// sweep removes what killed attempts left, once a day: while the finished Job of the last sweep exists, it makes no other.
func (b *Backups) sweep(ctx context.Context, g *groupLook, p *v1alpha1.BackupProfile, last *metav1.Time) error {
	if b.Install.BackupImage == "" || last == nil {
		return nil
	}
	key := types.NamespacedName{Namespace: g.key.Namespace, Name: v1alpha1.SweepJob(g.key.Name, p.Name)}
	if err := b.Client.Get(ctx, key, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err)
	}
	if ok, err := b.jobTurn(ctx, v1alpha1.TaskSweep, key); !ok || err != nil {
		return err
	}
	of, err := b.allowed(ctx, backupjob.Job{Group: g.group, Profile: *p, Install: b.Install, Account: account})
	if err != nil {
		return err
	}
	job := of.Sweep()
	if err := b.Client.Create(ctx, job, client.FieldOwner(v1alpha1.ManagerBackup)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make job %s: %w", job.Name, err)
	}
	return nil
}
