// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// These tests ask single conditions that another one hides in the whole: their order may change.

// keptOut is the facts of a MySQL with its clients kept out.
func keptOut(f Facts) Facts {
	f.Offline = true
	return f
}

// reopened is a site that had a KeepOut without an answer and was opened afterwards.
func reopened(s State) State { return Opened(Opening(s), Done) }

// TestAKeepOutThatCameLateI1: a KeepOut had no answer and took effect after the opening. It alone is lifted, and only once that is seen.
func TestAKeepOutThatCameLateI1(t *testing.T) {
	now := at(2 * time.Second)
	late := reopened(KeptOut(Fencing(closedSite()), false))
	other := keptOut(writable)
	other.Process = "8"
	letIn, ask := Decision{Do: LetIn, Why: KeptOutLate}, Decision{Do: Ask, Why: ClosedButNamed}
	for name, c := range map[string]struct {
		state State
		want  Decision
	}{
		"it is seen":                                 {observe(late, keptOut(writable)), letIn},
		"it did not take effect":                     {observe(late, writable), Decision{Do: Nothing}},
		"while MySQL is changed":                     {Fencing(observe(late, keptOut(writable))), ask},
		"a later one was answered":                   {observe(reopened(KeptOut(KeptOut(closedSite(), false), true)), keptOut(writable)), letIn},
		"it had an answer":                           {observe(reopened(KeptOut(closedSite(), true)), keptOut(writable)), ask},
		"nobody kept anybody out but a person":       {observe(openSite(), keptOut(writable)), ask},
		"it was lifted":                              {LetClientsIn(observe(late, keptOut(writable)), true), Decision{Do: Nothing}},
		"it could not be lifted":                     {LetClientsIn(observe(late, keptOut(writable)), false), letIn},
		"its process ended, and a person set it":     {observe(reopened(observe(observe(KeptOut(closedSite(), false), Facts{}), readOnly)), keptOut(writable)), ask},
		"another process runs, and a person set it":  {observe(reopened(observe(KeptOut(closedSite(), false), Facts{Running: true, Process: "8", Answered: true, SuperReadOnly: true})), other), ask},
		"somebody set read_only, and nothing else":   {observe(openSite(), Facts{Running: true, Process: "7", Answered: true}), ask},
		"an open site that does not answer any more": {observe(observe(late, keptOut(writable)), Facts{Running: true, Process: "7"}), Decision{Do: Nothing}},
	} {
		if got := Decide(c.state, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if keptOutLate(observe(KeptOut(closedSite(), false), keptOut(readOnly))) {
		t.Error("I1: who is not open has its clients let in")
	}
	if s := KeptOut(observe(closedSite(), keptOut(readOnly)), false); !s.Seen().Offline {
		t.Error("a KeepOut that failed lets somebody in")
	}
	if s := LetClientsIn(openSite(), false); s.Seen().Offline {
		t.Error("clients are kept out by nobody")
	}
}

// TestReadersAreLetInOnlyByWhoSees: MySQL that is being changed, cloned, or not seen is left alone.
func TestReadersAreLetInOnlyByWhoSees(t *testing.T) {
	replica := func(f Facts) State {
		return observe(keep(adopt(observe(newSite(), readOnly), fromOperator(statement(6, "b"), 0), at(0))), keptOut(f))
	}
	cloning, gone := readOnly, readOnly
	cloning.Cloning, gone.Running = true, false
	silent := Facts{Running: true, Process: "7"}
	if d := Decide(replica(readOnly), at(0)); d.Do != Release {
		t.Fatalf("%+v", d)
	}
	for name, s := range map[string]State{
		"changed":    Fencing(replica(readOnly)),
		"cloned":     replica(cloning),
		"silent":     observe(replica(readOnly), silent),
		"not there":  replica(gone),
		"to be open": observe(adopt(replica(readOnly), pushed(statement(7, "a")), at(0)), keptOut(cloning)),
	} {
		if d := Decide(s, at(0)); d.Do != Nothing {
			t.Errorf("%s: %+v", name, d)
		}
	}
	held := statement(6, "a")
	held.Hold = true
	s := keep(adopt(observe(newSite(), readOnly), fromOperator(held, 0), at(0)))
	if d := Decide(observe(s, silent), at(0)); d.Do != Nothing {
		t.Errorf("a statement is sent to a MySQL that does not answer: %+v", d)
	}
	if aboutToOpen(closedSite()) {
		t.Error("who was isolated and is named passes for one that is to be opened")
	}
	if clientsKeptOut(observe(observe(openSite(), keptOut(writable)), silent), at(0)) {
		t.Error("what was seen before it fell silent passes for what is")
	}
}

// TestSilenceKeepsTheFlags: what was not read again is not known to have changed.
func TestSilenceKeepsTheFlags(t *testing.T) {
	s := observe(closedSite(), Facts{Running: true, Process: "7"})
	if f := s.Seen(); !f.SuperReadOnly || f.Writable {
		t.Errorf("%+v", f)
	}
	if f := observe(openSite(), Facts{Running: true, Process: "7"}).Seen(); !f.Writable {
		t.Errorf("%+v", f)
	}
}

// TestAnOpeningThatIsNotOverIsInNoWindowI1: a window covers what is behind offline_mode for good.
func TestAnOpeningThatIsNotOverIsInNoWindowI1(t *testing.T) {
	s := statement(6, "b")
	s.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: noon.Add(time.Hour)}}
	open := observe(adopt(observe(newSite(), readOnly), pushed(s), at(0)), keptOut(writable))
	if d := Decide(open, at(0)); d.Do != Nothing || d.Why != InWindow {
		t.Fatalf("%+v", d)
	}
	if left, changes := NextChange(open, at(time.Minute)); !changes || left != 59*time.Minute {
		t.Errorf("it ends in %s, %t", left, changes)
	}
	open.unsure = true
	if d := Decide(open, at(0)); d.Do != Fence || !d.Kill {
		t.Errorf("I1: %+v", d)
	}
}

