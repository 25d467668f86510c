// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// asked is a completed backup that passed once, and that a person wants verified again.
func asked(mb *v1alpha1.MysqlBackup) {
	completedAt(began)(mb)
	mb.Status.Verified = &v1alpha1.BackupVerified{At: timeOf(began), Outcome: v1alpha1.BackupPassed, RestoreSeconds: 30}
	mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "now"}
}

// However often a verification ends because of something that says nothing of the backup: it is never called bad for that, what an earlier one
// found stays, and it is tried again, less and less often.
func TestAVerificationThatSaysNothingOfTheBackupIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		end    func(*world)
		reason v1alpha1.Reason
	}{
		"the storage is away": {func(w *world) {
			w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "StorageUnreachable", Message: "no route", Backup: "monday"})
		}, v1alpha1.ReasonStorageUnreachable},
		"its bucket is full": {func(w *world) {
			w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "StorageFull", Backup: "monday"})
		}, v1alpha1.ReasonStorageFull},
		"it stood still": {func(w *world) {
			w.ends("verify-monday", terms.ExitSource, terms.Result{Reason: terms.Stalled, Backup: "monday"})
		}, v1alpha1.ReasonStalled},
		"it was told to end": {func(w *world) {
			w.ends("verify-monday", terms.ExitYielded, terms.Result{Reason: terms.Yielded, Backup: "monday"})
		}, v1alpha1.ReasonYielded},
		"its scratch volume was too small": {func(w *world) {
			w.ends("verify-monday", terms.ExitRefused, terms.Result{Reason: terms.VolumeTooSmall, Backup: "monday"})
		}, v1alpha1.ReasonVolumeTooSmall},
		"it was told nonsense": {func(w *world) {
			w.ends("verify-monday", terms.ExitConfig, terms.Result{Reason: terms.BadConfig, Backup: "monday"})
		}, v1alpha1.ReasonBadConfig},
		"its time was over": {func(w *world) {
			w.ends("verify-monday", terms.ExitTimedOut, terms.Result{Reason: terms.TimedOut, Message: "raise the timeout", Backup: "monday"})
		}, v1alpha1.ReasonTimedOut},
		"Kubernetes killed it at its deadline": {func(w *world) { w.pastDeadline("verify-monday", 137, "") }, v1alpha1.ReasonTimedOut},
		"Kubernetes ended it at its deadline": {func(w *world) {
			w.pastDeadline("verify-monday", terms.ExitYielded, terms.Result{Reason: terms.Yielded, Backup: "monday"})
		}, v1alpha1.ReasonYielded},
		"it was done just after its deadline": {func(w *world) {
			w.pastDeadline("verify-monday", 0, terms.Result{Reason: terms.Succeeded, Backup: "monday"})
		}, v1alpha1.ReasonTimedOut},
		"its node was lost":              {func(w *world) { w.jobEnds(w.jobOf("verify-monday"), false, "") }, v1alpha1.ReasonFailed},
		"its pod never came to run":      {func(w *world) { w.jobEnds(w.jobOf("verify-monday"), false, batchv1.JobReasonDeadlineExceeded) }, v1alpha1.ReasonFailed},
		"it was killed for its memory":   {func(w *world) { w.ends("verify-monday", 137, "") }, v1alpha1.ReasonFailed},
		"it ended and nobody heard why":  {func(w *world) { w.ends("verify-monday", 1, "") }, v1alpha1.ReasonFailed},
		"it succeeded and nobody saw it": {func(w *world) { w.ends("verify-monday", 0, "") }, v1alpha1.ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", asked))
			var pause time.Duration
			for try := int32(1); try <= 8; try++ {
				w.step("monday")
				made := w.jobOf("verify-monday")
				if made == nil || attemptOf(made) != try {
					t.Fatalf("try %d: %+v", try, made)
				}
				tc.end(w)
				w.step("monday")
				w.step("monday")
				mb := w.get("monday")
				if v := mb.Status.Verified; v == nil || v.Outcome != v1alpha1.BackupPassed {
					t.Fatalf("try %d says something of the backup: %+v", try, v)
				}
				waits := mb.Status.VerificationWaits
				if waits == nil || waits.Tries != try || waits.Reason != tc.reason || waits.Message == "" || mb.Annotations[v1alpha1.AnnotationVerifyBackup] == "" {
					t.Fatalf("try %d: it waits for %+v", try, waits)
				}
				// As Kubernetes does once the Job has gone.
				if err := w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(mb.Namespace)); err != nil {
					t.Fatal(err)
				}
				if w.jobOf("verify-monday") != nil {
					t.Fatalf("try %d is followed by another at once", try)
				}
				next := waits.NotBefore.Sub(w.now)
				most := time.Hour
				if tc.reason == v1alpha1.ReasonTimedOut { // the next one would need as long
					most = tooSlowPause
				}
				if next < pause || next <= 0 || next > most || most == tooSlowPause && next < most-time.Hour {
					t.Errorf("after %s it waits %s", pause, next)
				}
				pause, w.now = next, waits.NotBefore.Time
			}
			if pause != time.Hour && tc.reason != v1alpha1.ReasonTimedOut {
				t.Errorf("in the end it waits %s", pause)
			}
			if n := w.said.Count(v1alpha1.ReasonBackupVerificationWaits); n != 1 || w.said.Count(v1alpha1.ReasonBackupNotRestorable) != 0 {
				t.Errorf("told: %v", w.said.List)
			}
			w.step("monday")
			w.ends("verify-monday", 0, terms.Result{Reason: terms.Succeeded, Backup: "monday", RestoreSeconds: 7})
			w.step("monday")
			if mb := w.get("monday"); mb.Status.Verified.RestoreSeconds != 7 || mb.Status.VerificationWaits != nil || mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" {
				t.Errorf("its outcome: %+v", mb.Status)
			}
		})
	}
}

