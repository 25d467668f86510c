// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

func TestObserve(t *testing.T) {
	silent := Facts{Running: true, Process: "7"}
	for name, tc := range map[string]struct {
		reason  string
		from    State
		facts   Facts
		exposed bool
		open    bool
	}{
		"open and seen writable":  {"nothing happened", openSite(), writable, true, true},
		"open and silent":         {"silence proves nothing", openSite(), silent, true, true},
		"open and seen read-only": {"whoever fenced it, only the boot rule opens again", openSite(), readOnly, false, false},
		"open and gone":           {"no process accepts no commit", openSite(), Facts{}, false, false},
		"open and another process": {
			"mysqld starts fenced", openSite(), Facts{Running: true, Process: "8"}, false, false,
		},
		"another process, writable": {
			"what another process opened is not what was opened here", openSite(),
			Facts{Running: true, Process: "8", Answered: true, Writable: true}, true, false,
		},
		"read_only without super_read_only": {
			"a privileged account can commit", closedSite(), Facts{Running: true, Process: "7", Answered: true}, true, false,
		},
		"open, and which process runs cannot be seen": {
			"it may be the same one", openSite(), Facts{Running: true}, true, true,
		},
		"open, and a second process beside it": {
			"somebody asked mysqld for its version", openSite(), Facts{Running: true, Process: "7 9"}, true, true,
		},
		"booting and silent": {"an earlier run may have opened it", newSite(), silent, true, false},
		"booting and gone":   {"nothing to fence", newSite(), Facts{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := observe(tc.from, tc.facts)
			if s.Exposed() != tc.exposed || s.Open() != tc.open {
				t.Errorf("%s: exposed %v, open %v", tc.reason, s.Exposed(), s.Open())
			}
		})
	}
}

// I3: a look that began before a change must not undo what is known after it.
func TestALookThatOverlapsAChangeIsDroppedI3(t *testing.T) {
	s := closedSite()
	before := s.Change()
	s = Opening(s)
	during := s.Change()
	if got, taken := Observe(s, readOnly, during); taken || !got.Open() {
		t.Error("a look during the opening closed it")
	}
	s = Opened(s, Done)
	for _, change := range []uint64{before, during} {
		if got, taken := Observe(s, readOnly, change); taken || !got.Open() {
			t.Error("a look from before the opening closed it")
		}
	}
	during = s.Change()
	s = Fenced(Fencing(s), LastFence{wire.FenceMismatch, wire.FenceReadOnly}, true)
	if got, taken := Observe(s, writable, during); taken || got.Exposed() {
		t.Error("a look from before the fence exposed it")
	}
}

// I1: a process that was hidden for a moment is not another one when it is seen again.
func TestAHiddenProcessIsNotANewOneI1(t *testing.T) {
	s := observe(observe(openSite(), Facts{Running: true}), Facts{Running: true, Process: "7"})
	if !s.Open() {
		t.Error("the same process was taken for another")
	}
	s = observe(observe(openSite(), Facts{Running: true, Process: "7 9"}), Facts{Running: true, Process: "7"})
	if !s.Open() {
		t.Error("the end of a second process was taken for the end of the first")
	}
}

func TestSilenceKeepsTheLastAnswers(t *testing.T) {
	f := writable
	f.Offline = true
	s := observe(observe(closedSite(), f), Facts{Running: true, Process: "7"})
	if !s.seen.Offline || !s.seen.Writable || s.seen.Answered {
		t.Errorf("got %+v", s.seen)
	}
}

func TestOutcomesOfAnOpening(t *testing.T) {
	for outcome, want := range map[Outcome]Decision{
		Done:    {Do: Nothing},
		Refused: {Do: Ask, Why: ClosedButNamed},
		Failed:  {Do: Fence, Cause: wire.FenceUnproven, Why: NotOpenedHere},
		Unsure:  {Do: Fence, Cause: wire.FenceUnproven, Why: OpeningUnsure, Kill: true},
	} {
		s := Opened(Opening(closedSite()), outcome)
		if diff := cmp.Diff(want, Decide(s, at(2*time.Second))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", outcome, diff)
		}
	}
}

