// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// Each guard by itself, with all others content: what `make sim-mutants` takes away is missed here, also where in a
// simulated world another guard would have stopped the same harm.

// marked is a memory that says who is unsettled, as that of every decision does.
func marked(s Snapshot, m Memory) Memory {
	lineage.MarkUnsettled(s, &m)
	return m
}

// TestEachGuardAloneMakesUnfit covers I1, I6, I8, I10, I12, I16 and I29: every guard of the chain is safe alone.
func TestEachGuardAloneMakesUnfit(t *testing.T) {
	replaced := v1alpha1.FailoverRecord{Epoch: 3, From: "b", To: "a", FromServerUUID: "b"}
	for name, change := range map[string]func(*Snapshot, *Memory, *Site){
		"I6: it left the specification":        func(_ *Snapshot, _ *Memory, b *Site) { b.Removed = true },
		"I6: it is dr-only":                    func(_ *Snapshot, _ *Memory, b *Site) { b.Role = v1alpha1.DROnly },
		"I12: it holds no data yet":            func(_ *Snapshot, _ *Memory, b *Site) { b.Provisioned = false },
		"I12: it is on another volume":         func(_ *Snapshot, _ *Memory, b *Site) { b.OtherVolume = true },
		"I10: it is worked on":                 func(_ *Snapshot, _ *Memory, b *Site) { b.Busy = "Clone" },
		"I10: it is cloned":                    func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Cloning = true },
		"I1: its sidecar does not answer":      func(_ *Snapshot, _ *Memory, b *Site) { b.Sidecar.Answered = false },
		"I8: its relay log is not seen":        func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Direct = false },
		"I1: somebody opened it":               func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false },
		"I10: it has diverged":                 func(_ *Snapshot, m *Memory, _ *Site) { m.At("b").Diverged = factstest.Set("B:1") },
		"I10: it was replaced, and not looked": func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Records = []v1alpha1.FailoverRecord{replaced} },
		"I16: its escrow Secret is gone":       func(_ *Snapshot, _ *Memory, b *Site) { b.EscrowMissing = true },
		"I7: it skips transactions":            func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Filtered = true },
		"I7: it skipped transactions":          func(_ *Snapshot, m *Memory, b *Site) { m.At("b").Filtered = b.MySQL.ServerUUID },
		"I29: a person keeps it fenced":        func(_ *Snapshot, _ *Memory, b *Site) { b.KeptFenced = true },
		"it cannot write to its volume": func(_ *Snapshot, _ *Memory, b *Site) {
			b.Sidecar.Report.VolumeProbe = &wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull, AgeMillis: 29_000}
		},
		"I16: its keyring is not escrowed": func(_ *Snapshot, _ *Memory, b *Site) { b.Sidecar.Report.Keyring = factstest.Keyring("behind") },
		"":                                 func(*Snapshot, *Memory, *Site) {},
	} {
		s, m := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4)), Memory{}
		change(&s, &m, &s.Sites[1])
		if _, found := promotion.Choose(s, marked(s, m), "a"); found != (name == "") {
			t.Errorf("%s: b is a candidate: %t", name, found)
		}
	}
}

// TestWhoeverWasActiveAgainIsSettled: only the newest change of a site says whether it was compared.
func TestWhoeverWasActiveAgainIsSettled(t *testing.T) {
	s := factstest.World(Durable{Epoch: 5, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{
		{Epoch: 5, From: "b", To: "a", LossExact: true}, {Epoch: 4, From: "a", To: "b", FromServerUUID: "a"},
	}}, factstest.Seen("a", "A:1-9", 5), factstest.Seen("b", "A:1-9", 5))
	s.Status.ActiveSite = "c" // neither is judged as the active site
	if marked(s, Memory{}).Of("a").Unsettled {
		t.Error("a was opened again since it was replaced, and is still called unsettled")
	}
	s.Status.Records = s.Status.Records[1:]
	if !marked(s, Memory{}).Of("a").Unsettled {
		t.Error("I10: a was replaced and not compared, and is called settled")
	}
}

