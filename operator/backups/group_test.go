// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func nightly(p *v1alpha1.BackupProfile) {
	p.Schedule = &v1alpha1.BackupSchedule{Cron: "0 2 * * *", TimeZone: "UTC", StartingDeadline: metav1.Duration{Duration: time.Hour}}
}

func (w *world) status() v1alpha1.BackupProfileStatus {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
		w.t.Fatal(err)
	}
	if g.Status.Backup == nil || len(g.Status.Backup.Profiles) == 0 {
		return v1alpha1.BackupProfileStatus{}
	}
	return g.Status.Backup.Profiles[0]
}

func (w *world) condition(kind string) metav1.Condition {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
		w.t.Fatal(err)
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) count() int {
	w.t.Helper()
	var all v1alpha1.MysqlBackupList
	if err := w.c.List(w.ctx, &all); err != nil {
		w.t.Fatal(err)
	}
	return len(all.Items)
}

func TestAScheduleMakesOneBackupOfATime(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nightly)))
	w.group()
	if w.count() != 0 || w.status().LastScheduled == nil || w.status().Next == nil {
		t.Fatalf("a schedule that came to be now has missed nothing: %+v", w.status())
	}
	w.now = time.Date(2026, 11, 24, 2, 15, 0, 0, time.UTC) // whatever the spread is
	w.group()
	mb := w.get("orders-nightly-20261124-0200")
	if mb.Annotations[v1alpha1.AnnotationScheduledAt] != "2026-11-24T02:00:00Z" || mb.Spec.Group != "orders" || mb.Spec.Profile != "nightly" {
		t.Errorf("%+v", mb)
	}
	for range 3 {
		w.group()
	}
	if w.count() != 1 {
		t.Errorf("%d backups of one time", w.count())
	}
	// What was written of it is lost: its name is the same again.
	w.step(mb.Name)
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
		t.Fatal(err)
	}
	g.Status.Backup.Profiles[0].LastScheduled = timeOf(began)
	if err := w.c.Status().Update(w.ctx, g); err != nil {
		t.Fatal(err)
	}
	w.group()
	if w.count() != 1 {
		t.Errorf("%d backups of one time", w.count())
	}
}

// Profile b-c of group a and profile c of group a-b have one name for their backups: neither goes without for it.
func TestAScheduleWhoseNameAnotherGroupHas(t *testing.T) {
	const name = "orders-nightly-20261124-0200"
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nightly)), order(name, func(mb *v1alpha1.MysqlBackup) { mb.Spec.Group = "ord" }))
	w.group()
	w.now = time.Date(2026, 11, 24, 2, 15, 0, 0, time.UTC)
	for range 3 {
		w.group()
	}
	var all v1alpha1.MysqlBackupList
	if err := w.c.List(w.ctx, &all); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, mb := range all.Items {
		if mb.Spec.Group == "orders" && mb.Spec.Profile == "nightly" && mb.Annotations[v1alpha1.AnnotationScheduledAt] == "2026-11-24T02:00:00Z" {
			ours++
		}
	}
	if ours != 1 || len(all.Items) != 2 || w.get(name).Spec.Group != "ord" {
		t.Errorf("%d backups of the group, %d in all", ours, len(all.Items))
	}
}

func TestAScheduleThatMakesNone(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.BackupProfile)
		image  string
		want   v1alpha1.Reason
	}{
		"suspended":          {func(p *v1alpha1.BackupProfile) { nightly(p); p.Schedule.Suspend = true }, "i", v1alpha1.ReasonNoBackupYet},
		"without an image":   {nightly, "", v1alpha1.ReasonBackupImageMissing},
		"a zone of nowhere":  {func(p *v1alpha1.BackupProfile) { nightly(p); p.Schedule.TimeZone = "Mars/Base" }, "i", v1alpha1.ReasonBackupScheduleUnusable},
		"a day that is none": {func(p *v1alpha1.BackupProfile) { nightly(p); p.Schedule.Cron = "0 0 30 2 *" }, "i", v1alpha1.ReasonBackupScheduleUnusable},
		"nobody was there":   {nightly, "i", v1alpha1.ReasonNoBackupYet},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(tc.change)))
			w.b.Install.BackupImage = tc.image
			w.group()
			w.now = began.Add(30 * time.Minute)
			if reason == "nobody was there" {
				w.now = began.Add(90 * time.Minute)
				w.group() // the next time of the schedule does not hide the one that was missed
			}
			w.group()
			c := w.condition(v1alpha1.ConditionBackupReady)
			if w.count() != 0 || c.Status != metav1.ConditionFalse || c.Reason != string(tc.want) || w.status().Reason != tc.want {
				t.Errorf("%d backups, %+v", w.count(), c)
			}
			if missed := w.said.Count(v1alpha1.ReasonBackupMissed); (missed == 1) != (reason == "nobody was there") {
				t.Errorf("told: %v", w.said.List)
			}
		})
	}
}

