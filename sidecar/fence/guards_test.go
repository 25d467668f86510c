// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at is a moment so long after the start of the test's clocks.
func at(d time.Duration) Instant { return Instant{Mono: d, Wall: noon.Add(d)} }

func statement(epoch int64, active string) wire.Statement {
	return wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: active, Epoch: epoch, LeaseTimeoutMillis: 20_000}
}

// fromOperator is the operator's answer to a question that site a sent at the given time.
func fromOperator(s wire.Statement, sent time.Duration) Word {
	s.Nonce = "n"
	return Word{Origin: Operator, Signed: "signed", Statement: s, Nonce: "n", SentAt: sent}
}

func fromPeer(s wire.Statement, sent time.Duration) Word {
	return Word{Origin: Peer, Signed: "relayed", Statement: s, SentAt: sent}
}

func pushed(s wire.Statement) Word { return Word{Origin: Push, Signed: "pushed", Statement: s} }

var (
	writable = Facts{Running: true, Process: "7", Answered: true, Writable: true, Watched: true}
	readOnly = Facts{Running: true, Process: "7", Answered: true, SuperReadOnly: true, Watched: true}
)

func newSite() State {
	// It names itself too: a peer list that does must not make it vouch for itself.
	return Boot(Site{Namespace: "shop", Group: "orders", Name: "a", Peers: []string{"a", "b", "c"}},
		Limits{Lease: 20 * time.Second, Opening: 2 * time.Second, Fence: 2 * time.Second}, Kept{}, at(0))
}

func observe(s State, f Facts) State {
	s, _ = Observe(s, f, s.Change())
	return s
}

func adopt(s State, w Word, now Instant) State {
	s, _ = Adopt(s, w, now)
	return s
}

func keep(s State) State {
	if k, due := Unkept(s); due {
		s = Keep(s, k)
	}
	return s
}

// closedSite is site a, fenced, named under epoch 5 by an answer of the operator sent at 1s, durable.
func closedSite() State {
	s := observe(newSite(), readOnly)
	return keep(adopt(s, fromOperator(statement(5, "a"), time.Second), at(time.Second)))
}

// openSite is the same site, opened on that answer.
func openSite() State { return Opened(Opening(closedSite()), Done) }

// I1 to I4: every reason to close an open site, each alone.
func TestClosersI1I2I3I4(t *testing.T) {
	now := at(2 * time.Second)
	if d := Decide(openSite(), now); d != (Decision{Do: Nothing}) {
		t.Fatalf("an open site that nothing speaks against: %+v", d)
	}
	cases := map[Reason]struct {
		reason string
		state  func() State
		now    Instant
		cause  wire.FenceCause
	}{
		Leaving: {
			reason: "nobody would keep the lease",
			state:  func() State { return Leave(openSite()) }, now: now, cause: wire.FenceShutdown,
		},
		Starting: {
			reason: "an earlier run may have opened it, and its lease is not known",
			state:  func() State { s := openSite(); s.starting = true; return s }, now: now, cause: wire.FenceStartup,
		},
		OpeningUnsure: {
			reason: "the statement that opens may still be under way",
			state:  func() State { s := openSite(); s.unsure = true; return s }, now: now, cause: wire.FenceUnproven,
		},
		NoStatement: {
			reason: "nobody said who may write",
			state:  func() State { return observe(observe(newSite(), readOnly), writable) },
			now:    now, cause: wire.FenceStartup,
		},
		WindowOver: {
			reason: "offline_mode without a window is what a window left behind",
			state: func() State {
				f := writable
				f.Offline = true
				return observe(closedSite(), f)
			},
			now: now, cause: wire.FenceWindowEnd,
		},
		NamesAnother: {
			reason: "the epoch belongs to b",
			state:  func() State { return adopt(openSite(), pushed(statement(6, "b")), now) },
			now:    now, cause: wire.FenceMismatch,
		},
		NotOpenedHere: {
			reason: "somebody else cleared super_read_only",
			state:  func() State { return observe(closedSite(), writable) },
			now:    now, cause: wire.FenceUnproven,
		},
		MissedEpoch: {
			reason: "another site may have been open under epoch 6",
			state:  func() State { return adopt(openSite(), fromOperator(statement(7, "a"), now.Mono), now) },
			now:    now, cause: wire.FenceMismatch,
		},
		LeaseOver: {
			reason: "the answer was asked for at 1s",
			state:  openSite, now: at(21 * time.Second), cause: wire.FenceIsolation,
		},
	}
	all := closers
	for i, c := range all {
		t.Run(string(c.why), func(t *testing.T) {
			tc, ok := cases[c.why]
			if !ok {
				t.Fatal("no case for this closer")
			}
			want := Decision{Do: Fence, Cause: tc.cause, Why: c.why, Kill: c.why == OpeningUnsure}
			if got := Decide(tc.state(), tc.now); got != want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, want)
			}
			defer func() { closers = all }()
			closers = slices.Delete(slices.Clone(all), i, i+1)
			if got := Decide(tc.state(), tc.now); got == want {
				t.Error("the case does not need its guard")
			}
		})
	}
}