// I1: a statement that opens may still be under way inside mysqld; only the end of the process proves anything.
func TestAnUnsureOpeningEndsOnlyWithTheProcessI1(t *testing.T) {
	s := Opened(Opening(closedSite()), Unsure)
	s = observe(s, readOnly)
	if !s.Exposed() {
		t.Error("a look that saw read-only is no proof")
	}
	if r := Report(s, at(0)); r.FencedUnder(1) || r.Answered || !r.MysqldRunning {
		t.Errorf("a report that saw read-only is no proof: %+v", r)
	}
	s = Fenced(Fencing(s), LastFence{wire.FenceUnproven, wire.FenceReadOnly}, true)
	if !s.Exposed() {
		t.Error("a fence that was read back is no proof")
	}
	if r := Report(s, at(0)); r.FencedUnder(1) || r.Answered || !r.MysqldRunning {
		t.Errorf("nor after a fence that was read back: %+v", r)
	}
	if got := observe(s, Facts{}); got.Exposed() || !Report(got, at(0)).FencedUnder(1) {
		t.Error("the process is gone")
	}
	if got := Fenced(Fencing(s), LastFence{wire.FenceUnproven, wire.FenceKillServer}, true); got.Exposed() {
		t.Error("the process was killed")
	}
}

func TestALadderWithoutProofClosesNothing(t *testing.T) {
	s := adopt(openSite(), pushed(statement(6, "b")), at(2*time.Second))
	s = Fenced(Fencing(s), LastFence{}, false)
	if d := Decide(s, at(2*time.Second)); d.Do != Fence {
		t.Errorf("got %+v", d)
	}
}

// I2: epochs that follow directly leave no room for another site.
func TestTheNextEpochOfTheSameSiteGoesOnI2(t *testing.T) {
	now := at(2 * time.Second)
	s := adopt(openSite(), pushed(statement(6, "a")), now)
	if d := Decide(s, now); d.Do != Nothing {
		t.Errorf("epoch 6 follows 5: %+v", d)
	}
	s = adopt(adopt(openSite(), pushed(statement(6, "b")), now), pushed(statement(7, "a")), now)
	if d := Decide(s, now); d.Why != MissedEpoch {
		t.Errorf("b may have been open under epoch 6: %+v", d)
	}
}

func TestHoldLeavesAnOpenSiteAlone(t *testing.T) {
	st := statement(5, "a")
	st.Hold = true
	s := adopt(openSite(), fromOperator(st, 2*time.Second), at(2*time.Second))
	if d := Decide(s, at(2*time.Second)); d.Do != Nothing {
		t.Errorf("got %+v", d)
	}
	if d := Decide(observe(s, readOnly), at(2*time.Second)); d.Do != KeepOut {
		t.Errorf("nobody opens on hold, so nobody asks, and nobody gets in: %+v", d)
	}
}

func TestWindows(t *testing.T) {
	st := statement(5, "b")
	st.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: noon.Add(time.Minute)}}
	s := keep(adopt(observe(newSite(), readOnly), fromOperator(st, time.Second), at(time.Second)))
	offline := writable
	offline.Offline = true

	in := observe(s, offline)
	if d := Decide(in, at(59*time.Second)); d.Do != Nothing || d.Why != InWindow {
		t.Errorf("behind offline_mode, with the lease long over: %+v", d)
	}
	if left, ok := NextChange(in, at(50*time.Second)); !ok || left != 10*time.Second {
		t.Errorf("next change in %v, %v", left, ok)
	}
	if d := Decide(in, at(time.Minute)); d.Cause != wire.FenceWindowEnd {
		t.Errorf("at the deadline: %+v", d)
	}
	if d := Decide(observe(s, writable), at(time.Second)); d.Cause != wire.FenceMismatch {
		t.Errorf("in front of clients: %+v", d)
	}
	if d := Decide(adopt(in, fromOperator(statement(5, "b"), time.Second), at(time.Second)), at(time.Second)); d.Do != Fence {
		t.Errorf("the operator took the window back: %+v", d)
	}
	other := st
	other.Windows = []wire.Window{{Site: "c", Purpose: wire.WindowClone, Deadline: noon.Add(time.Minute)}}
	if d := Decide(adopt(in, fromOperator(other, time.Second), at(time.Second)), at(time.Second)); d.Do != Fence {
		t.Errorf("another site's window: %+v", d)
	}
	// A sidecar that restarts during a clone leaves it alone, and its startup fence is still due afterwards.
	again := observe(Boot(s.site, s.limits, s.kept, at(2*time.Second)), offline)
	if d := Decide(again, at(2*time.Second)); d.Do != Nothing {
		t.Errorf("restarted inside the window: %+v", d)
	}
	if d := Decide(again, at(time.Minute)); d.Cause != wire.FenceStartup {
		t.Errorf("restarted, then the deadline: %+v", d)
	}
}

