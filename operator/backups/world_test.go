// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/backupjob"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// began is when the tests begin.
var began = time.Date(2026, 11, 24, 1, 50, 0, 0, time.UTC)

// world is Backups over a fake API server, with facts that the test makes up. What was done is noted in the order in which it was done.
type world struct {
	t     *testing.T
	ctx   context.Context
	c     client.Client
	b     *Backups
	facts *scopetest.Facts
	said  *scopetest.Events
	now   time.Time

	mu   sync.Mutex
	done []string
	// endFails makes the end of sessions fail, and createFails the creation of a Job.
	endFails, createFails error
	// refused are the errors with which objects of a name are not created.
	refused map[string]error
	// before is called before the status of a MysqlBackup is written.
	before func()
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, fmt.Sprintf(format, args...))
}

// took returns what was done since the last time, and forgets it.
func (w *world) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.done, ", ")
	w.done = nil
	return out
}

func withProfile(change func(*v1alpha1.BackupProfile)) scopetest.Option {
	return func(g *v1alpha1.MysqlFailoverGroup) {
		p := v1alpha1.BackupProfile{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "bucket", SecretName: "s3"}}}
		if change != nil {
			change(&p)
		}
		g.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{p}}
	}
}

func newWorld(t *testing.T, group *v1alpha1.MysqlFailoverGroup, others ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, ctx: t.Context(), facts: &scopetest.Facts{}, said: &scopetest.Events{}, now: began}
	if group != nil {
		others = append(others, group)
	}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.MysqlFailoverGroup{}, &v1alpha1.MysqlBackup{}, &batchv1.Job{}).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), clientgoapply.NewTypeConverter(clientgoscheme.Scheme), managedfields.NewDeducedTypeConverter()).
		WithIndex(&v1alpha1.MysqlBackup{}, indexGroup, indexedGroup).WithIndex(&v1alpha1.MysqlBackup{}, indexOpen, indexedOpen).
		WithObjects(others...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, job := o.(*batchv1.Job); job && w.createFails != nil {
					return w.createFails
				}
				if err := w.refused[o.GetName()]; err != nil {
					return err
				}
				o.SetUID(types.UID("uid of " + o.GetName()))
				o.SetCreationTimestamp(metav1.NewTime(w.now))
				err := c.Create(ctx, o, opts...)
				if err == nil {
					w.note("create %s", o.GetName())
				}
				return err
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				w.note("delete %s", o.GetName())
				return c.Delete(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if w.before != nil {
					w.before()
				}
				err := c.SubResource(name).Patch(ctx, o, p, opts...)
				if mb, is := o.(*v1alpha1.MysqlBackup); is && err == nil {
					w.note("status %s", mb.Status.Phase)
				}
				return err
			},
		}).Build()
	w.b = w.shell(5)
	for _, site := range []string{"a", "b", "c"} {
		w.facts.Set(site, scope.SiteFacts{
			Reachable: true, MysqlUp: true, Following: site != "a", LagKnown: true, Writable: site == "a", AdminAddr: "10.0.0.1:33062",
		})
	}
	w.facts.Open("a")
	w.facts.Under(7)
	return w
}

func (w *world) shell(atOnce int) *Backups {
	return New(Options{
		Client: w.c, Live: w.c, Facts: w.facts, Access: access{}, Recorder: events.NewRecorder(w.said), AtOnce: atOnce,
		Install: render.Install{BackupImage: "backup:test"}, Now: func() time.Time { return w.now },
		Dial: func(t mysql.Target) (Server, error) { return server{w, t.Addr}, nil },
	})
}

type access struct{}

func (access) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site, _ string) (mysql.Target, error) {
	return mysql.Target{Addr: site}, nil
}

type server struct {
	w    *world
	site string
}

func (s server) EndBackups(context.Context) (int, error) {
	s.w.note("end sessions on %s", s.site)
	return 1, s.w.endFails
}

func (server) Close() error { return nil }

// order is a MysqlBackup that somebody made.
func order(name string, change ...func(*v1alpha1.MysqlBackup)) *v1alpha1.MysqlBackup {
	mb := &v1alpha1.MysqlBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: name, UID: types.UID("uid of " + name), CreationTimestamp: metav1.NewTime(began),
			Finalizers: []string{v1alpha1.FinalizerBackup}},
		Spec: v1alpha1.MysqlBackupSpec{Group: scopetest.Key.Name, Profile: "nightly"},
	}
	for _, c := range change {
		c(mb)
	}
	return mb
}

// running is one that is made by a Job, which must be put too.
func running(mb *v1alpha1.MysqlBackup) {
	mb.Status = v1alpha1.MysqlBackupStatus{Phase: v1alpha1.BackupRunning, Attempts: 1, Job: v1alpha1.BackupJob(mb.Name), Site: "c", Epoch: 7,
		StartedAt: timeOf(began), Reason: v1alpha1.ReasonBackupRunning, Message: "attempt 1, from c"}
}

