// SPDX-License-Identifier: Apache-2.0

// Package leading is what two replicas of the operator need beside the election: only the one that leads is in the Service, it
// answers nobody once its last renewal is old, and the next one knows by that until when the former one may have answered.
package leading

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/clock"
)

// SpeaksFor is how long after it asked for its last successful renewal a leader answers sidecars. It is a few renewals long: one that
// comes late costs nothing.
const SpeaksFor = 3 * time.Second

// slew is by how much a time service makes a clock run faster or slower at most: 1/slew (chrony's limit, 8.3 %).
const slew = 12

// longestPromise bounds what is believed of an identity.
const longestPromise = time.Minute

// promise begins the part of an identity that says how long its holder answers after a renewal. Who does not say it promises nothing: a
// release of before, or one without a standby.
const promise = "_answers-"

// Promise makes an identity that tells for how long its holder answers after a renewal.
func Promise(identity string) string { return identity + promise + SpeaksFor.String() }

// promised is what an identity says, and false if it says nothing that can be believed.
func promised(identity string) (time.Duration, bool) {
	_, words, found := strings.Cut(identity, promise)
	if !found {
		return 0, false
	}
	d, err := time.ParseDuration(words)
	return d, err == nil && d > 0 && d <= longestPromise
}

// Record is a renewal of the Lease: who renewed it, and when by the clock of that process. Two are the same renewal if they are equal; the
// time is compared with nothing else.
type Record struct {
	Holder  string
	Renewed int64 // microseconds
}

// claim is what tells one claim of a group from the next.
type claim struct {
	lease, holder string
	since         int64
}

type seenClaim struct {
	claim
	at time.Time
}

// Term is what this process knows of who leads by its Lease, and since when. Times are those of this process. It locks itself.
type Term struct {
	// Lease is that Lease, as namespace/name, Own the identity of this process in it.
	Lease, Own string

	mu sync.Mutex
	// renewed is when the last renewal of this process that succeeded was asked for.
	renewed time.Time
	// shown is the newest renewal of others that was seen, shownAt when it was first seen to stand.
	shown   Record
	shownAt time.Time
	// former is until when the leader before this one may have answered; zero if that is not known.
	former time.Time
	// claims are those of groups, and since when they were seen. loops is when the first loop of a group in this term began.
	claims map[types.UID]seenClaim
	loops  map[types.UID]time.Time
}

// Renewed notes that a renewal that was asked for at that time succeeded.
func (t *Term) Renewed(asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = asked
}

// MaySpeak is true while the last renewal is young, also by the clock that went on while the machine was suspended, and by one that runs
// at its right speed if a time service slows this one down.
func (t *Term) MaySpeak(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	age := clock.Elapsed(t.renewed, now)
	return !t.renewed.IsZero() && age+age/(slew-1) <= SpeaksFor
}

// Look notes which renewal the API server showed, in an answer that was here at that time. It was asked for before.
func (t *Term) Look(r Record, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Holder == t.Own && t.Own != "" {
		return // it has just taken over, and is about to hear of it
	}
	if r != t.shown || t.shownAt.IsZero() {
		t.shown, t.shownAt = r, at
	}
}

// Took notes that this process took the Lease over from a renewal, and that no other one came in between: the API server took the write
// only because of that. Its holder answered nobody who asked later than its promise after it had asked for that renewal, which was before
// anybody saw it.
func (t *Term) Took(from Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.former = time.Time{}
	// Of a renewal that was not seen, and of a holder that promises nothing, nothing is known.
	if d, ok := promised(from.Holder); ok && from == t.shown && !t.shownAt.IsZero() {
		t.former = t.shownAt.Add(d + d/slew) // the clock of this process may run faster
	}
}

// Claimed notes the claim of a group, as this process sees it at that time.
func (t *Term) Claimed(group *v1alpha1.MysqlFailoverGroup, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claims == nil {
		t.claims = map[types.UID]seenClaim{}
	}
	now := claimOf(group)
	if seen, is := t.claims[group.UID]; !is || seen.claim != now {
		t.claims[group.UID] = seenClaim{claim: now, at: at}
	}
}

// Forget drops what is known of a group that is gone.
func (t *Term) Forget(group types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.claims, group)
	delete(t.loops, group)
}

// Former is until when another process may have answered sidecars of a group; zero if that is not known, and whoever asks counts from the
// beginning of its own loop, which began at that time.
func (t *Term) Former(group *v1alpha1.MysqlFailoverGroup, started time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loops == nil {
		t.loops = map[types.UID]time.Time{}
	}
	first, is := t.loops[group.UID]
	if !is {
		t.loops[group.UID], first = started, started
	}
	seen := t.claims[group.UID]
	switch {
	case t.former.IsZero():
		return time.Time{}
	case !first.Equal(started):
		return time.Time{} // an earlier loop of this process may have answered, or another release in between
	case seen.claim != claimOf(group), seen.lease != t.Lease, seen.at.After(t.former):
		return time.Time{} // another release may have operated it until its claim was written, and answered
	}
	return t.former
}

func claimOf(group *v1alpha1.MysqlFailoverGroup) claim {
	if c := group.Status.Claim; c != nil {
		return claim{lease: c.Lease, holder: c.Holder, since: c.Since.Unix()}
	}
	return claim{}
}
