// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
)

// turns bounds how many run at a time. The cache is a moment old, so turns remembers what it allowed to start and the cache does not show
// yet. The zero value is ready.
type turns struct {
	mu sync.Mutex
	// granted are the backups that may start, with the version of the object at which they got leave.
	granted map[types.NamespacedName]string
	// unable are those that could not start at the last look; they must not keep others waiting.
	unable map[types.NamespacedName]time.Time
	// jobs are the other Jobs that were allowed to start, by task and name.
	jobs map[string]map[types.NamespacedName]time.Time
	// queued are the backups whose removal got no turn at the last look.
	queued map[types.NamespacedName]bool
}

// unableFor is how long a look counts that found a backup unable to start.
const unableFor = 3 * whenWaiting

func (t *turns) cannot(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unable == nil {
		t.unable = map[types.NamespacedName]time.Time{}
	}
	t.unable[key] = time.Now()
}

// release gives back an unused turn.
func (t *turns) release(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.granted, key)
	delete(t.unable, key)
	delete(t.queued, key)
}

// turn says whether a backup that is able to start may do so.
func (b *Backups) turn(ctx context.Context, mb *v1alpha1.MysqlBackup) (bool, error) {
	b.turns.mu.Lock()
	defer b.turns.mu.Unlock()
	// Under the lock: either the list holds every earlier start, or the memory does.
	var open v1alpha1.MysqlBackupList
	if err := b.Client.List(ctx, &open, client.MatchingFields{indexOpen: isOpen}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list backups: %w", err)
	}
	return b.turns.take(open.Items, mb, b.AtOnce), nil
}

func (t *turns) take(open []v1alpha1.MysqlBackup, mb *v1alpha1.MysqlBackup, most int) bool {
	own := client.ObjectKeyFromObject(mb)
	delete(t.unable, own)
	standing := map[types.NamespacedName]string{}
	var waiting []backup.Waiting
	var running []string
	for i := range open {
		o := &open[i]
		key, group := client.ObjectKeyFromObject(o), o.Namespace+"/"+o.Spec.Group
		version, granted := t.granted[key]
		switch {
		case o.Status.Phase == v1alpha1.BackupRunning:
			running = append(running, group)
		case granted && version == o.ResourceVersion:
			standing[key] = version
			running = append(running, group)
		case o.DeletionTimestamp == nil && time.Since(t.unable[key]) > unableFor:
			waiting = append(waiting, backup.Waiting{Namespace: o.Namespace, Group: o.Spec.Group, Name: o.Name, Since: o.CreationTimestamp.Time})
		}
	}
	t.granted = standing
	if _, is := standing[own]; is {
		return true
	}
	for _, w := range backup.Turn(waiting, running, most) {
		if w.Namespace == own.Namespace && w.Name == own.Name {
			t.granted[own] = mb.ResourceVersion
			return true
		}
	}
	return false
}

// wakeWaiting wakes the backups that have waited longest, once a turn is free. For the others the clock is enough.
func (b *Backups) wakeWaiting(ctx context.Context) {
	var open v1alpha1.MysqlBackupList
	if err := b.Client.List(ctx, &open, client.MatchingFields{indexOpen: isOpen}, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	var waiting []backup.Waiting
	for i := range open.Items {
		if o := &open.Items[i]; o.Status.Phase != v1alpha1.BackupRunning {
			waiting = append(waiting, backup.Waiting{Namespace: o.Namespace, Group: o.Spec.Group, Name: o.Name, Since: o.CreationTimestamp.Time})
		}
	}
	for _, w := range backup.Turn(waiting, nil, 2*b.AtOnce) {
		b.wake(types.NamespacedName{Namespace: w.Namespace, Name: w.Name})
	}
}

// seenAfter is how long a new Job may be missing from the cache.
const seenAfter = 15 * time.Second

// podlessFor is how long a new Job holds its turn without a pod: a quota may refuse it for as long as the Job stands.
const podlessFor = 3 * time.Minute

// holdsTurn is true for a Job that keeps others of its task waiting: one of ours that runs, or may yet. Anybody who may make Jobs in a namespace
// can give one our labels, and one without a pod does no work.
func holdsTurn(job *batchv1.Job, task string, now time.Time) bool {
	if !ours(job, task) || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return false
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return false
		}
	}
	age := now.Sub(job.CreationTimestamp.Time)
	switch {
	case job.Status.Active == 0:
		return age < podlessFor
	case job.Status.Ready != nil && *job.Status.Ready == 0:
		return age < overdue // no node, no volume or no image
	}
	return true
}

// ours is true for the one Job that a MysqlBackup, or a profile of a group, has for a task.
func ours(job *batchv1.Job, task string) bool {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return false
	}
	switch task {
	case v1alpha1.TaskVerify:
		return owner.Kind == "MysqlBackup" && job.Name == v1alpha1.VerifyJob(owner.Name)
	case v1alpha1.TaskDelete:
		return owner.Kind == "MysqlBackup" && job.Name == v1alpha1.DeleteJob(owner.Name)
	case v1alpha1.TaskSweep:
		return owner.Kind == "MysqlFailoverGroup" && job.Name == v1alpha1.SweepJob(owner.Name, job.Labels[v1alpha1.LabelBackupProfile])
	}
	return false
}

// refused notes whether a removal waits for its turn.
func (t *turns) refused(key types.NamespacedName, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued == nil {
		t.queued = map[types.NamespacedName]bool{}
	}
	if t.queued[key] = waits; !waits {
		delete(t.queued, key)
	}
}

func (t *turns) waits(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queued[key]
}

// jobTurn says whether another Job of a task may start.
func (b *Backups) jobTurn(ctx context.Context, task string, key types.NamespacedName) (bool, error) {
	t := &b.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	var jobs batchv1.JobList
	if err := b.Client.List(ctx, &jobs, client.MatchingLabels{v1alpha1.LabelBackupTask: task}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list jobs: %w", err)
	}
	if t.jobs == nil {
		t.jobs = map[string]map[types.NamespacedName]time.Time{}
	}
	if t.jobs[task] == nil {
		t.jobs[task] = map[types.NamespacedName]time.Time{}
	}
	let, running := t.jobs[task], 0
	for i := range jobs.Items {
		delete(let, client.ObjectKeyFromObject(&jobs.Items[i]))
		if holdsTurn(&jobs.Items[i], task, b.Now()) {
			running++
		}
	}
	for other, at := range let {
		if time.Since(at) > seenAfter {
			delete(let, other)
		}
	}
	if running+len(let) >= b.AtOnce {
		return false, nil
	}
	let[key] = time.Now()
	return true, nil
}

// unused gives back the turn of a Job that was not made.
func (t *turns) unused(task string, key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs[task], key)
}