// TestWhoseTransactionsAreMissed covers I7 and I10.
func TestWhoseTransactionsAreMissed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Memory, *Site)
		want   string
	}{
		"I7: what is applied": {func(*Memory, *Site) {}, "A:10"},
		"I7: what is in a relay log": {func(_ *Memory, c *Site) {
			c.MySQL.Executed, c.MySQL.Retrieved = factstest.Set("A:1-5"), factstest.Set("A:6-11")
		}, "A:10-11"},
		"I10: what a diverged site has is not":   {func(m *Memory, _ *Site) { m.At("c").Diverged = factstest.Set("A:10") }, ""},
		"I12: what another volume holds is not":  {func(_ *Memory, c *Site) { c.OtherVolume = true }, ""},
		"I12: what is not the group's is not":    {func(_ *Memory, c *Site) { c.Provisioned = false }, ""},
		"I10: what is thrown away by a clone":    {func(_ *Memory, c *Site) { c.Busy = WorkClone }, ""},
		"I10: MySQL itself says that it clones":  {func(_ *Memory, c *Site) { c.MySQL.Cloning = true }, ""},
		"I7: what is there while keys rotate":    {func(_ *Memory, c *Site) { c.Busy = WorkRotation }, "A:10"},
		"who does not answer has nothing to say": {func(_ *Memory, c *Site) { c.Sidecar.Answered, c.MySQL.Direct = false, false }, ""},
	} {
		m := Memory{}
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-10", 4))
		tc.change(&m, &s.Sites[1])
		want := gtid.Set{}
		if tc.want != "" {
			want = factstest.Set(tc.want)
		}
		if got, _ := lineage.Missing(s, m, s.Sites[0]); !got.Equal(want) {
			t.Errorf("%s: %q is missing, want %q", name, got, tc.want)
		}
	}
}

// cutOff is a failover from a, of which nothing is seen, to b; c has acknowledged.
func cutOff() (Snapshot, Memory) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing,
		From: "a", To: "b", StartedAt: factstest.Start}}, Site{Name: "a", Role: v1alpha1.PrimaryCandidate, Provisioned: true}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
	s.Sites[0].Pod = Pod{Exists: true, UID: "pod-a", Lease: 22 * time.Second}
	s.Now = factstest.Start.Add(10 * time.Second)
	s.LeaderSince = factstest.Start
	m := Memory{Sites: map[string]*SiteMemory{"a": {Confirmed: "pod-a"}, "b": {Ack: &Ack{Epoch: 4, Fenced: true}}, "c": {Ack: &Ack{Epoch: 4, Fenced: true}}}}
	return s, m
}

// TestWhatIsNoFenceProof covers I1, I2 and I12: evidence of another epoch, pod or volume proves nothing.
func TestWhatIsNoFenceProof(t *testing.T) {
	read := func(epoch int64, after time.Duration, pod string) SQLFence {
		return SQLFence{Epoch: epoch, At: factstest.Start.Add(after), PodUID: pod}
	}
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		proof  bool
	}{
		"nothing":                           {func(*Snapshot, *Memory) {}, false},
		"its sidecar":                       {func(_ *Snapshot, m *Memory) { m.At("a").Ack = &Ack{Epoch: 4, Fenced: true} }, true},
		"its sidecar, of an older epoch":    {func(_ *Snapshot, m *Memory) { m.At("a").Ack = &Ack{Epoch: 3, Fenced: true} }, false},
		"its sidecar, that is not fenced":   {func(_ *Snapshot, m *Memory) { m.At("a").Ack = &Ack{Epoch: 4} }, false},
		"read back":                         {func(_ *Snapshot, m *Memory) { m.At("a").FencedBySQL = read(4, 9*time.Second, "pod-a") }, true},
		"read back under an older epoch":    {func(_ *Snapshot, m *Memory) { m.At("a").FencedBySQL = read(3, 9*time.Second, "pod-a") }, false},
		"read back on another pod":          {func(_ *Snapshot, m *Memory) { m.At("a").FencedBySQL = read(4, 9*time.Second, "pod-2") }, false},
		"read back soon after a new leader": {func(_ *Snapshot, m *Memory) { m.At("a").FencedBySQL = read(4, time.Second, "pod-a") }, false},
		"read back soon after it was permitted": {func(s *Snapshot, m *Memory) {
			s.Permitted = map[string]time.Time{"a": factstest.Start.Add(8 * time.Second)}
			m.At("a").FencedBySQL = read(4, 9*time.Second, "pod-a")
		}, false},
		"its pod has ended":           {func(s *Snapshot, _ *Memory) { s.Sites[0].Pod.Ended = true }, true},
		"another pod of it has ended": {func(s *Snapshot, _ *Memory) { s.Sites[0].Pod.Ended, s.Sites[0].Pod.UID = true, "pod-2" }, false},
		"its node is out of service":  {func(s *Snapshot, _ *Memory) { s.Sites[0].Pod.OutOfService = true }, true},
	} {
		s, m := cutOff()
		tc.change(&s, &m)
		if got := fenceProof(s, m, "a"); (got != "") != tc.proof {
			t.Errorf("I1, I2: %s: proof %q, want one: %t", name, got, tc.proof)
		}
	}
}

