// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestWhoMustBeFencedWithoutAnOldActiveSiteI1I2: each reason by which a site need not acknowledge, alone.
func TestWhoMustBeFencedWithoutAnOldActiveSiteI1I2(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(m *Memory, b, c *Site)
		want   []string
	}{
		"c did not acknowledge":                  {func(*Memory, *Site, *Site) {}, []string{"c"}},
		"c did":                                  {func(m *Memory, _, _ *Site) { m.At("c").Ack = &Ack{Epoch: 4, Fenced: true} }, nil},
		"c did, of an older epoch":               {func(m *Memory, _, _ *Site) { m.At("c").Ack = &Ack{Epoch: 3, Fenced: true} }, []string{"c"}},
		"c did, and is not fenced":               {func(m *Memory, _, _ *Site) { m.At("c").Ack = &Ack{Epoch: 4} }, []string{"c"}},
		"c has ended":                            {func(_ *Memory, _, c *Site) { c.Pod.Ended = true }, nil},
		"c never held data, and is dr-only":      {func(_ *Memory, _, c *Site) { c.Provisioned, c.Role = false, v1alpha1.DROnly }, nil},
		"c is dr-only, and held data":            {func(_ *Memory, _, c *Site) { c.Role = v1alpha1.DROnly }, []string{"c"}},
		"c never held data, and is a candidate":  {func(_ *Memory, _, c *Site) { c.Provisioned = false }, []string{"c"}},
		"c never held data, left, has no pod":    {func(_ *Memory, _, c *Site) { c.Provisioned, c.Removed = false, true }, nil},
		"c never held data, left, and has a pod": {func(_ *Memory, _, c *Site) { c.Provisioned, c.Removed, c.Pod.Exists = false, true, true }, []string{"c"}},
		"c never held data, and has no pod":      {func(_ *Memory, _, c *Site) { c.Provisioned, c.Pod.Exists = false, false }, []string{"c"}},
		"the target is never asked":              {func(m *Memory, _, _ *Site) { m.At("c").Ack = &Ack{Epoch: 4, Fenced: true} }, nil},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{To: "b", Kind: v1alpha1.FailoverBootstrap}}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		m := Memory{Sites: map[string]*SiteMemory{"b": {Ack: &Ack{Epoch: 4, Fenced: true}}}}
		tc.change(&m, &s.Sites[0], &s.Sites[1])
		g := AskGate(s, m)
		if !slices.Equal(g.Blockers, tc.want) || g.Passed != (tc.want == nil) {
			t.Errorf("I1, I2: %s: %v, passed %t", name, g.Blockers, g.Passed)
		}
	}
}

// TestNoProofOfASiteThatIsNotThereI1: what is not remembered, or not listed, proves nothing, also where all else is zero.
func TestNoProofOfASiteThatIsNotThereI1(t *testing.T) {
	s := factstest.World(Durable{Transition: &Transition{From: "a", To: "b"}}, factstest.Seen("b", "A:1-9", 4))
	s.LeaderSince = time.Time{}.Add(-time.Hour)
	if got := fenceProof(s, Memory{}, "a"); got != "" {
		t.Errorf("I1: %s", got)
	}
}

// TestWhoBlocksALeaseI4: in the same order whatever order the sites are in, and only who acknowledged counts as such.
func TestWhoBlocksALeaseI4(t *testing.T) {
	s, m := cutOff()
	s.Sites = []Site{s.Sites[0], factstest.Seen("d", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4), s.Sites[1]}
	s.Now = factstest.Start.Add(time.Hour)
	m.At("c").Ack = nil
	if g := leaseRunOut(s, m, "a"); !slices.Equal(g.Blockers, []string{"c", "d"}) || g.Passed {
		t.Errorf("I4: %v", g.Blockers)
	}
	s.Status.Epoch = 0 // nobody's acknowledgement of nothing
	if g := leaseRunOut(s, Memory{}, "a"); len(g.Blockers) != 3 {
		t.Errorf("I4: %v", g.Blockers)
	}
	s, m = cutOff()
	s.Now, s.Policy.ForceTo, m.At("a").Outlived = factstest.Start.Add(time.Hour), "b", true
	if g := leaseRunOut(s, m, "a"); !g.Passed || len(g.Evidence) != 1 || !strings.Contains(g.Evidence[0], "ordered by a person although "+g.Outlived) {
		t.Errorf("I4: %+v", g)
	}
}

