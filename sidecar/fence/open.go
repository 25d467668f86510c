// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// freshFor is how old the operator's answer may be to open writes on it, counted from the request. This sidecar does not
// know what the operator decided since; the promotion gate allows for this much.
const freshFor = 2 * time.Second

// opening is an attempt to open writes on a word.
type opening struct {
	word Word
	now  Instant
}

// openGuards are the boot rule: the sidecar opens writes only if none blocks. Each is safe alone and in any order.
var openGuards = []guard[opening]{
	{NotFromOperator, "only an answer of the operator to this sidecar's own question opens writes", notFromOperator},
	{OtherGroup, "the statement is for another group", openOtherGroup},
	{NamesAnother, "another site is named", openNamesAnother},
	{NotTheNewest, "it is not the newest statement known here", notTheNewest},
	{Held, "the operator holds every opening back", held},
	{NotDurable, "the epoch is not on the data volume yet", notDurable},
	{TooOld, "the operator's answer is too old", tooOld},
	{LeaseTooShort, "the lease could end before the opening does", leaseTooShort},
	{MySQLSilent, "MySQL does not answer", mysqlSilent},
	{MySQLWritable, "MySQL is writable already", mysqlWritable},
	{MySQLReplicates, "a replication channel is configured", mysqlReplicates},
	{MySQLCloning, "MySQL is being cloned", mysqlCloning},
	{NotWatched, "the supervisor of mysqld does not look at its deadline", notWatched},
	{WindowIsOpen, "a window is open for this site", windowIsOpen},
	{FenceDue, "MySQL has to be fenced first", fenceDue},
	{Leaving, "this sidecar is ending", func(s State, _ opening) bool { return s.leaving }},
}

// MayOpen says whether writes may be opened now on the operator's answer w. The caller holds the right to change MySQL,
// has just looked at it, and has given that look to Observe.
func MayOpen(s State, w Word, now Instant) Refusal {
	return firstRefusal(openGuards, s, opening{word: w, now: now})
}

// notFromOperator: a push or a relayed statement may be arbitrarily old (I3).
func notFromOperator(s State, o opening) bool {
	return o.word.Origin != Operator || otherNonce(s, o.word)
}

// openOtherGroup: another group's authority cannot open this one.
func openOtherGroup(s State, o opening) bool { return otherGroup(s, o.word) }

// openNamesAnother: an epoch belongs to the site that it names (I1).
func openNamesAnother(s State, o opening) bool { return o.word.Statement.ActiveSite != s.site.Name }

// notTheNewest: this site has heard something newer since, which may name another site; or two sites are named under one
// epoch (I1, I2).
func notTheNewest(s State, o opening) bool {
	return o.word.Statement.Epoch != s.word.Epoch || o.word.Statement.ActiveSite != s.word.ActiveSite
}

// held: the promotion gate has not passed, or this site may lack transactions. A hold in another answer of the operator, which
// came meanwhile, counts too; if that was the older of the two, the next answer clears it.
func held(s State, o opening) bool { return o.word.Statement.Hold || s.word.Hold }

// notDurable: after a crash this sidecar would not remember the epoch under which it opened (I5).
func notDurable(s State, o opening) bool { return s.kept.Statement.Epoch < o.word.Statement.Epoch }

// tooOld: the operator may have named another site since; it relies on each answer taking effect at once or never (I2).
// An answer from the future means a broken clock.
func tooOld(_ State, o opening) bool {
	age := o.now.Mono - o.word.SentAt
	return age < 0 || age >= freshFor
}

// leaseTooShort: the lease could end while the opening is under way (I4).
func leaseTooShort(s State, o opening) bool {
	return o.now.Mono+s.limits.Opening >= o.word.SentAt+lease(s)
}

// mysqlSilent: a MySQL that does not answer cannot be opened safely.
func mysqlSilent(s State, _ opening) bool { return !s.seen.Running || !s.seen.Answered }

// mysqlWritable: either it is open already, or it must be fenced first. If this run opened it and it keeps its clients out by
// now, it may be opened again: that clears offline_mode and changes nothing else that matters.
func mysqlWritable(s State, o opening) bool {
	return s.seen.Writable && !clientsKeptOut(s, o.now)
}

// mysqlReplicates: a replica that is written to diverges; the operator ends replication before it promotes.
func mysqlReplicates(s State, _ opening) bool { return s.seen.Replicates }

// mysqlCloning: the data is about to be replaced.
func mysqlCloning(s State, _ opening) bool { return s.seen.Cloning }

// notWatched: if this sidecar hung after the opening, nothing would kill mysqld when the lease ends (I4).
func notWatched(s State, _ opening) bool { return !s.seen.Watched }

// windowIsOpen: work on this site is under way behind offline_mode; opening would let clients in.
func windowIsOpen(s State, o opening) bool {
	_, open := s.word.WindowFor(s.site.Name, o.now.Wall)
	return open
}

// fenceDue: a fence wins over an opening, always.
func fenceDue(s State, o opening) bool { return s.changing || Decide(s, o.now).Do == Fence }

// Opening is the state while writes are being opened under the newest epoch; the caller asked MayOpen under the same lock.
func Opening(s State) State {
	s.exposed, s.shut, s.openEpoch, s.changing = true, false, s.word.Epoch, true
	s.change++
	return s
}

// Outcome is how an opening ended.
type Outcome string

// The outcomes.
const (
	// Done: MySQL was read back writable.
	Done Outcome = "Done"
	// Refused: MySQL was not touched.
	Refused Outcome = "Refused"
	// Failed: MySQL answered with an error after it was touched.
	Failed Outcome = "Failed"
	// Unsure: no answer came; a statement may still be under way inside mysqld.
	Unsure Outcome = "Unsure"
)

// Opened is the state after an opening. Everything but Done and Refused leads to a fence at the next decision.
func Opened(s State, outcome Outcome) State {
	s.changing = false
	s.change++
	switch outcome {
	case Done:
		s.seen.Writable, s.seen.SuperReadOnly, s.seen.Offline = true, false, false
	case Refused:
		if s.seen.SuperReadOnly {
			s = closed(s)
		} // else it was open before, with its clients kept out, and still is
	case Failed:
		// It may be open, but that is not proven: fence, and begin again.
		s.openEpoch = 0
	case Unsure:
		s.openEpoch, s.unsure = 0, true
	}
	return s
}

// Interrupted is the state of a sidecar that just started, if the run before it ended while it was opening writes in the
// given processes (empty: not known). That opening counts as this run's own with an unknown outcome: its statement may
// still be under way inside mysqld, unless that mysqld has ended (I1).
func Interrupted(s State, process string) State {
	s.unsure, s.interrupted = true, process
	return s
}

// Unsure is true while the statement of an opening may still be under way inside mysqld.
func (s State) Unsure() bool { return s.unsure }