// What it has found counts, although the time was over before anybody saw it.
func TestADamagedBackupIsOneAtTheDeadlineToo(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", asked))
	w.step("monday")
	w.pastDeadline("verify-monday", terms.ExitDamaged, terms.Result{Reason: terms.Differs, Backup: "monday"})
	w.step("monday")
	if mb := w.get("monday"); mb.Status.Verified.Outcome != v1alpha1.BackupNotRestorable || mb.Status.VerificationWaits != nil {
		t.Errorf("%+v", mb.Status)
	}
}

// The storage answers, and has no such backup: that is an outcome, but not at once. A volume that is not mounted looks the same.
func TestABackupThatIsMissingIsNotRestorable(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", asked))
	for try := 1; try <= missingTries; try++ {
		if v := w.get("monday").Status.Verified; v.Outcome != v1alpha1.BackupPassed {
			t.Fatalf("after %d tries: %+v", try-1, v)
		}
		w.step("monday")
		w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "NotFound", Backup: "monday"})
		w.step("monday")
		w.now = w.now.Add(time.Hour)
	}
	if mb := w.get("monday"); mb.Status.Verified.Outcome != v1alpha1.BackupNotRestorable || mb.Status.VerificationWaits != nil {
		t.Errorf("%+v", mb.Status)
	}
}

// TestAStorageThatWasAwayIsNotAMissingBackup: only tries in a row that found nothing count, whatever came before them.
func TestAStorageThatWasAwayIsNotAMissingBackup(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", asked))
	for _, reason := range []string{"StorageUnreachable", "StorageUnreachable", "StorageUnreachable", "NotFound", "NotFound", "StorageUnreachable", "NotFound", "NotFound"} {
		w.step("monday")
		w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: terms.Reason(reason), Backup: "monday"})
		w.step("monday")
		w.now = w.now.Add(2 * time.Hour)
		if v := w.get("monday").Status.Verified; v.Outcome != v1alpha1.BackupPassed {
			t.Fatalf("after %s: %+v", reason, v)
		}
	}
}

// Who has mended what it waits for need not wait, and who takes the order back has it end.
func TestAVerificationThatWaitsObeys(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", asked))
	w.step("monday")
	w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "AccessDenied", Backup: "monday"})
	w.step("monday")
	if w.step("monday"); w.jobOf("verify-monday") != nil {
		t.Fatal("it does not wait")
	}
	order := func(value string) {
		mb := w.get("monday")
		mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: value}
		if err := w.c.Update(w.ctx, mb); err != nil {
			t.Fatal(err)
		}
		w.step("monday")
	}
	if order("again"); w.jobOf("verify-monday") == nil {
		t.Error("a new order is not tried at once")
	}
	w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "AccessDenied", Backup: "monday"})
	w.step("monday")
	if order(""); w.get("monday").Status.VerificationWaits != nil || w.jobOf("verify-monday") != nil {
		t.Errorf("nobody wants it any more: %+v", w.get("monday").Status)
	}
}

