// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/gate"
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
		s := world(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{To: "b", Kind: v1alpha1.FailoverBootstrap}}, seen("b", "A:1-9", 4), seen("c", "A:1-9", 4))
		m := Memory{Sites: map[string]*SiteMemory{"b": {Ack: &Ack{Epoch: 4, Fenced: true}}}}
		tc.change(&m, &s.Sites[0], &s.Sites[1])
		g := askGate(s, m)
		if !slices.Equal(g.Blockers, tc.want) || g.Passed != (tc.want == nil) {
			t.Errorf("I1, I2: %s: %v, passed %t", name, g.Blockers, g.Passed)
		}
	}
}

// TestASecondWriterI1: whoever is worked on behind offline_mode is none.
func TestASecondWriterI1(t *testing.T) {
	s := world(Durable{}, seen("b", "A:1-9", 4), seen("c", "A:1-9", 4))
	s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = false, false
	if got := writableElsewhere(s, "b"); got != "c" {
		t.Errorf("I1: %q", got)
	}
	s.Sites[1].Busy = WorkRotation
	if got := writableElsewhere(s, "b"); got != "" {
		t.Errorf("I1: %q", got)
	}
}

// TestNoProofOfASiteThatIsNotThereI1: what is not remembered, or not listed, proves nothing, also where all else is zero.
func TestNoProofOfASiteThatIsNotThereI1(t *testing.T) {
	s := world(Durable{Transition: &Transition{From: "a", To: "b"}}, seen("b", "A:1-9", 4))
	s.LeaderSince = time.Time{}.Add(-time.Hour)
	if got := fenceProof(s, Memory{}, "a"); got != "" {
		t.Errorf("I1: %s", got)
	}
}

// TestWhoBlocksALeaseI4: in the same order whatever order the sites are in, and only who acknowledged counts as such.
func TestWhoBlocksALeaseI4(t *testing.T) {
	s, m := cutOff()
	s.Sites = []Site{s.Sites[0], seen("d", "A:1-9", 4), seen("c", "A:1-9", 4), s.Sites[1]}
	s.Now = start.Add(time.Hour)
	m.At("c").Ack = nil
	if g := leaseRunOut(s, m, "a"); !slices.Equal(g.Blockers, []string{"c", "d"}) || g.Passed {
		t.Errorf("I4: %v", g.Blockers)
	}
	s.Status.Epoch = 0 // nobody's acknowledgement of nothing
	if g := leaseRunOut(s, Memory{}, "a"); len(g.Blockers) != 3 {
		t.Errorf("I4: %v", g.Blockers)
	}
	s, m = cutOff()
	s.Now, s.Policy.ForceTo, m.At("a").Outlived = start.Add(time.Hour), "b", true
	if g := leaseRunOut(s, m, "a"); !g.Passed || len(g.Evidence) != 1 || !strings.Contains(g.Evidence[0], "ordered by a person although "+g.Outlived) {
		t.Errorf("I4: %+v", g)
	}
}

// TestTheLongestLeaseI4: of a pod that was seen it is its own, of another the worst that any was given.
func TestTheLongestLeaseI4(t *testing.T) {
	s := world(Durable{})
	m := Memory{Sites: map[string]*SiteMemory{"a": {Lease: 25 * time.Second}, "b": {Lease: 40 * time.Second}}}
	for x, want := range map[string]time.Duration{"a": 25 * time.Second, "b": 40 * time.Second, "c": 40 * time.Second} {
		if got := longestLease(s, m, x); got != want {
			t.Errorf("I4: %s: %s", x, got)
		}
	}
	m.At("a").Lease = time.Second
	if got := longestLease(s, m, "a"); got != 22*time.Second {
		t.Errorf("I4: %s", got)
	}
}

