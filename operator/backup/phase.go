// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Job says how far the Job of a backup is.
type Job string

// How far a Job is.
const (
	NoJob        Job = "None"
	JobRunning   Job = "Running"
	JobSucceeded Job = "Succeeded"
	JobFailed    Job = "Failed"
)

// Facts are what is known of one MysqlBackup.
type Facts struct {
	Phase v1alpha1.BackupPhase
	// Deleted is true once it was deleted, and Keep if its data in the storage must stay.
	Deleted, Keep bool
	// Removed is true once the storage is known to hold nothing of it.
	Removed bool
	// Profile is true if the group has the profile.
	Profile bool
	// Stored is true if its manifest was read in the storage.
	Stored bool
	Job    Job
	// Retry is true if the cause that ended the last Job may pass: it yielded, or the storage was away.
	Retry bool
	// Yield is true if it must give way.
	Yield bool
	// Moved is true if the profile has another storage than at the attempt before, which may have stored the backup there.
	Moved bool
	// Late is true once it may no longer be started, and Expired once an attempt has taken too long.
	Late, Expired bool
	// Stuck is true once its pod should have started long ago and has not: it must not keep the turn of others.
	Stuck bool
	// Turn is true if it may start now, and Site the one that it is taken from; empty if there is none.
	Turn bool
	Site string
}

// Action is what to do for a MysqlBackup.
type Action string

// What to do.
const (
	Wait     Action = "Wait"
	StartJob Action = "StartJob"
	// StopJob kills the sessions of the backup first, and then removes the Job.
	StopJob Action = "StopJob"
	// RemoveArtifact removes the stored data.
	RemoveArtifact Action = "RemoveArtifact"
	// Release removes the finalizer.
	Release Action = "Release"
)

// Step is what follows from Facts: the phase is written first, then the action is carried out.
type Step struct {
	Phase  v1alpha1.BackupPhase
	Action Action
	Reason v1alpha1.Reason
}

// row is one line of the table of phases.
type row struct {
	name string
	from []v1alpha1.BackupPhase
	when func(Facts) bool
	then Step
}

var (
	anyPhase = []v1alpha1.BackupPhase{"", v1alpha1.BackupPending, v1alpha1.BackupRunning, v1alpha1.BackupCompleted, v1alpha1.BackupFailed, v1alpha1.BackupDeleting}
	waiting  = []v1alpha1.BackupPhase{"", v1alpha1.BackupPending}
	running  = []v1alpha1.BackupPhase{v1alpha1.BackupRunning}
	ended    = []v1alpha1.BackupPhase{v1alpha1.BackupCompleted, v1alpha1.BackupFailed}
)