// Who is told that a verification took longer than the timeout, and raises it, has it tried at once; nothing else of the profile does that.
func TestAVerificationWithMoreTimeIsTriedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after time.Duration
		end           func(*world)
		tried         bool
	}{
		"more time":                 {time.Hour, 3 * time.Hour, tooLong, true},
		"more time than by default": {0, 3 * time.Hour, tooLong, true},
		"as much time":              {time.Hour, time.Hour, tooLong, false},
		"less time":                 {3 * time.Hour, time.Hour, tooLong, false},
		"another reason": {time.Hour, 3 * time.Hour, func(w *world) {
			w.ends("verify-monday", terms.ExitStorage, terms.Result{Reason: "AccessDenied", Backup: "monday"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			within := func(d time.Duration) scopetest.Option {
				return withProfile(func(p *v1alpha1.BackupProfile) {
					p.Timeout, p.Verification = metav1.Duration{Duration: d}, &v1alpha1.BackupVerification{AfterEvery: 1}
				})
			}
			w := newWorld(t, scopetest.Group(scopetest.Running, within(tc.before)), order("monday", completedAt(began.Add(-3*time.Hour))))
			w.group()
			w.step("monday")
			tc.end(w)
			w.step("monday")
			w.put(order("tuesday", completedAt(began.Add(-time.Hour))))
			if w.step("monday"); w.jobOf("verify-monday") != nil {
				t.Fatal("it is tried again at once")
			}
			g := &v1alpha1.MysqlFailoverGroup{}
			if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
				t.Fatal(err)
			}
			within(tc.after)(g)
			if err := w.c.Update(w.ctx, g); err != nil {
				t.Fatal(err)
			}
			if w.step("monday"); (w.jobOf("verify-monday") != nil) != tc.tried {
				t.Errorf("tried %t: %+v", !tc.tried, w.get("monday").Status.VerificationWaits)
			}
		})
	}
}

func tooLong(w *world) {
	w.ends("verify-monday", terms.ExitTimedOut, terms.Result{Reason: terms.TimedOut, Message: "raise the timeout", Backup: "monday"})
}

// The schedule of a profile whose verification took too long goes on once the profile gives more time.
func TestWhenAProfileIsTooSlow(t *testing.T) {
	w := &v1alpha1.BackupVerificationWait{Reason: v1alpha1.ReasonTimedOut, Order: v1alpha1.VerifyBySchedule, NotBefore: timeOf(began.Add(time.Hour)), TimeoutSeconds: 3600}
	all := []v1alpha1.MysqlBackup{{}, {Status: v1alpha1.MysqlBackupStatus{VerificationWaits: w}}}
	for timeout, want := range map[time.Duration]bool{time.Minute: true, time.Hour: true, time.Hour + time.Second: false} {
		if got := tooSlow(all, timeout, began); got != want {
			t.Errorf("with %s: %t", timeout, got)
		}
	}
	if w.TimeoutSeconds = 0; !tooSlow(all, 24*time.Hour, began) { // an operator of before wrote it, and nobody knows what it had
		t.Error("an unknown time counts as shorter")
	}
}

