// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestWhoReturnsWholeI7I10: each of what keeps the old active site from being opened again, alone.
func TestWhoReturnsWholeI7I10(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, m *Memory, a *Site)
		want   bool
	}{
		"it has more":                   {func(*Snapshot, *Memory, *Site) {}, true},
		"it has no more":                {func(_ *Snapshot, _ *Memory, a *Site) { a.MySQL.Executed = factstest.Set("A:1-9") }, false},
		"it lacks what c has":           {func(s *Snapshot, _ *Memory, _ *Site) { s.Sites = append(s.Sites, factstest.Seen("c", "A:1-9,C:1", 4)) }, false},
		"there is none of its name":     {func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Transition.From = "" }, false},
		"it is the target":              {func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Transition.To = "a" }, false},
		"a person ordered b":            {func(s *Snapshot, _ *Memory, _ *Site) { s.Policy.ForceTo = "b" }, false},
		"its sidecar does not answer":   {func(_ *Snapshot, _ *Memory, a *Site) { a.Sidecar.Answered = false }, false},
		"it reports an older epoch":     {func(_ *Snapshot, _ *Memory, a *Site) { a.Sidecar.Report.Epoch = 3 }, false},
		"it accepts writes":             {func(_ *Snapshot, _ *Memory, a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }, false},
		"it left the specification":     {func(_ *Snapshot, _ *Memory, a *Site) { a.Removed = true }, false},
		"it has diverged":               {func(_ *Snapshot, m *Memory, _ *Site) { m.At("a").Diverged = factstest.Set("A:10") }, false},
		"it is dr-only":                 {func(_ *Snapshot, _ *Memory, a *Site) { a.Role = v1alpha1.DROnly }, false},
		"it holds no data of the group": {func(_ *Snapshot, _ *Memory, a *Site) { a.Provisioned = false }, false},
		"it is being worked on":         {func(_ *Snapshot, _ *Memory, a *Site) { a.Busy = WorkRotation }, false},
		"a person keeps it fenced":      {func(_ *Snapshot, _ *Memory, a *Site) { a.KeptFenced = true }, false},
		"its keyring is not in escrow":  {func(_ *Snapshot, _ *Memory, a *Site) { a.Sidecar.Report.Keyring = factstest.Keyring("behind") }, false},
	} {
		s, m := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-11", 4), factstest.Seen("b", "A:1-9", 4)), Memory{}
		tc.change(&s, &m, &s.Sites[0])
		s, target := promotion.WithOrder(s), s.Sites[1]
		if _, got := returnedWhole(s, m, target); got != tc.want {
			t.Errorf("I7, I10: %s: %t", name, got)
		}
	}
}

// TestHowLongATargetIsWaitedFor: from when what is silent fell silent.
func TestHowLongATargetIsWaitedFor(t *testing.T) {
	s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	m := Memory{Sites: map[string]*SiteMemory{"b": {DownSince: factstest.Start.Add(-3 * time.Second), IndirectSince: factstest.Start.Add(-time.Second)}}}
	target := s.Sites[1]
	target.MySQL.Direct = false
	if why, patience := targetUnfit(s, m, target); why.By == "" || patience != 3*time.Second {
		t.Errorf("its MySQL: %s %s", why, patience)
	}
	target.Sidecar.Answered = false
	if why, patience := targetUnfit(s, m, target); why.By == "" || patience != time.Second {
		t.Errorf("its sidecar: %s %s", why, patience)
	}
	target = s.Sites[1]
	target.Busy = WorkClone
	if why, patience := targetUnfit(s, m, target); why.By == "" || patience != 0 {
		t.Errorf("a clone: %s %s", why, patience)
	}
}

// TestWhenALostTargetIsReplaced: what forbids a failover forbids it only where none was begun.
func TestWhenALostTargetIsReplaced(t *testing.T) {
	s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
	s.Policy.Mode = v1alpha1.FailoverManual
	if d := targetLost(s, Decision{Status: s.Status}, "is gone"); d.Verdict != VerdictFailover {
		t.Errorf("%s", d.Message)
	}
	s.Status.Transition.From = "b"
	if d := targetLost(s, Decision{Status: s.Status}, "is gone"); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonModeManual {
		t.Errorf("%s", d.Message)
	}
	s.Policy.Mode = v1alpha1.FailoverAuto
	if d := targetLost(s, Decision{Status: s.Status}, "is gone"); d.Verdict != VerdictFailover {
		t.Errorf("%s", d.Message)
	}
	s.Now = time.Time{}.Add(time.Hour)
	if late(s, time.Time{}) {
		t.Error("what never began takes too long")
	}
}