// checkGuards runs each guard's case: the guard alone must refuse it, and without the guard it must not be refused for
// this reason any more.
func checkGuards[In any](t *testing.T, guards []guard[In], cases map[Reason]func() (State, In)) {
	t.Helper()
	for i, g := range guards {
		t.Run(string(g.reason), func(t *testing.T) {
			build, ok := cases[g.reason]
			if !ok {
				t.Fatal("no case for this guard")
			}
			s, in := build()
			want := Refusal{Reason: g.reason, Message: g.message}
			if diff := cmp.Diff(want, firstRefusal(guards, s, in)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if got := firstRefusal(slices.Delete(slices.Clone(guards), i, i+1), s, in); got == want {
				t.Error("the case does not need its guard")
			}
		})
	}
	if len(cases) != len(guards) {
		t.Errorf("%d cases for %d guards", len(cases), len(guards))
	}
}

// I3, and I1, I2, I5: the boot rule.
func TestOpenGuardsI1I2I3I5(t *testing.T) {
	sent, now := time.Second, at(2*time.Second)
	good := fromOperator(statement(5, "a"), sent)
	if r := MayOpen(closedSite(), good, now); r != (Refusal{}) {
		t.Fatalf("a fresh answer that names a fenced site: %+v", r)
	}
	with := func(s State, change func(*Word)) (State, opening) {
		w := good
		change(&w)
		return s, opening{word: w, now: now}
	}
	seen := func(change func(*Facts)) (State, opening) {
		f := readOnly
		change(&f)
		return observe(closedSite(), f), opening{word: good, now: now}
	}
	later := func(d time.Duration) (State, opening) { return closedSite(), opening{word: good, now: at(d)} }
	checkGuards(t, openGuards, map[Reason]func() (State, opening){
		NotFromOperator: func() (State, opening) {
			return with(closedSite(), func(w *Word) { w.Origin = Push })
		},
		OtherGroup: func() (State, opening) {
			return with(closedSite(), func(w *Word) { w.Statement.Group = "bills" })
		},
		NamesAnother: func() (State, opening) {
			s := adopt(closedSite(), pushed(statement(6, "b")), now)
			return s, opening{word: fromOperator(statement(6, "b"), sent), now: now}
		},
		NotTheNewest: func() (State, opening) {
			return adopt(closedSite(), pushed(statement(6, "a")), now), opening{word: good, now: now}
		},
		Held: func() (State, opening) {
			return with(closedSite(), func(w *Word) { w.Statement.Hold = true })
		},
		NotDurable: func() (State, opening) {
			w := fromOperator(statement(6, "a"), sent)
			return adopt(closedSite(), w, now), opening{word: w, now: now}
		},
		TooOld:          func() (State, opening) { return later(sent + freshFor) },
		LeaseTooShort:   func() (State, opening) { s, o := later(2 * time.Second); s.limits.Lease = 3 * time.Second; return s, o },
		MySQLSilent:     func() (State, opening) { return seen(func(f *Facts) { f.Answered = false }) },
		MySQLReplicates: func() (State, opening) { return seen(func(f *Facts) { f.Replicates = true }) },
		MySQLCloning:    func() (State, opening) { return seen(func(f *Facts) { f.Cloning = true }) },
		MySQLWritable:   func() (State, opening) { return openSite(), opening{word: good, now: now} },
		NotWatched:      func() (State, opening) { return seen(func(f *Facts) { f.Watched = false }) },
		WindowIsOpen: func() (State, opening) {
			st := statement(5, "a")
			st.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowRotation, Deadline: noon.Add(time.Hour)}}
			w := fromOperator(st, sent)
			return keep(adopt(closedSite(), w, now)), opening{word: w, now: now}
		},
		Leaving: func() (State, opening) { return Leave(closedSite()), opening{word: good, now: now} },
		FenceDue: func() (State, opening) {
			// A privileged account may commit: read_only alone is no fence.
			return seen(func(f *Facts) { f.SuperReadOnly = false })
		},
	})
	// Only what this run opened is opened again while it is writable, and only to let its clients in.
	offline := writable
	offline.Offline = true
	if r := MayOpen(observe(openSite(), offline), good, now); r != (Refusal{}) {
		t.Errorf("an open site whose clients are kept out: %+v", r)
	}
	if r := MayOpen(observe(closedSite(), offline), good, now); r.Reason != MySQLWritable {
		t.Errorf("somebody else opened it behind offline_mode: %+v", r)
	}
	for name, w := range map[string]Word{
		"relayed":       {Origin: Peer, Statement: good.Statement, Nonce: "n", SentAt: sent},
		"other nonce":   {Origin: Operator, Statement: good.Statement, Nonce: "m", SentAt: sent},
		"no nonce":      {Origin: Operator, Statement: statement(5, "a"), SentAt: sent},
		"from tomorrow": fromOperator(statement(5, "a"), time.Hour),
		"two sites":     fromOperator(statement(5, "b"), sent),
	} {
		if r := MayOpen(closedSite(), w, now); r.Reason == "" {
			t.Errorf("%s: opened", name)
		}
	}
	hold := statement(5, "a")
	hold.Hold = true
	if r := MayOpen(keep(adopt(closedSite(), fromOperator(hold, now.Mono), now)), good, now); r.Reason != Held {
		t.Errorf("a hold in an answer that came after this one: %+v", r)
	}
}

