// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Where an XA transaction is prepared a replica keeps everybody out, the backup too.
func TestABackupIsNotTakenBesideAPreparedXATransaction(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday"))
	w.facts.Change("c", func(s *scope.SiteFacts) { s.PreparedXA = true })
	w.step("monday")
	if st := w.get("monday").Status; st.Site != "b" {
		t.Errorf("%+v", st)
	}
}

func TestABackupIsMade(t *testing.T) {
	mb := order("monday")
	mb.Finalizers = nil
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.step("monday")
	if got := w.get("monday"); len(got.Finalizers) != 1 || got.Status.Phase != "" {
		t.Fatalf("nothing is begun before the finalizer stands: %+v", got)
	}
	w.step("monday")
	if did := w.took(); did != "status Running, create backup-monday" {
		t.Errorf("written down first, then made: %s", did)
	}
	made := w.jobOf("backup-monday")
	st := w.get("monday").Status
	if st.Site != "c" || st.Epoch != 7 || st.Attempts != 1 || attemptOf(made) != 1 || st.Location != "s3://bucket/shop/orders" || st.StorageDigest != inBucket(nil).Digest("shop", "orders") || st.Job != "backup-monday" {
		t.Errorf("the dr-only site is preferred, and status says what is made: %+v", st)
	}
	w.now = w.now.Add(time.Minute)
	w.step("monday")
	if did := w.took(); did != "" {
		t.Errorf("while it runs nothing is done: %s", did)
	}
	w.ends("backup-monday", 0, good("monday"))
	w.step("monday")
	st = w.get("monday").Status
	if st.Phase != v1alpha1.BackupCompleted || st.Size != "5.0GiB" || st.MySQLVersion != "9.7.4" || st.GTIDExecuted == "" || st.Progress != 100 || st.FinishedAt == nil {
		t.Errorf("completed: %+v", st)
	}
	w.took()
	w.step("monday")
	if did := w.took(); did != "" {
		t.Errorf("it has ended: %s", did)
	}
	if w.said.Count(v1alpha1.ReasonBackupRunning) != 1 || w.said.Count(v1alpha1.ReasonBackupCompleted) != 1 {
		t.Errorf("each is told once: %v", w.said.List)
	}
}

// TestOnlyAManifestThatWasReadMakesABackup covers I23.
func TestOnlyAManifestThatWasReadMakesABackup(t *testing.T) {
	other, unread, failed := good("tuesday"), good("monday"), good("monday")
	unread.ManifestRead, failed.Reason = false, "Failed"
	for reason, result := range map[string]any{
		"nothing was heard":                 "",
		"not a result":                      "I made it",
		"the manifest was not read":         unread,
		"the manifest is another backup's":  other,
		"the program says that it failed":   failed,
		"more than a termination message":   strings.Repeat(" ", 5000) + "{}",
		"a reason that is no word":          `{"reason":"Suc ceeded","backup":"monday","manifestRead":true}`,
		"a result with a negative number":   `{"reason":"Succeeded","backup":"monday","manifestRead":true,"storedBytes":-1}`,
		"a result that is followed by more": `{"reason":"Succeeded","backup":"monday","manifestRead":true} and so on`,
	} {
		t.Run(reason, func(t *testing.T) {
			mb := order("monday", running)
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			w.put(w.madeJob(mb, 1))
			w.ends("backup-monday", 0, result)
			w.step("monday")
			if got := w.get("monday").Status.Phase; got == v1alpha1.BackupCompleted {
				t.Error("it passes for a backup")
			}
		})
	}
}

// TestAResultOfAnotherPodIsNotBelieved covers I23: anybody may make a pod with the labels.
func TestAResultOfAnotherPodIsNotBelieved(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.madeJob(mb, 1))
	made := w.jobOf("backup-monday")
	pod := podOf(made, 0, `{"reason":"Succeeded","backup":"monday","manifestRead":true}`, w.now)
	pod.OwnerReferences = nil
	w.put(pod)
	w.jobEnds(made, true, "")
	w.step("monday")
	if got := w.get("monday").Status.Phase; got == v1alpha1.BackupCompleted {
		t.Error("a pod that is not the Job's makes a backup")
	}
}