// TestTheLongestLeaseI4: of a pod that was seen it is its own, of another the worst that any was given.
func TestTheLongestLeaseI4(t *testing.T) {
	s := factstest.World(Durable{})
	m := Memory{Sites: map[string]*SiteMemory{"a": {Lease: 25 * time.Second}, "b": {Lease: 40 * time.Second}}}
	for x, want := range map[string]time.Duration{"a": 25 * time.Second, "b": 40 * time.Second, "c": 40 * time.Second} {
		if got := memory.LongestLease(s, m, x); got != want {
			t.Errorf("I4: %s: %s", x, got)
		}
	}
	m.At("a").Lease = time.Second
	if got := memory.LongestLease(s, m, "a"); got != 22*time.Second {
		t.Errorf("I4: %s", got)
	}
}

// TestAnOrderForNobody: a name that is in no list orders nothing.
func TestAnOrderForNobody(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	for _, to := range []string{"", "x"} {
		if s.Policy.ForceTo = to; promotion.WithOrder(s).Order.To != "" {
			t.Errorf("%q is ordered", to)
		}
	}
}

// TestAnAcceptedLossIsWrittenFirstI1: it holds until it is durable.
func TestAnAcceptedLossIsWrittenFirstI1(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{To: "b", ToExecuted: factstest.Set("A:1-9")}}, factstest.Seen("b", "A:1-5", 4))
	d := accepted(s, Decision{Status: s.Status}, s.Sites[0])
	if !d.Hold || !d.Persist || d.Status.Transition.Kind != v1alpha1.FailoverForced || !d.Status.Transition.ToExecuted.Equal(factstest.Set("A:1-5")) {
		t.Errorf("I1: %+v", d)
	}
}

// TestWhatIsRememberedOfALeaseI4: what was seen once stays seen.
func TestWhatIsRememberedOfALeaseI4(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	old := Memory{Sites: map[string]*SiteMemory{"a": {WritableAt: factstest.Start.Add(-time.Minute)}}}
	if m := memory.Remember(s, old); !m.At("a").WritableAt.Equal(factstest.Start.Add(-time.Minute)) {
		t.Errorf("I4: %s", m.At("a").WritableAt)
	}
}

// TestAMoveThatIsOvertakenI2: what the new intent says, and who is not overtaken.
func TestAMoveThatIsOvertakenI2(t *testing.T) {
	budget := int64(3)
	moved := func(change func(*Snapshot, *Memory)) (Decision, bool, bool) {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
			Reason: "old", StartedAt: factstest.Start.Add(-time.Hour)}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		m := Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-11"), DownSince: s.Now.Add(-time.Minute), SilentPolls: 9}}, DrainSince: factstest.Start.Add(-time.Hour)}
		factstest.Silence(&s.Sites[0])
		change(&s, &m)
		return overtaken(s, Decision{Status: s.Status, Memory: m}, s.Sites[0], s.Sites[1])
	}
	d, dying, lost := moved(func(*Snapshot, *Memory) {})
	got := d.Status.Transition
	if !lost || dying || got.Kind != v1alpha1.FailoverEmergency || got.Reason != v1alpha1.ReasonActiveSiteSilent || !got.StartedAt.Equal(factstest.Start) ||
		!got.FromExecuted.Equal(factstest.Set("A:1-11")) || !d.Memory.DrainSince.Equal(factstest.Start) || !d.Persist || !d.Hold || d.Status.Epoch != 4 {
		t.Errorf("I2: %+v: %+v", d, got)
	}
	for name, change := range map[string]func(*Snapshot, *Memory){
		"its source answers":          func(s *Snapshot, _ *Memory) { s.Sites[0] = factstest.Seen("a", "A:1-9", 4) },
		"a person gave it up":         func(s *Snapshot, _ *Memory) { s.Policy.AbortPlanned = true },
		"the target cannot be opened": func(s *Snapshot, _ *Memory) { s.Sites[1].Busy = WorkClone },
		"the mode is Manual":          func(s *Snapshot, _ *Memory) { s.Policy.Mode = v1alpha1.FailoverManual },
		"more than the budget would go": func(s *Snapshot, m *Memory) {
			s.Policy.MaxLost = &budget
			m.At("a").Executed, m.At("b").Executed = factstest.Set("A:1-19"), factstest.Set("A:1-9")
		},
		"its source has just gone silent": func(_ *Snapshot, m *Memory) { m.At("a").DownSince = factstest.Start },
	} {
		if _, dying, lost := moved(change); lost || dying != (name == "its source has just gone silent") {
			t.Errorf("I2: %s: dying %t, lost %t", name, dying, lost)
		}
	}
	if _, _, lost := moved(func(s *Snapshot, m *Memory) { s.Policy.MaxLost = &budget; m.At("b").Executed = factstest.Set("A:1-9") }); !lost {
		t.Error("a loss within the budget keeps it")
	}
}