// TestWhenALeaseHasRunOut covers I4: nobody who may have kept it is forgotten.
func TestWhenALeaseHasRunOut(t *testing.T) {
	const usual, margin = 22 * time.Second, 1900 * time.Millisecond
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		after  time.Duration
	}{
		"from when this leader began": {func(*Snapshot, *Memory) {}, usual + margin},
		"what this leader answered": {func(s *Snapshot, _ *Memory) {
			s.Answered = map[string]time.Time{"a": factstest.Start.Add(5 * time.Second)}
		}, 5*time.Second + usual + margin},
		"what a peer answered": {func(_ *Snapshot, m *Memory) {
			m.At("c").Ack = &Ack{Epoch: 4, LastVouch: map[string]time.Time{"a": factstest.Start.Add(3 * time.Second)}}
		}, 3*time.Second + usual + margin},
		"what a peer that is gone answered before": {func(s *Snapshot, m *Memory) {
			s.Sites[2].Pod.OutOfService, m.At("c").Ack, m.At("c").GoneSince = true, &Ack{}, factstest.Start.Add(4*time.Second)
		}, 4*time.Second + usual + margin},
		"a longer one, with which its pod began":  {func(_ *Snapshot, m *Memory) { m.At("a").Lease = 30 * time.Second }, LeaseEnd(30 * time.Second)},
		"the longest, of a pod that was not seen": {func(_ *Snapshot, m *Memory) { m.At("c").Lease = 40 * time.Second }, LeaseEnd(40 * time.Second)},
	} {
		s, m := cutOff()
		s.Policy.LeaseTimeout, s.Policy.FenceTimeout = 20*time.Second, 2*time.Second
		tc.change(&s, &m)
		if g := leaseRunOut(s, m, "a"); !g.ReadyAt.Equal(factstest.Start.Add(tc.after)) {
			t.Errorf("I4: %s: run out after %s, want %s", name, g.ReadyAt.Sub(factstest.Start), tc.after)
		}
		for _, forced := range []string{"", "b"} {
			s.Policy.ForceTo = forced
			s.Now = factstest.Start.Add(tc.after - time.Millisecond)
			if leaseRunOut(s, m, "a").Passed {
				t.Errorf("I4: %s: passed a moment before, ordered: %q", name, forced)
			}
			if s.Now = factstest.Start.Add(tc.after); !leaseRunOut(s, m, "a").Passed {
				t.Errorf("%s: does not pass when it has run out", name)
			}
		}
	}
}

// TestWithoutAnEarlierActiveSiteEachMustBeFenced covers I1 of a new group, and of a status that was lost.
func TestWithoutAnEarlierActiveSiteEachMustBeFenced(t *testing.T) {
	for name, tc := range map[string]struct {
		ack  Ack
		pass bool
	}{
		"fenced":                       {Ack{Epoch: 4, Fenced: true}, true},
		"fenced under an older epoch":  {Ack{Epoch: 3, Fenced: true}, false},
		"acknowledged, and not fenced": {Ack{Epoch: 4}, false},
		"not heard of":                 {Ack{}, false},
	} {
		s, m := cutOff()
		s.Status.Transition.From, m.At("a").Ack = "", &tc.ack
		if got := AskGate(s, m); got.Passed != tc.pass {
			t.Errorf("I1: %s: passed %t, want %t", name, got.Passed, tc.pass)
		}
	}
}