// TestExitCodes holds the classes of the operator and the codes of the program together, and says of each whether it is tried again.
func TestExitCodes(t *testing.T) {
	want := map[terms.Reason]struct {
		class backup.Class
		again bool
	}{
		terms.Succeeded: {backup.ClassSucceeded, false}, terms.BadConfig: {backup.ClassConfig, false}, terms.Yielded: {backup.ClassYielded, true},
		terms.TimedOut: {backup.ClassTimedOut, false}, terms.SourceUnreachable: {backup.ClassSource, true}, terms.SourceBusy: {backup.ClassSource, true},
		terms.DumpFailed: {backup.ClassSource, true}, terms.ServerFailed: {backup.ClassOther, false}, terms.VolumeTooSmall: {backup.ClassRefused, false},
		terms.WrongIdentity: {backup.ClassRefused, false}, terms.Differs: {backup.ClassDamaged, false}, terms.Failed: {backup.ClassOther, false},
		terms.Reason(bucket.Unreachable): {backup.ClassStorage, true}, terms.Reason(bucket.AccessDenied): {backup.ClassStorage, true},
		terms.Reason(bucket.Full): {backup.ClassStorage, true},
	}
	for reason, tc := range want {
		t.Run(string(reason), func(t *testing.T) {
			class := backup.ClassOf(reason.ExitCode())
			if class != tc.class || class.Passes() != tc.again {
				t.Errorf("code %d is of class %s, passes %v", reason.ExitCode(), class, class.Passes())
			}
			if reason == terms.Succeeded {
				return
			}
			mb := order("monday", running)
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			w.put(w.madeJob(mb, 1))
			w.ends("backup-monday", reason.ExitCode(), terms.Result{Reason: reason, Message: "why it ended", Backup: "monday"})
			w.step("monday")
			st, phase := w.get("monday").Status, v1alpha1.BackupFailed
			if tc.again {
				phase = v1alpha1.BackupPending
			}
			if st.Phase != phase || !strings.Contains(st.Message, "why it ended") {
				t.Errorf("%s: %s", st.Phase, st.Message)
			}
		})
	}
	if class := backup.ClassOf(137); class != backup.ClassOther || class.Passes() {
		t.Errorf("a code that nobody knows is of class %s", class)
	}
}

func TestAnAttemptIsMadeAgainElsewhereAfterAWhile(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.madeJob(mb, 1))
	w.ends("backup-monday", terms.ExitSource, terms.Result{Reason: terms.SourceLost, Backup: "monday"})
	w.step("monday")
	w.took()
	w.step("monday")
	if did := w.took(); !strings.HasSuffix(did, "delete backup-monday") {
		t.Errorf("what is left of the first attempt goes first: %s", did)
	}
	w.step("monday")
	if w.jobOf("backup-monday") != nil {
		t.Error("the second attempt does not wait")
	}
	w.now = w.now.Add(time.Minute)
	w.step("monday")
	st := w.get("monday").Status
	if made := w.jobOf("backup-monday"); made == nil || attemptOf(made) != 2 || st.Attempts != 2 || st.Site != "b" {
		t.Errorf("the second attempt is taken from another site: %+v", st)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.ends("backup-monday", terms.ExitSource, terms.Result{Reason: terms.SourceLost, Backup: "monday"})
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupFailed {
		t.Errorf("there is an end to it, the startingDeadline: %+v", st)
	}
}

// TestALostOutcomeIsFoundOut covers I23: the next attempt finds what the lost one stored.
func TestALostOutcomeIsFoundOut(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.madeJob(mb, 1))
	w.jobEnds(w.jobOf("backup-monday"), false, "")
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupPending {
		t.Errorf("%+v", st)
	}
}

func TestAnAttemptThatTookTooLongIsNotTriedAgain(t *testing.T) {
	mb := order("monday", running)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.madeJob(mb, 1))
	w.jobEnds(w.jobOf("backup-monday"), false, "DeadlineExceeded")
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupFailed || !strings.Contains(st.Message, "timeout") {
		t.Errorf("%+v", st)
	}
}