func completedAt(at time.Time) func(*v1alpha1.MysqlBackup) {
	return func(mb *v1alpha1.MysqlBackup) {
		running(mb)
		mb.Status.Phase, mb.Status.FinishedAt, mb.Status.Bytes, mb.Status.Reason = v1alpha1.BackupCompleted, timeOf(at), 100, v1alpha1.ReasonBackupCompleted
	}
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: name}
}

// step reconciles a MysqlBackup once.
func (w *world) step(name string) reconcile.Result {
	w.t.Helper()
	r, err := w.b.Reconcile(w.ctx, reconcile.Request{NamespacedName: w.key(name)})
	if err != nil && w.createFails == nil {
		w.t.Fatal(err)
	}
	return r
}

// group reconciles the group once.
func (w *world) group() reconcile.Result {
	w.t.Helper()
	r, err := w.b.ReconcileGroup(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) get(name string) *v1alpha1.MysqlBackup {
	w.t.Helper()
	mb := &v1alpha1.MysqlBackup{}
	if err := w.c.Get(w.ctx, w.key(name), mb); err != nil {
		w.t.Fatal(err)
	}
	return mb
}

func (w *world) gone(name string) bool {
	return apierrors.IsNotFound(w.c.Get(w.ctx, w.key(name), &v1alpha1.MysqlBackup{}))
}

func (w *world) jobOf(name string) *batchv1.Job {
	job := &batchv1.Job{}
	if err := w.c.Get(w.ctx, w.key(name), job); err != nil {
		return nil
	}
	return job
}

// ends has the Job of a name end with a code and a result: an object of JSON, or any text.
func (w *world) ends(name string, code int, result any) {
	w.t.Helper()
	w.jobEnds(w.podEnds(name, code, result), code == 0, "")
}

// pastDeadline has it end too, and Kubernetes say that it took too long.
func (w *world) pastDeadline(name string, code int, result any) {
	w.t.Helper()
	w.jobEnds(w.podEnds(name, code, result), false, batchv1.JobReasonDeadlineExceeded)
}

func (w *world) podEnds(name string, code int, result any) *batchv1.Job {
	w.t.Helper()
	job := w.jobOf(name)
	if job == nil {
		w.t.Fatalf("there is no job %s", name)
	}
	message, is := result.(string)
	if !is {
		raw, err := json.Marshal(result)
		if err != nil {
			w.t.Fatal(err)
		}
		message = string(raw)
	}
	w.put(podOf(job, code, message, w.now))
	return job
}

func podOf(job *batchv1.Job, code int, message string, at time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-pod-" + job.Annotations[v1alpha1.AnnotationBackupAttempt], Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: backupjob.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: int32(code), Message: message, FinishedAt: metav1.NewTime(at),
			}},
		}}},
	}
}

func (w *world) put(o client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.ctx, o); err != nil {
		w.t.Fatal(err)
	}
	w.took()
}

func (w *world) jobEnds(job *batchv1.Job, well bool, reason string) {
	w.t.Helper()
	kind := batchv1.JobComplete
	if !well {
		kind = batchv1.JobFailed
	}
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason})
	if err := w.c.Status().Update(w.ctx, job); err != nil {
		w.t.Fatal(err)
	}
}

// madeJob is the Job of an attempt that runs.
func (w *world) madeJob(mb *v1alpha1.MysqlBackup, attempt int32) *batchv1.Job {
	return w.taskJob(mb, v1alpha1.BackupJob(mb.Name), v1alpha1.TaskBackup, attempt)
}

func (w *world) taskJob(mb *v1alpha1.MysqlBackup, name, task string, attempt int32) *batchv1.Job {
	labels := map[string]string{v1alpha1.LabelBackup: mb.Name, v1alpha1.LabelBackupTask: task}
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: mb.Namespace, Name: name, UID: types.UID("uid of " + name), Labels: labels,
		Annotations:     map[string]string{v1alpha1.AnnotationBackupAttempt: strconv.Itoa(int(attempt))},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mb, v1alpha1.GroupVersion.WithKind("MysqlBackup"))},
	}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}}}
}

// good is the result of an attempt that made the backup.
func good(name string) wire.BackupResult {
	return wire.BackupResult{Reason: wire.BackupSucceeded, Backup: name, ManifestRead: true, StoredBytes: 5 << 30, MySQLVersion: "9.7.4",
		GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"}
}

func requestFor(mb *v1alpha1.MysqlBackup) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mb)}
}

var errAway = errors.New("it does not answer")
