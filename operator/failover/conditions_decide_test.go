// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestTheFirstActiveSiteI7I12: who is waited for, who is chosen, and what its successor must hold.
func TestTheFirstActiveSiteI7I12(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(s *Snapshot, m *Memory, b, c *Site)
		verdict Verdict
		to      string
	}{
		"c has the most":              {func(*Snapshot, *Memory, *Site, *Site) {}, VerdictBootstrap, "c"},
		"b's sidecar does not answer": {func(_ *Snapshot, _ *Memory, b, _ *Site) { b.Sidecar.Answered = false }, VerdictWait, ""},
		"b's MySQL does not answer":   {func(_ *Snapshot, _ *Memory, b, _ *Site) { b.MySQL.Direct = false }, VerdictWait, ""},
		"b has not for long": {func(s *Snapshot, m *Memory, b, _ *Site) {
			b.MySQL.Direct = false
			m.At("b").IndirectSince = s.Now.Add(-firstPatience)
		}, VerdictBlocked, ""},
		"b has not for nearly as long": {func(s *Snapshot, m *Memory, b, _ *Site) {
			b.MySQL.Direct = false
			m.At("b").IndirectSince = s.Now.Add(-firstPatience + 1)
		}, VerdictWait, ""},
		"c left the specification":   {func(_ *Snapshot, _ *Memory, _, c *Site) { c.Removed = true }, VerdictBootstrap, "b"},
		"c is on another volume":     {func(_ *Snapshot, _ *Memory, _, c *Site) { c.OtherVolume = true }, VerdictBootstrap, "b"},
		"c is dr-only, and has more": {func(_ *Snapshot, _ *Memory, _, c *Site) { c.Role = v1alpha1.DROnly }, VerdictBlocked, ""},
		"the same, and has diverged": {func(_ *Snapshot, m *Memory, _, c *Site) {
			c.Role = v1alpha1.DROnly
			m.At("c").Diverged = factstest.Set("A:10")
		}, VerdictBootstrap, "b"},
		"the same, and nobody sees its MySQL": {func(_ *Snapshot, _ *Memory, _, c *Site) {
			c.Role = v1alpha1.DROnly
			c.MySQL.Direct, c.Sidecar.Report.Answered = false, false
		}, VerdictBootstrap, "b"},
		"b is ordered": {func(s *Snapshot, _ *Memory, _, _ *Site) { s.Policy.ForceTo = "b" }, VerdictBootstrap, "b"},
	} {
		s := factstest.World(Durable{}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-10", 4))
		m := Memory{}
		tc.change(&s, &m, &s.Sites[0], &s.Sites[1])
		d := bootstrap(promotion.WithOrder(s), Decision{Status: s.Status, Memory: m, Hold: true})
		if d.Verdict != tc.verdict || d.Status.ActiveSite != tc.to {
			t.Errorf("I7, I12: %s: %s of %q: %s", name, d.Verdict, d.Status.ActiveSite, d.Message)
			continue
		}
		if tc.to == "" {
			continue
		}
		chosen, _ := s.Site(tc.to)
		if got := d.Status.Transition; !got.FromExecuted.Equal(chosen.All()) || got.From != "" || d.Status.Epoch <= 4 {
			t.Errorf("I7: %s: %+v under epoch %d", name, got, d.Status.Epoch)
		}
	}
}