// A pod that does not start, for want of a volume, an image or a node, does not keep the turn of others for as long as a backup may take.
func TestAPodThatDoesNotStartKeepsNoTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		starts bool
		after  time.Duration
		want   v1alpha1.BackupPhase
	}{
		"it takes its time": {false, 11 * time.Minute, v1alpha1.BackupRunning}, "it does not start": {false, 13 * time.Minute, v1alpha1.BackupPending},
		"it runs": {true, 13 * time.Minute, v1alpha1.BackupRunning},
	} {
		t.Run(name, func(t *testing.T) {
			mb := order("monday", running)
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			w.put(w.madeJob(mb, 1))
			pod := podOf(w.jobOf("backup-monday"), 0, "", w.now)
			pod.Status.Phase = corev1.PodPending
			state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: "there is no volume"}}
			if tc.starts {
				state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			}
			pod.Status.ContainerStatuses[0].State = state
			w.put(pod)
			w.step("monday")
			w.now = began.Add(tc.after)
			w.step("monday")
			st := w.get("monday").Status
			if st.Phase != tc.want || (w.jobOf("backup-monday") == nil) != (tc.want == v1alpha1.BackupPending) {
				t.Errorf("%+v", st)
			}
			if tc.want == v1alpha1.BackupPending && !strings.Contains(st.Message, "there is no volume") {
				t.Errorf("it does not say why: %s", st.Message)
			}
		})
	}
}

// TestABackupGetsOutOfTheWay covers I24: the sessions first, then the Job, and what follows is written down before either.
func TestABackupGetsOutOfTheWay(t *testing.T) {
	for reason, tc := range map[string]struct {
		site   string
		change func(*scopetest.Facts)
		yields bool
	}{
		"nothing happens":         {"b", func(*scopetest.Facts) {}, false},
		"its site is promoted":    {"b", func(f *scopetest.Facts) { f.G.Target = "b" }, true},
		"another one is promoted": {"c", func(f *scopetest.Facts) { f.G.Target = "b" }, false},
		"the active site is in doubt, and this one may have to take its role": {"b", func(f *scopetest.Facts) { f.G.InDoubt = true }, true},
		"it never takes the role": {"c", func(f *scopetest.Facts) { f.G.InDoubt = true }, false},
		"its site is cloned":      {"b", func(f *scopetest.Facts) { f.Change("b", func(s *scope.SiteFacts) { s.Busy = "Clone" }) }, true},
		"its keys are rotated":    {"b", func(f *scopetest.Facts) { f.Change("b", func(s *scope.SiteFacts) { s.Busy = "Rotation" }) }, true},
		"its site is about to go": {"b", func(f *scopetest.Facts) { f.Change("b", func(s *scope.SiteFacts) { s.Leaving = "drained" }) }, true},
	} {
		t.Run(reason, func(t *testing.T) {
			mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) {
				mb.Status.Site, mb.Status.Message = tc.site, "attempt 1, from "+tc.site
			})
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			w.put(w.madeJob(mb, 1))
			tc.change(w.facts)
			w.b.watch(w.ctx)
			w.b.ends.running.Wait()
			want, watched := "", ""
			if tc.yields {
				watched = "end sessions on " + tc.site
				want = fmt.Sprintf("status Pending, end sessions on %s, delete backup-monday", tc.site)
			}
			if did := w.took(); did != watched {
				t.Errorf("beside the reconciles: %q, want %q", did, watched)
			}
			w.step("monday")
			if did := w.took(); did != want {
				t.Errorf("%q, want %q", did, want)
			}
		})
	}
}

// TestSessionsThatCannotBeEndedKeepNoJob covers I24.
func TestSessionsThatCannotBeEndedKeepNoJob(t *testing.T) {
	mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Site = "b" })
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.madeJob(mb, 1))
	w.facts.G.Target, w.endFails = "b", errAway
	w.step("monday")
	if w.jobOf("backup-monday") != nil {
		t.Error("the Job goes on")
	}
}

// TestNothingIsBegunWhileAFailoverMayBeDue covers I24.
func TestNothingIsBegunWhileAFailoverMayBeDue(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday"))
	w.facts.G.InDoubt = true
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupPending || st.Reason != v1alpha1.ReasonBackupWaitsForFailover || w.jobOf("backup-monday") != nil {
		t.Errorf("%+v", st)
	}
}