// TestWhatIsUnknownNamesNobodyI3: without an epoch nothing was said, whatever else is written there.
func TestWhatIsUnknownNamesNobodyI3(t *testing.T) {
	none := statement(0, "a")
	none.Hold = true
	s := observe(Boot(newSite().site, Limits{Lease: time.Minute}, Kept{Statement: none}, at(0)), readOnly)
	if changeUnderWay(s, at(0)) || s.Names() {
		t.Error("a statement without an epoch names somebody")
	}
	none.Hold = false
	s = observe(Boot(newSite().site, Limits{Lease: time.Minute}, Kept{Statement: none}, at(0)), readOnly)
	if d := Decide(s, at(0)); d.Do != Nothing {
		t.Errorf("%+v", d)
	}
	if _, due := Unkept(adopt(newSite(), fromOperator(statement(0, ""), 0), at(0))); due {
		t.Error("it is written to the volume")
	}
}

// TestALookThatOverlapsAChangeI4: every beginning and every end of a change ends the looks that were begun before.
func TestALookThatOverlapsAChangeI4(t *testing.T) {
	for name, change := range map[string]func(State) State{
		"Opening":      Opening,
		"Opened":       func(s State) State { return Opened(s, Done) },
		"Fencing":      Fencing,
		"Fenced":       func(s State) State { return Fenced(s, LastFence{}, true) },
		"KeptOut":      func(s State) State { return KeptOut(s, true) },
		"LetClientsIn": func(s State) State { return LetClientsIn(s, true) },
	} {
		s := closedSite()
		if change(s).Change() == s.Change() {
			t.Errorf("I4: %s leaves looks standing", name)
		}
	}
	for name, ended := range map[string]func(State) State{
		"KeptOut":      func(s State) State { return KeptOut(s, true) },
		"LetClientsIn": func(s State) State { return LetClientsIn(s, true) },
	} {
		s := ended(Fencing(closedSite()))
		if _, taken := Observe(s, readOnly, s.Change()); !taken {
			t.Errorf("%s leaves a change under way", name)
		}
	}
}