// TestALossThatCannotBeReadI10: it names no numbers, and the next record is looked at.
func TestALossThatCannotBeReadI10(t *testing.T) {
	b := uuids["B"]
	lost := v1alpha1.FailoverRecord{From: "b", To: "a", LostTransactions: 10, LostSet: set("B:91-100").String()}
	broken := v1alpha1.FailoverRecord{From: "b", To: "a", LostTransactions: 10, LostSet: set("B:91-100").String() + ",?"}
	s := world(Durable{Epoch: 3, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{broken, lost}}, seen("a", "A:1-9", 3), seen("b", "A:1-9,B:1-90", 3), seen("c", "A:1-9,B:1-100", 3))
	s.Sites[1].MySQL.ServerUUID = b
	if why := isNumberingAgain(s, Memory{}, s.Sites[1]); why == "" {
		t.Error("I10: a record that cannot be read hides the next one")
	}
	s.Status.Records = s.Status.Records[:1]
	if why := isNumberingAgain(s, Memory{}, s.Sites[1]); why != "" {
		t.Errorf("I10: numbers of a record that cannot be read: %s", why)
	}
	// A site is not asked whether it still has what it lacks itself.
	s.Status.Records, s.Sites = []v1alpha1.FailoverRecord{lost}, s.Sites[:2]
	s.Sites[1].OtherVolume = true
	if why := isNumberingAgain(s, Memory{}, s.Sites[1]); why != "" {
		t.Errorf("I10: %s", why)
	}
}

// TestAnOrderForNobody: a name that is in no list orders nothing.
func TestAnOrderForNobody(t *testing.T) {
	s := world(Durable{Epoch: 4, ActiveSite: "a"}, seen("a", "A:1-9", 4))
	for _, to := range []string{"", "x"} {
		if s.Policy.ForceTo = to; ordered(s) {
			t.Errorf("%q is ordered", to)
		}
	}
}

// TestWhatAPersonCanDo: each way out is told only where it leads out.
func TestWhatAPersonCanDo(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot)
		want   string
	}{
		"b is dr-only":                {func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, "make b a primary-candidate in spec.sites"},
		"b left":                      {func(s *Snapshot) { s.Sites[1].Removed = true }, "put b back into spec.sites as a primary-candidate"},
		"b is down":                   {func(s *Snapshot) { silence(&s.Sites[1]) }, ""},
		"b is fit":                    {func(*Snapshot) {}, ""},
		"the active site is dr-only":  {func(s *Snapshot) { s.Sites[0].Role = v1alpha1.DROnly }, ""},
		"b is dr-only, and is silent": {func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly; silence(&s.Sites[1]) }, ""},
	} {
		s := world(Durable{Epoch: 4, ActiveSite: "a"}, seen("a", "A:1-9", 4), seen("b", "A:1-9", 4))
		tc.change(&s)
		if got := enlistable(s, Memory{}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := world(Durable{Epoch: 4, ActiveSite: "a"}, seen("a", "A:1-9", 4), seen("b", "A:1-9", 4))
	s.Sites[1].Sidecar.Report.Keyring = keyring("behind")
	if got := wayOut(s, Memory{}, Candidate{}, false); got != notEscrowedRemedy.Text {
		t.Errorf("I16: %s", got)
	}
	s.Sites[1].Sidecar.Report.Keyring = nil
	if got := wayOut(s, Memory{}, Candidate{}, false); !strings.HasPrefix(got, bringBack) {
		t.Errorf("%s", got)
	}
	s.Sites = s.Sites[1:]
	if got := lostWayOut(s, Memory{}, s.Sites[0]); !strings.Contains(got, override("b")) {
		t.Errorf("%s", got)
	}
	s.Sites[0].Sidecar.Report.Epoch = 3
	if got := lostWayOut(s, Memory{}, s.Sites[0]); strings.Contains(got, override("b")) {
		t.Errorf("an order for a site that does not acknowledge the epoch: %s", got)
	}
}

// TestAnAcceptedLossIsWrittenFirstI1: it holds until it is durable.
func TestAnAcceptedLossIsWrittenFirstI1(t *testing.T) {
	s := world(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{To: "b", ToExecuted: set("A:1-9")}}, seen("b", "A:1-5", 4))
	d := accepted(s, Decision{Status: s.Status}, s.Sites[0])
	if !d.Hold || !d.Persist || d.Status.Transition.Kind != v1alpha1.FailoverForced || !d.Status.Transition.ToExecuted.Equal(set("A:1-5")) {
		t.Errorf("I1: %+v", d)
	}
}