// A cache that is behind must not have anything begun, or ended, twice.
func TestNothingIsDoneOnWhatIsNoMore(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday"))
	old := w.get("monday")
	touched := w.get("monday")
	touched.Annotations = map[string]string{"touched": "true"}
	if err := w.c.Update(w.ctx, touched); err != nil {
		t.Fatal(err)
	}
	k, err := w.b.gather(w.ctx, old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.b.advance(w.ctx, k); !apierrors.IsConflict(err) {
		t.Errorf("advance on an old object: %v", err)
	}
	if did := w.took(); did != "" {
		t.Errorf("did %s", did)
	}
}

func TestAStatusThatCannotBeWrittenHasNothingDone(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday"))
	w.before = func() {
		w.before = nil
		touched := w.get("monday")
		touched.Annotations = map[string]string{"touched": "true"}
		if err := w.c.Update(w.ctx, touched); err != nil {
			t.Error(err)
		}
	}
	if r := w.step("monday"); r.RequeueAfter != whenOvertaken {
		t.Errorf("again in %s", r.RequeueAfter)
	}
	if did := w.took(); did != "" || w.jobOf("backup-monday") != nil {
		t.Errorf("did %s", did)
	}
	w.step("monday")
	if w.jobOf("backup-monday") == nil {
		t.Error("it starts once what stands was read, and its turn was given back")
	}
}

func TestAJobOfAnotherIsLeftAlone(t *testing.T) {
	mb := order("monday")
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	stranger := w.madeJob(mb, 1)
	stranger.OwnerReferences = nil
	w.put(stranger)
	_, err := w.b.Reconcile(w.ctx, requestFor(mb))
	if err == nil || !strings.Contains(w.get("monday").Status.Message, "another one of the name") {
		t.Errorf("%v: %+v", err, w.get("monday").Status)
	}
	if w.jobOf("backup-monday") == nil {
		t.Error("the Job of somebody else was removed")
	}
}

func TestAGroupOfAnotherReleaseIsLeftAlone(t *testing.T) {
	g := scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) { p.Schedule = &v1alpha1.BackupSchedule{Cron: "* * * * *"} }))
	g.Status.Claim = &v1alpha1.GroupClaim{Lease: "elsewhere/mfg-operator"}
	mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Site = "b" })
	w := newWorld(t, g, mb)
	w.facts.G.Target = "b"
	w.step("monday")
	w.group()
	w.b.watch(w.ctx)
	w.b.ends.running.Wait()
	if did := w.took(); did != "" {
		t.Errorf("did %s", did)
	}
}

func TestWhyABackupDoesNotStart(t *testing.T) {
	for reason, tc := range map[string]struct {
		group  *v1alpha1.MysqlFailoverGroup
		change func(*world)
		phase  v1alpha1.BackupPhase
		want   v1alpha1.Reason
	}{
		"there is no group":     {nil, nil, v1alpha1.BackupPending, v1alpha1.ReasonBackupProfileMissing},
		"there is no profile":   {scopetest.Group(scopetest.Running), nil, v1alpha1.BackupPending, v1alpha1.ReasonBackupProfileMissing},
		"no group came":         {nil, func(w *world) { w.now = began.Add(2 * time.Hour) }, v1alpha1.BackupFailed, v1alpha1.ReasonBackupProfileMissing},
		"there is no image":     {scopetest.Group(scopetest.Running, withProfile(nil)), func(w *world) { w.b.Install.BackupImage = "" }, v1alpha1.BackupPending, v1alpha1.ReasonBackupWaits},
		"nobody has looked yet": {scopetest.Group(scopetest.Running, withProfile(nil)), func(w *world) { w.facts.G.Sites = nil }, v1alpha1.BackupPending, v1alpha1.ReasonNoBackupSource},
		"no site has data":      {scopetest.Group(withProfile(nil)), nil, v1alpha1.BackupPending, v1alpha1.ReasonNoBackupSource},
		"it is too late":        {scopetest.Group(withProfile(nil)), func(w *world) { w.now = began.Add(2 * time.Hour) }, v1alpha1.BackupFailed, v1alpha1.ReasonBackupTooLate},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, tc.group, order("monday"))
			if tc.change != nil {
				tc.change(w)
			}
			w.step("monday")
			if st := w.get("monday").Status; st.Phase != tc.phase || st.Reason != tc.want || st.Message == "" || w.jobOf("backup-monday") != nil {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A backup that has failed waits for nothing, and must not say so.
func TestTheProfileGoesUnderARunningBackup(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running), order("monday", running))
	w.put(w.madeJob(w.get("monday"), 1))
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupFailed || st.Reason != v1alpha1.ReasonBackupProfileMissing || strings.Contains(st.Message, "waits") {
		t.Errorf("%+v", st)
	}
}