// TestWhatATargetFetchesI7I8: from whom, and after what.
func TestWhatATargetFetchesI7I8(t *testing.T) {
	follow := func(d Decision) string {
		for _, e := range d.Effects {
			if f, is := e.(Follow); is {
				return "from " + f.Source
			}
		}
		return ""
	}
	for name, tc := range map[string]struct {
		change  func(s *Snapshot, b, c *Site)
		from    string
		waits   bool
		verdict Verdict
	}{
		"it has all":                      {func(_ *Snapshot, _, c *Site) { c.MySQL.Executed = factstest.Set("A:1-9") }, "", false, ""},
		"c has more":                      {func(*Snapshot, *Site, *Site) {}, "c", true, VerdictWait},
		"c has more, and it has to apply": {func(_ *Snapshot, b, _ *Site) { b.MySQL.Retrieved = factstest.Set("A:1-10") }, "", true, VerdictWait},
		"c has more, and it receives from a": {func(_ *Snapshot, b, _ *Site) {
			b.MySQL.ReplicaHost, b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = "a", "a", false
		}, "", true, VerdictWait},
		"c has more, and it receives from c": {func(_ *Snapshot, b, _ *Site) {
			b.MySQL.ReplicaHost, b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = "c", "c", false
		}, "c", true, VerdictWait},
		"it receives, and has all": {func(_ *Snapshot, b, c *Site) {
			c.MySQL.Executed = factstest.Set("A:1-9")
			b.MySQL.ReplicaHost, b.MySQL.ReceiverStopped = "a", false
		}, "", true, VerdictWait},
		"it has no source, so receives none": {func(_ *Snapshot, b, c *Site) {
			c.MySQL.Executed = factstest.Set("A:1-9")
			b.MySQL.ReceiverStopped = false
		}, "", false, ""},
		"c is unsettled": {func(s *Snapshot, _, _ *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "c", To: "x", ToExecuted: factstest.Set("A:1-12").String()}}
		}, "", true, VerdictBlocked},
		"c is unsettled, and it has to apply": {func(s *Snapshot, b, _ *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "c", To: "x", ToExecuted: factstest.Set("A:1-12").String()}}
			b.MySQL.Retrieved = factstest.Set("A:1-10")
		}, "", true, VerdictWait},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-12", 4))
		factstest.Silence(&s.Sites[0])
		tc.change(&s, &s.Sites[1], &s.Sites[2])
		d, waits := drained(s, Decision{Status: s.Status, Memory: marked(s, Memory{DrainSince: s.Now})}, s.Sites[1])
		if waits != tc.waits || strings.TrimPrefix(follow(d), "from ") != tc.from || (follow(d) != "") != (tc.from != "") || d.Verdict != tc.verdict {
			t.Errorf("I7, I8: %s: waits %t for %q: %s %s", name, waits, follow(d), d.Verdict, d.Message)
		}
		if waits && !slices.ContainsFunc(d.Effects, func(e Effect) bool { x, is := e.(Announce); return is && slices.Equal(x.Fence, []string{"a"}) }) {
			t.Errorf("I1: %s: the old active site is not fenced meanwhile: %v", name, d.Effects)
		}
	}
}

