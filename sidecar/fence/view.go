// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Origin is how a statement came here.
type Origin string

// The origins.
const (
	// Operator: the answer of the operator to a request of this sidecar.
	Operator Origin = "Operator"
	// Push: it was sent by PUT; the signature is all that is known of its sender.
	Push Origin = "Push"
	// Peer: the answer of a peer to a request of this sidecar.
	Peer Origin = "Peer"
)

// Word is a statement with a verified signature, and how it came here.
type Word struct {
	Origin    Origin
	Signed    wire.Signed
	Statement wire.Statement
	// Nonce is what this sidecar sent to the operator.
	Nonce string
	// SentAt is when this sidecar sent the request that this answers; it means nothing for a Push.
	SentAt time.Duration
}

// Adoption is what became of a Word.
type Adoption struct {
	// Taken is true if the word replaced the one known so far, Newer if its epoch is greater.
	Taken bool
	Newer bool
	// Renewed is true if the exchange prolonged the lease.
	Renewed bool
	// Refusal says why the word was not taken.
	Refusal Refusal
	// Ask is true if a push says something else than what is known, under the same epoch. It may be the later of the two, or
	// an old one that somebody sends again: only the operator can tell, so ask it now.
	Ask bool
}

// viewGuards say why the sidecar does not take a word. Each is safe alone and in any order.
var viewGuards = []guard[Word]{
	{OtherGroup, "the statement is for another group", otherGroup},
	{OtherNonce, "the answer does not repeat the nonce of the request", otherNonce},
	{LowerEpoch, "a newer epoch is known here", lowerEpoch},
	{SameEpochOtherSite, "two sites are named under one epoch", sameEpochOtherSite},
	{RelayedNotNewer, "within an epoch only the operator's answer to a question of this sidecar says something new", relayedNotNewer},
}

// Adopt takes in a word: it becomes the newest statement known unless a guard blocks it, and it prolongs the lease if
// the exchange was a good one. Adopting opens nothing.
func Adopt(s State, w Word, now Instant) (State, Adoption) {
	var a Adoption
	if a.Refusal = firstRefusal(viewGuards, s, w); a.Refusal.Reason == "" {
		a.Taken, a.Newer = true, w.Statement.NewerThan(s.word)
		s = take(s, w)
	}
	a.Ask = a.Refusal.Reason == RelayedNotNewer && w.Origin == Push && saysOtherwise(s, w.Statement, now)
	s, a.Renewed = renew(s, w, now)
	return s, a
}

func take(s State, w Word) State {
	if w.Statement.NewerThan(s.word) {
		s.vouched = s.vouched.lowered()
		if s.openEpoch > 0 && w.Statement.Epoch == s.openEpoch+1 && w.Statement.ActiveSite == s.site.Name {
			// Each epoch has one active site, and this one follows directly: no other site was open in between, so
			// this site may stay open under the new epoch without a pause.
			s.openEpoch = w.Statement.Epoch
		}
	}
	s.word, s.signed, s.verified = w.Statement, w.Signed, true
	if w.Origin == Operator {
		s.heard = true
	}
	return s
}

// otherGroup: the authority of a group speaks for that group only.
func otherGroup(s State, w Word) bool {
	return w.Statement.Namespace != s.site.Namespace || w.Statement.Group != s.site.Group
}

// otherNonce: without the nonce of this very request the answer may be old; it could open a site that was replaced
// since (I3), or keep a lease alive.
func otherNonce(_ State, w Word) bool {
	return w.Origin == Operator && (w.Nonce == "" || w.Statement.Nonce != w.Nonce)
}

// lowerEpoch: an acknowledged epoch is never given up (I5).
func lowerEpoch(s State, w Word) bool { return w.Statement.Epoch < s.word.Epoch }

// sameEpochOtherSite: an epoch has one active site (I1). One of the two statements is wrong, and the sidecar cannot know
// which, so the word gives nothing: it is not taken, renews no lease and opens nothing.
func sameEpochOtherSite(s State, w Word) bool {
	return w.Statement.Epoch == s.word.Epoch && w.Statement.ActiveSite != s.word.ActiveSite
}

// relayedNotNewer: statements of one epoch have no order. When each was issued gives none: two operators have two clocks, and
// the operator signs a held one for anybody who asks in the name of an unknown pod. So what did not come as an answer to this
// sidecar's own nonce may be as old as the epoch, or sent by a stranger, and must neither hold this site nor end its window (I3).
// A push that says the same of this site is taken: a later key may have signed it.
func relayedNotNewer(s State, w Word) bool {
	return w.Origin != Operator && !w.Statement.NewerThan(s.word) && !(w.Origin == Push && saysTheSame(s.site.Name, w.Statement, s.word))
}

// saysOtherwise: it is not enough that the deadline of a window differs. While a site is cloned it differs in most statements,
// and the sidecar asks often enough anyway.
func saysOtherwise(s State, told wire.Statement, now Instant) bool {
	_, before := s.word.WindowFor(s.site.Name, now.Wall)
	_, after := told.WindowFor(s.site.Name, now.Wall)
	return before != after || told.Hold != s.word.Hold || told.LeaseTimeoutMillis != s.word.LeaseTimeoutMillis || !told.Keys.Equal(s.word.Keys)
}

// Kept is what the data volume holds.
type Kept struct {
	Signed    wire.Signed
	Statement wire.Statement
	// Verified is false if the signature does not fit the key known now, as after a change of the key. The statement
	// was verified before it was written, so its epoch still binds; but this sidecar does not pass it on.
	Verified bool
	// Heard is true if the operator itself answered this site since the volume was new.
	Heard bool
}

// Unkept returns what has to be written to the data volume, if anything has.
func Unkept(s State) (Kept, bool) {
	if s.word.Epoch == 0 {
		return Kept{}, false
	}
	k := Kept{Signed: s.signed, Statement: s.word, Verified: s.verified, Heard: s.heard}
	return k, k.Heard != s.kept.Heard || k.Verified != s.kept.Verified || !sameMeaning(s.site.Name, k.Statement, s.kept.Statement)
}

// Keep is the state after the data volume took k in.
func Keep(s State, k Kept) State {
	if k.Statement.Epoch >= s.kept.Statement.Epoch {
		s.kept = k
	}
	return s
}

// sameMeaning is true if two statements differ at most in when the operator gave them, to which request, and in the windows of other
// sites. Then the second is not written: one comes every few seconds, and while a site is cloned each has another deadline for its
// window. A statement signed by a later key is written: from then on the earlier key is not trusted any more, also after a restart.
func sameMeaning(site string, a, b wire.Statement) bool {
	return saysTheSame(site, a, b) && a.Keys.Equal(b.Keys)
}

// saysTheSame is sameMeaning, whichever key has signed.
func saysTheSame(site string, a, b wire.Statement) bool {
	own := func(windows []wire.Window) []wire.Window {
		return slices.DeleteFunc(slices.Clone(windows), func(w wire.Window) bool { return w.Site != site })
	}
	return a.Namespace == b.Namespace && a.Group == b.Group && a.ActiveSite == b.ActiveSite && a.Epoch == b.Epoch &&
		a.Hold == b.Hold && a.LeaseTimeoutMillis == b.LeaseTimeoutMillis &&
		slices.EqualFunc(own(a.Windows), own(b.Windows), func(x, y wire.Window) bool {
			return x.Site == y.Site && x.Purpose == y.Purpose && x.Deadline.Equal(y.Deadline)
		})
}