// TestTheFirstActiveSiteHoldsEverythingI7: a group that was made again over volumes with two histories waits for a person.
func TestTheFirstActiveSiteHoldsEverythingI7(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		begins bool
	}{
		"b has what a lacks":      {func(*Snapshot) {}, false},
		"b left the spec":         {func(s *Snapshot) { s.Sites[1].Removed = true }, true},
		"b is on another volume":  {func(s *Snapshot) { s.Sites[1].OtherVolume = true }, true},
		"b has nothing else":      {func(s *Snapshot) { s.Sites[1].MySQL.Executed = factstest.Set("A:1-2") }, true},
		"a person has chosen one": {func(s *Snapshot) { s.Policy.ForceTo = "a" }, true},
		"b was not seen":          {func(s *Snapshot) { s.Sites[1].Sidecar.Answered, s.Sites[1].MySQL = false, MySQL{} }, false},
	} {
		s := factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 0), factstest.Seen("b", "B:1-3", 0))
		tc.change(&s)
		if d := Decide(s, Memory{}); (d.Verdict == VerdictBootstrap) != tc.begins {
			t.Errorf("I7: %s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestOneLostAnswerDoesNotMakeAVolumeTheRightOneI12: what was last seen on another volume stays so until its sidecar answers.
// The end of a pod on it is not the end of the one before, which may go on to vouch.
func TestOneLostAnswerDoesNotMakeAVolumeTheRightOneI12(t *testing.T) {
	for _, other := range []bool{true, false} {
		s, m := cutOff()
		s.Now = factstest.Start.Add(time.Minute)
		m.At("c").OtherVolume = other
		m.At("c").Ack = nil
		s.Sites[2].Sidecar.Answered, s.Sites[2].MySQL, s.Sites[2].Pod.Ended = false, MySQL{}, true
		m.At("c").GoneSince = factstest.Start
		if d := Decide(s, m); (d.Verdict == VerdictPromote) == other {
			t.Errorf("I12: its pod has ended, on another volume: %t: %s %s", other, d.Verdict, d.Message)
		}
	}
}

// TestOnlyTheNewestChangeOfASiteIsSettled: what a site has that nobody else has was lost in its last change, not in an earlier one.
func TestOnlyTheNewestChangeOfASiteIsSettled(t *testing.T) {
	s := factstest.World(Durable{Epoch: 6, ActiveSite: "b", Records: []v1alpha1.FailoverRecord{
		{Epoch: 6, From: "a", To: "b", FromServerUUID: "a", LossExact: true},
		{Epoch: 3, From: "a", To: "b", FromServerUUID: "a"},
	}}, factstest.Seen("a", "A:1-11", 6), factstest.Seen("b", "A:1-9", 6))
	m := Memory{Sites: map[string]*SiteMemory{"a": {PreviousAll: new(factstest.Set("A:1-11"))}}}
	if got := lineage.SettleLoss(s, m, s.Sites[1]); got[1].LossExact {
		t.Errorf("the loss of epoch 3 is told as %s, which was lost later", got[1].LostSet)
	}
	s.Status.Records[0].LossExact = false
	if got := lineage.SettleLoss(s, m, s.Sites[1]); !got[0].LossExact || got[0].LostTransactions != 2 {
		t.Errorf("the newest change is not settled: %+v", got[0])
	}
}

// TestARotationThrowsNothingAwayI10: what a site alone has outlives new master keys, so its record still speaks of the same server;
// it is compared once they are made. What a clone leaves cannot be compared.
func TestARotationThrowsNothingAwayI10(t *testing.T) {
	replaced := v1alpha1.FailoverRecord{Epoch: 3, From: "b", To: "a", FromServerUUID: "b"}
	for work, thrown := range map[string]bool{WorkClone: true, WorkRotation: false} {
		s, m := two(), Memory{Sites: map[string]*SiteMemory{"b": {PreviousAll: new(factstest.Set("A:1-9,B:1"))}}}
		s.Status.Records = []v1alpha1.FailoverRecord{replaced}
		s.Sites[1].Busy = work
		got := lineage.SettleLoss(s, m, s.Sites[0])[0]
		if replaced := got.FromServerUUID == lineage.ServerReplaced; replaced != thrown || got.LossExact {
			t.Errorf("I10: %s: its data counts as replaced: %t, want %t; its loss as exact: %t", work, replaced, thrown, got.LossExact)
		}
	}
}

// TestWhoIsAttachedI10: each reason not to attach a site stands by itself.
func TestWhoIsAttachedI10(t *testing.T) {
	replaced := v1alpha1.FailoverRecord{Epoch: 3, From: "b", To: "a", FromServerUUID: "b"}
	for name, change := range map[string]func(*Snapshot, *Memory, *Site){
		"it holds no data of the group":         func(_ *Snapshot, _ *Memory, b *Site) { b.Provisioned = false },
		"it is on another volume":               func(_ *Snapshot, _ *Memory, b *Site) { b.OtherVolume = true },
		"it is worked on":                       func(_ *Snapshot, _ *Memory, b *Site) { b.Busy = "Clone" },
		"it has diverged":                       func(_ *Snapshot, m *Memory, _ *Site) { m.At("b").Diverged = factstest.Set("B:1") },
		"it left the specification":             func(_ *Snapshot, _ *Memory, b *Site) { b.Removed = true },
		"it does not answer":                    func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Direct = false },
		"it accepts writes":                     func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false },
		"it was replaced, and not looked at":    func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Records = []v1alpha1.FailoverRecord{replaced} },
		"it holds what the active site has not": func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Executed = factstest.Set("A:1-10") },
		"":                                      func(*Snapshot, *Memory, *Site) {},
	} {
		s, m := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-8", 4)), Memory{}
		change(&s, &m, &s.Sites[1])
		if got := shouldFollow(s, marked(s, m), s.Sites[1], s.Sites[0]); got != (name == "") {
			t.Errorf("I10: %s: attached %t", name, got)
		}
	}
}

