// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Why an attempt ended decides whether another is made: one that nobody heard of may have stored all, and one that took too long takes too long again.
func TestWhyAnAttemptEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt attempt
		want    backup.Class
	}{
		"it runs":                            {attempt{job: backup.JobRunning, ended: true, code: 2}, ""},
		"there is none":                      {attempt{job: backup.NoJob, ended: true, code: 2}, ""},
		"it took too long":                   {attempt{job: backup.JobFailed, deadline: true, ended: true, code: 2, heard: true}, backup.ClassTimedOut},
		"its pod is gone":                    {attempt{job: backup.JobFailed, code: 2}, backup.ClassLost},
		"it succeeded, and nobody heard how": {attempt{job: backup.JobSucceeded, ended: true}, backup.ClassLost},
		"it succeeded":                       {attempt{job: backup.JobSucceeded, ended: true, heard: true}, backup.ClassSucceeded},
		"it was killed":                      {attempt{job: backup.JobFailed, ended: true, code: 137}, backup.ClassLost},
		"it was killed once it had said why": {attempt{job: backup.JobFailed, ended: true, code: 137, heard: true}, backup.ClassOther},
		"it failed and said nothing":         {attempt{job: backup.JobFailed, ended: true, code: 2}, backup.ClassConfig},
	} {
		if got := tc.attempt.class(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// That a Job succeeded proves nothing, and neither does a manifest of which its program did not say that it had read it, for this backup (I23).
func TestWhatProvesABackupI23(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*attempt)
		want   bool
	}{
		"it read the manifest":    {func(*attempt) {}, true},
		"its Job failed":          {func(a *attempt) { a.job = backup.JobFailed }, false},
		"its Job runs":            {func(a *attempt) { a.job = backup.JobRunning }, false},
		"nobody heard how":        {func(a *attempt) { a.heard = false }, false},
		"for another reason":      {func(a *attempt) { a.result.Reason = "Full" }, false},
		"it did not read it":      {func(a *attempt) { a.result.ManifestRead = false }, false},
		"it is of another backup": {func(a *attempt) { a.result.Backup = "tuesday" }, false},
	} {
		a := attempt{job: backup.JobSucceeded, ended: true, heard: true, result: good("monday")}
		if tc.change(&a); a.stored("monday") != tc.want {
			t.Errorf("I23: %s: stored %t", name, !tc.want)
		}
	}
}

