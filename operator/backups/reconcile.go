// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/backup"
)

// account is the MySQL account that copies sites.
const account = mysql.AccountBackup

// Reconcile takes the next step of one MysqlBackup: gather, decide, persist, perform.
func (b *Backups) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mb := &v1alpha1.MysqlBackup{}
	if err := b.Client.Get(ctx, req.NamespacedName, mb); err != nil {
		if apierrors.IsNotFound(err) {
			b.turns.release(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read backup: %w", err)
	}
	k, err := b.gather(ctx, mb)
	if err != nil {
		return reconcile.Result{}, err
	}
	if k.group != nil && !b.mine(k.group) {
		return reconcile.Result{RequeueAfter: whenWaiting}, nil
	}
	again, err := b.advance(ctx, k)
	if apierrors.IsConflict(err) {
		// Another writer was faster, or the cache is behind: begin again with what is stored.
		b.turns.release(k.key())
		return reconcile.Result{RequeueAfter: whenOvertaken}, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

func (b *Backups) advance(ctx context.Context, k *look) (time.Duration, error) {
	if added, err := b.addFinalizer(ctx, k); added || err != nil {
		return whenOvertaken, err
	}
	step, row := backup.Next(k.facts)
	if step.Action != backup.Wait {
		// The next action must not rest on an object that the cache still shows although it is gone.
		if err := b.fresh(ctx, k); err != nil {
			return whenOvertaken, err
		}
	}
	before := k.mb.Status.DeepCopy()
	status := b.status(k, step)
	if err := b.persist(ctx, k, status); err != nil {
		return 0, err
	}
	if before.Phase != status.Phase {
		b.Log.Info("backup", "namespace", k.mb.Namespace, "group", k.mb.Spec.Group, "backup", k.mb.Name, "phase", status.Phase, "reason", status.Reason,
			"site", status.Site, "row", row)
	}
	b.tell(k, before, &status)
	if before.Phase == v1alpha1.BackupRunning && status.Phase != v1alpha1.BackupRunning {
		b.wakeWaiting(ctx)
	}
	if err := b.perform(ctx, k, step); err != nil {
		return 0, err
	}
	verifying, err := b.verify(ctx, k)
	if err != nil {
		return 0, err
	}
	return b.again(k, step, verifying), nil
}

// again returns when to look again if nothing happens.
func (b *Backups) again(k *look, step backup.Step, verifying bool) time.Duration {
	switch {
	case k.leftover:
		return whenMoving
	case step.Action != backup.Wait, verifying, step.Phase == v1alpha1.BackupPending:
		return whenWaiting
	case step.Phase == v1alpha1.BackupRunning:
		return 3 * whenWaiting // events of the Job and the pod come earlier
	case k.holdsCopy():
		return max(whenWaiting, k.untilSpent())
	}
	return 0
}

// fresh returns a conflict if the MysqlBackup has changed since it was read.
func (b *Backups) fresh(ctx context.Context, k *look) error {
	now := &v1alpha1.MysqlBackup{}
	if err := b.Live.Get(ctx, k.key(), now); err != nil {
		if apierrors.IsNotFound(err) {
			return conflict(k)
		}
		return fmt.Errorf("read backup: %w", err)
	}
	if now.UID != k.mb.UID || now.ResourceVersion != k.mb.ResourceVersion {
		return conflict(k)
	}
	return nil
}

func conflict(k *look) error {
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("mysqlbackups").GroupResource(), k.mb.Name, errOvertaken)
}

// addFinalizer keeps the MysqlBackup until its data in the storage was dealt with. No work begins before that.
func (b *Backups) addFinalizer(ctx context.Context, k *look) (bool, error) {
	if k.mb.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(k.mb, v1alpha1.FinalizerBackup) {
		return false, nil
	}
	before := k.mb.DeepCopy()
	controllerutil.AddFinalizer(k.mb, v1alpha1.FinalizerBackup)
	if err := b.patch(ctx, k.mb, before); err != nil {
		return false, fmt.Errorf("add finalizer: %w", err)
	}
	return true, nil
}

func (b *Backups) patch(ctx context.Context, now, before *v1alpha1.MysqlBackup) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return b.Client.Patch(ctx, now, patch, client.FieldOwner(v1alpha1.ManagerBackup))
}

// persist writes the status, if it has changed, and if no one wrote since it was read.
func (b *Backups) persist(ctx context.Context, k *look, status v1alpha1.MysqlBackupStatus) error {
	if sameStatus(&k.mb.Status, &status) {
		return nil
	}
	before := k.mb.DeepCopy()
	k.mb.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := b.Client.Status().Patch(ctx, k.mb, patch, client.FieldOwner(v1alpha1.ManagerBackupStatus)); err != nil {
		k.mb.Status = before.Status
		if apierrors.IsNotFound(err) {
			return conflict(k)
		}
		return fmt.Errorf("write status of backup: %w", err)
	}
	return nil
}