// One kubectl apply may make a group and its backup, and the operator may see the backup first.
func TestABackupWaitsForItsGroup(t *testing.T) {
	w := newWorld(t, nil, order("monday"))
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupPending || !strings.Contains(st.Message, "waits for it until "+began.Add(defaultDeadline).UTC().Format(time.RFC3339)) {
		t.Errorf("before the group: %+v", st)
	}
	if len(w.said.List) != 0 {
		t.Errorf("told %v", w.said.List)
	}
	if err := w.c.Create(w.ctx, scopetest.Group(scopetest.Running, withProfile(nil))); err != nil {
		t.Fatal(err)
	}
	w.step("monday")
	if st := w.get("monday").Status; st.Phase != v1alpha1.BackupRunning {
		t.Errorf("with the group: %+v", st)
	}
}

func deleted(mb *v1alpha1.MysqlBackup) { mb.DeletionTimestamp = &metav1.Time{Time: began} }

func TestADeletedBackupIsRemovedFromTheStorage(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", completedAt(began), deleted))
	w.step("monday")
	if did := w.took(); did != "status Deleting, create delete-monday" {
		t.Errorf("did %s", did)
	}
	w.step("monday")
	if w.gone("monday") {
		t.Fatal("it goes before the storage has let go of it")
	}
	w.ends("delete-monday", 0, terms.Result{Reason: terms.Succeeded, Backup: "monday", Removed: 1})
	w.step("monday")
	if !w.gone("monday") {
		t.Error("it stays although nothing is left of it")
	}
}

func TestWhatStaysInTheStorage(t *testing.T) {
	keep := func(mb *v1alpha1.MysqlBackup) {
		mb.Annotations = map[string]string{v1alpha1.AnnotationKeepArtifact: "true"}
	}
	full := scopetest.Group(scopetest.Running, withProfile(nil))
	terminating := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("jobs").GroupResource(), "delete-monday", errAway)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for reason, tc := range map[string]struct {
		group  *v1alpha1.MysqlFailoverGroup
		mb     *v1alpha1.MysqlBackup
		change func(*world)
		told   int
	}{
		"the annotation says so":   {full, order("monday", completedAt(began), deleted, keep), nil, 1},
		"nobody knows the storage": {nil, order("monday", completedAt(began), deleted), nil, 1},
		"the profile has another storage now": {full, order("monday", completedAt(began), deleted, func(mb *v1alpha1.MysqlBackup) {
			mb.Status.Location = "s3://former/shop/orders"
		}), nil, 1},
		"nothing was ever there":               {full, order("monday", deleted), nil, 0},
		"the namespace goes, the bucket stays": {full, order("monday", completedAt(began), deleted), func(w *world) { w.createFails = terminating }, 1},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, tc.group, tc.mb)
			if tc.change != nil {
				tc.change(w)
			}
			w.step("monday")
			if !w.gone("monday") || w.jobOf("delete-monday") != nil {
				t.Errorf("it stays: %+v", w.get("monday").Status)
			}
			if got := w.said.Count(v1alpha1.ReasonBackupArtifactKept); got != tc.told {
				t.Errorf("told %d times: %v", got, w.said.List)
			}
		})
	}
}

// A verification has no sessions on a site: those that are there are another backup's.
func TestAVerificationThatIsStoppedEndsNoSessions(t *testing.T) {
	mb := order("monday", completedAt(began), deleted)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.taskJob(mb, "verify-monday", v1alpha1.TaskVerify, 1))
	w.step("monday")
	if did := w.took(); did != "status Deleting, delete verify-monday" {
		t.Errorf("did %s", did)
	}
}

func TestCredentialsThatMayNotDelete(t *testing.T) {
	mb := order("monday", completedAt(began), deleted)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.taskJob(mb, "delete-monday", v1alpha1.TaskDelete, 0))
	w.ends("delete-monday", terms.ExitStorage, terms.Result{Reason: terms.Reason(bucket.NoDeleteRight), Backup: "monday"})
	w.step("monday")
	if !w.gone("monday") || w.said.Count(v1alpha1.ReasonBackupArtifactKept) != 1 {
		t.Errorf("credentials without the right to delete are allowed: %v", w.said.List)
	}
}