// What people read of it is the nearest to the cause: what the program said, then what Kubernetes says.
func TestHowAnAttemptIsTold(t *testing.T) {
	said := wire.BackupResult{Reason: "Full", Message: "no room"}
	for name, tc := range map[string]struct {
		attempt attempt
		want    string
	}{
		"what the program said":     {attempt{heard: true, result: said, deadline: true, pod: "evicted", ended: true}, "Full: no room"},
		"its reason alone":          {attempt{heard: true, result: wire.BackupResult{Reason: "Full"}, deadline: true}, "Full"},
		"not what was not heard":    {attempt{result: said, deadline: true, pod: "evicted", ended: true}, "it took longer than the timeout of the profile: raise it, or look at what was slow"},
		"why the pod does not run":  {attempt{pod: "evicted", ended: true}, "evicted"},
		"the code":                  {attempt{ended: true, code: 7}, "the program ended with code 7 and said nothing; look at the log of the pod"},
		"nothing is known about it": {attempt{code: 7}, "its pod went before it said how it ended"},
	} {
		if got := tc.attempt.text(); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhyAPodDoesNotRun(t *testing.T) {
	waits := func(message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: message}}}}
	}
	node := func(kind corev1.PodConditionType, status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: kind, Status: status, Message: "0 of 3 nodes fit"}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"it runs":                       {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "x"}}}, ""},
		"it takes its time":             {corev1.PodStatus{ContainerStatuses: waits("")}, ""},
		"its image is not there":        {corev1.PodStatus{ContainerStatuses: waits("not found"), Reason: "Late"}, "container x waits: ErrImagePull not found"},
		"that of what comes first":      {corev1.PodStatus{InitContainerStatuses: waits("not found"), ContainerStatuses: waits("later")}, "container x waits: ErrImagePull not found"},
		"it has no node":                {corev1.PodStatus{Conditions: node(corev1.PodScheduled, corev1.ConditionFalse), Reason: "Late"}, "the pod has no node: 0 of 3 nodes fit"},
		"it has a node":                 {corev1.PodStatus{Conditions: node(corev1.PodScheduled, corev1.ConditionTrue)}, ""},
		"it is not ready, on some node": {corev1.PodStatus{Conditions: node(corev1.PodReady, corev1.ConditionFalse)}, ""},
		"it was evicted":                {corev1.PodStatus{Reason: "Evicted", Message: "the disk is full"}, "the pod ended: Evicted the disk is full"},
	} {
		if got := whyNotRunning(&corev1.Pod{Status: tc.status}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	whole := strings.Repeat("x", messageMax)
	if clip(whole) != whole || clip(whole+"x") != whole[:messageMax-3]+"..." {
		t.Error("a message has another length than status takes")
	}
}

// A Job of another attempt, or of somebody else, would have the outcome of something else pass for this attempt's.
func TestWhichJobIsTheAttempts(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	if err := w.b.create(t.Context(), w.madeJob(mb, 2)); err != nil {
		t.Fatal(err)
	}
	theirs, nobodys := w.madeJob(order("monday", func(mb *v1alpha1.MysqlBackup) { mb.UID = "another" }), 2), w.madeJob(mb, 2)
	nobodys.OwnerReferences = nil
	for name, tc := range map[string]struct {
		job *batchv1.Job
		ok  bool
	}{
		"made before a crash":      {w.madeJob(mb, 2), true},
		"that of an older attempt": {w.madeJob(mb, 3), false},
		"another backup's":         {theirs, false},
		"one without an owner":     {nobodys, false},
	} {
		if err := w.b.create(t.Context(), tc.job); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.createFails = errAway
	if err := w.b.create(t.Context(), w.madeJob(order("tuesday"), 1)); err == nil {
		t.Error("what the API server did not take counts as made")
	}
	for text, want := range map[string]int32{"3": 3, "": 0, "x": 0, "99999999999": 0} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationBackupAttempt: text}}}
		if got := attemptOf(job); got != want {
			t.Errorf("%q is attempt %d", text, got)
		}
	}
}

// A Job that is gone, goes, or is another one by now needs no removal; that it could not be removed is told.
func TestAJobIsRemovedOnce(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	jobs := batchv1.SchemeGroupVersion.WithResource("jobs").GroupResource()
	going := w.madeJob(mb, 1)
	going.DeletionTimestamp = new(metav1.NewTime(began))
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		says  error
		asked int
		fails bool
	}{
		"there is none":    {nil, errAway, 0, false},
		"it goes":          {going, errAway, 0, false},
		"it is gone":       {w.madeJob(mb, 1), apierrors.NewNotFound(jobs, "x"), 1, false},
		"it is another":    {w.madeJob(mb, 1), apierrors.NewConflict(jobs, "x", errAway), 1, false},
		"nobody answers":   {w.madeJob(mb, 1), errAway, 1, true},
		"it is taken away": {w.madeJob(mb, 1), nil, 1, false},
	} {
		asked := 0
		w.b.Client = interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				var o client.DeleteOptions
				o.ApplyOptions(opts)
				if o.Preconditions == nil || o.Preconditions.UID == nil || *o.Preconditions.UID != tc.job.UID {
					t.Errorf("%s: any Job of the name is removed", name)
				}
				asked++
				return tc.says
			},
		})
		if err := w.b.removeJob(t.Context(), tc.job); (err != nil) != tc.fails || asked != tc.asked {
			t.Errorf("%s: %v, asked %d times", name, err, asked)
		}
	}
}