// TestWhatCameBackIsOpenedOnlyWholeI7: an active site that is read-only again is opened if nothing that is known is missing.
func TestWhatCameBackIsOpenedOnlyWholeI7(t *testing.T) {
	for name, change := range map[string]func(*Snapshot, *Memory){
		"I7: another site has more":     func(s *Snapshot, _ *Memory) { s.Sites[1].MySQL.Executed = factstest.Set("A:1-10") },
		"I7: it had more itself":        func(_ *Snapshot, m *Memory) { m.At("a").Executed = factstest.Set("A:1-10") },
		"I12: it is on another volume":  func(s *Snapshot, _ *Memory) { s.Sites[0].OtherVolume = true },
		"I10: it is being cloned":       func(s *Snapshot, _ *Memory) { s.Sites[0].MySQL.Cloning = true },
		"I10: it is worked on":          func(s *Snapshot, _ *Memory) { s.Sites[0].Busy = "Clone" },
		"I29: a person keeps it fenced": func(s *Snapshot, _ *Memory) { s.Sites[0].KeptFenced = true },
		"I16: it is not in escrow":      func(s *Snapshot, _ *Memory) { s.Sites[0].Sidecar.Report.Keyring = factstest.Keyring("behind") },
		"":                              func(*Snapshot, *Memory) {},
	} {
		s, m := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4)), Memory{}
		change(&s, &m)
		d := Decide(s, m)
		if got := opensSite(d, "a") || !d.Hold; got != (name == "") {
			t.Errorf("%s: opened again: %t (%s %s)", name, got, d.Verdict, d.Reason)
		}
	}
}

// TestOnlyAnOpenActiveSiteTellsWhoHasDivergedI10: one that is closed, as after a restart, may have less than it will have.
func TestOnlyAnOpenActiveSiteTellsWhoHasDivergedI10(t *testing.T) {
	for _, open := range []bool{true, false} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-10", 4))
		s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = !open, !open
		d := Decide(s, Memory{Sites: map[string]*SiteMemory{"b": {PreviousAll: new(factstest.Set("A:1-10"))}}})
		if diverged := !d.Memory.Of("b").Diverged.IsEmpty(); diverged != open {
			t.Errorf("I10: the active site is open: %t, b is called diverged: %t", open, diverged)
		}
	}
}