// I4: the shorter lease counts, because the operator waits for what it said.
func TestAStatementShortensTheLeaseI4(t *testing.T) {
	for told, want := range map[int64]time.Duration{0: 20, 5_000: 5, 60_000: 20} {
		st := statement(5, "a")
		st.LeaseTimeoutMillis = told
		s := adopt(closedSite(), fromOperator(st, time.Second), at(time.Second))
		if got := LeaseLeft(s, at(time.Second)); got != want*time.Second {
			t.Errorf("told %d: got %v", told, got)
		}
	}
}

func TestNoLeaseBeforeTheFirstExchangeI4(t *testing.T) {
	s := adopt(newSite(), pushed(statement(5, "a")), at(0))
	if left := LeaseLeft(s, at(0)); left != 0 {
		t.Errorf("a push gave a lease of %v", left)
	}
}

func TestVouchedTellsTheAgeOfAnswersUnderLowerEpochs(t *testing.T) {
	s := closedSite()
	answer := func(site string, d time.Duration) {
		t.Helper()
		var r Refusal
		if s, _, r = Answer(s, site, at(d)); r.Reason != "" {
			t.Fatalf("%s: %+v", site, r)
		}
	}
	answer("c", 2*time.Second)
	answer("b", 3*time.Second)
	answer("c", 4*time.Second)
	if got := Vouched(s, at(5*time.Second)); len(got) != 0 {
		t.Errorf("all was answered under the present epoch: %v", got)
	}
	s = keep(adopt(s, pushed(statement(6, "b")), at(5*time.Second)))
	answer("b", 6*time.Second)
	want := []wire.Vouch{{Site: "b", AgeMillis: 4000}, {Site: "c", AgeMillis: 3000}}
	if diff := cmp.Diff(want, Vouched(s, at(7*time.Second))); diff != "" {
		t.Errorf("epoch 6 (-want +got):\n%s", diff)
	}
	s = keep(adopt(s, pushed(statement(7, "b")), at(8*time.Second)))
	want = []wire.Vouch{{Site: "b", AgeMillis: 3000}, {Site: "c", AgeMillis: 5000}}
	if diff := cmp.Diff(want, Vouched(s, at(9*time.Second))); diff != "" {
		t.Errorf("epoch 7 (-want +got):\n%s", diff)
	}
}