// TestWhatAPersonIsToldOfTheFirstSite: an order is named only for a site that an order opens.
func TestWhatAPersonIsToldOfTheFirstSite(t *testing.T) {
	s := factstest.World(Durable{}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-10", 4))
	s.Sites[1].Role = v1alpha1.DROnly
	if d := bootstrap(s, Decision{}); !strings.Contains(d.Message, promotion.HowToOrder("b")) {
		t.Errorf("%s", d.Message)
	}
	s.Sites[0].Busy = WorkClone
	if d := bootstrap(s, Decision{}); strings.Contains(d.Message, promotion.HowToOrder("b")) {
		t.Errorf("an order for a site that is being cloned: %s", d.Message)
	}
}

// TestWhoFollowsI10: each of what keeps a site from being attached, alone.
func TestWhoFollowsI10(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(m *Memory, a, b *Site)
		want   bool
	}{
		"it follows nobody": {func(*Memory, *Site, *Site) {}, true},
		"it follows another": {func(_ *Memory, _, b *Site) {
			b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped, b.MySQL.SQLRunning = "c", false, true
		}, true},
		"it follows already": {func(_ *Memory, _, b *Site) {
			b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped, b.MySQL.SQLRunning = "a", false, true
		}, false},
		"it follows with a delay": {func(_ *Memory, _, b *Site) {
			b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped, b.MySQL.SQLRunning, b.MySQL.Delayed = "a", false, true, true
		}, true},
		"its receiver has stopped":              {func(_ *Memory, _, b *Site) { b.MySQL.ReplicaOf, b.MySQL.SQLRunning = "a", true }, true},
		"its applier has stopped":               {func(_ *Memory, _, b *Site) { b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = "a", false }, true},
		"it is the active site":                 {func(_ *Memory, _, b *Site) { b.Name = "a" }, false},
		"it holds no data of the group":         {func(_ *Memory, _, b *Site) { b.Provisioned = false }, false},
		"it is on another volume":               {func(_ *Memory, _, b *Site) { b.OtherVolume = true }, false},
		"it is worked on":                       {func(_ *Memory, _, b *Site) { b.Busy = WorkRotation }, false},
		"it has diverged":                       {func(m *Memory, _, _ *Site) { m.At("b").Diverged = factstest.Set("B:1") }, false},
		"it left the specification":             {func(_ *Memory, _, b *Site) { b.Removed = true }, false},
		"its MySQL is not seen":                 {func(_ *Memory, _, b *Site) { b.MySQL.Direct = false }, false},
		"the active site's is not":              {func(_ *Memory, a, _ *Site) { a.MySQL.Direct = false }, false},
		"it is writable":                        {func(_ *Memory, _, b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }, false},
		"it has more":                           {func(_ *Memory, _, b *Site) { b.MySQL.Executed = factstest.Set("A:1-9,B:1") }, false},
		"it has more, and is a stopped replica": {func(_ *Memory, _, b *Site) { b.MySQL.Executed, b.MySQL.ReplicaOf = factstest.Set("A:1-10"), "a" }, true},
		"it has more, and is a running replica": {func(_ *Memory, _, b *Site) {
			b.MySQL.Executed, b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = factstest.Set("A:1-10"), "a", false
		}, false},
		"it has more, of another source": {func(_ *Memory, _, b *Site) { b.MySQL.Executed, b.MySQL.ReplicaOf = factstest.Set("A:1-10"), "c" }, false},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		m := Memory{}
		tc.change(&m, &s.Sites[0], &s.Sites[1])
		if got := shouldFollow(s, m, s.Sites[1], s.Sites[0]); got != tc.want {
			t.Errorf("I10: %s: %t", name, got)
		}
	}
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{From: "b", To: "a"}}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	if shouldFollow(s, marked(s, Memory{}), s.Sites[1], s.Sites[0]) {
		t.Error("I10: it was replaced, and was not compared yet")
	}
}

