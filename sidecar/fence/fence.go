// SPDX-License-Identifier: Apache-2.0

// Package fence decides whether the MySQL beside this sidecar may accept commits: when it is fenced, when it is
// opened, and what this sidecar tells its peers. It is pure: state and facts in, a decision out. It does no I/O and
// reads no clock. docs/fence.md is its prose, docs/internals/invariants.md numbers what it guarantees:
//
//	I1 at most one site accepts commits per epoch
//	I2 no commit is accepted under an old epoch once a newer one is open
//	I3 only a fresh statement of the operator opens
//	I4 without an exchange for leaseTimeout a site is fenced
//	I5 an epoch is durable before it is acknowledged
package fence

import (
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Instant is a moment on two clocks.
type Instant struct {
	// Mono is the time since the sidecar's clock began, on a clock that never jumps and never stops. Leases and the
	// age of answers are counted on it.
	Mono time.Duration
	// Wall is the time of day. Only the deadline of a window, which a person or the operator sets, is compared with it.
	Wall time.Time
}

// Site says which site this sidecar guards.
type Site struct {
	Namespace string
	Group     string
	Name      string
	// Peers names the other sites of the group, as this pod was started with them. Nobody else is vouched for.
	Peers []string
}

// HasPeer is true for the name of another site of the group.
func (s Site) HasPeer(name string) bool { return slices.Contains(s.Peers, name) }

// Limits are the configured durations.
type Limits struct {
	// Lease is how long the site may stay open without a good exchange. A statement can shorten it, never lengthen it.
	Lease time.Duration
	// Opening bounds one attempt to open writes, from the look at MySQL to the read-back.
	Opening time.Duration
	// Fence is the deadline of the ladder.
	Fence time.Duration
}

// Facts is one look at MySQL.
type Facts struct {
	// Running is false only if no mysqld process exists in the pod and nobody holds the datadir.
	Running bool
	// Process names the running processes, separated by spaces; each name stands for one process for ever. It is empty
	// if none could be seen.
	Process string
	// Answered is true if MySQL answered SQL; the fields below are known only then.
	Answered bool
	// SuperReadOnly is the fence; without it a privileged account can commit. Writable is true if nobody is kept from it.
	SuperReadOnly bool
	Writable      bool
	Offline       bool
	// Replicates is true if a replication channel is configured.
	Replicates bool
	Cloning    bool
	// Watched is true if the supervisor of mysqld looks at the deadline that it was told.
	Watched bool
}

// LastFence is how the site was fenced last.
type LastFence struct {
	Cause wire.FenceCause
	Stage wire.FenceStage
}

// State is all that the decisions stand on. It is a value: every function returns the next one. The invariants of its
// fields, with word.Epoch = 0 for "none yet":
//
//	kept.Epoch <= word.Epoch            what is on disk is never newer than what is known
//	openEpoch <= word.Epoch             nothing is open under an epoch that was not heard
//	openEpoch > 0  implies  exposed     what was opened may accept commits
//	shut  implies  not exposed          what has not answered since it started was opened by nobody
type State struct {
	site    Site
	limits  Limits
	started time.Duration

	// word is the newest statement known, signed is how it came.
	word     wire.Statement
	signed   wire.Signed
	verified bool
	// heard is true once the operator itself answered a nonce of this site: see notHeard.
	heard bool
	// kept is what the data volume holds.
	kept Kept
	// good is the send time of the last good exchange of this run, if there was one.
	good    time.Duration
	hasGood bool

	// starting is true until MySQL was seen fenced, or not running, once; leaving is true once this run ends.
	starting bool
	leaving  bool
	// exposed is true unless MySQL is known to accept no commit: not running, read-only, or newly started.
	exposed bool
	// shut is true from when MySQL was seen not to run, with nobody on the datadir, until one answers: whatever was started since
	// started read-only. Not to be exposed takes less: a new process beside a datadir that somebody else holds.
	shut bool
	// openEpoch is the epoch under which this run opened writes; 0 when it did not, or when they were closed since.
	openEpoch int64
	// unsure is true after an opening that was cut off: its statement may still be under way inside mysqld.
	unsure bool
	// interrupted names the processes in which an earlier run was opening writes, until it is seen whether one of them runs.
	interrupted string
	// changing is true while MySQL is being opened or fenced, and change counts these: see Observe.
	changing bool
	change   uint64
	seen     Facts
	last     LastFence

	// prepared is how many prepared XA transactions were seen last, preparedAt when there last was one, if ever.
	prepared    int
	preparedAt  time.Duration
	hasPrepared bool
	// keepOutUnsure is true after a KeepOut without an answer: its statement may still be under way inside mysqld.
	keepOutUnsure bool

	vouched vouches
}

// Boot is the state of a sidecar that just started, with what its data volume holds. MySQL counts as exposed until it
// was looked at: an earlier run may have opened it.
func Boot(site Site, limits Limits, kept Kept, now Instant) State {
	return State{
		site: site, limits: limits, started: now.Mono,
		word: kept.Statement, signed: kept.Signed, verified: kept.Verified, heard: kept.Heard, kept: kept,
		starting: true, exposed: true,
	}
}

// Observe takes in one look at MySQL that was begun when State.Change was the given number. A look that overlaps an
// opening or a fence says nothing about what holds after it, so it is dropped: an old "read-only" must not close what
// was just opened, and an old "writable" must not fence again what was just fenced. It returns false for such a one.
func Observe(s State, f Facts, change uint64) (State, bool) {
	if s.changing || change != s.change {
		return s, false
	}
	if f.Running && f.Process == "" {
		// Which one runs is not known: it may be the one from before.
		f.Process = s.seen.Process
	}
	if s.interrupted != "" && f.Process != "" {
		// What was sent to a mysqld ended with it. Nothing else is concluded: what runs now is judged like at any start.
		s.unsure, s.interrupted = share(s.interrupted, f.Process), ""
	}
	if s.seen.Process != "" && !share(s.seen.Process, f.Process) {
		// Another mysqld runs than before. my.cnf has super_read_only=ON and persisted_globals_load=OFF, so it started
		// fenced, and what was opened ended with its predecessor.
		s = closed(s)
		s.keepOutUnsure = false
	}
	switch {
	case !f.Running:
		s = closed(s)
		s.shut = true
	case !f.Answered:
		// Silence proves nothing: what may have been writable still may be. The last answers stay in force.
		f.Writable, f.SuperReadOnly, f.Offline = s.seen.Writable, s.seen.SuperReadOnly, s.seen.Offline
	case !f.SuperReadOnly:
		s.exposed, s.shut = true, false
	case !s.unsure:
		s = closed(s)
		s.shut = false // from here on its answers tell, and silence proves nothing
	}
	s.seen = f
	return s, true
}

// share is true if two lists of processes have one in common.
func share(before, after string) bool {
	now := strings.Fields(after)
	return slices.ContainsFunc(strings.Fields(before), func(p string) bool { return slices.Contains(now, p) })
}

// closed is the state once MySQL is known to accept no commit. Only the boot rule opens it again (I3).
func closed(s State) State {
	s.exposed, s.openEpoch, s.starting, s.unsure, s.interrupted = false, 0, false, false, ""
	return s
}

// Do is what is to be done.
type Do string

// What can be done.
const (
	// Nothing: MySQL is as it should be, or it cannot be told better.
	Nothing Do = "Nothing"
	// Fence: MySQL may accept commits and must not.
	Fence Do = "Fence"
	// Ask the operator now: this site should be open and is not.
	Ask Do = "Ask"
	// Release: MySQL is read-only and keeps its readers out with offline_mode. Fence it once more, which lets them in
	// unless something could still be committed.
	Release Do = "Release"
	// KeepOut: this site is to be opened and is not yet. Keep clients out with offline_mode until it is.
	KeepOut Do = "KeepOut"
	// LetIn: this site is open, and a statement of KeepOut that came late keeps its clients out. Lift offline_mode.
	LetIn Do = "LetIn"
)

// Decision is what is to be done, and why.
type Decision struct {
	Do    Do
	Cause wire.FenceCause
	Why   Reason
	// Kill skips the rungs of the ladder that speak SQL.
	Kill bool
}

// closer is one reason to fence a MySQL that may accept commits.
type closer struct {
	why    Reason
	cause  wire.FenceCause
	blocks func(State, Instant) bool
}

// closers are all of them; a MySQL that may accept commits stays so only if none blocks. Each is safe alone and in any
// order; the order only chooses the cause that is told.
var closers = []closer{
	{Leaving, wire.FenceShutdown, leaving},
	{Starting, wire.FenceStartup, starting},
	{OpeningUnsure, wire.FenceUnproven, openingUnsure},
	{NoStatement, wire.FenceStartup, noStatement},
	{WindowOver, wire.FenceWindowEnd, windowOver},
	{NamesAnother, wire.FenceMismatch, namesAnother},
	{NotOpenedHere, wire.FenceUnproven, notOpenedHere},
	{MissedEpoch, wire.FenceMismatch, missedEpoch},
	{LeaseOver, wire.FenceIsolation, leaseOver},
}

// Decide says whether MySQL must be fenced now.
func Decide(s State, now Instant) Decision {
	if !s.exposed {
		if shouldBeOpen(s) {
			return Decision{Do: Ask, Why: ClosedButNamed}
		}
		if why := toBeKeptOut(s, now); why != "" {
			return Decision{Do: KeepOut, Why: why}
		}
		if readersKeptOut(s, now) {
			return Decision{Do: Release, Why: ReadersKeptOut}
		}
		// Nothing accepts commits, and nothing asks for it: the safe rest position.
		return Decision{Do: Nothing}
	}
	if behindWindow(s, now) {
		// Safe although writable: offline_mode refuses every client, and the deadline bounds it.
		return Decision{Do: Nothing, Why: InWindow}
	}
	for _, c := range closers {
		if c.blocks(s, now) {
			return Decision{Do: Fence, Cause: c.cause, Why: c.why, Kill: s.unsure}
		}
	}
	if keptOutLate(s) {
		return Decision{Do: LetIn, Why: KeptOutLate}
	}
	if shouldBeOpen(s) && (!s.seen.Writable || clientsKeptOut(s, now)) {
		// Open by right, but somebody set read_only or offline_mode.
		return Decision{Do: Ask, Why: ClosedButNamed}
	}
	return Decision{Do: Nothing}
}

// readersKeptOut: my.cnf starts MySQL with offline_mode=ON, because super_read_only does not refuse the XA COMMIT of a
// transaction that was prepared before (I1). Only a fence looks for such, and lets the readers in when there is none.
// In a window offline_mode is somebody's at work.
func readersKeptOut(s State, now Instant) bool {
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	return !open && !s.changing && s.seen.Running && s.seen.Answered && s.seen.Offline && !s.seen.Cloning && mayReach(s, now)
}

// clientsKeptOut: somebody set offline_mode on a site that is open by right. It serves nobody, and nobody but this sidecar has a
// use for offline_mode here: it is opened again, under the boot rule. In a window it is somebody's at work.
func clientsKeptOut(s State, now Instant) bool {
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	return !open && s.seen.Answered && s.seen.Offline && s.openEpoch != 0
}

// leaving: this sidecar ends, and nobody would keep the lease (I4).
func leaving(s State, _ Instant) bool { return s.leaving }

// starting: a previous run may have left MySQL open, and its lease is not known to this one. A restarted sidecar
// fences first and asks then (specification 1.5, startup).
func starting(s State, _ Instant) bool { return s.starting }

// openingUnsure: the connection that was opening writes was cut off. Its statement may be carried out at any later
// time, so read-only now proves nothing; only the end of the process does.
func openingUnsure(s State, _ Instant) bool { return s.unsure }

// noStatement: nobody ever said who may write (I3).
func noStatement(s State, _ Instant) bool { return s.word.Epoch == 0 }

// windowOver: MySQL is writable behind offline_mode, as in a window, but no window is open for this site.
func windowOver(s State, _ Instant) bool { return s.seen.Offline && s.openEpoch == 0 }

// namesAnother: the newest statement gives the epoch to another site (I1). The lease does not matter: that site may be
// open already.
func namesAnother(s State, _ Instant) bool { return s.word.ActiveSite != s.site.Name }

// notOpenedHere: this site is named, but this run did not open it: somebody else cleared super_read_only. It was not
// compared with what the operator says now, so it is closed and asked for (I3).
func notOpenedHere(s State, _ Instant) bool { return s.openEpoch == 0 }

// missedEpoch: this site was opened under an epoch, and is named again under one that does not follow it directly. In
// between another site may have been open, so what was opened then must not go on (I2); the boot rule opens anew.
func missedEpoch(s State, _ Instant) bool { return s.openEpoch != s.word.Epoch }

// behindWindow: the operator lets this site be writable for a while, and offline_mode keeps every client out. It is
// for sites that are not open by right; an open active site is judged by the closers alone.
func behindWindow(s State, now Instant) bool {
	if !s.seen.Offline || s.openEpoch != 0 || s.unsure {
		// Writable in front of clients, or opened for them: no window covers that.
		return false
	}
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	return open
}

// shouldBeOpen: only asks; what the operator answers decides.
func shouldBeOpen(s State) bool {
	return s.word.Epoch > 0 && s.word.ActiveSite == s.site.Name && !s.word.Hold &&
		s.seen.Answered && !s.seen.Replicates && !s.seen.Cloning
}

// Leave is the state of a sidecar that was told to end: what is open is fenced, and nothing is opened any more.
func Leave(s State) State {
	s.leaving = true
	return s
}

// Fencing is the state while the fencing ladder is climbed.
func Fencing(s State) State {
	s.changing = true
	s.change++
	return s
}

// Fenced is the state after the ladder. Only a ladder that read the fence back, or saw the end of mysqld, closes;
// after any other the site stays exposed and the next decision fences again.
func Fenced(s State, last LastFence, proven bool) State {
	s.changing = false
	s.change++
	if !proven || (s.unsure && last.Stage != wire.FenceKillServer) {
		return s
	}
	if last.Cause != "" {
		s.last = last
	}
	s = closed(s)
	s.seen.Writable, s.seen.SuperReadOnly, s.seen.Offline = false, true, false
	return s
}