// TestAnOrderGoesPastABrokenApplierI8: late, by order, and once nothing is received any more.
func TestAnOrderGoesPastABrokenApplierI8(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, b *Site, since *time.Time)
		waits  bool
	}{
		"late, ordered":                 {func(*Snapshot, *Site, *time.Time) {}, false},
		"late, not ordered":             {func(s *Snapshot, _ *Site, _ *time.Time) { s.Policy.ForceTo = "" }, true},
		"ordered, not late":             {func(s *Snapshot, _ *Site, since *time.Time) { *since = s.Now }, true},
		"late, ordered, still receives": {func(_ *Snapshot, b *Site, _ *time.Time) { b.MySQL.ReplicaHost, b.MySQL.ReceiverStopped = "a", false }, true},
	} {
		s := factstest.Between(v1alpha1.FailoverForced, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Policy.ForceTo = "b"
		s.Sites[1].MySQL.Retrieved = factstest.Set("A:10")
		since := s.Now.Add(-s.Policy.DrainTimeout - 1)
		tc.change(&s, &s.Sites[1], &since)
		if _, waits := drained(promotion.WithOrder(s), Decision{Status: s.Status, Memory: Memory{DrainSince: since}}, s.Sites[1]); waits != tc.waits {
			t.Errorf("I8: %s: waits %t", name, waits)
		}
	}
}

// TestWhoTakesThePlaceOfABrokenTarget: another one that is fit, and only where there was an old active site.
func TestWhoTakesThePlaceOfABrokenTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, b *Site)
		want   string
	}{
		"c":                   {func(*Snapshot, *Site) {}, "c"},
		"it is not broken":    {func(_ *Snapshot, b *Site) { b.MySQL.SQLError = "" }, ""},
		"it is the first one": {func(s *Snapshot, _ *Site) { s.Status.Transition.From = "" }, ""},
		"it is opened again":  {func(s *Snapshot, _ *Site) { s.Status.Transition.From = "b" }, ""},
		"c is broken too":     {func(s *Snapshot, b *Site) { s.Sites[2].MySQL = b.MySQL }, ""},
		"c is dr-only":        {func(s *Snapshot, _ *Site) { s.Sites[2].Role = v1alpha1.DROnly }, ""},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		s.Sites[1].MySQL.Retrieved, s.Sites[1].MySQL.SQLError = factstest.Set("A:10"), "broken"
		tc.change(&s, &s.Sites[1])
		if got, _ := unbroken(s, Memory{}, s.Sites[1]); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The target as it is now counts, not as it was listed.
	s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	factstest.Silence(&s.Sites[0])
	broken := s.Sites[1]
	broken.MySQL.Retrieved, broken.MySQL.SQLError = factstest.Set("A:10"), "broken"
	if got, found := unbroken(s, Memory{}, broken); found {
		t.Errorf("%q takes its own place", got)
	}
}

// TestWhatTheOldActiveSiteIsKnownToHaveHadG3: a part of it passes for nothing.
func TestWhatTheOldActiveSiteIsKnownToHaveHadG3(t *testing.T) {
	for name, tc := range map[string]struct {
		from        string
		begun, last gtid.Set
		want        gtid.Set
	}{
		"at the beginning":                {"a", factstest.Set("A:1-9"), gtid.Set{}, factstest.Set("A:1-9,C:1")},
		"since":                           {"a", gtid.Set{}, factstest.Set("A:1-9"), factstest.Set("A:1-9,C:1")},
		"never":                           {"a", gtid.Set{}, gtid.Set{}, gtid.Set{}},
		"there was none":                  {"", factstest.Set("A:1-9"), gtid.Set{}, factstest.Set("A:1-9")},
		"there was none, and nothing was": {"", gtid.Set{}, gtid.Set{}, gtid.Set{}},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9,C:1", 4))
		tr := &Transition{From: tc.from, To: "b", FromExecuted: tc.begun}
		if got := knownOf(tr, s, Memory{Sites: map[string]*SiteMemory{"a": {Executed: tc.last}, "": {Executed: factstest.Set("A:1-3")}}}, s.Sites[0]); !got.Equal(tc.want) {
			t.Errorf("G3: %s: %s", name, got)
		}
	}
}