func TestWhatStatusSaysOfAProfile(t *testing.T) {
	old := order("old", completedAt(began.Add(-48*time.Hour)), func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Verified = &v1alpha1.BackupVerified{At: timeOf(began.Add(-47 * time.Hour)), Outcome: v1alpha1.BackupPassed, RestoreSeconds: 30}
	})
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Verification = &v1alpha1.BackupVerification{AfterEvery: 3}
	})), old, order("new", completedAt(began.Add(-24*time.Hour))), order("now", running))
	w.group()
	st := w.status()
	if st.Backups != 2 || st.Bytes != 200 || st.LastBackup != "new" || st.Running != "now" || st.LastVerified != "old" || st.RestoreSeconds != 30 || st.Reason != "" {
		t.Errorf("%+v", st)
	}
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	if c := w.condition(v1alpha1.ConditionBackupVerified); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	before := w.took()
	w.group()
	if did := w.took(); did != "" {
		t.Errorf("nothing new is written again: %q after %q", did, before)
	}
}

// A new group whose first backup is not due, or is being made, alarms no person, and is not ready for a script either. What is wrong with another
// profile comes first.
func TestAFirstBackupThatIsNotDue(t *testing.T) {
	first := func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup.Profiles[0].Schedule = &v1alpha1.BackupSchedule{Cron: "0 2 * * *"}
		g.Spec.Backup.Profiles[0].Verification = &v1alpha1.BackupVerification{AfterEvery: 3}
	}
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil), first))
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionUnknown || c.Reason != string(v1alpha1.ReasonFirstBackupScheduled) {
		t.Errorf("%+v", c)
	}
	if c := w.condition(v1alpha1.ConditionBackupVerified); c.Status != metav1.ConditionUnknown {
		t.Errorf("%+v", c)
	}
	g := scopetest.Group(scopetest.Running)
	if st, ready := w.status(), testutil.ToFloat64(metricReady.WithLabelValues(g.Namespace, g.Name, "nightly")); st.Reason != "" || ready != 1 {
		t.Errorf("%+v, metric %v", st, ready)
	}

	w.now = w.status().Next.Time
	w.group()
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); w.count() != 1 || c.Status != metav1.ConditionUnknown || c.Reason != string(v1alpha1.ReasonBackupRunning) {
		t.Errorf("%d backups, %+v", w.count(), c)
	}

	other := func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Backup.Profiles = append(g.Spec.Backup.Profiles, v1alpha1.BackupProfile{Name: "other", Storage: g.Spec.Backup.Profiles[0].Storage})
	}
	w = newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil), first, other))
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonNoBackupYet) {
		t.Errorf("%+v", c)
	}
}

func TestConditionsTellOfFailures(t *testing.T) {
	// One that failed by a clock that was ahead does not hide what failed since.
	ahead := order("ahead", running, func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Phase, mb.Status.FinishedAt, mb.Status.Message = v1alpha1.BackupFailed, timeOf(began.Add(900*time.Hour)), "by the wrong clock"
	})
	failed := order("failed", running, func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Phase, mb.Status.FinishedAt, mb.Status.Message = v1alpha1.BackupFailed, timeOf(began), "the bucket is full"
	})
	bad := order("bad", completedAt(began.Add(-time.Hour)), func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Verified = &v1alpha1.BackupVerified{At: timeOf(began), Outcome: v1alpha1.BackupNotRestorable, Message: "Differs: a row is missing"}
	})
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Verification = &v1alpha1.BackupVerification{AfterEvery: 1}
	})), failed, bad, ahead)
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Reason != string(v1alpha1.ReasonBackupFailed) || !strings.Contains(c.Message, "the bucket is full") {
		t.Errorf("%+v", c)
	}
	if c := w.condition(v1alpha1.ConditionBackupVerified); c.Reason != string(v1alpha1.ReasonBackupNotRestorable) || !strings.Contains(c.Message, "a row is missing") {
		t.Errorf("%+v", c)
	}
}