// TestByWhichRuleASiteIsLost: down with its sidecar, or silent with all.
func TestByWhichRuleASiteIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		answers bool
		polls   int
		down    time.Duration
		want    Reason
	}{
		"down for long":          {true, 0, 5 * time.Second, v1alpha1.ReasonActiveSiteDown},
		"down, not for long":     {true, 9, 4 * time.Second, ""},
		"silent for long":        {false, 3, 4 * time.Second, v1alpha1.ReasonActiveSiteSilent},
		"silent, not for long":   {false, 3, 3 * time.Second, ""},
		"silent, but for a poll": {false, 2, 9 * time.Second, ""},
	} {
		s := factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 4))
		s.Sites[0].Sidecar.Answered = tc.answers
		m := Memory{Sites: map[string]*SiteMemory{"a": {SilentPolls: tc.polls, DownSince: s.Now.Add(-tc.down)}}}
		if got, _ := lostBy(s, m, s.Sites[0]); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhatIsCapturedOfAFencedSiteI13: each of what makes it no proof, alone.
func TestWhatIsCapturedOfAFencedSiteI13(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Site)
		want   bool
	}{
		"it reports itself fenced":           {func(*Site) {}, true},
		"its sidecar does not answer":        {func(a *Site) { a.Sidecar.Answered = false }, false},
		"it is on another volume":            {func(a *Site) { a.OtherVolume = true }, false},
		"its MySQL does not answer":          {func(a *Site) { a.Sidecar.Report.Answered = false }, false},
		"it is not read-only":                {func(a *Site) { a.Sidecar.Report.SuperReadOnly = false; a.Sidecar.Report.Fenced = true }, false},
		"it reports an older epoch":          {func(a *Site) { a.Sidecar.Report.Epoch = 3 }, false},
		"the operator sees it accept writes": {func(a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }, false},
		"its set cannot be read":             {func(a *Site) { a.Sidecar.Report.GTIDExecuted = "?" }, false},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b"}, factstest.Seen("a", "A:1-9", 4))
		tc.change(&s.Sites[0])
		got, fenced := capturedSet(s, s.Sites[0])
		if fenced != tc.want || fenced && !got.Equal(factstest.Set("A:1-9")) {
			t.Errorf("I13: %s: %t", name, fenced)
		}
	}
	silent := factstest.Seen("a", "A:1-9", 4)
	silent.MySQL, silent.Sidecar.Report.Answered, silent.Sidecar.Report.Fenced = MySQL{}, false, true
	if _, fenced := capturedSet(factstest.World(Durable{Epoch: 4}, silent), silent); fenced {
		t.Error("I13: what a MySQL that does not answer had before counts for all that it has")
	}
}