// What is verified is kept. So of those that schedules ordered only the newest waits; the order of a person stays.
func TestOnlyTheNewestVerificationOfAScheduleWaits(t *testing.T) {
	waits := func(value string) func(*v1alpha1.MysqlBackup) {
		return func(mb *v1alpha1.MysqlBackup) {
			mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: value}
			mb.Status.VerificationWaits = &v1alpha1.BackupVerificationWait{Tries: 3, Order: value, NotBefore: timeOf(began.Add(time.Hour)), Message: "no route"}
		}
	}
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) { p.Verification = &v1alpha1.BackupVerification{AfterEvery: 1} })),
		order("monday", completedAt(began.Add(-3*time.Hour)), waits(v1alpha1.VerifyBySchedule)), order("tuesday", completedAt(began.Add(-2*time.Hour)), waits("now")), order("wednesday", completedAt(began.Add(-time.Hour))))
	w.group()
	var got []string
	for _, name := range []string{"monday", "tuesday", "wednesday"} {
		got = append(got, w.get(name).Annotations[v1alpha1.AnnotationVerifyBackup])
	}
	if want := []string{"", "now", v1alpha1.VerifyBySchedule}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("orders %q, want %q", got, want)
	}
	if c := w.condition(v1alpha1.ConditionBackupVerified); c.Reason != string(v1alpha1.ReasonBackupNotVerified) {
		t.Errorf("%+v", c)
	}
}

// ordered are those of the names that have an order for a verification.
func (w *world) ordered(names ...string) (out []string) {
	w.t.Helper()
	for _, name := range names {
		if !w.gone(name) && w.get(name).Annotations[v1alpha1.AnnotationVerifyBackup] != "" {
			out = append(out, name)
		}
	}
	return out
}

func always(p *v1alpha1.BackupProfile) {
	p.Verification = &v1alpha1.BackupVerification{AfterEvery: 1}
	p.Retention = &v1alpha1.BackupRetention{Count: 1, MinCount: 1}
}

// The order of a schedule waits for a turn: it moves on to the newest backup, and keeps no other.
func TestAnOrderThatWaitsForItsTurnMovesOn(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(always)), order("monday", completedAt(began.Add(-3*time.Hour))))
	w.b = w.shell(1)
	other := order("other")
	other.Namespace = "elsewhere"
	w.put(w.taskJob(other, v1alpha1.VerifyJob(other.Name), v1alpha1.TaskVerify, 0))
	w.group()
	w.step("monday")
	if w.jobOf("verify-monday") != nil || len(w.ordered("monday")) != 1 {
		t.Fatal("it waits for no turn")
	}
	w.put(order("tuesday", completedAt(began.Add(-2*time.Hour))))
	w.group()
	w.group()
	if got := w.ordered("monday", "tuesday"); fmt.Sprint(got) != "[tuesday]" {
		t.Errorf("ordered: %s", got)
	}
	if w.get("monday").DeletionTimestamp == nil {
		t.Error("a backup that nobody verifies is kept")
	}
}

// A verification that takes longer than it takes to the next backup: no other begins before it has ended.
func TestOneVerificationOfAProfileAtATime(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(always)), order("monday", completedAt(began.Add(-5*time.Hour))))
	w.group()
	w.step("monday")
	job := w.jobOf("verify-monday")
	job.Status.Active, job.Status.Ready = 1, new(int32(1))
	if err := w.c.Status().Update(w.ctx, job); err != nil {
		t.Fatal(err)
	}
	names := []string{"monday", "tuesday", "wednesday", "thursday"}
	for i, name := range names[1:] {
		w.now = w.now.Add(time.Hour)
		w.put(order(name, completedAt(began.Add(time.Duration(i-4)*time.Hour))))
		w.group()
		w.step("monday")
	}
	if got := w.ordered(names...); fmt.Sprint(got) != "[monday]" || w.get("monday").DeletionTimestamp != nil {
		t.Errorf("while one is verified, ordered: %s", got)
	}
	w.ends("verify-monday", 0, terms.Result{Reason: terms.Succeeded, Backup: "monday"})
	w.step("monday")
	w.group()
	if got := w.ordered(names...); fmt.Sprint(got) != "[thursday]" {
		t.Errorf("then ordered: %s", got)
	}
}

// TestAVerdictMayBeWrittenAgain: the Job of a verdict may be seen once more, when what waited is gone from status already.
func TestAVerdictMayBeWrittenAgain(t *testing.T) {
	for attempt, want := range map[string]int32{"1": 1, "3": missingTries} {
		k := &look{mb: &v1alpha1.MysqlBackup{}}
		k.verify.heard, k.verify.result.Reason = true, string(v1alpha1.ReasonNotFound)
		k.verify.object = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationBackupAttempt: attempt}}}
		if got := k.missing(); got != want {
			t.Errorf("attempt %s: %d in a row found nothing, want %d", attempt, got, want)
		}
	}
}