func TestRetentionRemovesWhatNoRuleKeeps(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Retention = &v1alpha1.BackupRetention{Count: 2, MinCount: 1}
	})))
	for i := range 4 {
		w.put(order(fmt.Sprintf("b%d", i), completedAt(began.Add(time.Duration(i-10)*time.Hour))))
	}
	w.put(order("asked", completedAt(began.Add(-20*time.Hour)), func(mb *v1alpha1.MysqlBackup) {
		mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "now"}
	}))
	w.group()
	for name, want := range map[string]bool{"b0": true, "b1": true, "b2": false, "b3": false, "asked": false} {
		if got := w.get(name).DeletionTimestamp != nil; got != want {
			t.Errorf("%s goes: %v, want %v", name, got, want)
		}
	}
}

// What the archive has come to is applied to a backup before it: while the archive is behind, that one stays.
func TestTheBackupThatTheArchiveBuildsUponIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup)
		kept   bool
	}{
		"behind":           {func(*v1alpha1.MysqlFailoverGroup) {}, true},
		"off":              {func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.PITR.Enabled = false }, false},
		"another profile":  {func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup.PITR.Profile = "weekly" }, false},
		"up to date":       {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup.PITR.Latest = timeOf(began) }, false},
		"nothing is known": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup.PITR = nil }, false},
	} {
		w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
			p.Retention = &v1alpha1.BackupRetention{Count: 2, MinCount: 1}
		}), func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Backup.PITR = &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}
			g.Status.Backup = &v1alpha1.BackupStatus{PITR: &v1alpha1.PITRStatus{Latest: timeOf(began.Add(-8*time.Hour - time.Minute))}}
			tc.change(g)
		}))
		for i := range 4 {
			w.put(order(fmt.Sprintf("b%d", i), completedAt(began.Add(time.Duration(i-10)*time.Hour))))
		}
		w.group()
		if got := w.get("b1").DeletionTimestamp == nil; got != tc.kept || w.get("b0").DeletionTimestamp == nil {
			t.Errorf("%s: b1 stays: %t", name, got)
		}
	}
}

func TestABackupThatIsRestoredIsKept(t *testing.T) {
	other := scopetest.Group()
	other.Name, other.UID = "copy", "copy-uid"
	other.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{From: &v1alpha1.RestoreFrom{Group: "orders"}, Backup: "b0", Profile: "nightly"}
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Retention = &v1alpha1.BackupRetention{Count: 1, MinCount: 1}
	})), other)
	for i := range 3 {
		w.put(order(fmt.Sprintf("b%d", i), completedAt(began.Add(time.Duration(i-10)*time.Hour))))
	}
	w.group()
	if w.get("b0").DeletionTimestamp != nil || w.get("b1").DeletionTimestamp == nil {
		t.Error("b0 is being restored, and b1 is not")
	}
}

func TestFailedBackupsOfAScheduleDoNotPileUp(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nightly)))
	for i := range failedMax + 3 {
		w.put(order(fmt.Sprintf("f%02d", i), func(mb *v1alpha1.MysqlBackup) {
			running(mb)
			mb.Status.Phase, mb.Status.FinishedAt = v1alpha1.BackupFailed, timeOf(began)
			mb.Annotations = map[string]string{v1alpha1.AnnotationScheduledAt: "2026-11-01T02:00:00Z"}
		}))
	}
	w.group()
	left := 0
	for i := range failedMax + 3 {
		if w.get(fmt.Sprintf("f%02d", i)).DeletionTimestamp == nil {
			left++
		}
	}
	if left != failedMax {
		t.Errorf("%d stay, want %d", left, failedMax)
	}
}