// TestWhatIsRememberedOfALeaseI4: what was seen once stays seen.
func TestWhatIsRememberedOfALeaseI4(t *testing.T) {
	s := world(Durable{Epoch: 4, ActiveSite: "a"}, seen("a", "A:1-9", 4))
	old := Memory{Sites: map[string]*SiteMemory{"a": {WritableAt: start.Add(-time.Minute)}}}
	if m := remember(s, old); !m.At("a").WritableAt.Equal(start.Add(-time.Minute)) {
		t.Errorf("I4: %s", m.At("a").WritableAt)
	}
}

// TestAMoveThatIsOvertakenI2: what the new intent says, and who is not overtaken.
func TestAMoveThatIsOvertakenI2(t *testing.T) {
	budget := int64(3)
	moved := func(change func(*Snapshot, *Memory)) (Decision, bool, bool) {
		s := world(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
			Reason: "old", StartedAt: start.Add(-time.Hour)}}, seen("a", "A:1-9", 4), seen("b", "A:1-9", 4))
		m := Memory{Sites: map[string]*SiteMemory{"a": {Executed: set("A:1-11"), DownSince: s.Now.Add(-time.Minute), SilentPolls: 9}}, DrainSince: start.Add(-time.Hour)}
		silence(&s.Sites[0])
		change(&s, &m)
		return overtaken(s, Decision{Status: s.Status, Memory: m}, s.Sites[0], s.Sites[1])
	}
	d, dying, lost := moved(func(*Snapshot, *Memory) {})
	got := d.Status.Transition
	if !lost || dying || got.Kind != v1alpha1.FailoverEmergency || got.Reason != v1alpha1.ReasonActiveSiteSilent || !got.StartedAt.Equal(start) ||
		!got.FromExecuted.Equal(set("A:1-11")) || !d.Memory.DrainSince.Equal(start) || !d.Persist || !d.Hold || d.Status.Epoch != 4 {
		t.Errorf("I2: %+v: %+v", d, got)
	}
	for name, change := range map[string]func(*Snapshot, *Memory){
		"its source answers":          func(s *Snapshot, _ *Memory) { s.Sites[0] = seen("a", "A:1-9", 4) },
		"a person gave it up":         func(s *Snapshot, _ *Memory) { s.Policy.AbortPlanned = true },
		"the target cannot be opened": func(s *Snapshot, _ *Memory) { s.Sites[1].Busy = WorkClone },
		"the mode is Manual":          func(s *Snapshot, _ *Memory) { s.Policy.Mode = v1alpha1.FailoverManual },
		"more than the budget would go": func(s *Snapshot, m *Memory) {
			s.Policy.MaxLost = &budget
			m.At("a").Executed, m.At("b").Executed = set("A:1-19"), set("A:1-9")
		},
		"its source has just gone silent": func(_ *Snapshot, m *Memory) { m.At("a").DownSince = start },
	} {
		if _, dying, lost := moved(change); lost || dying != (name == "its source has just gone silent") {
			t.Errorf("I2: %s: dying %t, lost %t", name, dying, lost)
		}
	}
	if _, _, lost := moved(func(s *Snapshot, m *Memory) { s.Policy.MaxLost = &budget; m.At("b").Executed = set("A:1-9") }); !lost {
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
		s := world(Durable{}, seen("a", "A:1-9", 4))
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
		s := world(Durable{Epoch: 4, ActiveSite: "b"}, seen("a", "A:1-9", 4))
		tc.change(&s.Sites[0])
		got, fenced := capturedSet(s, s.Sites[0])
		if fenced != tc.want || fenced && !got.Equal(set("A:1-9")) {
			t.Errorf("I13: %s: %t", name, fenced)
		}
	}
	silent := seen("a", "A:1-9", 4)
	silent.MySQL, silent.Sidecar.Report.Answered, silent.Sidecar.Report.Fenced = MySQL{}, false, true
	if _, fenced := capturedSet(world(Durable{Epoch: 4}, silent), silent); fenced {
		t.Error("I13: what a MySQL that does not answer had before counts for all that it has")
	}
}