// TestWhenAGateIsLookedAtAgainI4: a look at a silent site takes its time, and ends when the lease has.
func TestWhenAGateIsLookedAtAgainI4(t *testing.T) {
	for name, tc := range map[string]struct {
		left    time.Duration
		answers bool
		since   time.Duration
		want    time.Duration
	}{
		"it is silent":                        {10 * time.Second, false, 0, 10*time.Second - LostTimeout},
		"it is silent, and has been for long": {10 * time.Second, false, time.Hour, 10*time.Second - AskTimeout},
		"it answers":                          {10 * time.Second, true, 0, 10 * time.Second},
		"it is silent, and soon it is over":   {LostTimeout, false, 0, LostTimeout},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		if !tc.answers {
			factstest.Silence(&s.Sites[0])
		}
		s.Status.Transition.StartedAt = s.Now.Add(-tc.since)
		d := gateClosed(s, Decision{}, Gate{ReadyAt: s.Now.Add(tc.left)})
		if d.Next != tc.want || d.Verdict != VerdictWait {
			t.Errorf("I4: %s: %s", name, d.Next)
		}
	}
	s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	if d := gateClosed(s, Decision{}, Gate{Outlived: "it outlived it", ReadyAt: s.Now}); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonLeaseOutlived {
		t.Errorf("I4: %s: %s", d.Verdict, d.Message)
	}
	s.Status.Transition.From = ""
	if d := gateClosed(s, Decision{}, Gate{Writer: "c"}); d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonForeignWriter {
		t.Errorf("I1: %s: %s", d.Verdict, d.Message)
	}
}

// TestWhatIsLeftBehindIsToldG1: in an emergency, and by order only as evidence.
func TestWhatIsLeftBehindIsToldG1(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    v1alpha1.FailoverKind
		from    string
		ordered bool
		lost    gtid.Set
		told    bool
	}{
		"an emergency":   {v1alpha1.FailoverEmergency, "a", false, factstest.Set("A:1-9,C:1"), true},
		"by order":       {v1alpha1.FailoverForced, "a", true, factstest.Set("A:1-9"), true},
		"a planned move": {v1alpha1.FailoverPlanned, "a", false, factstest.Set("A:1-9"), false},
		"the first one":  {v1alpha1.FailoverBootstrap, "", false, factstest.Set("A:1-9"), false},
	} {
		s := factstest.Between(tc.kind, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9,C:1", 4))
		s.Status.Transition.From, s.Status.Transition.FromExecuted = tc.from, factstest.Set("A:1-9")
		if tc.ordered {
			s.Policy.ForceTo = "b"
		}
		got := pass(promotion.WithOrder(s), Decision{Status: s.Status}, s.Sites[0], Gate{Passed: true, Evidence: []string{"it"}}).Status.Transition
		if !got.FromExecuted.Equal(tc.lost) || (len(got.Evidence) == 2) != tc.told {
			t.Errorf("G1: %s: %s %v", name, got.FromExecuted, got.Evidence)
		}
	}
}

// TestWhatIsDoneAboutATargetThatIsOpenedI7I12: each case by itself.
func TestWhatIsDoneAboutATargetThatIsOpenedI7I12(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, m *Memory, b *Site)
		want   Reason
	}{
		"it is open":    {func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }, v1alpha1.ReasonOpened},
		"it holds all":  {func(*Snapshot, *Memory, *Site) {}, v1alpha1.ReasonOpening},
		"it holds less": {func(_ *Snapshot, _ *Memory, b *Site) { b.MySQL.Executed = factstest.Set("A:1-5") }, v1alpha1.ReasonActiveSiteBehind},
		"it holds less, and is ordered": {func(s *Snapshot, _ *Memory, b *Site) {
			b.MySQL.Executed = factstest.Set("A:1-5")
			s.Policy.ForceTo = "b"
		}, v1alpha1.ReasonForced},
		"its sidecar is silent":      {func(_ *Snapshot, _ *Memory, b *Site) { b.Sidecar.Answered = false; b.MySQL.Executed = gtid.Set{} }, v1alpha1.ReasonOpening},
		"its MySQL is, for a moment": {func(_ *Snapshot, m *Memory, b *Site) { b.MySQL = MySQL{}; m.At("b").SilentPolls = 9 }, v1alpha1.ReasonOpening},
		"its MySQL is, for long": {func(s *Snapshot, m *Memory, b *Site) {
			b.MySQL = MySQL{}
			m.At("b").IndirectSince = s.Now.Add(-time.Minute)
		}, v1alpha1.ReasonActiveSiteSilent},
		"all of it is, for long": {func(s *Snapshot, m *Memory, b *Site) {
			factstest.Silence(b)
			m.At("b").SilentPolls = 9
			m.At("b").IndirectSince = s.Now
		}, v1alpha1.ReasonActiveSiteSilent},
		"another one is ordered":            {func(s *Snapshot, _ *Memory, _ *Site) { s.Policy.ForceTo = "c" }, v1alpha1.ReasonForced},
		"another one is, that is not there": {func(s *Snapshot, _ *Memory, _ *Site) { s.Policy.ForceTo = "x" }, v1alpha1.ReasonOpening},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		s.Sites[0].Pod.Ended = true
		s.Status.Transition.Step, s.Status.Transition.GatePassedAt, s.Status.Transition.ToExecuted = v1alpha1.TransitionOpening, s.Now, factstest.Set("A:1-9")
		m := Memory{Sites: map[string]*SiteMemory{"b": {Executed: factstest.Set("A:1-5")}}}
		tc.change(&s, &m, &s.Sites[1])
		d := opening(promotion.WithOrder(s), Decision{Status: s.Status, Memory: m, Hold: true})
		if d.Reason != tc.want {
			t.Errorf("I7, I12: %s: %s: %s", name, d.Reason, d.Message)
		}
		if opens := opensSite(d, "b"); opens != (name == "it holds all" || name == "another one is, that is not there") {
			t.Errorf("I7, I12: %s: opened %t", name, opens)
		}
		if tc.want == v1alpha1.ReasonActiveSiteBehind && !d.Memory.At("b").Executed.Equal(factstest.Set("A:1-9")) {
			t.Errorf("I7: %s: what it had is forgotten: %s", name, d.Memory.At("b").Executed)
		}
	}
}

