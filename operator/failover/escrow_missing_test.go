// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// Sealed sites whose escrow Secret is gone: the next restart of such a pod makes its data unreadable (I16).

// withoutEscrow takes the escrow Secrets of some sites away.
func withoutEscrow(s Snapshot, names ...string) Snapshot {
	for i := range s.Sites {
		for _, name := range names {
			if s.Sites[i].Name == name {
				s.Sites[i].EscrowMissing = true
				s.Sites[i].Sidecar.Report.Keyring = factstest.Keyring("sealed")
			}
		}
	}
	return s
}

// two is a group of which a accepts writes, and b follows.
func two() Snapshot {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	lag := 0.0
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
	b := &s.Sites[1].MySQL
	b.ReplicaOf, b.ReplicaHost, b.IORunning, b.SQLRunning, b.ReceiverStopped, b.LagSeconds = "a", "a", true, true, false, &lag
	return s
}

// lost is what is remembered while a has been down for long.
func lost() Memory {
	return Memory{Sites: map[string]*SiteMemory{"a": {DownSince: factstest.Start.Add(-time.Minute), SilentPolls: 99}}}
}

func down(s Snapshot) Snapshot {
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	return s
}

// TestTheRoleDoesNotMoveToASiteWithoutItsEscrowSecret covers I16: not for an update, not for a drain, not when it is asked, and not
// in an emergency; with the Secret in place it does, each time.
func TestTheRoleDoesNotMoveToASiteWithoutItsEscrowSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot func() Snapshot
		memory   Memory
	}{
		"an update":    {func() Snapshot { s := two(); s.Sites[0].Leaving = LeavingForUpdate; return s }, Memory{}},
		"a drain":      {func() Snapshot { s := two(); s.Sites[0].Leaving = "its node is cordoned"; return s }, Memory{}},
		"a request":    {func() Snapshot { s := two(); s.Policy.PlannedTo = "b"; return s }, Memory{}},
		"an emergency": {func() Snapshot { return down(two()) }, lost()},
	} {
		if d := Decide(tc.snapshot(), tc.memory); d.Status.ActiveSite != "b" {
			t.Errorf("%s: with its Secret in escrow b is not moved to: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
		s := withoutEscrow(tc.snapshot(), "b")
		d := Decide(s, tc.memory)
		if d.Status.ActiveSite != "a" {
			t.Errorf("I16: %s: the role moves to b, whose keyring is in its pod alone: %s", name, d.Message)
		}
		said := d.Message
		if p := d.Status.Planned; p != nil {
			said = p.Message
		}
		if !strings.Contains(said, "kubectl mfg recover-keyring GROUP b") {
			t.Errorf("%s: what to do is not said: %q", name, said)
		}
		e := Explain(s, tc.memory, d)
		if c := e.Candidates[0]; c.Fit || c.PlannedBlockedBy != string(v1alpha1.ReasonNotFit) || !strings.Contains(c.PlannedMessage, "recover-keyring GROUP b") {
			t.Errorf("%s: the explanation does not say it: %+v", name, c)
		}
		for _, r := range e.Rules {
			if r.Name == promotion.RuleCandidate && !strings.Contains(r.Remedy, "recover-keyring GROUP b") {
				t.Errorf("%s: the explanation names no next step: %+v", name, r)
			}
		}
	}
}

// TestAnotherCandidateTakesOver covers I16: it comes before one whose keyring is in its pod alone, also if it lags, and fetches
// from there what it lacks.
func TestAnotherCandidateTakesOver(t *testing.T) {
	s := down(withoutEscrow(factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-8", 4)), "b"))
	d := Decide(s, lost())
	if d.Status.ActiveSite != "c" || d.Verdict != VerdictFailover {
		t.Fatalf("I16: %s %s: %s", d.Status.ActiveSite, d.Verdict, d.Message)
	}
	if lacks, where := lineage.Missing(s, d.Memory, s.Sites[2]); where != "b" || lacks.Count() != 1 {
		t.Errorf("I7: what b has is given up: %s on %q", lacks, where)
	}
}

// TestAPersonMayOrderASiteWithoutItsEscrowSecret: its data can be read now, and there may be nothing else.
func TestAPersonMayOrderASiteWithoutItsEscrowSecret(t *testing.T) {
	s := down(withoutEscrow(two(), "b"))
	if d := Decide(s, lost()); d.Verdict != VerdictBlocked || !strings.Contains(d.Message, v1alpha1.AnnotationForceFailover+"=b") {
		t.Errorf("the order is not named: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	s.Policy.ForceTo = "b"
	d := Decide(s, lost())
	if d.Status.ActiveSite != "b" || d.Verdict != VerdictFailover {
		t.Fatalf("an order is refused: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	moved := withoutEscrow(factstest.Under(v1alpha1.FailoverForced), "b")
	moved.Policy.ForceTo = "b"
	if d := Decide(moved, Memory{}); d.Verdict != VerdictPromote {
		t.Errorf("an order is not carried through: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	if d := Decide(withoutEscrow(factstest.Under(v1alpha1.FailoverEmergency), "b"), Memory{}); d.Verdict == VerdictPromote || d.Status.ActiveSite == "b" {
		t.Errorf("I16: the Secret is lost on the way, and b is opened without an order: %s", d.Message)
	}
}

// TestWhoHasTheRoleKeepsItWithoutItsEscrowSecret covers I16: one that is open is not closed, one that restarts is opened again, and
// a move that is given up goes back to it.
func TestWhoHasTheRoleKeepsItWithoutItsEscrowSecret(t *testing.T) {
	if d := Decide(withoutEscrow(two(), "a"), Memory{}); d.Verdict != VerdictNothing || d.Hold || d.Status.Transition != nil {
		t.Errorf("a is open, and does not stay so: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	closed := withoutEscrow(factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4)), "a")
	if d := Decide(closed, Memory{}); !opensSite(d, "a") {
		t.Errorf("a is back, and is not opened again: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	s := withoutEscrow(factstest.Under(v1alpha1.FailoverPlanned), "a")
	s.Policy.AbortPlanned = true
	d := Decide(s, Memory{})
	s.Status, s.Policy.AbortPlanned = d.Status, false
	for i := range s.Sites {
		s.Sites[i].Sidecar.Report.Epoch = d.Status.Epoch
	}
	if d := Decide(s, d.Memory); d.Status.ActiveSite != "a" || !opensSite(d, "a") {
		t.Errorf("the move is given up, and a is not opened again: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}

// TestWhoHasTheOnlyKeyringIsNotEvicted covers I16: whether or not it could take over.
func TestWhoHasTheOnlyKeyringIsNotEvicted(t *testing.T) {
	for _, missing := range []bool{true, false} {
		s := factstest.ThreeSites() // with two that have caught up neither is protected
		s.Sites[1].EscrowMissing = missing
		s.Sites[2].MySQL.IORunning = true
		if v := Decide(s, Memory{}).Views[1]; v.Protected != missing {
			t.Errorf("I16: its escrow Secret is gone: %t, its pod is protected: %t", missing, v.Protected)
		}
	}
}