// Whatever makes the backup may store something until it has ended; a pod whose node is lost never says so.
func TestHowLongARemovalWaits(t *testing.T) {
	mb := order("monday", running, deleted)
	for name, tc := range map[string]struct {
		phase corev1.PodPhase
		goes  time.Duration
		waits bool
	}{
		"it runs":                 {corev1.PodRunning, -1, true},
		"it succeeded":            {corev1.PodSucceeded, -1, false},
		"it failed":               {corev1.PodFailed, -1, false},
		"it was told to end":      {corev1.PodRunning, 59 * time.Second, true},
		"it should have long ago": {corev1.PodRunning, time.Minute, false},
		"it ends in time":         {corev1.PodFailed, time.Second, false},
	} {
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
		pod := corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase}}
		if tc.goes >= 0 {
			pod.DeletionTimestamp = new(metav1.NewTime(began.Add(-tc.goes)))
		}
		var fails error
		w.b.Client = interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				if pods, is := list.(*corev1.PodList); is {
					pods.Items = []corev1.Pod{pod}
				}
				return fails
			},
		})
		if got, err := w.b.stillEnding(t.Context(), &look{mb: mb, now: began}); err != nil || got != tc.waits {
			t.Errorf("%s: waits %t, %v", name, got, err)
		}
		fails = errAway
		if _, err := w.b.stillEnding(t.Context(), &look{mb: mb, now: began}); err == nil {
			t.Errorf("%s: pods that could not be listed are none", name)
		}
	}
}

// Sessions are ended again while the backup goes on, as it may have been connecting just then; but not by two at once, and not all the time.
func TestSessionsAreEndedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
		step := func(what string, got, want bool) {
			t.Helper()
			if got != want {
				t.Errorf("%s: begun %t", what, got)
			}
		}
		step("at first", e.begin(one), true)
		step("of another backup", e.begin(other), true)
		time.Sleep(2 * endAgain)
		step("while it is being done", e.begin(one), false)
		e.end(one)
		step("afterwards", e.begin(one), true)
		e.end(one)
		step("a moment later", e.begin(one), false)
		time.Sleep(endAgain)
		step("a while later", e.begin(one), true)
		e.end(one)
		time.Sleep(2 * time.Minute)
		e.end(other)
		if len(e.begun) != 0 || len(e.busy) != 0 {
			t.Errorf("remembered: %v, %v", e.begun, e.busy)
		}
	})
}

// A backup is not disturbed for what is not known, and not by who has no say: to end its sessions costs an attempt.
func TestWhoseSessionsAreEnded(t *testing.T) {
	at := func(addr string) func(*scopetest.Facts) {
		return func(f *scopetest.Facts) { f.Change("b", func(s *scope.SiteFacts) { s.AdminAddr = addr }) }
	}
	for name, tc := range map[string]struct {
		profile string
		change  func(*v1alpha1.MysqlBackup)
		facts   func(*scopetest.Facts)
		yields  bool
		ends    bool
	}{
		"its site is promoted":           {"nightly", nil, nil, true, true},
		"it does not run":                {"nightly", func(mb *v1alpha1.MysqlBackup) { mb.Status.Phase = v1alpha1.BackupPending }, nil, false, false},
		"it has no site":                 {"nightly", func(mb *v1alpha1.MysqlBackup) { mb.Status.Site = "" }, nil, false, false},
		"nobody has looked at the sites": {"nightly", nil, func(f *scopetest.Facts) { f.G.Sites = nil }, false, false},
		"its profile is gone":            {"weekly", nil, nil, false, false},
		"its group is gone":              {"nightly", func(mb *v1alpha1.MysqlBackup) { mb.Spec.Group = "gone" }, nil, false, false},
		"its site has no pod":            {"nightly", nil, at(""), true, false},
		"nobody can tell where it is":    {"nightly", nil, at("10.0.0.1"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Site = "b" })
			if tc.change != nil {
				tc.change(mb)
			}
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) { p.Name = tc.profile })), mb)
			w.facts.G.Target = "b"
			if tc.facts != nil {
				tc.facts(w.facts)
			}
			w.b.watch(t.Context())
			w.b.ends.running.Wait()
			if did, woken := w.took(), len(w.b.wakes) > 0; (did == "end sessions on b") != tc.ends || !tc.ends && did != "" || woken != tc.yields {
				t.Errorf("did %q, woken %t", did, woken)
			}
		})
	}
}
