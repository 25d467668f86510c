// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// attempt is a Job of a MysqlBackup, and its outcome.
type attempt struct {
	object *batchv1.Job
	job    backup.Job
	// foreign is true if a Job has the name but is not the backup's.
	foreign bool
	// started is true if the container was seen to run.
	started bool
	// ended is true if the container ended with the code; result is what it left, if heard is true.
	ended  bool
	code   int
	heard  bool
	result wire.BackupResult
	// finishedAt is when the container ended.
	finishedAt time.Time
	// deadline is true if Kubernetes ended the Job because it took too long.
	deadline bool
	// pod is why the pod does not run, as far as Kubernetes says.
	pod string
}

// signalled is what the codes of programs that a signal ended are above.
const signalled = 128

// class is why the attempt ended.
func (a attempt) class() backup.Class {
	switch {
	case a.job == backup.JobRunning || a.job == backup.NoJob:
		return ""
	case a.deadline:
		return backup.ClassTimedOut
	case !a.ended, a.job == backup.JobSucceeded && !a.heard:
		// Its outcome is unknown: the next attempt finds out what it left.
		return backup.ClassLost
	case !a.heard && a.code > signalled:
		// It was killed: its node had no memory for it, or drove it out.
		return backup.ClassLost
	}
	return backup.ClassOf(a.code)
}

// stored is true if the program read the manifest of this backup in the storage. That its Job succeeded proves nothing (I23).
func (a attempt) stored(name string) bool {
	return a.job == backup.JobSucceeded && a.heard && a.result.Reason == wire.BackupSucceeded && a.result.ManifestRead && a.result.Backup == name
}

// text tells people how it ended.
func (a attempt) text() string {
	switch {
	case a.heard && a.result.Message != "":
		return a.result.Reason + ": " + a.result.Message
	case a.heard:
		return a.result.Reason
	case a.deadline:
		return "it took longer than the timeout of the profile: raise it, or look at what was slow"
	case a.pod != "":
		return a.pod
	case a.ended:
		return fmt.Sprintf("the program ended with code %d and said nothing; look at the log of the pod", a.code)
	}
	return "its pod went before it said how it ended"
}

// jobs finds the Jobs of a backup.
func (b *Backups) jobs(ctx context.Context, k *look) (err error) {
	mb := k.mb
	// A Job that was made a moment ago may not be in the cache yet, and would be taken for one that was never made.
	if k.made, err = b.attempt(ctx, mb, v1alpha1.BackupJob(mb.Name), mb.Status.Phase == v1alpha1.BackupRunning); err != nil {
		return err
	}
	if mb.Status.Phase == v1alpha1.BackupRunning && k.made.object != nil && attemptOf(k.made.object) != mb.Status.Attempts {
		// The Job of an earlier attempt: this one's was never made.
		k.made = attempt{job: backup.NoJob, object: k.made.object}
	}
	if k.verify, err = b.attempt(ctx, mb, v1alpha1.VerifyJob(mb.Name), false); err != nil {
		return err
	}
	if mb.DeletionTimestamp != nil {
		k.removal, err = b.attempt(ctx, mb, v1alpha1.DeleteJob(mb.Name), false)
	}
	return err
}

func attemptOf(job *batchv1.Job) int32 {
	n, err := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationBackupAttempt], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func (b *Backups) attempt(ctx context.Context, mb *v1alpha1.MysqlBackup, name string, surely bool) (attempt, error) {
	job := &batchv1.Job{}
	key := types.NamespacedName{Namespace: mb.Namespace, Name: name}
	err := b.Client.Get(ctx, key, job)
	if apierrors.IsNotFound(err) && surely {
		err = b.Live.Get(ctx, key, job)
	}
	if apierrors.IsNotFound(err) {
		return attempt{job: backup.NoJob}, nil
	}
	if err != nil {
		return attempt{}, fmt.Errorf("read job %s: %w", name, err)
	}
	if !metav1.IsControlledBy(job, mb) {
		return attempt{job: backup.NoJob, foreign: true}, nil
	}
	a := attempt{object: job, job: backup.JobRunning}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Type == batchv1.JobComplete {
			a.job = backup.JobSucceeded
		}
		if c.Type == batchv1.JobFailed {
			a.job, a.deadline = backup.JobFailed, c.Reason == batchv1.JobReasonDeadlineExceeded
		}
	}
	return a, b.podsOf(ctx, &a)
}

// podsOf reads what the pod of a Job left. Anyone who can run something in the pod may have written it, so it is believed only within bounds.
func (b *Backups) podsOf(ctx context.Context, a *attempt) error {
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelBackup: a.object.Labels[v1alpha1.LabelBackup], v1alpha1.LabelBackupTask: a.object.Labels[v1alpha1.LabelBackupTask]}
	if err := b.Client.List(ctx, &pods, client.InNamespace(a.object.Namespace), labels); err != nil {
		return fmt.Errorf("list pods of job %s: %w", a.object.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, a.object) {
			continue
		}
		a.pod = whyNotRunning(pod)
		a.started = a.started || hasStarted(pod)
		end := terminated(pod)
		if end == nil {
			continue
		}
		a.ended, a.code, a.finishedAt = true, int(end.ExitCode), end.FinishedAt.Time
		result, err := wire.ParseBackupResult(end.Message)
		if a.heard = err == nil; a.heard {
			a.result = result
		}
	}
	return nil
}

// hasStarted is true once the working container was started.
func hasStarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == backupjob.Container && (c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil)
	})
}

// whyNotRunning says what keeps a pod from running, as far as Kubernetes tells.
func whyNotRunning(pod *corev1.Pod) string {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Message != "" { // one that is only slow has none
			return clip("container " + c.Name + " waits: " + w.Reason + " " + w.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return clip("the pod has no node: " + c.Message)
		}
	}
	if pod.Status.Reason != "" {
		return clip("the pod ended: " + pod.Status.Reason + " " + pod.Status.Message)
	}
	return ""
}

// messageMax is how long a message in status may be.
const messageMax = 1024

func clip(text string) string {
	if len(text) > messageMax {
		return text[:messageMax-3] + "..."
	}
	return text
}
