// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// leaseGuards say why an exchange does not prolong the lease. Each is safe alone and in any order.
var leaseGuards = []guard[exchange]{
	{NotFromOperator, "only what this sidecar asked for prolongs the lease", notAskedFor},
	{OtherGroup, "the statement is for another group", func(s State, x exchange) bool { return otherGroup(s, x.word) }},
	{OtherNonce, "the answer does not repeat the nonce", func(s State, x exchange) bool { return otherNonce(s, x.word) }},
	{LowerEpoch, "the one that answered does not know the newest epoch", notTheCurrentEpoch},
	{SameEpochOtherSite, "two sites are named under one epoch", func(s State, x exchange) bool {
		return sameEpochOtherSite(s, x.word)
	}},
	{TooOld, "it was sent in the future", sentInTheFuture},
}

// exchange is a word with when it came.
type exchange struct {
	word Word
	now  Instant
}

// renew prolongs the lease if the exchange was a good one. The lease counts from when the question was SENT: the one
// that answered it remembers a later time, so its count ends after ours (I4).
func renew(s State, w Word, now Instant) (State, bool) {
	if firstRefusal(leaseGuards, s, exchange{word: w, now: now}).Reason != "" {
		return s, false
	}
	if !s.hasGood || w.SentAt > s.good {
		s.good, s.hasGood = w.SentAt, true
	}
	return s, true
}

// notAskedFor: no one records when a push was issued, so no one could wait for a lease that it prolongs (I4).
func notAskedFor(_ State, x exchange) bool { return x.word.Origin != Operator && x.word.Origin != Peer }

// notTheCurrentEpoch: once a peer has acknowledged a newer epoch, it answers with that one only. An answer with an older
// one comes from a sender that the promotion gate does not wait for (I2).
func notTheCurrentEpoch(s State, x exchange) bool { return x.word.Statement.Epoch != s.word.Epoch }

// sentInTheFuture: it would prolong the lease by more than leaseTimeout.
func sentInTheFuture(_ State, x exchange) bool { return x.word.SentAt > x.now.Mono }

// lease is how long a good exchange counts: the shorter of the pod's own limit and the statement's, because the
// operator waits as long as it stated.
func lease(s State) time.Duration {
	if told := time.Duration(s.word.LeaseTimeoutMillis) * time.Millisecond; told > 0 {
		return min(told, s.limits.Lease)
	}
	return s.limits.Lease
}

// leaseOver: neither the operator nor any peer has answered for so long that another site may be open by now (I4).
// Before the first good exchange of a run there is no lease at all.
func leaseOver(s State, now Instant) bool { return LeaseLeft(s, now) <= 0 }

// LeaseLeft is how long the site may stay open without another good exchange.
func LeaseLeft(s State, now Instant) time.Duration {
	if !s.hasGood {
		return 0
	}
	return max(0, s.good+lease(s)-now.Mono)
}

// NextChange is how long the present decision holds without news: until the end of the lease, or of the window that keeps
// MySQL writable. It returns false if time alone changes nothing.
func NextChange(s State, now Instant) (time.Duration, bool) {
	if !s.exposed {
		return 0, false
	}
	if behindWindow(s, now) {
		w, _ := s.word.WindowFor(s.site.Name, now.Wall)
		return w.Deadline.Sub(now.Wall), true
	}
	return LeaseLeft(s, now), true
}

// Epoch is the highest epoch that is on the data volume: the one that may be acknowledged (I5).
func (s State) Epoch() int64 { return s.kept.Statement.Epoch }

// Newest is the newest statement known; its epoch is 0 if there is none.
func (s State) Newest() wire.Statement { return s.word }

// Names is true if the newest statement names this site.
func (s State) Names() bool { return s.word.Epoch > 0 && s.word.ActiveSite == s.site.Name }

// Open is true if this run opened writes and they were not closed since.
func (s State) Open() bool { return s.openEpoch > 0 }

// Serves is true while this run's opening holds and lets clients in, as far as the last look shows.
func (s State) Serves() bool { return s.Open() && s.seen.Writable && !s.seen.Offline }

// Exposed is true unless MySQL is known to accept no commit.
func (s State) Exposed() bool { return s.exposed }

// Change is the number to note before a look at MySQL: see Observe.
func (s State) Change() uint64 { return s.change }

// Seen is the last look at MySQL.
func (s State) Seen() Facts { return s.seen }

// Last says how the site was last fenced.
func (s State) Last() LastFence { return s.last }