// TestAMarkIsGoneOnceItIsJudgedI1: an earlier run's mark says nothing of an opening of this run, also in the same processes.
func TestAMarkIsGoneOnceItIsJudgedI1(t *testing.T) {
	silent := Facts{Running: true, Process: "8"}
	s := observe(Interrupted(newSite(), "7"), silent)
	if s.Unsure() {
		t.Fatal("the process of the mark has ended")
	}
	if s = observe(Opened(Opening(s), Unsure), silent); !s.Unsure() {
		t.Error("I1: an opening that was cut off passes for one of a process that has ended")
	}
}

// TestHowAnOpeningEnds: each outcome, read from the state.
func TestHowAnOpeningEnds(t *testing.T) {
	done := Opened(Opening(closedSite()), Done)
	if f := done.Seen(); !f.Writable || f.SuperReadOnly || f.Offline || !done.Open() || done.Unsure() {
		t.Errorf("done: %+v", done)
	}
	refused := Opened(Opening(closedSite()), Refused)
	if refused.Exposed() || refused.Open() || refused.Unsure() {
		t.Errorf("refused before it was touched: %+v", refused)
	}
	if again := Opened(Opening(openSite()), Refused); !again.Exposed() || !again.Open() {
		t.Errorf("what was open is closed by a refusal: %+v", again)
	}
	if failed := Opened(Opening(closedSite()), Failed); failed.Open() || !failed.Exposed() || failed.Unsure() {
		t.Errorf("failed: %+v", failed)
	}
	if unsure := Opened(Opening(closedSite()), Unsure); unsure.Open() || !unsure.Exposed() || !unsure.Unsure() {
		t.Errorf("unsure: %+v", unsure)
	}
	strange := Opening(closedSite())
	if strange = Opened(strange, "other"); strange.Unsure() {
		t.Error("an outcome that there is not is taken for another one")
	}
}

// TestWhatIsTold: the answers that shells and reports are given.
func TestWhatIsTold(t *testing.T) {
	now := at(2 * time.Second)
	open := openSite()
	if !open.Serves() || observe(open, keptOut(writable)).Serves() || observe(closedSite(), writable).Serves() ||
		observe(open, Facts{Running: true, Process: "7", Answered: true}).Serves() {
		t.Error("who serves is told wrong")
	}
	if open.Leaving() || !Leave(open).Leaving() {
		t.Error("who leaves is told wrong")
	}
	if _, changes := NextChange(closedSite(), now); changes {
		t.Error("time alone changes a closed site")
	}
	if left, changes := NextChange(open, now); !changes || left != LeaseLeft(open, now) || left <= 0 {
		t.Errorf("an open one changes in %s, %t", left, changes)
	}
	if r := Report(observe(Interrupted(newSite(), ""), Facts{Running: false, Process: "7"}), now); r.MysqldRunning {
		t.Errorf("what has ended is told to run: %+v", r)
	}
	unsure := Opened(Opening(newSite()), Unsure)
	if r := Report(unsure, now); !r.MysqldRunning || r.Answered || r.Fenced {
		t.Errorf("I1: %+v", r)
	}
	last := LastFence{Cause: wire.FenceIsolation, Stage: wire.FenceKillSessions}
	s := Fenced(Fencing(open), last, true)
	if s = Fenced(Fencing(s), LastFence{}, true); s.Last() != last {
		t.Errorf("letting readers in is told as the last fence: %+v", s.Last())
	}
}