// TestWhatIsDoneBeforeASiteIsOpenedI8: its relay log is looked at again, whoever ordered it.
func TestWhatIsDoneBeforeASiteIsOpenedI8(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, b *Site)
		want   []Effect
	}{
		"it has no source":             {func(*Snapshot, *Site) {}, []Effect{Open{Site: "b"}}},
		"it has one":                   {func(_ *Snapshot, b *Site) { b.MySQL.ReplicaHost = "a" }, []Effect{Detach{Site: "b"}, Open{Site: "b"}}},
		"it has one, and receives":     {func(_ *Snapshot, b *Site) { b.MySQL.ReplicaHost, b.MySQL.ReceiverStopped = "a", false }, []Effect{Drain{Site: "b"}}},
		"it has one, and has to apply": {func(_ *Snapshot, b *Site) { b.MySQL.ReplicaHost, b.MySQL.Retrieved = "a", factstest.Set("A:10") }, []Effect{Drain{Site: "b"}}},
		"it has one, and has to apply, and ordered": {func(s *Snapshot, b *Site) {
			b.MySQL.ReplicaHost, b.MySQL.Retrieved, s.Policy.ForceTo = "a", factstest.Set("A:10"), "b"
		}, []Effect{Detach{Site: "b"}, Open{Site: "b"}}},
		"the same, and receives": {func(s *Snapshot, b *Site) {
			b.MySQL.ReplicaHost, b.MySQL.Retrieved, b.MySQL.ReceiverStopped, s.Policy.ForceTo = "a", factstest.Set("A:10"), false, "b"
		}, []Effect{Drain{Site: "b"}}},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s, &s.Sites[1])
		if got := toOpen(promotion.WithOrder(s), s.Sites[1]); !slices.Equal(got, tc.want) {
			t.Errorf("I8: %s: %v", name, got)
		}
	}
}

