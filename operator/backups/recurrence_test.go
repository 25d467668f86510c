// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// What was due by another schedule, or while the schedule was suspended, is not missing: nobody is to be woken because a schedule was resumed. What is
// due by the present one and is not there is.
func TestAChangedScheduleHasMissedNothing(t *testing.T) {
	weekAgo := began.Add(-7 * 24 * time.Hour)
	verified := func(mb *v1alpha1.MysqlBackup) {
		mb.Status.Verified = &v1alpha1.BackupVerified{Outcome: v1alpha1.BackupPassed, At: timeOf(weekAgo.Add(time.Hour))}
	}
	schedule := func(cron string, suspended bool) func(*v1alpha1.BackupProfile) {
		return func(p *v1alpha1.BackupProfile) {
			nightly(p)
			p.Schedule.Cron, p.Schedule.Suspend = cron, suspended
			p.Verification = &v1alpha1.BackupVerification{Cron: cron}
			if suspended {
				p.Verification.Cron = "0 0 1 1 *"
			}
		}
	}
	for how, before := range map[string]func(*v1alpha1.BackupProfile){
		"resumed": schedule("0 2 * * *", true), "made more frequent": schedule("0 2 1 1 *", false),
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(before)), order("old", completedAt(weekAgo), verified))
			w.group()
			if c := w.condition(v1alpha1.ConditionBackupReady); c.Status != metav1.ConditionTrue {
				t.Fatalf("before: %+v", c)
			}
			w.now = began.Add(time.Minute)
			g := &v1alpha1.MysqlFailoverGroup{}
			if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
				t.Fatal(err)
			}
			schedule("0 2 * * *", false)(&g.Spec.Backup.Profiles[0])
			if err := w.c.Update(w.ctx, g); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				w.group()
			}
			for _, kind := range []string{v1alpha1.ConditionBackupReady, v1alpha1.ConditionBackupVerified} {
				if c := w.condition(kind); c.Status != metav1.ConditionTrue {
					t.Errorf("changed just now: %+v", c)
				}
			}
			if st := w.status(); !st.ScheduleSince.Equal(timeOf(w.now)) || !st.VerificationSince.Equal(timeOf(w.now)) || w.said.Count(v1alpha1.ReasonBackupMissed) != 0 || w.count() != 1 {
				t.Errorf("%+v, %d backups, told %v", st, w.count(), w.said.List)
			}
			w.now = w.now.Add(72 * time.Hour)
			w.group()
			if c := w.condition(v1alpha1.ConditionBackupReady); c.Reason != string(v1alpha1.ReasonBackupOverdue) {
				t.Errorf("three days later: %+v", c)
			}
			if c := w.condition(v1alpha1.ConditionBackupVerified); c.Reason != string(v1alpha1.ReasonBackupNotVerified) {
				t.Errorf("three days later: %+v", c)
			}
		})
	}
}

// The status of an older operator does not say by which schedule it was: that of now counts as the one that it always was.
func TestTheRecurrenceOfAnOlderOperator(t *testing.T) {
	last := timeOf(began.Add(-time.Hour))
	if got := (recurrence{last: last}).by("0 2 * * * UTC", time.Hour, began); got.since != nil || got.last != last || got.schedule != "0 2 * * * UTC" {
		t.Errorf("%+v", got)
	}
	if got := (recurrence{schedule: "a", since: last, last: last}).by("", time.Hour, began); got != (recurrence{}) {
		t.Errorf("no schedule any more: %+v", got)
	}
}

// A change between the time of a backup and its start, which is spread, takes that backup away only if the new schedule does not have it. A schedule
// that was suspended makes up for nothing.
func TestAChangedScheduleMakesWhatIsDue(t *testing.T) {
	hourAgo, longAgo, ahead := began.Add(-time.Hour), began.Add(-100*time.Hour), began.Add(100*time.Hour)
	for how, tc := range map[string]struct {
		was         recurrence
		since, last time.Time
	}{
		"changed":                   {recurrence{schedule: "a", since: timeOf(longAgo), last: timeOf(began.Add(-time.Minute))}, began, began.Add(-time.Minute)},
		"changed after a long time": {recurrence{schedule: "a", since: timeOf(longAgo), last: timeOf(longAgo)}, began, hourAgo},
		"resumed":                   {recurrence{schedule: "b suspended", since: timeOf(longAgo), last: timeOf(hourAgo)}, began, began},
		"the same":                  {recurrence{schedule: "b", since: timeOf(longAgo), last: timeOf(hourAgo)}, longAgo, hourAgo},
		"a clock that was ahead":    {recurrence{schedule: "b", since: timeOf(ahead), last: timeOf(hourAgo)}, began, hourAgo},
	} {
		if got := tc.was.by("b", time.Hour, began); !got.since.Equal(timeOf(tc.since)) || !got.last.Equal(timeOf(tc.last)) || got.schedule != "b" {
			t.Errorf("%s: since %s, last %s", how, got.since, got.last)
		}
	}
}

// A profile that waited for its first backup while it was suspended waits for it again once it is resumed, and alarms nobody before it is due.
func TestAResumedScheduleWaitsForItsFirstBackup(t *testing.T) {
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(p *v1alpha1.BackupProfile) { nightly(p); p.Schedule.Suspend = true })))
	w.group()
	if c := w.condition(v1alpha1.ConditionBackupReady); c.Reason != string(v1alpha1.ReasonNoBackupYet) || c.Status != metav1.ConditionFalse {
		t.Fatalf("suspended: %+v", c)
	}
	w.now = began.Add(time.Minute)
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.ctx, scopetest.Key, g); err != nil {
		t.Fatal(err)
	}
	g.Spec.Backup.Profiles[0].Schedule.Suspend = false
	if err := w.c.Update(w.ctx, g); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.group()
		if c := w.condition(v1alpha1.ConditionBackupReady); c.Reason != string(v1alpha1.ReasonFirstBackupScheduled) {
			t.Errorf("resumed: %+v", c)
		}
	}
}