// TestRefusalsOfAnOpeningAloneI1I2: conditions that another guard hides.
func TestRefusalsOfAnOpeningAloneI1I2(t *testing.T) {
	s := closedSite()
	word := opening{word: fromOperator(statement(5, "b"), time.Second), now: at(time.Second)}
	if !notTheNewest(s, word) {
		t.Error("I1: another site under the same epoch")
	}
	word = opening{word: fromOperator(statement(5, "a"), time.Second), now: at(time.Second)}
	if fenceDue(s, word) || !fenceDue(Opening(s), word) {
		t.Error("I2: an opening beside a change")
	}
	gone := readOnly
	gone.Running = false
	s.seen = gone
	if !mysqlSilent(s, word) {
		t.Error("an answer of a process that has ended")
	}
}

// TestAWordThatIsNewer: what is told of an adoption.
func TestAWordThatIsNewer(t *testing.T) {
	for epoch, newer := range map[int64]bool{5: false, 6: true} {
		if _, a := Adopt(closedSite(), pushed(statement(epoch, "a")), at(time.Second)); !a.Taken || a.Newer != newer {
			t.Errorf("epoch %d: %+v", epoch, a)
		}
	}
}

// TestWhatIsWrittenAgainI5: each part of a statement that means something is written to the volume when it changes.
func TestWhatIsWrittenAgainI5(t *testing.T) {
	window := wire.Window{Site: "a", Purpose: wire.WindowClone, Deadline: noon}
	full := statement(5, "a")
	full.Windows = []wire.Window{window}
	if !sameMeaning("a", full, full) {
		t.Fatal("it is the same")
	}
	for name, change := range map[string]func(*wire.Statement){
		"namespace": func(s *wire.Statement) { s.Namespace = "other" },
		"group":     func(s *wire.Statement) { s.Group = "other" },
		"site":      func(s *wire.Statement) { s.ActiveSite = "b" },
		"epoch":     func(s *wire.Statement) { s.Epoch++ },
		"hold":      func(s *wire.Statement) { s.Hold = true },
		"lease":     func(s *wire.Statement) { s.LeaseTimeoutMillis++ },
		"window":    func(s *wire.Statement) { s.Windows = nil },
		"window's site": func(s *wire.Statement) {
			s.Windows = []wire.Window{{Site: "b", Purpose: window.Purpose, Deadline: window.Deadline}}
		},
		"window's purpose": func(s *wire.Statement) {
			s.Windows = []wire.Window{{Site: "a", Purpose: "other", Deadline: window.Deadline}}
		},
		"window's end": func(s *wire.Statement) {
			s.Windows = []wire.Window{{Site: "a", Purpose: window.Purpose, Deadline: noon.Add(time.Second)}}
		},
	} {
		changed := full
		change(&changed)
		if sameMeaning("a", full, changed) {
			t.Errorf("I5: another %s is not written", name)
		}
	}
	// While another site is cloned, each statement has a later deadline for it. Writing each would bind the lease to the disk.
	others := full
	others.Windows = []wire.Window{{Site: "b", Purpose: window.Purpose, Deadline: noon.Add(time.Second)}, window}
	if !sameMeaning("a", full, others) || !sameMeaning("a", others, full) {
		t.Error("another site's window is written")
	}
	if _, due := Unkept(closedSite()); due {
		t.Error("what is on the volume is written again")
	}
	s := keep(adopt(newSite(), pushed(statement(5, "a")), at(0)))
	if k, due := Unkept(adopt(s, fromOperator(statement(5, "a"), 0), at(0))); !due || !k.Heard {
		t.Error("I5: it is not written that the operator was heard")
	}
	old := Boot(newSite().site, Limits{Lease: time.Minute}, Kept{Statement: statement(5, "a"), Heard: true}, at(0))
	if k, due := Unkept(adopt(old, pushed(statement(5, "a")), at(0))); !due || !k.Verified {
		t.Error("I5: it is not written that its signature fits")
	}
}
