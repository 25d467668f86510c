// SPDX-License-Identifier: Apache-2.0

// Package claims decides which of several releases of the operator operates a group. Each release leads by a Lease of its own, so
// nothing else keeps two whose watches overlap from signing for the same group. It is pure: what was seen of Leases, and when,
// comes as arguments.
package claims

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Lease is what the API server says of a leader-election Lease, just now. The zero value is one that is not there.
type Lease struct {
	// Holder is empty for one that was released.
	Holder string
	// Renewed is the renewTime as it stands there. It is compared with itself only: the clock that wrote it is another one.
	Renewed string
	// Duration is how long a holder leads without renewing it.
	Duration time.Duration
}

// Seen is what this process has seen of a Lease. The zero value is nothing.
type Seen struct {
	Lease Lease
	// Since is when this process first saw it as it is now, on the process's own clock; zero if it never looked.
	Since time.Time
	// Renewals counts how often it was seen renewed.
	Renewals int
}

// Patience is for how long a Lease must not have been renewed before its holder counts as gone, beyond the time that it says
// itself. A release that is updated in place is away for the pull of an image; its groups stay with it.
const Patience = 45 * time.Second

// minDuration stands for the duration of a Lease that does not say, such as one that was deleted or released: its holder may be
// about to make it anew.
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

// StaleAt is when the holder of the Lease counts as gone, if nothing more is seen of it. A look that shows nothing new proves that
// it was not renewed since the first one like it.
func (s Seen) StaleAt() time.Time {
	return s.Since.Add(max(s.Lease.Duration, minDuration) + Patience)
}

// fresh is true while somebody may lead by the Lease. Of one that was never looked at nothing is known.
func (s Seen) fresh(now time.Time) bool { return s.Since.IsZero() || now.Before(s.StaleAt()) }

// leads is true if somebody was seen to lead by the Lease.
func (s Seen) leads(now time.Time) bool {
	return s.fresh(now) && s.Lease.Holder != "" && s.Renewals > 0
}

// Verdict is what a release does with a group.
type Verdict int

// What a release does with a group.
const (
	// Leave: not its group. It neither signs, nor pushes, nor converges anything.
	Leave Verdict = iota
	// Operate: its group.
	Operate
	// Take: nobody operates it; it claims it, and operates it once that is durable.
	Take
	// HandOver: it ends what it does for the group, and then claims it for the release that a person named.
	HandOver
)

// Question is what a decision rests on.
type Question struct {
	// Own is the Lease by which this process leads, as namespace/name; empty without leader election.
	Own string
	// Claim is the group's, read from the API server; nil if there is none.
	Claim *v1alpha1.GroupClaim
	// Wanted is the Lease of the release that a person wants to operate the group; empty for any.
	Wanted string
	// Holder is what was seen of the Lease that the claim names, Heir of the wanted one.
	Holder, Heir Seen
	Now          time.Time
}

// Decide says what to do with a group, and why if it is left alone or a wish is not granted.
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
			// Given to somebody who is not there, it would be operated by nobody.
			return Operate, fmt.Sprintf("the group is to be operated under Lease %s, and no operator is seen to lead by it", q.Wanted)
		}
		return HandOver, ""
	case holder != "" && q.Holder.fresh(q.Now):
		// Its holder may sign, and what it answers is not known here: two would count the lease of a site from different answers.
		return Leave, fmt.Sprintf("it is operated under Lease %s, by %s", holder, q.Claim.Holder)
	case elsewhere:
		return Leave, fmt.Sprintf("it is to be operated under Lease %s", q.Wanted)
	case q.Own == "":
		return Operate, "" // without a Lease there is nothing by which others could see that a claim stands
	}
	return Take, ""
}