// TestWhatIsRecordedG1: of which changes, as what, and with which times.
func TestWhatIsRecordedG1(t *testing.T) {
	end := func(change func(*Snapshot)) Durable {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Now = factstest.Start.Add(3 * time.Second)
		s.Status.Records = []v1alpha1.FailoverRecord{{Epoch: 2}}
		change(&s)
		return complete(promotion.WithOrder(s), Decision{Status: s.Status}).Status
	}
	moving := func(s *Snapshot) {
		s.Status.Transition.Kind = v1alpha1.FailoverPlanned
		s.Status.Planned = &Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving}
	}
	back := func(s *Snapshot) {
		moving(s)
		s.Status.Transition.From, s.Status.Planned.Phase = "b", v1alpha1.PlannedReverted
	}

	got := end(func(*Snapshot) {})
	if got.Transition != nil || !got.ActiveSince.Equal(factstest.Start.Add(3*time.Second)) || len(got.Records) != 2 || got.Records[0].Kind != v1alpha1.FailoverEmergency ||
		got.Records[0].WritePauseMillis != nil || got.Records[1].Epoch != 2 || !got.CooldownUntil.Equal(factstest.Start.Add(3*time.Second+10*time.Minute)) {
		t.Errorf("G1: %+v", got)
	}
	if got = end(func(s *Snapshot) { s.Policy.ForceTo = "b" }); got.Records[0].Kind != v1alpha1.FailoverForced || !got.CooldownUntil.IsZero() {
		t.Errorf("G1: by order: %+v", got.Records[0])
	}
	if got = end(func(s *Snapshot) { s.Status.Transition.Kind = v1alpha1.FailoverBootstrap }); len(got.Records) != 1 {
		t.Errorf("G1: the first active site: %+v", got.Records)
	}
	got = end(moving)
	if p := got.Planned; p.Phase != v1alpha1.PlannedSucceeded || p.WritePause != 3*time.Second || got.Records[0].WritePauseMillis == nil || *got.Records[0].WritePauseMillis != 3000 {
		t.Errorf("a planned one: %+v", got.Planned)
	}
	if got = end(func(s *Snapshot) { moving(s); s.Status.Planned.Phase = v1alpha1.PlannedAborted }); got.Planned.Phase != v1alpha1.PlannedAborted || got.Planned.WritePause != 0 {
		t.Errorf("one that was given up: %+v", got.Planned)
	}
	if got = end(func(s *Snapshot) { moving(s); s.Status.Transition.Kind = v1alpha1.FailoverEmergency }); got.Planned.Phase != v1alpha1.PlannedMoving || got.Planned.WritePause != 0 {
		t.Errorf("one that an emergency overtook: %+v", got.Planned)
	}
	if got = end(back); got.Planned.WritePause != 3*time.Second || got.Planned.Phase != v1alpha1.PlannedReverted {
		t.Errorf("one that went back: %+v", got.Planned)
	}
	if got = end(func(s *Snapshot) { back(s); s.Status.Planned.WritePause = time.Second }); got.Planned.WritePause != time.Second {
		t.Errorf("one whose pause is known: %+v", got.Planned)
	}
	if got = end(func(s *Snapshot) { back(s); s.Status.Planned = nil }); got.Planned != nil {
		t.Errorf("one that nobody noted: %+v", got.Planned)
	}
	if got = end(func(s *Snapshot) { back(s); s.Status.Transition.Kind = v1alpha1.FailoverEmergency }); got.Planned.WritePause != 0 {
		t.Errorf("an emergency on the way back: %+v", got.Planned)
	}

	s := factstest.Between(v1alpha1.FailoverPlanned, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	exact := func(kind v1alpha1.FailoverKind, from, had string) bool {
		return record(s, Transition{Kind: kind, From: from, To: "b", FromExecuted: factstest.Set(had), ToExecuted: factstest.Set("A:1-9")}).LossExact
	}
	if !exact(v1alpha1.FailoverPlanned, "a", "A:1-9") || exact(v1alpha1.FailoverPlanned, "a", "A:1-10") || !exact(v1alpha1.FailoverEmergency, "b", "A:1-9") || exact(v1alpha1.FailoverEmergency, "a", "A:1-9") {
		t.Error("G1: a loss is called exact that is not, or the other way")
	}
	if d := (Decision{Status: s.Status}).closed(s); len(d.Status.Records) != 1 {
		t.Errorf("G1: %v", d.Status.Records)
	}
	s.Status.Transition.Kind = v1alpha1.FailoverBootstrap
	if d := (Decision{Status: s.Status}).closed(s); len(d.Status.Records) != 0 {
		t.Errorf("G1: %v", d.Status.Records)
	}
}

