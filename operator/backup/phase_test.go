// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	pending   = v1alpha1.BackupPending
	runs      = v1alpha1.BackupRunning
	completed = v1alpha1.BackupCompleted
	failed    = v1alpha1.BackupFailed
	deleting  = v1alpha1.BackupDeleting
)

func TestPhases(t *testing.T) {
	tests := map[string]struct {
		facts  Facts
		phase  v1alpha1.BackupPhase
		action Action
		reason v1alpha1.Reason
	}{
		"it starts":                                {Facts{Phase: "", Profile: true, Turn: true, Site: "a", Job: NoJob}, runs, StartJob, v1alpha1.ReasonBackupRunning},
		"it waits for its turn":                    {Facts{Phase: pending, Profile: true, Site: "a", Job: NoJob}, pending, Wait, v1alpha1.ReasonBackupWaits},
		"it waits for a site":                      {Facts{Phase: pending, Profile: true, Turn: true, Job: NoJob}, pending, Wait, v1alpha1.ReasonNoBackupSource},
		"it waited for too long":                   {Facts{Phase: pending, Profile: true, Turn: true, Late: true, Site: "a", Job: NoJob}, failed, Wait, v1alpha1.ReasonBackupTooLate},
		"its storage is another now":               {Facts{Phase: pending, Profile: true, Turn: true, Moved: true, Site: "a", Job: NoJob}, failed, Wait, v1alpha1.ReasonBackupStorageChanged},
		"stored in a storage of before":            {Facts{Phase: pending, Profile: true, Stored: true, Moved: true, Job: NoJob}, completed, Wait, v1alpha1.ReasonBackupCompleted},
		"it has no profile":                        {Facts{Phase: "", Turn: true, Site: "a", Job: NoJob}, pending, Wait, v1alpha1.ReasonBackupProfileMissing},
		"it has had no profile for too long":       {Facts{Phase: pending, Late: true, Job: NoJob}, failed, Wait, v1alpha1.ReasonBackupProfileMissing},
		"the Job of the last attempt is left":      {Facts{Phase: pending, Profile: true, Turn: true, Site: "a", Job: JobRunning}, pending, StopJob, v1alpha1.ReasonBackupRetried},
		"found complete while it waits":            {Facts{Phase: pending, Profile: true, Stored: true, Job: NoJob}, completed, Wait, v1alpha1.ReasonBackupCompleted},
		"it runs":                                  {Facts{Phase: runs, Profile: true, Job: JobRunning}, runs, Wait, v1alpha1.ReasonBackupRunning},
		"it runs late":                             {Facts{Phase: runs, Profile: true, Job: JobRunning, Late: true}, runs, Wait, v1alpha1.ReasonBackupRunning},
		"it yields":                                {Facts{Phase: runs, Profile: true, Job: JobRunning, Yield: true}, pending, StopJob, v1alpha1.ReasonBackupYielded},
		"it takes too long":                        {Facts{Phase: runs, Profile: true, Job: JobRunning, Expired: true}, failed, StopJob, v1alpha1.ReasonBackupTimedOut},
		"its pod does not start":                   {Facts{Phase: runs, Profile: true, Job: JobRunning, Stuck: true}, pending, StopJob, v1alpha1.ReasonBackupRetried},
		"its profile goes":                         {Facts{Phase: runs, Job: JobRunning}, failed, StopJob, v1alpha1.ReasonBackupProfileMissing},
		"it is completed":                          {Facts{Phase: runs, Profile: true, Job: JobSucceeded, Stored: true}, completed, Wait, v1alpha1.ReasonBackupCompleted},
		"completed, and its Job failed after it":   {Facts{Phase: runs, Profile: true, Job: JobFailed, Stored: true}, completed, Wait, v1alpha1.ReasonBackupCompleted},
		"completed, and its pod is still there":    {Facts{Phase: runs, Profile: true, Job: JobRunning, Stored: true}, runs, Wait, v1alpha1.ReasonBackupRunning},
		"a success without a manifest":             {Facts{Phase: runs, Profile: true, Job: JobSucceeded}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"it failed for good":                       {Facts{Phase: runs, Profile: true, Job: JobFailed}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"it failed, and may pass":                  {Facts{Phase: runs, Profile: true, Job: JobFailed, Retry: true}, pending, Wait, v1alpha1.ReasonBackupRetried},
		"it failed, and it is too late":            {Facts{Phase: runs, Profile: true, Job: JobFailed, Retry: true, Late: true}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"it failed without a profile":              {Facts{Phase: runs, Job: JobFailed, Retry: true}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"written down and not made":                {Facts{Phase: runs, Profile: true, Job: NoJob}, pending, Wait, v1alpha1.ReasonBackupRetried},
		"not made, and it is too late":             {Facts{Phase: runs, Profile: true, Job: NoJob, Late: true}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"it failed, and its time is over":          {Facts{Phase: runs, Profile: true, Job: JobFailed, Retry: true, Expired: true}, pending, Wait, v1alpha1.ReasonBackupRetried},
		"not made, and its time is over":           {Facts{Phase: runs, Profile: true, Job: NoJob, Expired: true}, pending, Wait, v1alpha1.ReasonBackupRetried},
		"it failed, and its site is needed":        {Facts{Phase: runs, Profile: true, Job: JobFailed, Yield: true}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"it failed, and its pod did not start":     {Facts{Phase: runs, Profile: true, Job: JobFailed, Stuck: true}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"its pod does not start, its profile goes": {Facts{Phase: runs, Job: JobRunning, Stuck: true}, failed, StopJob, v1alpha1.ReasonBackupProfileMissing},
		"not made, and its profile went":           {Facts{Phase: runs, Job: NoJob}, failed, Wait, v1alpha1.ReasonBackupFailed},
		"completed stays":                          {Facts{Phase: completed, Profile: true, Stored: true, Job: JobSucceeded}, completed, Wait, ""},
		"completed stays without its profile":      {Facts{Phase: completed, Job: NoJob}, completed, Wait, ""},
		"failed stays":                             {Facts{Phase: failed, Profile: true, Turn: true, Site: "a", Job: JobFailed, Retry: true}, failed, Wait, ""},
		"failed, and its Job is left":              {Facts{Phase: failed, Profile: true, Job: JobRunning}, failed, StopJob, ""},
		"deleted":                                  {Facts{Phase: completed, Deleted: true, Stored: true, Job: NoJob}, deleting, RemoveArtifact, v1alpha1.ReasonBackupDeleting},
		"deleted while it runs":                    {Facts{Phase: runs, Deleted: true, Keep: true, Removed: true, Job: JobRunning}, deleting, StopJob, v1alpha1.ReasonBackupDeleting},
		"deleted and removed":                      {Facts{Phase: deleting, Deleted: true, Removed: true, Job: NoJob}, deleting, Release, v1alpha1.ReasonBackupDeleting},
		"deleted and kept":                         {Facts{Phase: completed, Deleted: true, Keep: true, Stored: true, Job: NoJob}, deleting, Release, v1alpha1.ReasonBackupDeleting},
		"deleted before it began":                  {Facts{Phase: "", Deleted: true, Job: NoJob}, deleting, RemoveArtifact, v1alpha1.ReasonBackupDeleting},
		"a phase of a newer version":               {Facts{Phase: "Thawing", Profile: true, Turn: true, Site: "a", Job: NoJob}, "Thawing", Wait, ""},
	}
	reached := map[string]bool{}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, row := Next(tc.facts)
			reached[row] = true
			if got.Phase != tc.phase || got.Action != tc.action || got.Reason != tc.reason {
				t.Errorf("Next = %+v by %q, want %s, %s, %s", got, row, tc.phase, tc.action, tc.reason)
			}
		})
	}
	for _, r := range rows {
		if !reached[r.name] {
			t.Errorf("no test reaches the row %q", r.name)
		}
	}
}

// Whatever the facts: nothing is called completed without a manifest, nothing is released that is left in the storage, and nothing that has
// ended begins again.
func TestPhasesKeepTheirWord(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := func(name string) bool { return rapid.Bool().Draw(r, name) }
		f := Facts{
			Phase:   rapid.SampledFrom(anyPhase).Draw(r, "phase"),
			Job:     rapid.SampledFrom([]Job{NoJob, JobRunning, JobSucceeded, JobFailed}).Draw(r, "job"),
			Deleted: b("deleted"), Keep: b("keep"), Removed: b("removed"), Profile: b("profile"), Stored: b("stored"), Retry: b("retry"),
			Yield: b("yield"), Late: b("late"), Expired: b("expired"), Stuck: b("stuck"), Turn: b("turn"), Site: rapid.SampledFrom([]string{"", "a"}).Draw(r, "site"),
		}
		f.Deleted = f.Deleted || f.Phase == deleting // a deletion is never taken back
		s, row := Next(f)
		ended := f.Phase == completed || f.Phase == failed
		switch {
		case row == "":
			r.Fatalf("no row for %+v", f)
		case s.Phase == completed && f.Phase != completed && !f.Stored:
			r.Fatalf("completed without a manifest: %+v", f)
		case s.Action == Release && (!f.Deleted || f.Job == JobRunning || !f.Keep && !f.Removed):
			r.Fatalf("released: %+v", f)
		case s.Action == RemoveArtifact && (!f.Deleted || f.Keep || f.Job == JobRunning):
			r.Fatalf("removed: %+v", f)
		case s.Action == StartJob && (f.Deleted || f.Job == JobRunning || f.Late || !f.Profile || !f.Turn || f.Site == "" || ended || s.Phase != runs):
			r.Fatalf("started: %+v", f)
		case ended && !f.Deleted && s.Phase != f.Phase:
			r.Fatalf("%s becomes %s", f.Phase, s.Phase)
		case f.Deleted && s.Phase != deleting:
			r.Fatalf("deleted, and %s: %+v", s.Phase, f)
		case f.Yield && f.Job == JobRunning && s.Action != StopJob:
			r.Fatalf("does not yield: %+v by %q", f, row)
		}
	})
}