func TestARemovalThatFailedIsTriedAgain(t *testing.T) {
	mb := order("monday", completedAt(began), deleted)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.put(w.taskJob(mb, "delete-monday", v1alpha1.TaskDelete, 0))
	w.ends("delete-monday", terms.ExitStorage, terms.Result{Reason: terms.Reason(bucket.Unreachable), Backup: "monday"})
	w.step("monday")
	if w.gone("monday") || w.jobOf("delete-monday") != nil {
		t.Fatal("the Job that failed goes, and the backup stays")
	}
	w.step("monday")
	if w.jobOf("delete-monday") == nil || w.said.Count(v1alpha1.ReasonBackupRemovalFailed) != 1 {
		t.Errorf("it is tried again, and told: %v", w.said.List)
	}
}

// What is being made may store something until it has ended.
func TestARemovalWaitsForThePodThatMakesTheBackup(t *testing.T) {
	mb := order("monday", running, deleted)
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	made := w.madeJob(mb, 1)
	w.put(made)
	pod := podOf(made, 0, "", w.now)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	w.put(pod)
	w.step("monday")
	if did := w.took(); did != "status Deleting, end sessions on c, delete backup-monday" {
		t.Errorf("did %s", did)
	}
	w.step("monday")
	if w.jobOf("delete-monday") != nil {
		t.Error("it does not wait")
	}
	if err := w.c.Delete(w.ctx, pod); err != nil {
		t.Fatal(err)
	}
	w.step("monday")
	if w.jobOf("delete-monday") == nil {
		t.Error("it waits for ever")
	}
}

// TestTwoHundredGroupsAtTheSameMinute: however many are due, only so many are made, one of each group, the oldest first; whoever cannot start
// keeps nobody waiting.
func TestTwoHundredGroupsAtTheSameMinute(t *testing.T) {
	const groups, most = 200, 7
	w := newWorld(t, nil)
	for i := range groups {
		g := scopetest.Group(scopetest.Running, withProfile(nil))
		g.Name = fmt.Sprintf("group-%d", i)
		g.UID = ""
		status := g.Status
		if i == 0 {
			status.Sites = nil // nothing can be copied of the one that waits longest
		}
		if err := w.c.Create(w.ctx, g); err != nil {
			t.Fatal(err)
		}
		g.Status = status
		if err := w.c.Status().Update(w.ctx, g); err != nil {
			t.Fatal(err)
		}
		w.put(order(fmt.Sprintf("b%d", i), func(mb *v1alpha1.MysqlBackup) { mb.Spec.Group = g.Name }))
	}
	w.b = w.shell(most)
	ended := map[string]bool{}
	for range 2 {
		for name := range ended {
			w.step(name)
		}
		for i := range groups {
			if name := fmt.Sprintf("b%d", i); !ended[name] {
				w.step(name)
			}
		}
		var open v1alpha1.MysqlBackupList
		if err := w.c.List(w.ctx, &open, client.MatchingFields{indexOpen: isOpen}); err != nil {
			t.Fatal(err)
		}
		ran, of := 0, map[string]bool{}
		for _, mb := range open.Items {
			if mb.Status.Phase == v1alpha1.BackupRunning {
				ran++
				of[mb.Spec.Group], ended[mb.Name] = true, true
				w.ends(v1alpha1.BackupJob(mb.Name), 0, good(mb.Name))
			}
		}
		if ran != most || len(of) != most {
			t.Fatalf("%d of %d groups run at a time, want %d", ran, len(of), most)
		}
	}
	if len(ended) != 2*most {
		t.Errorf("%d were made, want %d: a turn goes to another once it is free", len(ended), 2*most)
	}
	if st := w.get("b0").Status; st.Reason != v1alpha1.ReasonNoBackupSource {
		t.Errorf("%+v", st)
	}
}

// What the cache does not show yet counts all the same.
func TestTurnsAreCountedBeforeTheCacheShowsThem(t *testing.T) {
	var open []v1alpha1.MysqlBackup
	for i := range 5 {
		mb := order(fmt.Sprintf("b%d", i), func(mb *v1alpha1.MysqlBackup) { mb.Spec.Group, mb.ResourceVersion = fmt.Sprint("g", i), "1" })
		open = append(open, *mb)
	}
	var turns turns
	taken := 0
	for i := range open {
		if turns.take(open, &open[i], 2) {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("%d start, want 2", taken)
	}
	turns.release(client.ObjectKeyFromObject(&open[0]))
	if !turns.take(open, &open[0], 2) {
		t.Error("a turn that was given back is lost")
	}
}