// TestAMoveHoldsWhatWasCapturedI13: the intent that is written holds the whole set, and the target has it.
func TestAMoveHoldsWhatWasCapturedI13(t *testing.T) {
	move := func(change func(s *Snapshot, m *Memory)) Decision {
		s := world(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
			StartedAt: start, FromExecuted: set("A:1-2")}}, seen("a", "A:1-9", 4), seen("b", "A:1-9", 4))
		m := Memory{Sites: map[string]*SiteMemory{"a": {Ack: &Ack{Epoch: 4, Fenced: true}}, "b": {Ack: &Ack{Epoch: 4, Fenced: true}}}}
		change(&s, &m)
		return moving(s, Decision{Status: s.Status, Memory: m, Hold: true})
	}
	d := move(func(*Snapshot, *Memory) {})
	if d.Verdict != VerdictPromote || !d.Status.Transition.FromExecuted.Equal(set("A:1-9")) {
		t.Errorf("I13: %s: %+v", d.Message, d.Status.Transition)
	}
	for name, tc := range map[string]struct {
		change func(s *Snapshot, m *Memory)
		reason Reason
		says   string
	}{
		"the gate is closed":         {func(_ *Snapshot, m *Memory) { m.At("a").Ack = nil; m.At("b").Ack = nil }, v1alpha1.ReasonAwaitingFenceProof, "the gate is closed (b "},
		"b has not acknowledged":     {func(s *Snapshot, _ *Memory) { s.Sites[1].Sidecar.Report.Epoch = 3 }, v1alpha1.ReasonAwaitingFenceProof, "b has not acknowledged"},
		"something is left to apply": {func(s *Snapshot, _ *Memory) { s.Sites[1].MySQL.Executed = set("A:1-8") }, v1alpha1.ReasonDrainingRelayLog, "left to apply"},
		"c has more":                 {func(s *Snapshot, _ *Memory) { s.Sites = append(s.Sites, seen("c", "A:1-9,C:1", 4)) }, v1alpha1.ReasonMissingTransactions, "which c has"},
		"c accepts writes": {func(s *Snapshot, _ *Memory) {
			c := seen("c", "A:1-9", 4)
			c.MySQL.SuperReadOnly, c.MySQL.ReadOnly = false, false
			s.Sites = append(s.Sites, c)
		}, v1alpha1.ReasonAwaitingFenceProof, "the gate is closed (c)"},
	} {
		if d := move(tc.change); d.Verdict != VerdictWait || d.Reason != tc.reason || !strings.Contains(d.Message, tc.says) {
			t.Errorf("I13: %s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
	}
	kept := &Transition{FromExecuted: set("A:1")}
	if got := capture(kept, set("A:1-9")); !got.FromExecuted.Equal(set("A:1-9")) || !kept.FromExecuted.Equal(set("A:1")) {
		t.Error("I13: what is captured")
	}
}

// TestHowCloseATargetIs: at each bound.
func TestHowCloseATargetIs(t *testing.T) {
	lag := func(seconds float64) *float64 { return &seconds }
	a := seen("a", "A:1-1000", 4)
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
		b := seen("b", tc.has, 4)
		b.MySQL.LagSeconds = tc.lag
		if near, _ := isClose(a, b); near != tc.near || atHand(a, b) != tc.hand {
			t.Errorf("%s: near %t, at hand %t", name, near, atHand(a, b))
		}
	}
}