// A report tells of everybody who was answered. A stranger's name in it, or thousands of them, would make it too long for
// the operator (I2: what a report does not say, nobody may conclude).
func TestTheTableOfAskersHoldsPeersAloneI2(t *testing.T) {
	s := closedSite()
	for i := range 300 {
		var signed wire.Signed
		var r Refusal
		if s, signed, r = Answer(s, fmt.Sprint("site", i), at(time.Second)); signed != "" || r.Reason != AskerIsNoPeer {
			t.Fatalf("a stranger got %q, %+v", signed, r)
		}
	}
	s, _, _ = Answer(s, "", at(time.Second))
	s, _, _ = Answer(s, "c", at(time.Second))
	s = adopt(s, pushed(statement(6, "b")), at(2*time.Second))
	want := []wire.Vouch{{Site: "c", AgeMillis: 1000}}
	if diff := cmp.Diff(want, Vouched(s, at(2*time.Second))); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatMattersIsWrittenAgain(t *testing.T) {
	s := closedSite()
	later := statement(5, "a")
	later.IssuedAt = noon
	if _, due := Unkept(adopt(s, fromOperator(later, 2*time.Second), at(2*time.Second))); due {
		t.Error("the same statement, issued later, was to be written")
	}
	for name, change := range map[string]func(*wire.Statement){
		"epoch":  func(st *wire.Statement) { st.Epoch++ },
		"hold":   func(st *wire.Statement) { st.Hold = true },
		"lease":  func(st *wire.Statement) { st.LeaseTimeoutMillis++ },
		"window": func(st *wire.Statement) { st.Windows = []wire.Window{{Site: "a"}} },
		// I3: with it the key before is not trusted any more, also after a restart.
		"key": func(st *wire.Statement) { st.Keys = wire.Chain{{Key: []byte("the next key")}} },
	} {
		st := statement(5, "a")
		change(&st)
		got := adopt(s, fromOperator(st, 2*time.Second), at(2*time.Second))
		if _, due := Unkept(got); !due {
			t.Errorf("%s: not written", name)
		}
		if _, due := Unkept(keep(got)); due {
			t.Errorf("%s: written again", name)
		}
	}
	if _, due := Unkept(newSite()); due {
		t.Error("nothing is known, and it was to be written")
	}
	if got := Keep(s, Kept{Statement: statement(4, "a")}); got.Epoch() != 5 {
		t.Errorf("a late write lowered the epoch to %d", got.Epoch())
	}
}

func TestReport(t *testing.T) {
	s := adopt(openSite(), pushed(statement(6, "b")), at(2*time.Second))
	s = Fenced(Fencing(s), LastFence{wire.FenceMismatch, wire.FenceKillSessions}, true)
	want := wire.Report{
		Site: "a", Epoch: 5, ActiveSite: "a", MysqldRunning: true, Answered: true, SuperReadOnly: true,
		FenceCause: wire.FenceMismatch, FenceStage: wire.FenceKillSessions, Vouched: []wire.Vouch{}, UptimeMillis: 3000, LeaseMillis: new(int64(18_000)),
	}
	if diff := cmp.Diff(want, Report(s, at(3*time.Second))); diff != "" {
		t.Errorf("before epoch 6 is durable (-want +got):\n%s", diff)
	}
	if got := Report(keep(s), at(3*time.Second)); got.Epoch != 6 || got.ActiveSite != "b" || !got.FencedUnder(6) {
		t.Errorf("after: %+v", got)
	}
}

// I2: a mysqld that cannot start comes and goes, and answers nobody. Whenever the operator asks, that is proof; otherwise the
// failover would wait for a moment at which none runs.
func TestACrashLoopIsProofI2(t *testing.T) {
	silent := func(process string) Facts { return Facts{Running: true, Process: process} }
	for name, tc := range map[string]struct {
		reason string
		state  State
		proof  bool
	}{
		"open, ended, tries again": {
			"it ended, and every mysqld starts read-only", observe(observe(openSite(), Facts{}), silent("8")), true,
		},
		"and once more": {"nor does the next", observe(observe(observe(openSite(), Facts{}), silent("8")), silent("9")), true},
		"read-only, then silent": {
			"a person may have opened it while it does not answer here", observe(observe(openSite(), readOnly), silent("7")), false,
		},
		"came back, then silent": {
			"the same", observe(observe(observe(openSite(), Facts{}), Facts{Running: true, Process: "8", Answered: true, SuperReadOnly: true}), silent("8")), false,
		},
		"open and silent": {"it may accept commits all the same", observe(openSite(), silent("7")), false},
		"another process where one was open": {
			"nobody saw the datadir free: a mysqld that cannot be seen from here may hold it, open", observe(openSite(), silent("8")), false,
		},
		"tries beside a mysqld of an older pod": {
			"each fails because that one holds the datadir, and it may be open",
			observe(observe(observe(newSite(), silent("8")), silent("")), silent("9")), false,
		},
		"opened again":       {"it was opened since", observe(Opened(Opening(observe(openSite(), Facts{})), Done), silent("7")), false},
		"opened by somebody": {"it was seen writable since", observe(observe(observe(openSite(), Facts{}), writable), silent("7")), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report(tc.state, at(0))
			if !r.MysqldRunning || r.Answered || r.FencedUnder(r.Epoch) != tc.proof {
				t.Errorf("%s: %+v", tc.reason, r)
			}
		})
	}
}