// TestWhatIsDoneAroundAHealthySite covers I1 and I10: who is fenced, and whose receiver is stopped to be compared.
func TestWhatIsDoneAroundAHealthySite(t *testing.T) {
	writes := func(b *Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }
	receiving := func(b *Site) { b.MySQL.ReplicaHost, b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = "a", "a", false }
	for name, tc := range map[string]struct {
		change  func(s *Snapshot, b *Site)
		fences  bool
		drained bool
	}{
		"nothing":            {func(*Snapshot, *Site) {}, false, false},
		"somebody opened it": {func(_ *Snapshot, b *Site) { writes(b) }, true, false},
		"it is worked on":    {func(_ *Snapshot, b *Site) { writes(b); b.Busy = WorkRotation }, false, false},
		"it was replaced, and receives": {func(s *Snapshot, b *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "b", To: "a"}}
			receiving(b)
			b.Busy = "x"
		}, false, true},
		"it was replaced, and its MySQL is silent": {func(s *Snapshot, b *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "b", To: "a"}}
			receiving(b)
			b.Busy = "x"
			b.MySQL.Direct = false
		}, false, false},
		"it was replaced, and has no source": {func(s *Snapshot, b *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "b", To: "a"}}
			receiving(b)
			b.Busy = "x"
			b.MySQL.ReplicaHost = ""
		}, false, false},
		"it was replaced, and receives no more": {func(s *Snapshot, b *Site) {
			s.Status.Records = []v1alpha1.FailoverRecord{{From: "b", To: "a"}}
			receiving(b)
			b.Busy = "x"
			b.MySQL.ReceiverStopped = true
		}, false, false},
		"it was not replaced, and receives": {func(_ *Snapshot, b *Site) { receiving(b); b.Busy = "x" }, false, false},
	} {
		a := factstest.Seen("a", "A:1-9", 4)
		a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, a, factstest.Seen("b", "A:1-9", 4))
		tc.change(&s, &s.Sites[1])
		d := healthy(s, Decision{Status: s.Status, Memory: marked(s, Memory{})}, s.Sites[0])
		fences := slices.ContainsFunc(d.Effects, func(e Effect) bool { x, is := e.(Announce); return is && slices.Equal(x.Fence, []string{"b"}) })
		drained := slices.ContainsFunc(d.Effects, func(e Effect) bool { x, is := e.(Drain); return is && x.Site == "b" })
		if fences != tc.fences || drained != tc.drained {
			t.Errorf("%s: %v", name, d.Effects)
		}
		if x, is := d.Effects[0].(Select); !is || x.Site != "a" {
			t.Errorf("%s: %v", name, d.Effects)
		}
	}
}

// TestTheTimeOfAReopening: it begins when the active site comes back read-only, and again each time.
func TestTheTimeOfAReopening(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(a *Site)
		want   bool
	}{
		"read-only":                 {func(*Site) {}, true},
		"writable":                  {func(a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }, false},
		"its sidecar is silent":     {func(a *Site) { a.Sidecar.Answered = false }, false},
		"its MySQL does not answer": {func(a *Site) { a.MySQL.Direct, a.Sidecar.Report.Answered = false, false }, false},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s.Sites[0])
		m := Memory{ReopenSince: s.Now.Add(-time.Second)}
		if d := steady(s, Decision{Status: s.Status, Memory: m, Hold: true}, m); d.Memory.ReopenSince.IsZero() == tc.want {
			t.Errorf("%s: since %s", name, d.Memory.ReopenSince)
		}
	}
}

