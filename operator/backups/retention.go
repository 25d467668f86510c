// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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

// restoreHolds is how long a group that is to begin with a backup keeps it from being removed, unless it is loading it.
const restoreHolds = 7 * 24 * time.Hour

// expire removes what no rule keeps: the MysqlBackup, and with it its data in the storage. It returns why some of that stays; empty if all goes.
func (b *Backups) expire(ctx context.Context, g *groupLook, p *v1alpha1.BackupProfile, all []backup.Artifact) (held string, err error) {
	var gone []string
	if r := p.Retention; r != nil {
		rule := backup.Retention{Count: int(r.Count), MinCount: int(r.MinCount)}
		if r.MaxAge != nil {
			rule.MaxAge = r.MaxAge.Duration
		}
		gone = backup.Expired(all, rule, g.now)
	}
	if len(gone) > 0 {
		restored, err := b.beingRestored(ctx, g.key, g.now)
		if err != nil {
			return "", err
		}
		gone, held = restored.spare(gone)
	}
	expired := len(gone)
	gone = append(gone, g.oldFailures(p.Name)...)
	for i, name := range gone {
		at := slices.IndexFunc(g.of[p.Name], func(mb v1alpha1.MysqlBackup) bool { return mb.Name == name })
		mb := &g.of[p.Name][at]
		uid := mb.UID
		if err := b.Client.Delete(ctx, mb, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return held, fmt.Errorf("remove backup %s: %w", name, err)
		}
		if i < expired {
			b.Recorder.Emit(g.group, nil, eventExpired, "Backup %s of profile %s is removed: no rule of the retention keeps it", name, p.Name)
		}
	}
	return held, nil
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

// restored are the backups of a group from which other groups are being made, with the first of those; "" if it has not chosen one yet.
type restored map[string]types.NamespacedName

// spare returns which backups go all the same, and says of the others why they stay.
func (r restored) spare(gone []string) (left []string, held string) {
	var by types.NamespacedName
	for _, name := range gone {
		holder, is := r[name]
		if !is {
			holder, is = r[""]
		}
		switch {
		case !is:
			left = append(left, name)
		case by.Name == "" || holder.String() < by.String():
			by = holder
		}
	}
	if n := len(gone) - len(left); n > 0 {
		held = fmt.Sprintf("expired backups are kept (%d), because group %s is still being restored from this group; see its condition RestoreReady, "+
			"or delete it if it is not needed", n, by)
	}
	return left, held
}

// beingRestored finds the groups that are made from backups of a group. One that has had no success for long holds nothing: it may be forgotten.
func (b *Backups) beingRestored(ctx context.Context, of types.NamespacedName, now time.Time) (restored, error) {
	var groups v1alpha1.MysqlFailoverGroupList
	if err := b.Client.List(ctx, &groups, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	out := restored{}
	for i := range groups.Items {
		g := &groups.Items[i]
		if namespace, group := g.RestoreSource(); !restores(g, now) || namespace != of.Namespace || group != of.Name {
			continue
		}
		name, key := g.Spec.InitFromBackup.Backup, client.ObjectKeyFromObject(g)
		if g.Status.Restore != nil && g.Status.Restore.Backup != "" {
			name = g.Status.Restore.Backup
		}
		if first, is := out[name]; !is || key.String() < first.String() {
			out[name] = key
		}
	}
	return out, nil
}

// restores is true for a group that is to begin with a backup, and loads it or was made or began not long ago. A restore that is complete still
// needs its backup until the group has been open: its data may go with the memory of its pod, and each try loads the same backup.
func restores(g *v1alpha1.MysqlFailoverGroup, now time.Time) bool {
	st := g.Status.Restore
	if g.Spec.InitFromBackup == nil || g.Status.Epoch > 0 {
		return false
	}
	began := g.CreationTimestamp.Time
	if st != nil && st.StartedAt != nil && st.StartedAt.After(began) {
		began = st.StartedAt.Time
	}
	return st != nil && st.Phase == v1alpha1.RestoreLoading || began.IsZero() || now.Sub(began) < restoreHolds // of what is not known nothing goes
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
	if err == nil {
		err = b.Client.Create(ctx, of.Sweep(), client.FieldOwner(v1alpha1.ManagerBackup))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.turns.unused(v1alpha1.TaskSweep, key) // it is tried again soon, and must not keep other sweeps waiting all that time
		return fmt.Errorf("make job %s: %w", key.Name, err)
	}
	return nil
}