// I1, I5: which words are not taken.
func TestViewGuardsI1I5(t *testing.T) {
	s := closedSite()
	if _, a := Adopt(s, fromOperator(statement(5, "a"), time.Second), at(2*time.Second)); !a.Taken || a.Newer {
		t.Fatalf("the operator's own word under the same epoch replaces the one known: %+v", a)
	}
	checkGuards(t, viewGuards, map[Reason]func() (State, Word){
		OtherGroup: func() (State, Word) {
			st := statement(6, "b")
			st.Namespace = "lab"
			return s, pushed(st)
		},
		OtherNonce: func() (State, Word) {
			w := fromOperator(statement(6, "b"), time.Second)
			w.Nonce = "another"
			return s, w
		},
		LowerEpoch:         func() (State, Word) { return s, pushed(statement(4, "b")) },
		SameEpochOtherSite: func() (State, Word) { return s, pushed(statement(5, "b")) },
		RelayedNotNewer:    func() (State, Word) { return s, fromPeer(statement(5, "a"), time.Second) },
	})
}

// I4: which exchanges do not prolong the lease.
func TestLeaseGuardsI4(t *testing.T) {
	s, now := closedSite(), at(9*time.Second)
	for name, w := range map[string]Word{
		"operator": fromOperator(statement(5, "a"), 8*time.Second),
		"peer":     fromPeer(statement(5, "a"), 8*time.Second),
		"newer":    fromPeer(statement(6, "a"), 8*time.Second),
	} {
		got, a := Adopt(s, w, now)
		if !a.Renewed || LeaseLeft(got, now) != 19*time.Second {
			t.Errorf("%s: renewed %v, left %v", name, a.Renewed, LeaseLeft(got, now))
		}
	}
	in := func(w Word) func() (State, exchange) {
		return func() (State, exchange) { return s, exchange{word: w, now: now} }
	}
	otherGroup := statement(5, "a")
	otherGroup.Group = "bills"
	otherNonce := fromOperator(statement(5, "a"), 8*time.Second)
	otherNonce.Nonce = "another"
	checkGuards(t, leaseGuards, map[Reason]func() (State, exchange){
		NotFromOperator:    in(Word{Origin: Push, Statement: statement(5, "a"), SentAt: 8 * time.Second}),
		OtherGroup:         in(fromPeer(otherGroup, 8*time.Second)),
		OtherNonce:         in(otherNonce),
		LowerEpoch:         in(fromPeer(statement(4, "a"), 8*time.Second)),
		SameEpochOtherSite: in(fromPeer(statement(5, "b"), 8*time.Second)),
		TooOld:             in(fromPeer(statement(5, "a"), 10*time.Second)),
	})
	if got, _ := renew(s, fromPeer(statement(5, "a"), 0), now); LeaseLeft(got, now) != LeaseLeft(s, now) {
		t.Error("a late answer to an early question must not shorten the lease")
	}
}

// I2, I5: who is not answered.
func TestVouchGuardsI2I5(t *testing.T) {
	if _, signed, r := Answer(closedSite(), "b", at(0)); signed != "signed" || r != (Refusal{}) {
		t.Fatalf("got %q, %+v", signed, r)
	}
	unheard := keep(adopt(newSite(), fromPeer(statement(5, "b"), 0), at(0)))
	checkGuards(t, vouchGuards, map[Reason]func() (State, string){
		AskerIsSelf:   func() (State, string) { return closedSite(), "a" },
		AskerIsNoPeer: func() (State, string) { return closedSite(), "d" },
		NoStatement:   func() (State, string) { s := newSite(); s.heard, s.verified = true, true; return s, "b" },
		NotDurable:    func() (State, string) { return adopt(closedSite(), pushed(statement(6, "b")), at(0)), "b" },
		NotVerified:   func() (State, string) { s := closedSite(); s.verified = false; return s, "b" },
		NotHeard:      func() (State, string) { return unheard, "b" },
	})
	// What a peer said does not become the operator's word by a restart.
	again := Boot(unheard.site, unheard.limits, unheard.kept, at(0))
	if _, _, r := Answer(again, "b", at(0)); r.Reason != NotHeard {
		t.Errorf("after a restart: %+v", r)
	}
	if again := Boot(unheard.site, unheard.limits, closedSite().kept, at(0)); true {
		if _, signed, _ := Answer(again, "b", at(0)); signed != "signed" {
			t.Error("a statement that the operator gave an earlier run is relayed")
		}
	}
}
