// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"net"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// perform carries out the persisted decision. Each action may be repeated.
func (b *Backups) perform(ctx context.Context, k *look, step backup.Step) error {
	switch step.Action {
	case backup.StartJob:
		return b.start(ctx, k)
	case backup.StopJob:
		return b.stop(ctx, k)
	case backup.RemoveArtifact:
		return b.removeArtifact(ctx, k)
	case backup.Release:
		b.tellKept(k)
		return b.letGo(ctx, k)
	case backup.Wait:
		if k.leftover || k.spent() {
			return b.removeJob(ctx, k.made.object)
		}
	}
	return nil
}

// scratchKept is how long the pod of a failed Physical backup stays, for its log to be read.
const scratchKept = time.Hour

// spent is true once the Job of a backup has ended and its pod holds a copy of the data for nothing: the scratch volume goes with the pod.
// That of a completed backup goes at once, as the result is persisted.
func (k *look) spent() bool {
	return k.holdsCopy() && (k.mb.Status.Phase == v1alpha1.BackupCompleted || k.untilSpent() <= 0)
}

// holdsCopy is true if the Job of a backup has ended, and its pod may have a scratch volume. The profile may have another method by now.
func (k *look) holdsCopy() bool {
	ended := k.made.job == backup.JobSucceeded || k.made.job == backup.JobFailed
	return ended && k.mb.Status.Method == v1alpha1.BackupPhysical && (k.mb.Status.Phase == v1alpha1.BackupCompleted || k.mb.Status.Phase == v1alpha1.BackupFailed)
}

// untilSpent is how long the log of a failed backup still stays.
func (k *look) untilSpent() time.Duration {
	if k.mb.Status.FinishedAt == nil {
		return scratchKept
	}
	return k.mb.Status.FinishedAt.Add(scratchKept).Sub(k.now)
}

// start makes the Job of the attempt that status counts.
func (b *Backups) start(ctx context.Context, k *look) error {
	job := k.job(b.Install)
	job.Site, job.Epoch, job.Attempt = siteOf(k.group, k.mb.Status.Site), k.mb.Status.Epoch, k.mb.Status.Attempts
	job.Active = k.seen.ActiveSite
	if err := b.run(ctx, job, backupjob.Job.Make); err != nil {
		// Nothing has begun. The next look finds no Job, and tries again after a while.
		status := *k.mb.Status.DeepCopy()
		status.Message = clip(err.Error())
		_ = b.persist(ctx, k, status)
		return err
	}
	return nil
}

// run makes a Job with an image that may run.
func (b *Backups) run(ctx context.Context, of backupjob.Job, build func(backupjob.Job) *batchv1.Job) error {
	of, err := b.allowed(ctx, of)
	if err != nil {
		return err
	}
	return b.create(ctx, build(of))
}

// create makes a Job. One that this attempt made before a crash will do.
func (b *Backups) create(ctx context.Context, job *batchv1.Job) error {
	err := b.Client.Create(ctx, job, client.FieldOwner(v1alpha1.ManagerBackup))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("make job %s: %w", job.Name, err)
		}
		return nil
	}
	stands := &batchv1.Job{}
	if err := b.Live.Get(ctx, client.ObjectKeyFromObject(job), stands); err != nil {
		return fmt.Errorf("read job %s: %w", job.Name, err)
	}
	mine := metav1.GetControllerOf(job)
	owner := metav1.GetControllerOf(stands)
	if owner == nil || mine == nil || owner.UID != mine.UID || attemptOf(stands) != attemptOf(job) {
		return fmt.Errorf("make job %s: there is another one of the name: remove it", job.Name)
	}
	return nil
}

// stop ends the sessions of the backup on the site, with every lock that they hold, and then its Job (I24). If the sessions cannot be
// ended, the Job still goes: its program also ends them when it is stopped.
func (b *Backups) stop(ctx context.Context, k *look) error {
	// Only for a Job that copies the site: a verification has no sessions there, and must not end those of another backup.
	if k.made.job == backup.JobRunning && k.group != nil && k.mb.Status.Site != "" {
		if err := b.endSessions(ctx, k.group, k.mb.Status.Site); err != nil {
			b.Log.Warn("the sessions of a backup could not be ended; its pod is told to end them", "namespace", k.mb.Namespace, "group", k.mb.Spec.Group,
				"backup", k.mb.Name, "site", k.mb.Status.Site, "error", err)
		}
	}
	for _, a := range []attempt{k.made, k.verify} {
		if a.object != nil && a.job == backup.JobRunning {
			if err := b.removeJob(ctx, a.object); err != nil {
				return err
			}
		}
	}
	return nil
}

