// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestOnlyWhatAnAttemptSaidOfItselfIsStored covers I23: each part of it alone proves nothing.
func TestOnlyWhatAnAttemptSaidOfItselfIsStored(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*attempt)
		want   bool
	}{
		"all of it":               {func(*attempt) {}, true},
		"its Job failed":          {func(a *attempt) { a.job = backup.JobFailed }, false},
		"its Job runs":            {func(a *attempt) { a.job = backup.JobRunning }, false},
		"another pod said it":     {func(a *attempt) { a.heard = false }, false},
		"it failed":               {func(a *attempt) { a.result.Reason = "Failed" }, false},
		"no manifest was read":    {func(a *attempt) { a.result.ManifestRead = false }, false},
		"it was another's backup": {func(a *attempt) { a.result.Backup = "tuesday" }, false},
	} {
		a := attempt{job: backup.JobSucceeded, heard: true, result: good("monday")}
		tc.change(&a)
		if got := a.stored("monday"); got != tc.want {
			t.Errorf("%s: stored %t", name, got)
		}
	}
}

// shows has the cache and the API server show some Jobs, by their names. Those that cannot be read are listed; asked counts what the API server was
// asked for.
func (w *world) shows(cached, stands map[string]*batchv1.Job, unread ...string) (asked *int) {
	reads := func(jobs map[string]*batchv1.Job, asked *int, unread ...string) client.Client {
		return interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				*asked++
				for _, name := range unread {
					if name == key.Name {
						return errAway
					}
				}
				job := jobs[key.Name]
				if job == nil {
					return apierrors.NewNotFound(batchv1.SchemeGroupVersion.WithResource("jobs").GroupResource(), key.Name)
				}
				job.DeepCopyInto(o.(*batchv1.Job))
				return nil
			},
		})
	}
	asked = new(int)
	w.b.Client, w.b.Live = reads(cached, new(int), unread...), reads(stands, asked)
	return asked
}

// A Job that was made a moment ago counts, or a second one would copy the site beside it; that of an attempt before does not, or its outcome would pass
// for this one's. The API server is asked only where it matters.
func TestTheJobOfAnAttemptIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		phase v1alpha1.BackupPhase
		// attempt is that of the Job, 0 if there is none; cached is false if the cache does not show it yet.
		attempt int32
		cached  bool
		want    backup.Job
		object  bool
		asked   int
	}{
		"it runs":                          {v1alpha1.BackupRunning, 2, true, backup.JobRunning, true, 0},
		"it was made a moment ago":         {v1alpha1.BackupRunning, 2, false, backup.JobRunning, true, 1},
		"it was never made":                {v1alpha1.BackupRunning, 0, false, backup.NoJob, false, 1},
		"that of the attempt before":       {v1alpha1.BackupRunning, 1, true, backup.NoJob, true, 0},
		"the same, the cache is behind":    {v1alpha1.BackupRunning, 1, false, backup.NoJob, true, 1},
		"left over while the next waits":   {v1alpha1.BackupPending, 1, true, backup.JobRunning, true, 0},
		"none while it waits":              {v1alpha1.BackupPending, 0, false, backup.NoJob, false, 0},
		"left over once it was given up":   {v1alpha1.BackupFailed, 1, true, backup.JobRunning, true, 0},
		"the cache is behind, after a day": {v1alpha1.BackupCompleted, 2, false, backup.NoJob, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Phase, mb.Status.Attempts = tc.phase, 2 })
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			jobs := map[string]*batchv1.Job{}
			if tc.attempt > 0 {
				jobs["backup-monday"] = w.madeJob(mb, tc.attempt)
			}
			cached := jobs
			if !tc.cached {
				cached = nil
			}
			asked := w.shows(cached, jobs)
			k := &look{mb: mb}
			if err := w.b.jobs(t.Context(), k); err != nil || k.made.job != tc.want || (k.made.object != nil) != tc.object {
				t.Errorf("%+v, %v", k.made, err)
			}
			if *asked != tc.asked {
				t.Errorf("the API server was asked %d times", *asked)
			}
		})
	}
}

// A removal is one only of what was deleted.
func TestARemovalIsLookedForOnceItIsAskedFor(t *testing.T) {
	for _, tc := range []struct {
		mb   *v1alpha1.MysqlBackup
		want backup.Job
	}{{order("monday", completedAt(began)), ""}, {order("monday", completedAt(began), deleted), backup.JobRunning}} {
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), tc.mb)
		w.shows(map[string]*batchv1.Job{"delete-monday": w.taskJob(tc.mb, "delete-monday", v1alpha1.TaskDelete, 0)}, nil)
		k := &look{mb: tc.mb}
		if err := w.b.jobs(t.Context(), k); err != nil || k.removal.job != tc.want {
			t.Errorf("%q, %v; want %q", k.removal.job, err, tc.want)
		}
	}
}

// Nothing is decided on a Job that could not be read: none would be made again, and the data of one that runs removed.
func TestJobsThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"backup-monday", "verify-monday", "delete-monday"} {
		mb := order("monday", running, deleted)
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
		made := map[string]*batchv1.Job{"backup-monday": w.madeJob(mb, 1)}
		asked := w.shows(made, made, name)
		if err := w.b.jobs(t.Context(), &look{mb: mb}); err == nil || *asked != 0 {
			t.Errorf("%s: %v, and the API server was asked %d times", name, err, *asked)
		}
	}
}

// A Job has ended only once its condition says so: one that may yet succeed is not made again beside it.
func TestWhenAJobHasEnded(t *testing.T) {
	is := func(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason string) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: kind, Status: status, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		conditions []batchv1.JobCondition
		want       backup.Job
		deadline   bool
	}{
		"it says nothing":           {nil, backup.JobRunning, false},
		"it is complete":            {is(batchv1.JobComplete, corev1.ConditionTrue, ""), backup.JobSucceeded, false},
		"it is not complete":        {is(batchv1.JobComplete, corev1.ConditionFalse, ""), backup.JobRunning, false},
		"it has failed":             {is(batchv1.JobFailed, corev1.ConditionTrue, "BackoffLimitExceeded"), backup.JobFailed, false},
		"it took too long":          {is(batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobReasonDeadlineExceeded), backup.JobFailed, true},
		"it has not failed":         {is(batchv1.JobFailed, corev1.ConditionFalse, batchv1.JobReasonDeadlineExceeded), backup.JobRunning, false},
		"nobody knows if it failed": {is(batchv1.JobFailed, corev1.ConditionUnknown, ""), backup.JobRunning, false},
		"it is suspended":           {is(batchv1.JobSuspended, corev1.ConditionTrue, ""), backup.JobRunning, false},
	} {
		mb := order("monday", running)
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
		job := w.madeJob(mb, 1)
		job.Status.Conditions = tc.conditions
		w.shows(map[string]*batchv1.Job{job.Name: job}, nil)
		a, err := w.b.attempt(t.Context(), mb, job.Name, false)
		if err != nil || a.job != tc.want || a.deadline != tc.deadline {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	theirs := w.madeJob(mb, 1)
	theirs.OwnerReferences = []metav1.OwnerReference{}
	w.shows(map[string]*batchv1.Job{theirs.Name: theirs}, nil)
	if a, err := w.b.attempt(t.Context(), mb, theirs.Name, false); err != nil || !a.foreign || a.job != backup.NoJob || a.object != nil {
		t.Errorf("somebody else's: %+v, %v", a, err)
	}
}
