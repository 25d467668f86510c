// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"
)

// Class is why an attempt ended, by the code with which its container ended: docs/reference/backup-job.md.
type Class string

// The classes.
const (
	ClassSucceeded Class = "succeeded"
	// ClassOther is for all that has no class of its own.
	ClassOther Class = "other"
	// ClassConfig does not pass until something is changed.
	ClassConfig Class = "config"
	// ClassStorage is a fault of the storage.
	ClassStorage Class = "storage"
	// ClassSource is a fault of the site.
	ClassSource Class = "source"
	// ClassYielded gave way.
	ClassYielded Class = "yielded"
	// ClassTimedOut ran out of time.
	ClassTimedOut Class = "timeout"
	// ClassRefused found that it cannot be done, before it touched anything.
	ClassRefused Class = "refused"
	// ClassDamaged says that the backup is not good.
	ClassDamaged Class = "damaged"
	// ClassLost is an attempt with an unknown outcome: its pod or its node went.
	ClassLost Class = "lost"
)

// classes are the codes of backup/job/terms; a test keeps them alike.
var classes = map[int]Class{
	0: ClassSucceeded, 1: ClassOther, 2: ClassConfig, 10: ClassStorage, 11: ClassSource, 12: ClassYielded, 13: ClassTimedOut, 14: ClassRefused, 15: ClassDamaged,
}

// ClassOf returns the class of a code. An unknown code does not pass.
func ClassOf(code int) Class {
	if c, known := classes[code]; known {
		return c
	}
	return ClassOther
}

// Passes is true if the cause that ended an attempt may be gone for another one: elsewhere, or later. For a lost attempt that is unknown, and
// the next one finds out: it takes what the lost one stored as its own.
func (c Class) Passes() bool {
	return c == ClassStorage || c == ClassSource || c == ClassYielded || c == ClassLost
}

const (
	retryFirst = 15 * time.Second
	retryLast  = 10 * time.Minute

	verifyFirst = time.Minute
	verifyLast  = time.Hour
)

// NotBefore returns when another attempt may begin after the attempts-th, which started then: the pauses double.
func NotBefore(started time.Time, attempts int32, last Class) time.Time {
	if attempts <= 0 || last == ClassYielded {
		// It gave way although nothing was wrong; the choice of the site says when it is over.
		return started
	}
	return started.Add(pause(retryFirst, retryLast, attempts))
}

// VerifyNotBefore returns when a verification may be tried again that has ended tries times without saying anything of the backup, the last time
// then. It has no end: a backup is not bad because nobody could look at it.
func VerifyNotBefore(ended time.Time, tries int32) time.Time {
	return ended.Add(pause(verifyFirst, verifyLast, tries))
}

// pause is that after the n-th try: it doubles each time, up to last.
func pause(first, last time.Duration, n int32) time.Duration {
	p := first
	for range min(n-1, 16) {
		p = min(2*p, last)
	}
	return p
}
