// SPDX-License-Identifier: Apache-2.0

// Package fence decides whether the MySQL beside this sidecar may accept commits: when it is fenced, when it is
// opened, and what this sidecar tells its peers. It is pure: state and facts in, a decision out. It does no I/O and
// reads no clock. docs/internals/fence.md is its prose, docs/internals/invariants.md numbers what it guarantees:
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
	// Peers names the other sites of the group that this pod was started with. This sidecar vouches for no other.
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
	// Fence is how long the fencing ladder may take.
	Fence time.Duration
}

// Facts is one look at MySQL.
type Facts struct {
	// Running is false only if no mysqld process exists in the pod and no process holds the datadir.
	Running bool
	// Process names the running processes, separated by spaces; each name stands for one process for ever. It is empty
	// if none could be seen.
	Process string
	// Answered is true if MySQL answered SQL; the fields below are known only then.
	Answered bool
	// SuperReadOnly is the fence; without it a privileged account can commit. Writable is true if every account can commit.
	SuperReadOnly bool
	Writable      bool
	Offline       bool
	// Replicates is true if a replication channel is configured.
	Replicates bool
	Cloning    bool
	// Watched is true if the supervisor of mysqld looks at its deadline.
	Watched bool
}

// LastFence says how the site was last fenced.
type LastFence struct {
	Cause wire.FenceCause
	Stage wire.FenceStage
}

// State is all that the decisions depend on. It is a value: every function returns the next one. The invariants of its
// fields, with word.Epoch = 0 for "none yet":
//
//	kept.Epoch <= word.Epoch            the epoch on disk is never newer than the one known
//	openEpoch <= word.Epoch             nothing is open under an epoch that was not heard
//	openEpoch > 0  implies  exposed     what was opened may accept commits
//	shut  implies  not exposed          nothing opened a MySQL that has not answered since it started
type State struct {
	site    Site
	limits  Limits
	started time.Duration

	// word is the newest statement known, signed is its signed form.
	word     wire.Statement
	signed   wire.Signed
	verified bool
	// heard is true once the operator itself answered a nonce of this site: see notHeard.
	heard bool
	// kept is what the data volume holds.
	kept Kept
	// good is when this run sent the request of its last good exchange, if there was one.
	good    time.Duration
	hasGood bool

	// starting is true until MySQL was once seen fenced or not running; leaving is true once this run ends.
	starting bool
	leaving  bool
	// exposed is true unless MySQL is known to accept no commit: not running, read-only, or newly started.
	exposed bool
	// shut is true from when no MySQL was seen running and no process held the datadir, until one answers: any mysqld started since
	// started read-only. For exposed to be false less is enough: a new process, even if another one holds the datadir.
	shut bool
	// openEpoch is the epoch under which this run opened writes; 0 if it did not, or if they were closed since.
	openEpoch int64
	// unsure is true after an opening that was cut off: its statement may still be under way inside mysqld.
	unsure bool
	// interrupted names the processes in which an earlier run was opening writes, until a look shows whether one of them runs.
	interrupted string
	// changing is true while MySQL is being opened or fenced. change grows when that begins and when it ends: see Observe.
	changing bool
	change   uint64
	seen     Facts
	last     LastFence

	// prepared is how many prepared XA transactions the last look found, preparedAt when a look last found one, if ever.
	prepared    int
	preparedAt  time.Duration
	hasPrepared bool
	// keepOutUnsure is true after a KeepOut without an answer: its statement may still be under way inside mysqld.
	keepOutUnsure bool

	vouched vouches
}

// Boot is the state of a sidecar that just started, with what its data volume holds. MySQL counts as exposed until the
// first look at it: an earlier run may have opened it.
func Boot(site Site, limits Limits, kept Kept, now Instant) State {
	return State{
		site: site, limits: limits, started: now.Mono,
		word: kept.Statement, signed: kept.Signed, verified: kept.Verified, heard: kept.Heard, kept: kept,
		starting: true, exposed: true,
	}
}