// rows is the table of phases: the first row that fits applies. Completed needs a manifest that was read: a Job that claims success
// proves nothing.
var rows = []row{
	{"it was deleted while a Job is there", anyPhase, func(f Facts) bool { return f.Deleted && f.Job == JobRunning },
		Step{v1alpha1.BackupDeleting, StopJob, v1alpha1.ReasonBackupDeleting}},
	{"it was deleted, and nothing is left of it or is to go", anyPhase, func(f Facts) bool { return f.Deleted && (f.Keep || f.Removed) },
		Step{v1alpha1.BackupDeleting, Release, v1alpha1.ReasonBackupDeleting}},
	{"it was deleted", anyPhase, func(f Facts) bool { return f.Deleted },
		Step{v1alpha1.BackupDeleting, RemoveArtifact, v1alpha1.ReasonBackupDeleting}},

	{"it has ended", ended, func(f Facts) bool { return f.Job != JobRunning }, Step{Action: Wait}},
	{"it has ended, and a Job is left", ended, func(Facts) bool { return true }, Step{Action: StopJob}},

	{"its manifest is there", append(slices.Clone(waiting), running...), func(f Facts) bool { return f.Stored && f.Job != JobRunning },
		Step{v1alpha1.BackupCompleted, Wait, v1alpha1.ReasonBackupCompleted}},
	{"it runs and must get out of the way", running, func(f Facts) bool { return f.Job == JobRunning && f.Yield },
		Step{v1alpha1.BackupPending, StopJob, v1alpha1.ReasonBackupYielded}},
	{"it runs for too long", running, func(f Facts) bool { return f.Job == JobRunning && f.Expired },
		Step{v1alpha1.BackupFailed, StopJob, v1alpha1.ReasonBackupTimedOut}},
	{"its pod does not start", running, func(f Facts) bool { return f.Job == JobRunning && f.Stuck && f.Profile },
		Step{v1alpha1.BackupPending, StopJob, v1alpha1.ReasonBackupRetried}},
	{"its profile went while it runs", running, func(f Facts) bool { return f.Job == JobRunning && !f.Profile },
		Step{v1alpha1.BackupFailed, StopJob, v1alpha1.ReasonBackupProfileMissing}},
	{"it runs", running, func(f Facts) bool { return f.Job == JobRunning },
		Step{v1alpha1.BackupRunning, Wait, v1alpha1.ReasonBackupRunning}},
	{"its Job ended without a manifest, and may be tried again", running, func(f Facts) bool { return f.Profile && f.Retry && !f.Late },
		Step{v1alpha1.BackupPending, Wait, v1alpha1.ReasonBackupRetried}},
	{"its Job ended without a manifest", running, func(f Facts) bool { return f.Job != NoJob },
		Step{v1alpha1.BackupFailed, Wait, v1alpha1.ReasonBackupFailed}},
	{"its Job is not there: written down, and not made", running, func(f Facts) bool { return !f.Late && f.Profile },
		Step{v1alpha1.BackupPending, Wait, v1alpha1.ReasonBackupRetried}},
	{"its Job is not there, and it is too late for another", running, func(Facts) bool { return true },
		Step{v1alpha1.BackupFailed, Wait, v1alpha1.ReasonBackupFailed}},

	{"it waits, and a Job of it is there", waiting, func(f Facts) bool { return f.Job == JobRunning },
		Step{v1alpha1.BackupPending, StopJob, v1alpha1.ReasonBackupRetried}},
	{"its profile was not there in time", waiting, func(f Facts) bool { return !f.Profile && f.Late },
		Step{v1alpha1.BackupFailed, Wait, v1alpha1.ReasonBackupProfileMissing}},
	// One kubectl apply may make the group and its backup: either may be seen first.
	{"its profile is not there", waiting, func(f Facts) bool { return !f.Profile },
		Step{v1alpha1.BackupPending, Wait, v1alpha1.ReasonBackupProfileMissing}},
	{"its storage is another than at the attempt before", waiting, func(f Facts) bool { return f.Moved },
		Step{v1alpha1.BackupFailed, Wait, v1alpha1.ReasonBackupStorageChanged}},
	{"it waited for too long", waiting, func(f Facts) bool { return f.Late },
		Step{v1alpha1.BackupFailed, Wait, v1alpha1.ReasonBackupTooLate}},
	{"it is not its turn", waiting, func(f Facts) bool { return !f.Turn },
		Step{v1alpha1.BackupPending, Wait, v1alpha1.ReasonBackupWaits}},
	{"no site can be backed up", waiting, func(f Facts) bool { return f.Site == "" },
		Step{v1alpha1.BackupPending, Wait, v1alpha1.ReasonNoBackupSource}},
	{"it starts", waiting, func(Facts) bool { return true },
		Step{v1alpha1.BackupRunning, StartJob, v1alpha1.ReasonBackupRunning}},
}

// Next returns the step that the table has for the facts, and the name of its row.
func Next(f Facts) (Step, string) {
	for _, r := range rows {
		if slices.Contains(r.from, f.Phase) && r.when(f) {
			s := r.then
			if s.Phase == "" {
				s.Phase = f.Phase
			}
			return s, r.name
		}
	}
	// A phase of a newer version, which this one does not know: the safe answer is to leave it alone.
	return Step{Phase: f.Phase, Action: Wait}, ""
}
