// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A Job that the cache does not show yet is asked for where it is known, while a backup runs and only then: it must not be made twice, and a
// backup that waits must cost the API server nothing.
func TestWhichJobsAreFound(t *testing.T) {
	pending := func(mb *v1alpha1.MysqlBackup) { running(mb); mb.Status.Phase = v1alpha1.BackupPending }
	late := apierrors.NewNotFound(batchv1.Resource("jobs"), "late")
	type jobs map[string]int32
	for name, tc := range map[string]struct {
		is     func(*v1alpha1.MysqlBackup)
		there  jobs
		cached map[string]error
		job    backup.Job
		object bool
		asked  int
		fails  bool
	}{
		"it runs":                               {running, jobs{"backup": 1}, nil, backup.JobRunning, true, 0, false},
		"it runs, and the cache is late":        {running, jobs{"backup": 1}, map[string]error{"backup": late}, backup.JobRunning, true, 1, false},
		"it runs, and was never made":           {running, nil, nil, backup.NoJob, false, 1, false},
		"it runs, and an earlier one is left":   {running, jobs{"backup": 2}, nil, backup.NoJob, true, 0, false},
		"it waits":                              {pending, nil, nil, backup.NoJob, false, 0, false},
		"it waits, and the cache is late":       {pending, jobs{"backup": 1}, map[string]error{"backup": late}, backup.NoJob, false, 0, false},
		"it waits, and an earlier one is left":  {pending, jobs{"backup": 2}, nil, backup.JobRunning, true, 0, false},
		"the cache fails":                       {running, jobs{"backup": 1}, map[string]error{"backup": errAway}, "", false, 0, true},
		"for the verification":                  {running, jobs{"backup": 1}, map[string]error{"verify": errAway}, backup.JobRunning, true, 0, true},
		"for the verification, and it goes":     {deleting, jobs{"backup": 1}, map[string]error{"verify": errAway}, backup.JobRunning, true, 0, true},
		"for the removal, and it does not go":   {running, jobs{"backup": 1, "delete": 1}, map[string]error{"delete": errAway}, backup.JobRunning, true, 0, false},
		"for the removal":                       {deleting, jobs{"backup": 1, "delete": 1}, map[string]error{"delete": errAway}, backup.JobRunning, true, 0, true},
		"it goes, and its removal is under way": {deleting, jobs{"backup": 1, "delete": 1}, nil, backup.JobRunning, true, 0, false},
	} {
		mb := order("monday", tc.is)
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)))
		names := map[string]string{"backup": v1alpha1.BackupJob("monday"), "verify": v1alpha1.VerifyJob("monday"), "delete": v1alpha1.DeleteJob("monday")}
		for task, n := range tc.there {
			w.put(w.taskJob(mb, names[task], task, n))
		}
		asked := 0
		w.b.Live = interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			asked++
			return c.Get(ctx, key, o, opts...)
		}})
		w.b.Client = interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			for task, err := range tc.cached {
				if key.Name == names[task] {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		}})
		k := &look{mb: mb}
		err := w.b.jobs(t.Context(), k)
		if (err != nil) != tc.fails || tc.fails && !errors.Is(err, errAway) {
			t.Errorf("%s: %v", name, err)
		}
		if k.made.job != tc.job || (k.made.object != nil) != tc.object || asked != tc.asked {
			t.Errorf("%s: %q, there %t, asked %d times", name, k.made.job, k.made.object != nil, asked)
		}
		if removed := name == "it goes, and its removal is under way"; (k.removal.object != nil) != removed {
			t.Errorf("%s: a removal is there: %t", name, !removed)
		}
	}
}

func deleting(mb *v1alpha1.MysqlBackup) { running(mb); deleted(mb) }

// A condition of a Job counts once it is true, and what ran out of time is told from what failed.
func TestHowAJobStandsI23(t *testing.T) {
	for name, tc := range map[string]struct {
		condition batchv1.JobCondition
		want      backup.Job
		deadline  bool
	}{
		"it runs":              {batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}, backup.JobRunning, false},
		"it is complete":       {batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}, backup.JobSucceeded, false},
		"it is not":            {batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}, backup.JobRunning, false},
		"it failed":            {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}, backup.JobFailed, false},
		"it did not":           {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionUnknown, Reason: batchv1.JobReasonDeadlineExceeded}, backup.JobRunning, false},
		"it ran out of time":   {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}, backup.JobFailed, true},
		"it is somebody's own": {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "theirs"}, backup.NoJob, false},
	} {
		mb := order("monday", running)
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)))
		job := w.madeJob(mb, 1)
		if tc.condition.Message == "theirs" {
			job.OwnerReferences = nil
		}
		job.Status.Conditions = []batchv1.JobCondition{tc.condition}
		w.b.Client = interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			job.DeepCopyInto(o.(*batchv1.Job))
			return nil
		}})
		a, err := w.b.attempt(t.Context(), mb, job.Name, false)
		if err != nil || a.job != tc.want || a.deadline != tc.deadline || a.foreign != (tc.want == backup.NoJob) {
			t.Errorf("I23: %s: %q, deadline %t, foreign %t, %v", name, a.job, a.deadline, a.foreign, err)
		}
	}
}