// TestAMoveHoldsWhatWasCapturedI13: the intent that is written holds the whole set, and the target has it.
func TestAMoveHoldsWhatWasCapturedI13(t *testing.T) {
	move := func(change func(s *Snapshot, m *Memory)) Decision {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
			StartedAt: factstest.Start, FromExecuted: factstest.Set("A:1-2")}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		m := Memory{DrainSince: factstest.Start, Sites: map[string]*SiteMemory{"a": {Ack: &Ack{Epoch: 4, Fenced: true}}, "b": {Ack: &Ack{Epoch: 4, Fenced: true}}}}
		change(&s, &m)
		d := moving(s, Decision{Status: s.Status, Memory: m, Hold: true})
		if !s.Status.Transition.FromExecuted.Equal(factstest.Set("A:1-2")) {
			t.Errorf("I13: what was read from status is changed: %s", s.Status.Transition.FromExecuted)
		}
		return d
	}
	d := move(func(*Snapshot, *Memory) {})
	if d.Verdict != VerdictPromote || !d.Status.Transition.FromExecuted.Equal(factstest.Set("A:1-9")) {
		t.Errorf("I13: %s: %+v", d.Message, d.Status.Transition)
	}
	for name, tc := range map[string]struct {
		change func(s *Snapshot, m *Memory)
		reason Reason
		says   string
	}{
		"the gate is closed":         {func(_ *Snapshot, m *Memory) { m.At("a").Ack = nil; m.At("b").Ack = nil }, v1alpha1.ReasonAwaitingFenceProof, "the gate is closed (b "},
		"b has not acknowledged":     {func(s *Snapshot, _ *Memory) { s.Sites[1].Sidecar.Report.Epoch = 3 }, v1alpha1.ReasonAwaitingFenceProof, "b has not acknowledged"},
		"something is left to apply": {func(s *Snapshot, _ *Memory) { s.Sites[1].MySQL.Executed = factstest.Set("A:1-8") }, v1alpha1.ReasonDrainingRelayLog, "left to apply"},
		"c has more":                 {func(s *Snapshot, _ *Memory) { s.Sites = append(s.Sites, factstest.Seen("c", "A:1-9,C:1", 4)) }, v1alpha1.ReasonMissingTransactions, "which c has"},
		"c accepts writes": {func(s *Snapshot, _ *Memory) {
			c := factstest.Seen("c", "A:1-9", 4)
			c.MySQL.SuperReadOnly, c.MySQL.ReadOnly = false, false
			s.Sites = append(s.Sites, c)
		}, v1alpha1.ReasonAwaitingFenceProof, "the gate is closed (c)"},
	} {
		if d := move(tc.change); d.Verdict != VerdictWait || d.Reason != tc.reason || !strings.Contains(d.Message, tc.says) {
			t.Errorf("I13: %s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestHowCloseATargetIs: at each bound.
func TestHowCloseATargetIs(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	a := factstest.Seen("a", "A:1-1000", 4)
	for name, tc := range map[string]struct {
		has        string
		lag        *float64
		near, hand bool
	}{
		"all":                   {"A:1-1000", lag(0), true, true},
		"at the nearer bound":   {"A:1-980", lag(0.1), true, true},
		"one more":              {"A:1-979", lag(0.1), true, false},
		"a little longer":       {"A:1-980", lag(0.11), true, false},
		"at the farther bound":  {"A:1-500", lag(0.5), true, false},
		"one more than that":    {"A:1-499", lag(0.5), false, false},
		"longer than that":      {"A:1-500", lag(0.51), false, false},
		"how long is not known": {"A:1-1000", nil, false, false},
	} {
		b := factstest.Seen("b", tc.has, 4)
		b.MySQL.LagSeconds = tc.lag
		if near, _ := promotion.IsClose(a, b); near != tc.near || promotion.AtHand(a, b) != tc.hand {
			t.Errorf("%s: near %t, at hand %t", name, near, promotion.AtHand(a, b))
		}
	}
}

// TestByWhatATargetIsBehind: at each bound. What its numbers do not tell is not claimed.
func TestByWhatATargetIsBehind(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	a := factstest.Seen("a", "A:1-1000", 4)
	for name, tc := range map[string]struct {
		has, want string
		lag       *float64
	}{
		"few, for long":         {"A:1-980", "what it applies is probably one", lag(0.51)},
		"few, not for long":     {"A:1-980", "", lag(0.5)},
		"not so few":            {"A:1-979", "", lag(60)},
		"many":                  {"A:1-499", "either one large transaction", lag(0)},
		"not so many":           {"A:1-500", "", lag(60)},
		"how long is not known": {"A:1-499", "", nil},
	} {
		b := factstest.Seen("b", tc.has, 4)
		b.MySQL.LagSeconds = tc.lag
		if got := promotion.LagCause(a, b); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhatMayPass: the refusals that the next poll may not have any more.
func TestWhatMayPass(t *testing.T) {
	for why, want := range map[Reason]bool{v1alpha1.ReasonNotFit: true, v1alpha1.ReasonNotHealthy: true, v1alpha1.ReasonNotReplicating: true, v1alpha1.ReasonCloneInProgress: true, v1alpha1.ReasonForeignWriter: true,
		v1alpha1.ReasonUnknownSite: false, v1alpha1.ReasonModeObserve: false, v1alpha1.ReasonPaused: false} {
		if promotion.Passing(why) != want {
			t.Errorf("%s", why)
		}
	}
}

// TestASiteThatIsNotThereIsWaitedForI4: the lease of an old active site counts also once nobody sees it any more.
func TestASiteThatIsNotThereIsWaitedForI4(t *testing.T) {
	s, m := cutOff()
	s.Sites = s.Sites[1:]
	s.Answered["a"] = s.Now
	q := questionOf(s, m)
	if q.Old.Name != "a" || !q.Old.Answered.Equal(s.Now) || AskGate(s, m).Passed {
		t.Errorf("I4: %+v", q.Old)
	}
}

// TestTheFirstActiveSiteReplacesNobodyI1: there is no lease to wait for, and nobody to prove anything of.
func TestTheFirstActiveSiteReplacesNobodyI1(t *testing.T) {
	s := factstest.Between(v1alpha1.FailoverBootstrap, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Status.Transition.From = ""
	if old := questionOf(s, Memory{}).Old; old.Name != "" || old.Lease != 0 || !old.Answered.IsZero() {
		t.Errorf("I1: %+v", old)
	}
}

// TestAGateThatIsClosedHasNoEvidence: a record would tell of a proof that nobody gave.
func TestAGateThatIsClosedHasNoEvidence(t *testing.T) {
	closed, open := inWords(gate.Question{}, gate.Answer{}), inWords(gate.Question{}, gate.Answer{Proof: gate.ProofNobodyOpen})
	if closed.Passed || closed.Evidence != nil || !open.Passed || len(open.Evidence) != 1 {
		t.Errorf("closed: %+v, open: %+v", closed, open)
	}
}