func TestVerification(t *testing.T) {
	reached := began.Add(-time.Minute)
	passed := terms.Result{Reason: terms.Succeeded, Backup: "monday", RestoreSeconds: 12.5, ReplayedTo: &reached}
	for reason, tc := range map[string]struct {
		code   int
		result any
		want   v1alpha1.BackupOutcome
	}{
		"it is what it should be":  {0, passed, v1alpha1.BackupPassed},
		"it is not":                {terms.ExitDamaged, terms.Result{Reason: terms.Differs, Message: "a row is missing", Backup: "monday"}, v1alpha1.BackupNotRestorable},
		"it cannot be opened":      {terms.ExitRefused, terms.Result{Reason: terms.WrongIdentity, Backup: "monday"}, v1alpha1.BackupNotRestorable},
		"it is another one's word": {0, terms.Result{Reason: terms.Succeeded, Backup: "tuesday"}, v1alpha1.BackupNotRestorable},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
				p.Verification = &v1alpha1.BackupVerification{AfterEvery: 1}
			})), order("monday", completedAt(began)))
			w.group()
			if w.get("monday").Annotations[v1alpha1.AnnotationVerifyBackup] == "" {
				t.Fatal("one that is due is not ordered")
			}
			w.step("monday")
			if w.jobOf("verify-monday") == nil {
				t.Fatal("it is not verified")
			}
			w.now = w.now.Add(time.Minute)
			w.ends("verify-monday", tc.code, tc.result)
			w.step("monday")
			mb := w.get("monday")
			if v := mb.Status.Verified; v == nil || v.Outcome != tc.want || mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" || w.jobOf("verify-monday") != nil {
				t.Errorf("%+v, %v", v, mb.Annotations)
			}
			if v := mb.Status.Verified; v != nil && (v.ReplayedTo != nil) != (tc.want == v1alpha1.BackupPassed) {
				t.Errorf("replayed to %s", v.ReplayedTo)
			}
			if mb.Status.Phase != v1alpha1.BackupCompleted {
				t.Error("what a verification finds does not make a backup another one")
			}
			if n := w.said.Count(v1alpha1.ReasonBackupVerified) + w.said.Count(v1alpha1.ReasonBackupNotRestorable); n != 1 {
				t.Errorf("told: %v", w.said.List)
			}
		})
	}
}

func TestASweepADay(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)))
	w.group()
	if w.jobOf("sweep-orders-nightly") != nil {
		t.Error("there is nothing to sweep where nothing was tried")
	}
	w.put(order("monday", completedAt(began)))
	for range 3 {
		w.group()
	}
	if w.jobOf("sweep-orders-nightly") == nil {
		t.Error("nothing is swept")
	}
}

// What a profile said last must alarm no person once it has left the specification, or is not verified any more. Its backups stay on show.
func TestAProfileThatLeftAlarmsNoPerson(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Verification = &v1alpha1.BackupVerification{AfterEvery: 3}
	})), order("monday", completedAt(began)))
	labels := []string{scopetest.Key.Namespace, scopetest.Key.Name, "nightly"}
	change := func(do func(*v1alpha1.BackupProfile)) {
		t.Helper()
		g := &v1alpha1.MysqlFailoverGroup{}
		if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
			t.Fatal(err)
		}
		do(&g.Spec.Backup.Profiles[0])
		if err := w.c.Update(w.ctx, g); err != nil {
			t.Fatal(err)
		}
		w.group()
	}
	w.group()
	change(func(p *v1alpha1.BackupProfile) { p.Verification = nil })
	if metricVerified.DeleteLabelValues(labels...) {
		t.Error("a profile without verification still says whether it is verified")
	}
	change(func(p *v1alpha1.BackupProfile) { p.Name = "other" })
	if metricReady.DeleteLabelValues(labels...) {
		t.Error("a profile that left still says whether it is ready")
	}
	if n := testutil.ToFloat64(metricCount.WithLabelValues(labels...)); n != 1 {
		t.Errorf("it has %v backups", n)
	}
}

func TestAGroupWithoutProfilesSaysNothing(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), order("monday", completedAt(began)))
	w.group()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
		t.Fatal(err)
	}
	g.Spec.Backup = nil
	if err := w.c.Update(w.ctx, g); err != nil {
		t.Fatal(err)
	}
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Type != "" {
		t.Errorf("%+v", c)
	}
	if st := w.status(); st.Name != "nightly" || st.Backups != 1 {
		t.Errorf("what is in the storage is still shown: %+v", st)
	}
}

// A profile that was made again with another storage: what lies in the old one is not verified, and never said to be bad.
func TestBackupsOfAnotherStorageAreLeftAlone(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) {
		p.Verification = &v1alpha1.BackupVerification{AfterEvery: 1}
	})), order("monday", completedAt(began), func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Location = "s3://other/shop/orders"
		mb.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "now"}
	}))
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonBackupElsewhere) {
		t.Errorf("condition %+v", c)
	}
	for range 3 {
		w.step("monday")
	}
	mb := w.get("monday")
	if mb.Status.Verified != nil || mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" || w.jobOf(v1alpha1.VerifyJob("monday")) != nil {
		t.Errorf("it was verified where nothing of it is: %+v, %v", mb.Status.Verified, mb.Annotations)
	}
	w.group()
	if mb := w.get("monday"); mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" {
		t.Error("its verification is due by the profile")
	}
}
