// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"slices"
	"time"
)

// Artifact is a completed backup of a profile.
type Artifact struct {
	Name       string
	FinishedAt time.Time
	// Tried is true once a verification of it ended, and Verified if the last one passed.
	Tried, Verified bool
	// Verifying is true while a Job restores it to verify it.
	Verifying bool
	// InUse is true while it is restored or verified, and while the archive of binary logs builds upon it.
	InUse bool
	// Elsewhere is true if it is in a storage other than the one that the profile names now, and so out of reach.
	Elsewhere bool
}

// bad is true if it could not be restored when that was tried last.
func (a Artifact) bad() bool { return a.Tried && !a.Verified }

// Base returns the backup that an archive of binary logs up to latest builds upon: the newest completed before latest that is not bad. Without it
// nothing archived after it could be recovered, no matter which newer backups the archive has not reached yet. It is empty if there is none.
func Base(all []Artifact, latest time.Time) string {
	for _, a := range newestFirst(all) {
		if !a.FinishedAt.After(latest) && !a.bad() {
			return a.Name
		}
	}
	return ""
}

// Retention says what is kept; zero is unset.
type Retention struct {
	Count    int
	MaxAge   time.Duration
	MinCount int
}

// Expired returns the backups of a profile to remove, the oldest first. It keeps what any rule keeps, the newest, the newest verified one and
// what is in use. A bad one takes no place among the number to keep: it goes once that many others, all newer than it, are there, or twice as many
// of any kind, as the cause may be the same for all. One in another storage stays, and counts for no other: nothing can remove its data there,
// and without the MysqlBackup nobody would know of it. One dated in the future stays, and counts for no other. While none is younger than MaxAge, none goes: either no more are
// made, or the clock is ahead, and those are all that there is.
func Expired(all []Artifact, r Retention, now time.Time) []string {
	if r.Count <= 0 && r.MaxAge <= 0 {
		return nil
	}
	newest := slices.DeleteFunc(pastFirst(all, now), func(a Artifact) bool { return a.Elsewhere })
	if r.Count <= 0 && (len(newest) == 0 || now.Sub(newest[0].FinishedAt) >= r.MaxAge) {
		return nil
	}
	verified := slices.IndexFunc(newest, func(a Artifact) bool { return a.Verified })
	least := max(r.Count, r.MinCount, 1)
	var gone []string
	places := 0
	for i, a := range newest {
		young := r.MaxAge > 0 && now.Sub(a.FinishedAt) < r.MaxAge
		enough := places >= least || a.bad() && i >= 2*least
		if enough && !young && i > 0 && i != verified && !a.InUse {
			gone = append(gone, a.Name)
		}
		if !a.bad() {
			places++
		}
	}
	slices.Reverse(gone)
	return gone
}

func newestFirst(all []Artifact) []Artifact {
	return slices.SortedFunc(slices.Values(all), func(a, b Artifact) int {
		return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(a.Name, b.Name))
	})
}

// pastFirst returns those of the past, the newest first. One dated in the future was completed by a clock that was ahead: its age is unknown,
// and it must not pass for the newest until that time has come.
func pastFirst(all []Artifact, now time.Time) []Artifact {
	return slices.DeleteFunc(newestFirst(all), func(a Artifact) bool { return a.FinishedAt.After(now) })
}

func oldestFirst(all []Waiting) []Waiting {
	return slices.SortedFunc(slices.Values(all), func(a, b Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
}

// Verification is when backups are verified.
type Verification struct {
	// AfterEvery is the number of backups after which the newest is verified; zero for never.
	AfterEvery int
	// Cron is set if HasCron is.
	Cron    Cron
	HasCron bool
	// Who spreads the starts, as in a Schedule.
	Who string
}

// VerificationDue says what is due to be verified now.
type VerificationDue struct {
	// Name is the backup to verify; empty if none is due.
	Name string
	// Seen is the last time of the cron that is dealt with once the caller has acted on this.
	Seen time.Time
}

// Decide picks the backup to verify: the newest within reach. While one is being verified none is due: where that takes longer than it takes to the
// next backup, there would be more and more, and each keeps its backup. seen is the last time of the cron that was dealt with, or when it was created.
func (v Verification) Decide(all []Artifact, seen, now time.Time) VerificationDue {
	d := VerificationDue{Seen: seen}
	if slices.ContainsFunc(all, func(a Artifact) bool { return a.Verifying }) {
		return d
	}
	newest := slices.DeleteFunc(pastFirst(all, now), func(a Artifact) bool { return a.Elsewhere })
	if len(newest) == 0 {
		return d
	}
	if v.HasCron {
		s := Schedule{Cron: v.Cron, Deadline: verificationDeadline, Who: v.Who}.Decide(seen, now)
		if d.Seen = s.Seen; !s.At.IsZero() {
			d.Name = newest[0].Name
			return d
		}
	}
	since := slices.IndexFunc(newest, func(a Artifact) bool { return a.Tried })
	if since < 0 {
		since = len(newest)
	}
	if v.AfterEvery > 0 && since >= v.AfterEvery {
		d.Name = newest[0].Name
	}
	return d
}

// verificationDeadline is how late a verification may still start: its exact time does not matter.
const verificationDeadline = 24 * time.Hour