// Observe takes in one look at MySQL that began when State.Change was the given number. A look that overlaps an
// opening or a fence says nothing about MySQL after it, so Observe drops it and returns false: an old "read-only" must
// not close what was just opened, and an old "writable" must not fence again what was just fenced.
func Observe(s State, f Facts, change uint64) (State, bool) {
	if s.changing || change != s.change {
		return s, false
	}
	if f.Running && f.Process == "" {
		// Which mysqld runs is not known: it may still be the same one.
		f.Process = s.seen.Process
	}
	if s.interrupted != "" && f.Process != "" {
		// A statement sent to a mysqld ended with it. Nothing else follows: the mysqld that runs now is judged as at any start.
		s.unsure, s.interrupted = share(s.interrupted, f.Process), ""
	}
	if s.seen.Process != "" && !share(s.seen.Process, f.Process) {
		// A new mysqld runs. my.cnf has super_read_only=ON and persisted_globals_load=OFF, so it started fenced, and the
		// opening ended with its predecessor.
		s = closed(s)
		s.keepOutUnsure = false
	}
	switch {
	case !f.Running:
		s = closed(s)
		s.shut = true
	case !f.Answered:
		// Silence proves nothing: a MySQL that may have been writable still may be. The last answers stay in force.
		f.Writable, f.SuperReadOnly, f.Offline = s.seen.Writable, s.seen.SuperReadOnly, s.seen.Offline
	case !f.SuperReadOnly:
		s.exposed, s.shut = true, false
	case !s.unsure:
		s = closed(s)
		s.shut = false // from here on only its answers count: silence proves nothing
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

// Do is what the sidecar does next.
type Do string

// What the sidecar can do.
const (
	// Nothing: MySQL is as it should be, or the sidecar cannot know better.
	Nothing Do = "Nothing"
	// Fence: MySQL may accept commits and must not.
	Fence Do = "Fence"
	// Ask the operator now: this site should be open and is not.
	Ask Do = "Ask"
	// Release: MySQL is read-only and keeps its readers out with offline_mode. Fence it once more, which lets them in
	// unless a prepared XA transaction could still be committed.
	Release Do = "Release"
	// KeepOut: this site is about to be opened, or an XA transaction is prepared. Keep clients out with offline_mode.
	KeepOut Do = "KeepOut"
	// LetIn: this site is open, but a late statement of KeepOut keeps its clients out. Lift offline_mode.
	LetIn Do = "LetIn"
)

// Decision says what to do, and why.
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
// order; the order only chooses which cause is reported.
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
		// MySQL accepts no commits, and has no reason to: this is the safe state.
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
		// Open by right, but someone set read_only or offline_mode.
		return Decision{Do: Ask, Why: ClosedButNamed}
	}
	return Decision{Do: Nothing}
}

// readersKeptOut: my.cnf starts MySQL with offline_mode=ON, because super_read_only does not refuse the XA COMMIT of a
// transaction that was prepared before (I1). Only a fence looks for these, and it lets readers in if there are none.
// In a window, offline_mode belongs to the work that the window is for.
func readersKeptOut(s State, now Instant) bool {
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	return !open && !s.changing && s.seen.Running && s.seen.Answered && s.seen.Offline && !s.seen.Cloning && mayReach(s, now)
}

// clientsKeptOut: someone set offline_mode on a site that is open by right. The site serves no client, and only this sidecar has
// a use for offline_mode here: it opens the site again, under the boot rule. In a window, offline_mode belongs to the work.
func clientsKeptOut(s State, now Instant) bool {
	_, open := s.word.WindowFor(s.site.Name, now.Wall)
	return !open && s.seen.Answered && s.seen.Offline && s.openEpoch != 0
}

// leaving: this sidecar ends, and no other program would enforce the lease (I4).
func leaving(s State, _ Instant) bool { return s.leaving }

// starting: an earlier run may have left MySQL open, and this one does not know its lease. A restarted sidecar
// fences first and then asks (specification 1.5, startup).
func starting(s State, _ Instant) bool { return s.starting }

// openingUnsure: the connection that was opening writes was cut off. Mysqld may still carry out its statement at any
// time, so read-only now proves nothing; only the end of the process does.
func openingUnsure(s State, _ Instant) bool { return s.unsure }

// noStatement: this site never received a statement of who may write (I3).
func noStatement(s State, _ Instant) bool { return s.word.Epoch == 0 }

// windowOver: MySQL is writable behind offline_mode, as in a window, but no window is open for this site.
func windowOver(s State, _ Instant) bool { return s.seen.Offline && s.openEpoch == 0 }

// namesAnother: the newest statement gives the epoch to another site (I1). The lease does not matter: that site may be
// open already.
func namesAnother(s State, _ Instant) bool { return s.word.ActiveSite != s.site.Name }

// notOpenedHere: the statement names this site, but this run did not open it: something else cleared super_read_only.
// No fresh word of the operator allowed that, so the sidecar closes the site and asks (I3).
func notOpenedHere(s State, _ Instant) bool { return s.openEpoch == 0 }

// missedEpoch: this site was opened under one epoch, and is named again under a later one that does not follow directly.
// Another site may have been open in between, so this opening must end (I2); the boot rule opens the site again.
func missedEpoch(s State, _ Instant) bool { return s.openEpoch != s.word.Epoch }

// behindWindow: the operator lets this site be writable for a while, and offline_mode keeps every client out. This is
// for sites that are not open by right; the closers alone judge an open active site.
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

// Leave is the state of a sidecar that is ending: it fences what is open, and opens nothing any more.
func Leave(s State) State {
	s.leaving = true
	return s
}

// Fencing is the state while the sidecar climbs the fencing ladder.
func Fencing(s State) State {
	s.changing = true
	s.change++
	return s
}

// Fenced is the state after the ladder. The site counts as closed only if the ladder read the fence back or saw the end
// of mysqld; otherwise it stays exposed and the next decision fences again.
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