// TestWhenALossIsCountedG1: each of what keeps it from being exact, alone.
func TestWhenALossIsCountedG1(t *testing.T) {
	newest := v1alpha1.FailoverRecord{Epoch: 4, From: "b", To: "a", FromServerUUID: "b"}
	for name, tc := range map[string]struct {
		change   func(s *Snapshot, m *Memory, a, b *Site)
		exact    bool
		replaced bool
	}{
		"it is seen":                         {func(*Snapshot, *Memory, *Site, *Site) {}, true, false},
		"the active site's MySQL is not":     {func(_ *Snapshot, _ *Memory, a, _ *Site) { a.MySQL.Direct = false }, false, false},
		"the active site has another volume": {func(_ *Snapshot, _ *Memory, a, _ *Site) { a.OtherVolume = true }, false, false},
		"it has no look before":              {func(_ *Snapshot, m *Memory, _, _ *Site) { m.At("b").PreviousAll = nil }, false, false},
		"its MySQL is not seen":              {func(_ *Snapshot, _ *Memory, _, b *Site) { b.MySQL.Direct = false }, false, false},
		"it accepts writes":                  {func(_ *Snapshot, _ *Memory, _, b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }, false, false},
		"it is worked on":                    {func(_ *Snapshot, _ *Memory, _, b *Site) { b.Busy = WorkRotation }, false, false},
		"it receives":                        {func(_ *Snapshot, _ *Memory, _, b *Site) { b.MySQL.ReplicaHost, b.MySQL.ReceiverStopped = "a", false }, false, false},
		"it is another server":               {func(_ *Snapshot, _ *Memory, _, b *Site) { b.MySQL.ServerUUID = "x" }, false, false},
		"it holds no data of the group":      {func(_ *Snapshot, _ *Memory, _, b *Site) { b.Provisioned = false }, false, true},
		"it is being cloned":                 {func(_ *Snapshot, _ *Memory, _, b *Site) { b.Busy = WorkClone }, false, true},
		"it is on another volume":            {func(_ *Snapshot, _ *Memory, _, b *Site) { b.OtherVolume = true }, false, true},
		"it is in no list":                   {func(s *Snapshot, _ *Memory, _, _ *Site) { s.Sites = s.Sites[:1] }, false, false},
		"it went back to itself":             {func(s *Snapshot, _ *Memory, _, _ *Site) { s.Status.Records[0].To = "b" }, false, false},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{newest}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9,B:1", 4))
		m := Memory{Sites: map[string]*SiteMemory{"b": {PreviousAll: new(factstest.Set("A:1-9,B:1"))}}}
		tc.change(&s, &m, &s.Sites[0], &s.Sites[min(1, len(s.Sites)-1)])
		got := lineage.SettleLoss(s, m, s.Sites[0])[0]
		if got.LossExact != tc.exact || (got.FromServerUUID == lineage.ServerReplaced) != tc.replaced {
			t.Errorf("G1: %s: %+v", name, got)
		}
		if tc.exact && (got.LostSet != factstest.Set("B:1").String() || got.LostTransactions != 1 || !m.At("b").Diverged.Equal(factstest.Set("B:1"))) {
			t.Errorf("G1: %s: %+v, %v", name, got, m.Of("b").Diverged)
		}
		if s.Status.Records[0].LossExact {
			t.Errorf("%s: what was looked at is changed", name)
		}
	}
	for name, tc := range map[string]struct {
		record v1alpha1.FailoverRecord
		busy   string
	}{
		"a loss that is exact is not counted again":       {v1alpha1.FailoverRecord{From: "b", To: "a", LossExact: true, LostTransactions: 7, FromServerUUID: "b"}, ""},
		"nor forgotten when its site is cloned":           {v1alpha1.FailoverRecord{From: "b", To: "a", LossExact: true, LostTransactions: 7, FromServerUUID: "b"}, WorkClone},
		"a server that was replaced is replaced for good": {v1alpha1.FailoverRecord{From: "b", To: "a", FromServerUUID: lineage.ServerReplaced}, WorkClone},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{tc.record}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9,B:1", 4))
		s.Sites[1].Busy = tc.busy
		got := lineage.SettleLoss(s, Memory{Sites: map[string]*SiteMemory{"b": {PreviousAll: new(factstest.Set("A:1-9,B:1"))}}}, s.Sites[0])
		if lineage.RecordsDiffer(got, s.Status.Records) || got[0].LostTransactions != tc.record.LostTransactions || &got[0] != &s.Status.Records[0] {
			t.Errorf("G1: %s: %+v", name, got[0])
		}
	}
	one := []v1alpha1.FailoverRecord{{Epoch: 4}}
	for name, other := range map[string]v1alpha1.FailoverRecord{"epoch": {Epoch: 5}, "loss": {Epoch: 4, LossExact: true}, "server": {Epoch: 4, FromServerUUID: "x"}} {
		if !lineage.RecordsDiffer(one, []v1alpha1.FailoverRecord{other}) {
			t.Errorf("another %s is not written", name)
		}
	}
}