// TestWhatIsKeptOfProofI1I12: a read-back counts until somebody opened the server, and only of the pod and volume that matter.
func TestWhatIsKeptOfProofI1I12(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(*Site)
		fence     bool
		confirmed string
	}{
		"nothing happened":        {func(*Site) {}, true, "pod-2"},
		"it was opened since":     {func(a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }, false, "pod-2"},
		"it is on another volume": {func(a *Site) { a.OtherVolume = true }, false, "pod-a"},
		"it does not answer":      {func(a *Site) { a.Sidecar.Answered, a.MySQL = false, MySQL{} }, true, "pod-a"},
	} {
		s, m := cutOff()
		m.At("a").FencedBySQL = SQLFence{Epoch: 4, At: factstest.Start, PodUID: "pod-a"}
		s.Sites[0] = factstest.Seen("a", "A:1-9", 4)
		s.Sites[0].Pod.UID = "pod-2"
		tc.change(&s.Sites[0])
		got := memory.Remember(s, m).Of("a")
		if kept := got.FencedBySQL != (SQLFence{}); kept != tc.fence || got.Confirmed != tc.confirmed {
			t.Errorf("I1, I12: %s: read-back kept %t, want %t; confirmed %s, want %s", name, kept, tc.fence, got.Confirmed, tc.confirmed)
		}
	}
}

// TestReopeningKeepsWhatIsInTheRelayLogI8: a target whose gate was passed may have begun to receive again.
func TestReopeningKeepsWhatIsInTheRelayLogI8(t *testing.T) {
	for name, change := range map[string]func(*Site){
		"it has something left to apply": func(b *Site) { b.MySQL.Retrieved = factstest.Set("A:1-12") },
		"it receives":                    func(b *Site) { b.MySQL.ReceiverStopped = false },
		"":                               func(*Site) {},
	} {
		s, m := cutOff()
		s.Status.Transition.Step, s.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, s.Now
		b := &s.Sites[1]
		b.MySQL.ReplicaHost, b.MySQL.ReplicaOf, b.MySQL.Retrieved = "a", "a", factstest.Set("A:1-9")
		change(b)
		detaches := slices.ContainsFunc(Decide(s, m).Effects, func(e Effect) bool { _, is := e.(Detach); return is })
		if detaches != (name == "") {
			t.Errorf("I8: %s: its relay log is thrown away: %t", name, detaches)
		}
	}
}

// TestCheckStopsEveryMistake covers I1, I2 and I13: the last guard stops what the rest of the package must never decide.
func TestCheckStopsEveryMistake(t *testing.T) {
	before := Snapshot{Status: Durable{Epoch: 3, ActiveSite: "a"}}
	fencing := &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "a", To: "b"}
	planned := func(holds string) *Transition {
		return &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionOpening, From: "a", To: "b", FromExecuted: factstest.Set("A:1-9"), ToExecuted: factstest.Set(holds)}
	}
	for name, tc := range map[string]struct {
		d    Decision
		fine bool
	}{
		"opens the active site":      {Decision{Status: Durable{Epoch: 3, ActiveSite: "a"}, Effects: []Effect{Select{Site: "a"}, Open{Site: "a"}}}, true},
		"opens another site":         {Decision{Status: Durable{Epoch: 3, ActiveSite: "a"}, Effects: []Effect{Open{Site: "b"}}}, false},
		"opens before it is done":    {Decision{Status: Durable{Epoch: 3, ActiveSite: "a"}, Effects: []Effect{Open{Site: "a"}, Select{Site: "a"}}}, false},
		"opens twice":                {Decision{Status: Durable{Epoch: 3, ActiveSite: "a"}, Effects: []Effect{Open{Site: "a"}, Open{Site: "a"}}}, false},
		"opens on hold":              {Decision{Status: Durable{Epoch: 3, ActiveSite: "a"}, Hold: true, Effects: []Effect{Open{Site: "a"}}}, false},
		"goes back":                  {Decision{Status: Durable{Epoch: 2, ActiveSite: "a"}, Hold: true}, false},
		"names another, same epoch":  {Decision{Status: Durable{Epoch: 3, ActiveSite: "b"}, Hold: true}, false},
		"names another, next epoch":  {Decision{Status: Durable{Epoch: 4, ActiveSite: "b"}, Hold: true}, true},
		"releases before the gate":   {Decision{Status: Durable{Epoch: 4, ActiveSite: "b", Transition: fencing}}, false},
		"holds before the gate":      {Decision{Status: Durable{Epoch: 4, ActiveSite: "b", Transition: fencing}, Hold: true}, true},
		"moves with all of it":       {Decision{Status: Durable{Epoch: 4, ActiveSite: "b", Transition: planned("A:1-9")}}, true},
		"moves without the last one": {Decision{Status: Durable{Epoch: 4, ActiveSite: "b", Transition: planned("A:1-8")}}, false},
	} {
		if err := tc.d.check(before); (err == nil) != tc.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}