// TestAnActiveSiteThatLostDataIsRememberedI12: what it had is not forgotten by what it has.
func TestAnActiveSiteThatLostDataIsRememberedI12(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-5", 4), factstest.Seen("b", "A:1-5", 4))
	old := Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-9")}}}
	d := returned(s, Decision{Status: s.Status, Memory: Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-5")}}}}, s.Sites[0], old)
	if !d.Memory.At("a").Executed.Equal(factstest.Set("A:1-9")) || d.Reason != v1alpha1.ReasonActiveSiteBehind {
		t.Errorf("I12: %s, %s", d.Reason, d.Memory.At("a").Executed)
	}
}

// TestWhatIsToldOfASiteThatDoesNotOpen: what its sidecar says, and the order that helps.
func TestWhatIsToldOfASiteThatDoesNotOpen(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Sites[0].Sidecar.Report.Message = "no room"
	d := Decision{Memory: Memory{}}.triedOn(s, s.Sites[0])
	if !strings.Contains(d.Message, "does not open (no room);") || !strings.HasSuffix(d.Message, "; "+promotion.HowToOrder("b")) || strings.Contains(d.Message, "bring a primary-candidate back") {
		t.Errorf("%s", d.Message)
	}
	s.Sites[0].Sidecar.Report.Message, s.Sites[1].Role = "", v1alpha1.DROnly
	if d = (Decision{}).triedOn(s, s.Sites[0]); !strings.Contains(d.Message, "does not open; the operator keeps trying") || !strings.Contains(d.Message, "bring a primary-candidate back") {
		t.Errorf("%s", d.Message)
	}
}

// TestWhoIsDueByOrder: an order counts for a site that is there and can be opened, and a site that merely fell silent is asked for
// vouchers.
func TestWhoIsDueByOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, b *Site)
		why    Reason
		want   Verdict
	}{
		"b is ordered":                         {func(s *Snapshot, _ *Site) { s.Policy.ForceTo = "b" }, v1alpha1.ReasonForced, VerdictFailover},
		"b is ordered, and the mode is Manual": {func(s *Snapshot, _ *Site) { s.Policy.ForceTo, s.Policy.Mode = "b", v1alpha1.FailoverManual }, v1alpha1.ReasonForced, VerdictFailover},
		"nobody of that name":                  {func(s *Snapshot, _ *Site) { s.Policy.ForceTo, s.Policy.Mode = "x", v1alpha1.FailoverManual }, v1alpha1.ReasonForced, VerdictBlocked},
		"b is dr-only": {func(s *Snapshot, b *Site) {
			s.Policy.ForceTo, b.Role, s.Policy.Mode = "b", v1alpha1.DROnly, v1alpha1.FailoverManual
		}, v1alpha1.ReasonForced, VerdictBlocked},
		"no order, and the mode is Manual":  {func(s *Snapshot, _ *Site) { s.Policy.Mode = v1alpha1.FailoverManual }, v1alpha1.ReasonActiveSiteDown, VerdictBlocked},
		"it is down, and c is silent":       {func(s *Snapshot, _ *Site) { factstest.Silence(&s.Sites[2]) }, v1alpha1.ReasonActiveSiteDown, VerdictFailover},
		"it is silent, and c has just been": {func(s *Snapshot, _ *Site) { factstest.Silence(&s.Sites[2]) }, v1alpha1.ReasonActiveSiteSilent, VerdictWait},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{Epoch: 4}}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		tc.change(&s, &s.Sites[1])
		begun := Decision{Status: s.Status, Memory: Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-9")}}}}
		begun.Status.Records = []v1alpha1.FailoverRecord{{Epoch: 5}, {Epoch: 4}} // of the change that this one would end
		d := due(promotion.WithOrder(s), begun, TopologyActiveSilent, tc.why)
		if d.Verdict != tc.want {
			t.Errorf("%s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
		if kept := len(d.Status.Records) == 2; kept != (d.Verdict == VerdictFailover) {
			t.Errorf("%s: what does not end is recorded: %t", name, kept)
		}
	}
}

// TestASilentSiteThatOutlivedItsLeaseI4: no failover is begun that could not be ended, and nothing ends for it.
func TestASilentSiteThatOutlivedItsLeaseI4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, a *Site)
		why    Reason
		want   Verdict
	}{
		"it is silent":           {func(_ *Snapshot, a *Site) { factstest.Silence(a) }, v1alpha1.ReasonActiveSiteSilent, VerdictBlocked},
		"it is down":             {func(_ *Snapshot, a *Site) { factstest.Silence(a) }, v1alpha1.ReasonActiveSiteDown, VerdictFailover},
		"its pod has ended":      {func(_ *Snapshot, a *Site) { factstest.Silence(a); a.Pod.Ended = true }, v1alpha1.ReasonActiveSiteSilent, VerdictFailover},
		"its node is out of use": {func(_ *Snapshot, a *Site) { factstest.Silence(a); a.OtherVolume, a.Pod.OutOfService = true, true }, v1alpha1.ReasonActiveSiteSilent, VerdictFailover},
		"it answers":             {func(*Snapshot, *Site) {}, v1alpha1.ReasonActiveSiteSilent, VerdictFailover},
		"it is in no list":       {func(s *Snapshot, _ *Site) { s.Sites = s.Sites[1:] }, v1alpha1.ReasonActiveSiteSilent, VerdictBlocked},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s, &s.Sites[0])
		begun := Decision{Status: s.Status, Memory: Memory{Sites: map[string]*SiteMemory{"a": {Outlived: true}}}}
		begun.Status.Records = []v1alpha1.FailoverRecord{{Epoch: 5}}
		d := due(s, begun, TopologyActiveSilent, tc.why)
		if d.Verdict != tc.want || d.Verdict == VerdictBlocked && (d.Reason != v1alpha1.ReasonLeaseOutlived || len(d.Status.Records) > 0) {
			t.Errorf("I4: %s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestWhatAnIntentSaysI1: whom it fences, that it holds, and that it is written before anything is done.
func TestWhatAnIntentSaysI1(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	d := Decision{Status: s.Status}.begin(s, v1alpha1.FailoverEmergency, "b", v1alpha1.ReasonActiveSiteDown)
	if !reflect.DeepEqual(d.Effects, []Effect{Select{Site: "b"}, Announce{Fence: []string{"a"}, Drain: "b"}}) || !d.Hold || !d.Persist {
		t.Errorf("I1: %v", d.Effects)
	}
	s.Status.ActiveSite = ""
	if d = (Decision{Status: s.Status}).begin(s, v1alpha1.FailoverBootstrap, "b", v1alpha1.ReasonFirstSite); !reflect.DeepEqual(d.Effects, []Effect{Select{Site: "b"}, Announce{Drain: "b"}}) {
		t.Errorf("%v", d.Effects)
	}
	for name, tc := range map[string]struct {
		kind v1alpha1.FailoverKind
		why  Reason
		want v1alpha1.FailoverKind
	}{
		"a planned one whose target is lost":    {v1alpha1.FailoverPlanned, v1alpha1.ReasonTargetLost, v1alpha1.FailoverEmergency},
		"a planned one that a person overrides": {v1alpha1.FailoverPlanned, v1alpha1.ReasonForced, v1alpha1.FailoverForced},
		"a planned one that goes back":          {v1alpha1.FailoverPlanned, v1alpha1.ReasonReturnedWhole, v1alpha1.FailoverPlanned},
		"the first one, overridden":             {v1alpha1.FailoverBootstrap, v1alpha1.ReasonForced, v1alpha1.FailoverBootstrap},
		"the first one, whose target is lost":   {v1alpha1.FailoverBootstrap, v1alpha1.ReasonTargetLost, v1alpha1.FailoverBootstrap},
	} {
		s.Status.Transition = &Transition{Kind: tc.kind, From: "a", To: "b", Reason: "old"}
		d := Decision{Status: s.Status, Effects: []Effect{Open{Site: "b"}}}.retarget(s, "c", tc.why)
		got := d.Status.Transition
		if got.Kind != tc.want || got.To != "c" || got.From != "a" || got.Reason != tc.why || !d.Hold || !d.Persist || d.Status.Epoch != 5 || d.Status.ActiveSite != "c" {
			t.Errorf("I1: %s: %+v", name, got)
		}
		if !reflect.DeepEqual(d.Effects, []Effect{Select{Site: "c"}, Announce{Drain: "c"}}) || !d.Memory.DrainSince.Equal(s.Now) {
			t.Errorf("I1: %s: %v", name, d.Effects)
		}
	}
}

// TestWhatIsUrgent: only a planned failover, only as long as it may take, and never one that is blocked.
func TestWhatIsUrgent(t *testing.T) {
	p := Policy{PlannedPauseTimeout: 5 * time.Second}
	for name, tc := range map[string]struct {
		t    *Transition
		want bool
	}{
		"none":        {nil, false},
		"planned":     {&Transition{Kind: v1alpha1.FailoverPlanned, StartedAt: factstest.Start.Add(-9 * time.Second)}, true},
		"too long":    {&Transition{Kind: v1alpha1.FailoverPlanned, StartedAt: factstest.Start.Add(-10 * time.Second)}, false},
		"not planned": {&Transition{Kind: v1alpha1.FailoverEmergency, StartedAt: factstest.Start}, false},
	} {
		if got := tc.t.Urgent(factstest.Start, p); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	s := factstest.AtRest()
	if s.Policy.PlannedTo = "b"; !Decide(s, Memory{}).Urgent() || Decide(factstest.AtRest(), Memory{}).Urgent() {
		t.Error("the decision that begins a planned failover is as urgent as the others")
	}
	for verdict, want := range map[Verdict]bool{VerdictAlert: true, VerdictBlocked: true, VerdictWait: false} {
		if (Decision{Verdict: verdict}).Blocked() != want {
			t.Errorf("%s is not told as it is", verdict)
		}
	}
}

// TestHowLongASiteIsWaitedFor: never short for one that may still be heard in time, and never for good.
func TestHowLongASiteIsWaitedFor(t *testing.T) {
	p := Policy{PlannedPauseTimeout: 5 * time.Second, LeaseTimeout: 20 * time.Second, FenceTimeout: 2 * time.Second}
	planned := &Transition{Kind: v1alpha1.FailoverPlanned, From: "a", To: "b", StartedAt: factstest.Start}
	emergency := &Transition{Kind: v1alpha1.FailoverEmergency, From: "a", To: "b", StartedAt: factstest.Start}
	for name, tc := range map[string]struct {
		t      *Transition
		site   string
		silent bool
		after  time.Duration
		want   time.Duration
	}{
		"nothing is under way":             {nil, "a", true, 0, AskTimeout},
		"a bystander of a planned move":    {planned, "c", false, 0, BystanderTimeout},
		"a planned move drags on":          {planned, "c", false, 10 * time.Second, AskTimeout},
		"the old site of a planned move":   {planned, "a", true, 0, AskTimeout},
		"the lost site":                    {emergency, "a", true, 47800*time.Millisecond - 1, LostTimeout},
		"an emergency drags on":            {emergency, "a", true, 47800 * time.Millisecond, AskTimeout},
		"the lost site answered just now":  {emergency, "a", false, 0, AskTimeout},
		"another site in an emergency":     {emergency, "c", true, 0, AskTimeout},
		"the new site, for its own answer": {emergency, "b", true, 0, AskTimeout},
		"by order":                         {&Transition{Kind: v1alpha1.FailoverForced, From: "a", To: "b", StartedAt: factstest.Start}, "a", true, 0, AskTimeout},
	} {
		if got := tc.t.Patience(tc.site, tc.silent, factstest.Start.Add(tc.after), p); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoEpochIsSkippedByTheLastGuardI2: an epoch that a statement cannot carry is refused only if it is new.
func TestNoEpochIsSkippedByTheLastGuardI2(t *testing.T) {
	s := factstest.World(Durable{Epoch: wire.MaxEpoch + 1, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	if err := (Decision{Status: s.Status, Hold: true}).check(s); err != nil {
		t.Errorf("a status that is beyond all help stops what would be done about it: %v", err)
	}
	d := Decision{Status: s.Status, Hold: true}
	d.Status.Epoch++
	if err := d.check(s); err == nil {
		t.Error("I2: an epoch that no statement carries")
	}
}