// TestWhenAGateIsGonePastG3: a target that does not acknowledge is replaced, and a loss over the budget needs a person.
func TestWhenAGateIsGonePastG3(t *testing.T) {
	budget := int64(1)
	for name, tc := range map[string]struct {
		change func(s *Snapshot, m *Memory)
		want   Reason
	}{
		"all is well":             {func(*Snapshot, *Memory) {}, v1alpha1.ReasonGatePassed},
		"it does not acknowledge": {func(s *Snapshot, _ *Memory) { s.Sites[1].Sidecar.Report.Epoch = 3 }, v1alpha1.ReasonAwaitingFenceProof},
		"it does not for long": {func(s *Snapshot, m *Memory) {
			s.Sites[1].Sidecar.Report.Epoch = 3
			m.DrainSince = s.Now.Add(-s.Policy.DrainTimeout - 1)
		}, v1alpha1.ReasonTargetLost},
		"more than the budget goes":    {func(s *Snapshot, _ *Memory) { s.Policy.MaxLost = &budget }, v1alpha1.ReasonLossBudget},
		"more goes, and it is ordered": {func(s *Snapshot, _ *Memory) { s.Policy.MaxLost, s.Policy.ForceTo = &budget, "b" }, v1alpha1.ReasonGatePassed},
		"more goes, and it is opened again": {func(s *Snapshot, m *Memory) {
			s.Policy.MaxLost, s.Status.Transition.From = &budget, "b"
			m.At("b").Executed = factstest.Set("A:1-12")
		}, v1alpha1.ReasonGatePassed},
		"more goes, and there was no old one": {func(s *Snapshot, m *Memory) {
			s.Policy.MaxLost, s.Status.Transition.From = &budget, ""
			m.At("c").Ack, m.At("a").Ack = &Ack{Epoch: 4, Fenced: true}, &Ack{Epoch: 4, Fenced: true}
		}, v1alpha1.ReasonGatePassed},
	} {
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		s.Sites[0].Pod.Ended, s.Sites[0].Pod.UID = true, "pod"
		s.Status.Transition.FromExecuted = factstest.Set("A:1-12")
		m := Memory{Sites: map[string]*SiteMemory{"a": {Ack: &Ack{Epoch: 4, Fenced: true}}, "b": {Ack: &Ack{Epoch: 4, Fenced: true}}, "c": {Ack: &Ack{Epoch: 4, Fenced: true}}}, DrainSince: s.Now}
		tc.change(&s, &m)
		if d := fencing(promotion.WithOrder(s), Decision{Status: s.Status, Memory: m, Hold: true}); d.Reason != tc.want {
			t.Errorf("G3: %s: %s: %s", name, d.Reason, d.Message)
		}
	}
	s := factstest.Between(v1alpha1.FailoverEmergency)
	s.Policy.ForceTo = "b"
	if !promotion.WithOrder(s).Order.Accepted {
		t.Error("an order for the target is none")
	}
	if s.Status.Transition = nil; promotion.WithOrder(s).Order.Accepted {
		t.Error("an order for the target of nothing")
	}
	s.Policy.ForceTo, s.Status.Transition = "", &Transition{}
	if promotion.WithOrder(s).Order.Accepted {
		t.Error("nobody orders nobody")
	}
	for _, tc := range []struct {
		from, to string
		want     []string
	}{{"a", "b", []string{"a"}}, {"", "b", nil}, {"b", "b", nil}} {
		if got := fenceTargets(&Transition{From: tc.from, To: tc.to}); !slices.Equal(got, tc.want) {
			t.Errorf("I1: %q to %q: %q", tc.from, tc.to, got)
		}
	}
}
