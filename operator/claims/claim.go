// SPDX-License-Identifier: Apache-2.0

// Package claims decides which of several releases of the operator operates a group. Each release has its own leader-election
// Lease, so nothing else keeps two releases with overlapping watches from signing for the same group. It is pure: what was seen
// of Leases, and when, comes in as arguments.
package claims

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Lease is what the API server now says of a leader-election Lease. The zero value is one that does not exist.
type Lease struct {
	// Holder is empty for a released Lease.
	Holder string
	// Renewed is the renewTime as written. It is compared only with earlier values of itself: another clock wrote it.
	Renewed string
	// Duration is how long a holder leads without renewing it.
	Duration time.Duration
}

// Seen is what this process has seen of a Lease. The zero value means nothing seen.
type Seen struct {
	Lease Lease
	// Since is when this process first saw the Lease's present content, on the process's own clock; zero if it never looked.
	Since time.Time
	// Renewals counts how often the Lease was seen renewed.
	Renewals int
}

// Patience is how long, beyond its own duration, a Lease must be seen unrenewed before its holder counts as gone. A release
// that is updated in place is away while it pulls an image; its groups stay with it.
const Patience = 45 * time.Second

// minDuration is the least duration that counts for a Lease, also for one without any because it was deleted or released: its
// holder may be about to make it again.
const minDuration = 15 * time.Second

// Look folds a look at the Lease into what was seen.
func (s Seen) Look(now Lease, at time.Time) Seen {
	if !s.Since.IsZero() && s.Lease.Renewed == now.Renewed && s.Lease.Holder == now.Holder {
		return s
	}
	next := Seen{Lease: now, Since: at, Renewals: s.Renewals}
	if !s.Since.IsZero() {
		next.Renewals++
	}
	return next
}

// StaleAt is when the holder of the Lease counts as gone, unless a look shows a change. A look that shows no change proves that
// the Lease was not renewed since the first look with this content.
func (s Seen) StaleAt() time.Time {
	return s.Since.Add(max(s.Lease.Duration, minDuration) + Patience)
}

// fresh is true while a holder may lead by the Lease, and for a Lease that this process never looked at, since nothing is known of it.
func (s Seen) fresh(now time.Time) bool { return s.Since.IsZero() || now.Before(s.StaleAt()) }

// leads is true if a holder was seen to lead by the Lease.
func (s Seen) leads(now time.Time) bool {
	return s.fresh(now) && s.Lease.Holder != "" && s.Renewals > 0
}

// Verdict is what a release does with a group.
type Verdict int

// What a release does with a group.
const (
	// Leave: not its group. It signs, pushes and converges nothing.
	Leave Verdict = iota
	// Operate: its group.
	Operate
	// Take: no release operates the group; it claims the group, and operates it once the claim is durable.
	Take
	// HandOver: it ends its work for the group, and then claims the group for the release that a person named.
	HandOver
)

// Question is what a decision rests on.
type Question struct {
	// Own is the Lease with which this process leads, as namespace/name; empty without leader election.
	Own string
	// Claim is the group's claim, read from the API server; nil if there is none.
	Claim *v1alpha1.GroupClaim
	// Wanted is the Lease of the release that a person wants to operate the group; empty for any.
	Wanted string
	// Holder is what was seen of the Lease that the claim names, Heir what was seen of the wanted one.
	Holder, Heir Seen
	Now          time.Time
}

// Decide says what to do with a group, and why if the group is left alone or a person's wish is not granted.
func Decide(q Question) (Verdict, string) {
	holder := ""
	if q.Claim != nil {
		holder = q.Claim.Lease
	}
	elsewhere := q.Wanted != "" && q.Wanted != q.Own
	switch {
	case holder != "" && holder == q.Own && !elsewhere:
		return Operate, ""
	case holder != "" && holder == q.Own:
		if !q.Heir.leads(q.Now) {
			// If the other release does not run, no operator would operate the group.
			return Operate, fmt.Sprintf("the group is to be operated under Lease %s, and no operator is seen to lead by it", q.Wanted)
		}
		return HandOver, ""
	case holder != "" && q.Holder.fresh(q.Now):
		// Its holder may sign, and its answers are not known here: two operators would count a site's lease from different answers.
		return Leave, fmt.Sprintf("it is operated under Lease %s, by %s", holder, q.Claim.Holder)
	case elsewhere:
		return Leave, fmt.Sprintf("it is to be operated under Lease %s", q.Wanted)
	case q.Own == "":
		return Operate, "" // without a Lease, other releases could not see whether a claim is still held
	}
	return Take, ""
}
