// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Anybody who may make Jobs in one namespace could otherwise stop the removals of all.
func TestWhichJobsHoldATurn(t *testing.T) {
	mb := order("monday")
	group := scopetest.Group()
	suspended := func(job *batchv1.Job) { job.Spec.Suspend = new(true) }
	is := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: status}}
		}
	}
	pods := func(active, ready int32) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Status.Active, job.Status.Ready = active, new(ready) }
	}
	sweep := func(job *batchv1.Job) {
		job.Name, job.Labels[v1alpha1.LabelBackupProfile] = "sweep-orders-nightly", "nightly"
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(group, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))}
	}
	for name, tc := range map[string]struct {
		task   string
		age    time.Duration
		change func(*batchv1.Job)
		want   bool
	}{
		"it runs":                             {v1alpha1.TaskDelete, time.Hour, pods(1, 1), true},
		"it runs, in an older Kubernetes":     {v1alpha1.TaskDelete, time.Hour, func(job *batchv1.Job) { job.Status.Active = 1 }, true},
		"it is new":                           {v1alpha1.TaskDelete, time.Minute, nil, true},
		"a quota refuses its pod":             {v1alpha1.TaskDelete, podlessFor, nil, false},
		"its pod starts":                      {v1alpha1.TaskDelete, overdue - time.Second, pods(1, 0), true},
		"its pod does not start":              {v1alpha1.TaskDelete, overdue, pods(1, 0), false},
		"it is suspended":                     {v1alpha1.TaskDelete, 0, suspended, false},
		"it is not suspended":                 {v1alpha1.TaskDelete, 0, func(job *batchv1.Job) { job.Spec.Suspend = new(false) }, true},
		"it is complete":                      {v1alpha1.TaskDelete, 0, is(batchv1.JobComplete, corev1.ConditionTrue), false},
		"it has failed, at its deadline":      {v1alpha1.TaskDelete, 0, is(batchv1.JobFailed, corev1.ConditionTrue), false},
		"it has not failed":                   {v1alpha1.TaskDelete, 0, is(batchv1.JobFailed, corev1.ConditionFalse), true},
		"nobody's":                            {v1alpha1.TaskDelete, 0, func(job *batchv1.Job) { job.OwnerReferences = nil }, false},
		"somebody else's":                     {v1alpha1.TaskDelete, 0, func(job *batchv1.Job) { job.OwnerReferences[0].APIVersion = "apps/v1" }, false},
		"one of many that claim a backup":     {v1alpha1.TaskDelete, 0, func(job *batchv1.Job) { job.Name = "delete-monday-2" }, false},
		"one of another task":                 {v1alpha1.TaskVerify, 0, nil, false},
		"a verification":                      {v1alpha1.TaskVerify, 0, func(job *batchv1.Job) { job.Name = "verify-monday" }, true},
		"a sweep":                             {v1alpha1.TaskSweep, 0, sweep, true},
		"a sweep that is a backup's":          {v1alpha1.TaskSweep, 0, func(job *batchv1.Job) { job.Name = "sweep-monday-" }, false},
		"a task of which nobody takes a turn": {v1alpha1.TaskBackup, 0, func(job *batchv1.Job) { job.Name = "backup-monday" }, false},
	} {
		w := &world{}
		job := w.taskJob(mb, "delete-monday", tc.task, 0)
		job.CreationTimestamp = metav1.NewTime(began.Add(-tc.age))
		if tc.change != nil {
			tc.change(job)
		}
		if got := holdsTurn(job, tc.task, began); got != tc.want {
			t.Errorf("%s: holds a turn: %t", name, got)
		}
	}
}

// Five suspended Jobs with our labels stop nothing. Five removals that run do, and the object says what it waits for.
func TestARemovalWaitsForRemovalsOnly(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", completedAt(began), deleted))
	others := make([]*batchv1.Job, 5)
	for i := range others {
		mb := order(fmt.Sprintf("b%d", i))
		mb.Namespace = "elsewhere"
		others[i] = w.taskJob(mb, v1alpha1.DeleteJob(mb.Name), v1alpha1.TaskDelete, 0)
		w.put(others[i])
	}
	for range 3 {
		w.step("monday")
	}
	if st := w.get("monday").Status; w.jobOf("delete-monday") != nil || st.Reason != v1alpha1.ReasonBackupDeleting || !strings.Contains(st.Message, "waits for its turn") {
		t.Errorf("%+v", st)
	}
	w.took()
	w.step("monday")
	if did := w.took(); did != "" {
		t.Errorf("while it waits it did %s", did)
	}
	for _, job := range others {
		job.Spec.Suspend = new(true)
		if err := w.c.Update(w.ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	w.step("monday")
	if w.jobOf("delete-monday") == nil {
		t.Error("Jobs that are suspended keep it waiting")
	}
	w.step("monday")
	if st := w.get("monday").Status; st.Message != "" {
		t.Errorf("%+v", st)
	}
}
