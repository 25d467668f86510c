// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Health is what is known of the backups of a profile, to say whether the profile does what it should.
type Health struct {
	// All are its completed backups.
	All []Artifact
	// FailedAt is when the newest one was given up, with the reason; zero if none was, or if a later one was completed.
	FailedAt      time.Time
	FailedName    string
	FailedMessage string
	// Schedule is set if HasSchedule is; Timeout is how long one may take.
	Schedule    Schedule
	HasSchedule bool
	Timeout     time.Duration
	// Since is the time of the schedule that was dealt with last; before the first, when the schedule was first seen.
	Since time.Time
	// HeldSince is since when this schedule holds, and not another or none, or suspended; zero if it always did. VerificationSince is the same of the
	// verification's.
	HeldSince, VerificationSince time.Time
	// Running is true if a backup waits for its start or is being made, and Missed if the profile's status says already that one is missing.
	Running, Missed bool
	// Verification is set if HasVerification is. Failed names the newest backup that was tried, if its verification did not pass.
	Verification    Verification
	HasVerification bool
	// VerifiedAt is when the last verification that passed ended; zero if none did.
	VerifiedAt time.Time
	// NotRestorable is the newest backup that was tried, if it could not be restored, with the reason.
	NotRestorable, NotRestorableMessage string
	// Waits is why a verification that was asked for has no outcome yet; empty if none waits.
	Waits string
}

// State says whether something is as it should be, and if not, why.
type State struct {
	OK bool
	// Awaited is true if nothing is wrong, and nothing is there yet: the first one is not due.
	Awaited bool
	Reason  v1alpha1.Reason
	Message string
}

// Ready says whether backups are made as they should be.
func (h Health) Ready(now time.Time) State {
	newest := h.newest(now)
	if h.FailedAt.After(newest) {
		return State{Reason: v1alpha1.ReasonBackupFailed, Message: fmt.Sprintf("the last backup, %s, failed: %s", h.FailedName, h.FailedMessage)}
	}
	var due time.Time
	if h.HasSchedule && !h.Schedule.Suspend {
		from := newest
		if from.IsZero() {
			from = h.Since
		}
		due = h.Schedule.Cron.Next(latest(from, h.HeldSince))
		if !due.IsZero() && now.After(due.Add(h.Schedule.Deadline+h.Timeout+spreadMax)) {
			return State{Reason: v1alpha1.ReasonBackupOverdue, Message: "a backup was due and is not there: look at the MysqlBackups of the group"}
		}
	}
	// After all that says that no backup is made: that is worse.
	elsewhere := 0
	for _, a := range h.All {
		if a.Elsewhere {
			elsewhere++
		}
	}
	if elsewhere > 0 {
		return State{Reason: v1alpha1.ReasonBackupElsewhere, Message: fmt.Sprintf("%d backups lie in another storage than the profile names now, and are neither verified nor removed there: "+
			"give the profile its old storage back and name the new one in a profile of its own, or delete those MysqlBackups", elsewhere)}
	}
	if newest.IsZero() {
		return h.first(due, now)
	}
	return State{OK: true, Reason: v1alpha1.ReasonAsExpected}
}

// first says whether a profile without a backup waits for its first, which was or is due then. Once a time of the schedule has passed without one, it is
// missing until there is one: the next time must not hide that.
func (h Health) first(due, now time.Time) State {
	dealtWith := h.HasSchedule && h.Schedule.Cron.Next(h.Since.Add(-time.Second)).Equal(h.Since)
	switch {
	case h.Running && !h.Missed:
		return State{Awaited: true, Reason: v1alpha1.ReasonBackupRunning, Message: "the first backup is being made"}
	case !h.HasSchedule:
		return State{Reason: v1alpha1.ReasonNoBackupYet, Message: "there is no backup yet, and the profile has no schedule: make one"}
	case h.Schedule.Suspend:
		return State{Reason: v1alpha1.ReasonNoBackupYet, Message: "there is no backup yet, and the schedule is suspended: make one, or resume the schedule"}
	// Not longer than it may start: what is missed after that is noted at once, or the next time of the schedule would hide it.
	case !h.Missed && !dealtWith && now.Before(due.Add(min(spreadMax, h.Schedule.Deadline))):
		return State{Awaited: true, Reason: v1alpha1.ReasonFirstBackupScheduled, Message: "the first backup is due at " + due.UTC().Format(time.RFC3339)}
	}
	return State{Reason: v1alpha1.ReasonNoBackupYet, Message: "there is no backup yet: wait for the schedule, or make one"}
}

// Verified says whether it is proven that backups can be restored.
func (h Health) Verified(now time.Time) State {
	newest := pastFirst(h.All, now)
	switch {
	case h.NotRestorable != "":
		return State{Reason: v1alpha1.ReasonBackupNotRestorable, Message: fmt.Sprintf("backup %s could not be restored: %s", h.NotRestorable, h.NotRestorableMessage)}
	case h.VerifiedAt.IsZero() && len(newest) == 0 && h.Waits == "":
		return State{Awaited: true, Reason: v1alpha1.ReasonNoBackupYet, Message: "there is no backup yet to verify"}
	case h.VerifiedAt.IsZero():
		return h.notVerified("no verification has passed yet")
	}
	untried := 0
	for _, a := range newest {
		if a.Tried {
			break
		}
		untried++
	}
	if v := h.Verification; v.AfterEvery > 0 && untried > 2*v.AfterEvery {
		return h.notVerified(fmt.Sprintf("%d backups were made since the last verification", untried))
	}
	if h.Verification.HasCron {
		due := h.Verification.Cron.Next(latest(h.VerifiedAt, h.VerificationSince))
		if !due.IsZero() && now.After(due.Add(verificationDeadline+h.Timeout)) {
			return h.notVerified("a verification was due and did not pass")
		}
	}
	return State{OK: true, Reason: v1alpha1.ReasonBackupVerified}
}

// notVerified says what is missing, and what it waits for.
func (h Health) notVerified(message string) State {
	if h.Waits != "" {
		message += "; " + h.Waits
	}
	return State{Reason: v1alpha1.ReasonBackupNotVerified, Message: message}
}

// newest is when the newest backup was completed; zero if there is none.
func (h Health) newest(now time.Time) time.Time {
	if all := pastFirst(h.All, now); len(all) > 0 {
		return all[0].FinishedAt
	}
	return time.Time{}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