// endTimeout bounds the end of sessions on a site.
const endTimeout = 5 * time.Second

// endSessions ends the sessions of backups on a site.
func (b *Backups) endSessions(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	seen, _ := b.Facts.Sites(group.Namespace, group.Name)
	addr := seen.Sites[site].AdminAddr
	if addr == "" {
		return nil // the site has no pod, and no sessions
	}
	ip, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address of %s: %w", site, err)
	}
	target, err := b.Access.Site(ctx, group, site, ip)
	if err != nil {
		return fmt.Errorf("reach %s: %w", site, err)
	}
	target.DialTimeout, target.QueryTimeout = 2*time.Second, 3*time.Second
	server, err := b.Dial(target)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	ended, err := server.EndBackups(ctx)
	if ended > 0 {
		b.Log.Info("ended the sessions of a backup", "namespace", group.Namespace, "group", group.Name, "site", site, "sessions", ended)
	}
	return err
}

// removeJob removes exactly the Job that was seen, with its pod.
func (b *Backups) removeJob(ctx context.Context, job *batchv1.Job) error {
	if job == nil || job.DeletionTimestamp != nil {
		return nil
	}
	uid := job.UID
	err := b.Client.Delete(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}},
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove job %s: %w", job.Name, err)
	}
	return nil
}

// removeArtifact makes a Job that removes the backup from the storage. If it fails, another follows after a while.
func (b *Backups) removeArtifact(ctx context.Context, k *look) error {
	switch k.removal.job {
	case backup.JobRunning:
		return nil
	case backup.JobFailed:
		if at := k.removal.object.Status.StartTime; at != nil && k.now.Before(at.Add(whenRemovalFailed)) {
			return nil
		}
		b.count(k, k.removal.class())
		b.Recorder.Emit(k.about(), k.mb, eventRemovalFailed, "Backup %s could not be removed from %s: %s", k.mb.Name, k.mb.Status.Location, k.removal.text())
		return b.removeJob(ctx, k.removal.object)
	case backup.NoJob, backup.JobSucceeded:
	}
	if ending, err := b.stillEnding(ctx, k); ending || err != nil {
		return err
	}
	ok, err := b.jobTurn(ctx, v1alpha1.TaskDelete, types.NamespacedName{Namespace: k.mb.Namespace, Name: v1alpha1.DeleteJob(k.mb.Name)})
	if err != nil {
		return err
	}
	if b.turns.refused(k.key(), !ok); !ok {
		return nil // the next look says it in status
	}
	err = b.run(ctx, k.job(b.Install), backupjob.Job.Delete)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The namespace goes, and the bucket must outlive it: the group can be restored from there.
		k.kept = "the namespace is being deleted"
		b.tellKept(k)
		return b.letGo(ctx, k)
	}
	return err
}

// stillEnding is true while a pod that makes the backup may still store something. The wait for one whose node is lost has an end.
func (b *Backups) stillEnding(ctx context.Context, k *look) (bool, error) {
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelBackup: k.mb.Name, v1alpha1.LabelBackupTask: v1alpha1.TaskBackup}
	if err := b.Client.List(ctx, &pods, client.InNamespace(k.mb.Namespace), labels); err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && (pod.DeletionTimestamp == nil || k.now.Before(pod.DeletionTimestamp.Add(time.Minute))) {
			return true, nil
		}
	}
	return false, nil
}

// whenRemovalFailed is when a removal that failed is tried again.
const whenRemovalFailed = 5 * time.Minute

// letGo removes the finalizer: the MysqlBackup goes.
func (b *Backups) letGo(ctx context.Context, k *look) error {
	before := k.mb.DeepCopy()
	if !controllerutil.RemoveFinalizer(k.mb, v1alpha1.FinalizerBackup) {
		return nil
	}
	if err := b.patch(ctx, k.mb, before); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take finalizer off: %w", err)
	}
	return nil
}