// TestWhatMayPass: the refusals that the next poll may not have any more.
func TestWhatMayPass(t *testing.T) {
	for why, want := range map[Reason]bool{v1alpha1.ReasonNotFit: true, v1alpha1.ReasonNotHealthy: true, v1alpha1.ReasonNotReplicating: true, v1alpha1.ReasonCloneInProgress: true, v1alpha1.ReasonForeignWriter: true,
		v1alpha1.ReasonUnknownSite: false, v1alpha1.ReasonModeObserve: false, v1alpha1.ReasonPaused: false} {
		if passing(why) != want {
			t.Errorf("%s", why)
		}
	}
}

// TestWhenAReportProvesNothingLater: what is merged into an acknowledgement.
func TestWhenAReportProvesNothingLaterI5(t *testing.T) {
	sites := []Site{{Name: "a"}, {Name: "b"}}
	known := &Ack{Epoch: 4, LastVouch: map[string]time.Time{"a": start.Add(-time.Minute)}}
	report := Site{Name: "b", Sidecar: Sidecar{At: start, Report: wire.Report{
		Site: "b", Epoch: 4, UptimeMillis: 60_000, Vouched: []wire.Vouch{{Site: "a", AgeMillis: 1000}},
	}}}
	if got := acknowledge(known, report, sites); !got.LastVouch["a"].Equal(start.Add(-time.Minute)) {
		t.Errorf("I5: %v", got.LastVouch)
	}
	known.LastVouch["a"] = start
	if got := acknowledge(known, report, sites); !got.LastVouch["a"].Equal(start.Add(-time.Second)) {
		t.Errorf("I5: %v", got.LastVouch)
	}
	known.LastVouch["a"], known.Epoch = start.Add(-time.Minute), 3
	got := acknowledge(known, report, sites)
	if !got.LastVouch["a"].Equal(start.Add(-time.Second)) {
		t.Errorf("I5: a bound under another epoch counts: %v", got.LastVouch)
	}
	if _, own := got.LastVouch["b"]; own {
		t.Error("I5: a site vouches for itself")
	}
	if got = acknowledge(&Ack{Epoch: 4}, report, sites); !got.LastVouch["a"].Equal(start.Add(-time.Second)) {
		t.Errorf("I5: a vouch that nobody knew of: %v", got.LastVouch)
	}
	if got = acknowledge(nil, report, sites); got.Epoch != 4 || !got.LastVouch["a"].Equal(start.Add(-time.Second)) {
		t.Errorf("I5: the first acknowledgement: %+v", got)
	}
}

// TestASiteThatIsNotThereIsWaitedForI4: the lease of an old active site counts also once nobody sees it any more.
func TestASiteThatIsNotThereIsWaitedForI4(t *testing.T) {
	s, m := cutOff()
	s.Sites = s.Sites[1:]
	s.Answered["a"] = s.Now
	q := questionOf(s, m)
	if q.Old.Name != "a" || !q.Old.Answered.Equal(s.Now) || askGate(s, m).Passed {
		t.Errorf("I4: %+v", q.Old)
	}
}

// TestTheFirstActiveSiteReplacesNobodyI1: there is no lease to wait for, and nobody to prove anything of.
func TestTheFirstActiveSiteReplacesNobodyI1(t *testing.T) {
	s := between(v1alpha1.FailoverBootstrap, seen("a", "A:1-9", 4), seen("b", "A:1-9", 4))
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

// TestTheLastChangeOfASiteI10: one that opened the site again took nothing from it, and older ones do not count.
func TestTheLastChangeOfASiteI10(t *testing.T) {
	s := world(Durable{Records: []v1alpha1.FailoverRecord{{Epoch: 5, From: "b", To: "b"}, {Epoch: 4, From: "a", To: "b"}, {Epoch: 3, From: "b", To: "a"}}})
	for site, want := range map[string]struct {
		epoch    int64
		replaced bool
	}{"a": {4, true}, "b": {5, false}, "c": {0, false}} {
		if r, replaced := lastChange(s, site); r.Epoch != want.epoch || replaced != want.replaced {
			t.Errorf("I10: %s: epoch %d, replaced: %t", site, r.Epoch, replaced)
		}
	}
}
