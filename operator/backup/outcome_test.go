// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestNotBefore(t *testing.T) {
	started := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		attempts int32
		last     Class
		want     time.Duration
	}{
		"never tried":       {0, "", 0},
		"first":             {1, ClassStorage, 15 * time.Second},
		"second":            {2, ClassStorage, 30 * time.Second},
		"third":             {3, ClassSource, time.Minute},
		"no more than that": {40, ClassSource, 10 * time.Minute},
		"gave way":          {3, ClassYielded, 0},
	} {
		if got := NotBefore(started, tc.attempts, tc.last).Sub(started); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What ends an attempt for good and what may be gone the next time; a code that nobody gave a class is not waited for.
func TestClassOf(t *testing.T) {
	passes := []Class{ClassStorage, ClassSource, ClassYielded, ClassLost}
	for code, want := range map[int]Class{
		0: ClassSucceeded, 1: ClassOther, 2: ClassConfig, 10: ClassStorage, 11: ClassSource, 12: ClassYielded, 13: ClassTimedOut, 14: ClassRefused, 15: ClassDamaged,
		3: ClassOther, -1: ClassOther, 137: ClassOther,
	} {
		if got := ClassOf(code); got != want {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
	for _, c := range []Class{
		"", ClassSucceeded, ClassOther, ClassConfig, ClassStorage, ClassSource, ClassYielded, ClassTimedOut, ClassRefused, ClassDamaged, ClassLost,
	} {
		if got := c.Passes(); got != slices.Contains(passes, c) {
			t.Errorf("%q passes: %t", c, got)
		}
	}
}

func TestHealth(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	cron, err := ParseCron("0 2 * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	daily := Schedule{Cron: cron, Deadline: time.Hour}
	justDue := daily
	if justDue.Cron, err = ParseCron("55 11 * * *", time.UTC); err != nil {
		t.Fatal(err)
	}
	hurried := justDue
	hurried.Deadline = 2 * time.Minute
	made := func(ago time.Duration) []Artifact { return []Artifact{{Name: "b", FinishedAt: now.Add(-ago)}} }
	for name, tc := range map[string]struct {
		h    Health
		want v1alpha1.Reason
	}{
		"made last night":                  {Health{All: made(10 * time.Hour), HasSchedule: true, Schedule: daily, Timeout: time.Hour}, v1alpha1.ReasonAsExpected},
		"the one of last night is missing": {Health{All: made(34 * time.Hour), HasSchedule: true, Schedule: daily, Timeout: time.Hour}, v1alpha1.ReasonBackupOverdue},
		"one of the future made up for nothing": {
			Health{All: append(made(34*time.Hour), made(-900*time.Hour)...), HasSchedule: true, Schedule: daily, Timeout: time.Hour}, v1alpha1.ReasonBackupOverdue,
		},
		"it may still come":            {Health{All: made(34 * time.Hour), HasSchedule: true, Schedule: daily, Timeout: 12 * time.Hour}, v1alpha1.ReasonAsExpected},
		"suspended":                    {Health{All: made(34 * time.Hour), HasSchedule: true, Schedule: Schedule{Cron: cron, Suspend: true}}, v1alpha1.ReasonAsExpected},
		"the schedule is new":          {Health{HasSchedule: true, Schedule: daily, Timeout: time.Hour, Since: now.Add(-time.Hour)}, v1alpha1.ReasonFirstBackupScheduled},
		"the first one may start late": {Health{HasSchedule: true, Schedule: justDue, Timeout: 12 * time.Hour, Since: now.Add(-time.Hour)}, v1alpha1.ReasonFirstBackupScheduled},
		"the first one is missed after a short deadline": {Health{HasSchedule: true, Schedule: hurried, Timeout: 12 * time.Hour, Since: now.Add(-time.Hour)}, v1alpha1.ReasonNoBackupYet},
		"one was missed, and one is made":                {Health{HasSchedule: true, Schedule: daily, Since: now.Add(-time.Hour), Missed: true, Running: true}, v1alpha1.ReasonNoBackupYet},
		"the first one is missed":                        {Health{HasSchedule: true, Schedule: daily, Timeout: 12 * time.Hour, Since: now.Add(-20 * time.Hour)}, v1alpha1.ReasonNoBackupYet},
		"the first one is made":                          {Health{HasSchedule: true, Schedule: daily, Timeout: time.Hour, Since: now.Add(-time.Hour), Running: true}, v1alpha1.ReasonBackupRunning},
		"the first one is made by hand":                  {Health{Running: true}, v1alpha1.ReasonBackupRunning},
		"one was missed, and the next is not due":        {Health{HasSchedule: true, Schedule: daily, Since: now.Add(-time.Hour), Missed: true}, v1alpha1.ReasonNoBackupYet},
		"all that the schedule made are gone":            {Health{HasSchedule: true, Schedule: daily, Timeout: 12 * time.Hour, Since: now.Add(-10 * time.Hour)}, v1alpha1.ReasonNoBackupYet},
		"the schedule is new, and suspended":             {Health{HasSchedule: true, Schedule: Schedule{Cron: cron, Suspend: true}, Since: now}, v1alpha1.ReasonNoBackupYet},
		"the schedule is new, and one failed":            {Health{HasSchedule: true, Schedule: daily, Since: now, FailedAt: now}, v1alpha1.ReasonBackupFailed},
		"the schedule is old, and no backup": {
			Health{HasSchedule: true, Schedule: daily, Timeout: time.Hour, Since: now.Add(-48 * time.Hour)}, v1alpha1.ReasonBackupOverdue,
		},
		"on demand, and none":            {Health{}, v1alpha1.ReasonNoBackupYet},
		"failed since":                   {Health{All: made(10 * time.Hour), FailedAt: now}, v1alpha1.ReasonBackupFailed},
		"failed before the last success": {Health{All: made(10 * time.Hour), FailedAt: now.Add(-11 * time.Hour)}, v1alpha1.ReasonAsExpected},
	} {
		if got := tc.h.Ready(now); got.Reason != tc.want || got.OK != (tc.want == v1alpha1.ReasonAsExpected) || got.Awaited != (tc.want == v1alpha1.ReasonFirstBackupScheduled || tc.want == v1alpha1.ReasonBackupRunning) {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
	if got := (Health{}).Ready(now); strings.Contains(got.Message, "wait") {
		t.Errorf("nothing comes without a schedule, and it says %q", got.Message)
	}
	if got := (Health{HasSchedule: true, Schedule: daily, Since: now}).Ready(now); got.Message != "the first backup is due at "+daily.Cron.Next(now).Format(time.RFC3339) {
		t.Errorf("one comes by the schedule, and it says %q", got.Message)
	}
	if got := (Health{}).Verified(now); got.OK || !got.Awaited {
		t.Errorf("there is nothing to verify, and it says %+v", got)
	}
	if got := (Health{All: made(time.Hour)}).Verified(now); got.Message != "no verification has passed yet" {
		t.Errorf("none waits, and it says %q", got.Message)
	}
	tried := []Artifact{{Name: "b", FinishedAt: now.Add(-time.Hour), Tried: true, Verified: true}}
	untried := append([]Artifact{{Name: "n1", FinishedAt: now}, {Name: "n2", FinishedAt: now}, {Name: "n3", FinishedAt: now}}, tried...)
	for name, tc := range map[string]struct {
		h    Health
		want v1alpha1.Reason
	}{
		"never":                      {Health{All: made(time.Hour)}, v1alpha1.ReasonBackupNotVerified},
		"passed, and the next waits": {Health{All: tried, VerifiedAt: now, Verification: Verification{AfterEvery: 1}, Waits: "the storage is away"}, v1alpha1.ReasonBackupVerified},
		"passed":                     {Health{All: tried, VerifiedAt: now, Verification: Verification{AfterEvery: 1}}, v1alpha1.ReasonBackupVerified},
		"not restorable":             {Health{All: tried, VerifiedAt: now, NotRestorable: "b"}, v1alpha1.ReasonBackupNotRestorable},
		"too many since then":        {Health{All: untried, VerifiedAt: now, Verification: Verification{AfterEvery: 1}}, v1alpha1.ReasonBackupNotVerified},
		"one of the future stands for none": {
			Health{All: append([]Artifact{{Name: "f", FinishedAt: now.Add(time.Hour), Tried: true}}, untried...), VerifiedAt: now, Verification: Verification{AfterEvery: 1}}, v1alpha1.ReasonBackupNotVerified,
		},
		"not too many yet": {Health{All: untried, VerifiedAt: now, Verification: Verification{AfterEvery: 2}}, v1alpha1.ReasonBackupVerified},
		"the cron passed":  {Health{All: tried, VerifiedAt: now.Add(-72 * time.Hour), Verification: Verification{Cron: cron, HasCron: true}}, v1alpha1.ReasonBackupNotVerified},
		"those before it do not count": {
			Health{All: append(made(2*time.Hour), append(made(3*time.Hour), untried...)...), VerifiedAt: now, Verification: Verification{AfterEvery: 2}}, v1alpha1.ReasonBackupVerified,
		},
		"the cron alone counts": {Health{All: untried, VerifiedAt: now, Verification: Verification{Cron: cron, HasCron: true}}, v1alpha1.ReasonBackupVerified},
		"the cron is not over": {
			Health{All: tried, VerifiedAt: now.Add(-20 * time.Hour), Verification: Verification{Cron: cron, HasCron: true}}, v1alpha1.ReasonBackupVerified,
		},
	} {
		if got := tc.h.Verified(now); got.Reason != tc.want || got.OK != (tc.want == v1alpha1.ReasonBackupVerified) {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
		tc.h.Waits = "the storage is away"
		if got := tc.h.Verified(now); strings.Contains(got.Message, tc.h.Waits) != (tc.want == v1alpha1.ReasonBackupNotVerified) {
			t.Errorf("%s, and one waits: %+v", name, got)
		}
	}
}
