// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// What happens around a group while no site of it is open.

// TestWhoTakesOverIsKeptFromEviction: a drain that is asked again every five seconds must not end the failover.
func TestWhoTakesOverIsKeptFromEviction(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
	m = Decide(s, m).Memory
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	s.Sites[1].MySQL.Executed = factstest.Set("A:1-10")
	for i := range 2 {
		s.Sites[i+1].MySQL.IORunning, s.Sites[i+1].Leaving = false, "its node is drained"
	}
	kept := func(why string) {
		t.Helper()
		d := Decide(s, m)
		m = d.Memory
		if b, c := d.Views[1], d.Views[2]; !b.Protected || c.Protected {
			t.Errorf("%s (%s): b, %s, is kept: %t; c, %s: %t", why, d.Verdict, b.State, b.Protected, c.State, c.Protected)
		}
		if b := d.Views[1]; !strings.Contains(b.Message, "eviction is refused") {
			t.Errorf("%s: whoever drains it is told %q", why, b.Message)
		}
		s.Status = d.Status
	}
	s.Policy.Mode = v1alpha1.FailoverManual
	for range s.Policy.Threshold + 20 {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		kept("nobody takes over yet")
	}
	s.Policy.Mode = v1alpha1.FailoverAuto
	for range 3 {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		kept("under way")
	}
	if s.Status.Transition == nil {
		t.Error("no failover has begun: nothing is proven of one")
	}
}

// TestReadsGoOnWithoutAnActiveSite: the replicas lose their source all at once, and none is older than it was.
func TestReadsGoOnWithoutAnActiveSite(t *testing.T) {
	for name, tc := range map[string]struct {
		before  func(c *Site)
		after   func(c *Site)
		limit   time.Duration
		seen    bool
		readers bool
	}{
		"it lost its source":               {nil, nil, 0, true, true},
		"nobody knows how far it lags":     {nil, nil, time.Minute, true, false},
		"it was detached long before":      {func(c *Site) { c.MySQL.IORunning = false }, nil, 0, true, false},
		"the operator never saw it follow": {nil, nil, 0, false, false},
		"it has diverged":                  {nil, func(c *Site) { c.MySQL.Executed = factstest.Set("A:1-9,C:1") }, 0, true, false},
		"it does not answer":               {nil, func(c *Site) { c.Sidecar, c.MySQL = Sidecar{}, MySQL{} }, 0, true, false},
	} {
		s, m := factstest.ThreeSites(), Memory{}
		s.Policy.MaxReadLag, s.Policy.Mode = tc.limit, v1alpha1.FailoverManual
		if tc.before != nil {
			tc.before(&s.Sites[2])
		}
		if tc.seen {
			m = Decide(s, m).Memory
		}
		if tc.after != nil { // while it can still be compared
			tc.after(&s.Sites[2])
			m = Decide(s, Decide(s, m).Memory).Memory
		}
		s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
		s.Sites[2].MySQL.IORunning, s.Sites[2].MySQL.LagSeconds = false, nil
		for range 100 {
			s.Now = s.Now.Add(s.Policy.PollInterval)
			m = Decide(s, m).Memory
		}
		if v := Decide(s, m).Views[2]; v.Readable != tc.readers || v.Healthy {
			t.Errorf("%s: %s, read from: %t, healthy: %t", name, v.State, v.Readable, v.Healthy)
		}
	}
}

// TestAReplicaThatKeepsReadersOutIsNotReadFrom: it stays healthy, and says why.
func TestAReplicaThatKeepsReadersOutIsNotReadFrom(t *testing.T) {
	for prepared, want := range map[int]Reason{1: "PreparedXA", 0: "ReadersKeptOut", -1: ""} {
		s := factstest.ThreeSites()
		s.Sites[2].MySQL.OfflineMode, s.Sites[2].Sidecar.Report.PreparedXA = prepared >= 0, max(prepared, 0)
		d := Decide(s, Memory{})
		if v := d.Views[2]; v.Readable != (want == "") || v.Reason != want || !v.Healthy {
			t.Errorf("%d prepared: %+v", prepared, v)
		}
		if v := d.Views[1]; !v.Readable || v.Reason != "" {
			t.Errorf("%d prepared elsewhere: %+v", prepared, v)
		}
	}
}

// TestAFailoverThatCouldNotEndIsNotBegun: the active site may serve its clients behind the same cut as its voucher.
func TestAFailoverThatCouldNotEndIsNotBegun(t *testing.T) {
	lost := func(site *Site) { site.Sidecar, site.MySQL = Sidecar{}, MySQL{} }
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		begins bool
	}{
		"its voucher is silent too":             {func(s *Snapshot) { lost(&s.Sites[2]) }, false},
		"its voucher answers":                   {func(*Snapshot) {}, true},
		"its voucher is gone":                   {func(s *Snapshot) { lost(&s.Sites[2]); s.Sites[2].Pod.OutOfService = true }, true},
		"its voucher never ran":                 {func(s *Snapshot) { lost(&s.Sites[2]); s.Sites[2].Provisioned, s.Sites[2].Pod.Unplaced = false, true }, true},
		"its voucher is asked by nobody":        {func(s *Snapshot) { lost(&s.Sites[2]); s.Sites[2].Provisioned, s.Sites[2].Unlisted = false, true }, true},
		"it cannot run":                         {func(s *Snapshot) { lost(&s.Sites[2]); s.Sites[0].Pod.OutOfService = true }, true},
		"it can be fenced: its sidecar answers": {func(s *Snapshot) { lost(&s.Sites[2]); s.Sites[0].Sidecar.Answered = true }, true},
		"a person ordered it":                   {func(s *Snapshot) { lost(&s.Sites[2]); s.Policy.ForceTo = "b" }, true},
	} {
		s, m := factstest.ThreeSites(), Memory{}
		m = Decide(s, m).Memory
		lost(&s.Sites[0])
		tc.change(&s)
		var d Decision
		for range s.Policy.Threshold + 3 {
			s.Now = s.Now.Add(s.Policy.PollInterval)
			d = Decide(s, m)
			if m = d.Memory; d.Status.Transition != nil {
				break
			}
		}
		if begins := d.Status.Transition != nil; begins != tc.begins {
			t.Errorf("%s: %s %s (%s)", name, d.Verdict, d.Reason, d.Message)
		}
		if !tc.begins && (d.Reason != v1alpha1.ReasonSiteMayStillVouch || !strings.Contains(d.Message, "c, which does not answer")) {
			t.Errorf("%s: says %s (%s)", name, d.Reason, d.Message)
		}
	}
}

// TestOneLostAnswerOfAVoucherIsWaitedOut: whether it is behind the same cut is known a moment later. One that is long silent is not
// forgotten for it.
func TestOneLostAnswerOfAVoucherIsWaitedOut(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
	m = Decide(s, m).Memory
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	for range s.Policy.Threshold - 1 {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		m = Decide(s, m).Memory
	}
	s.Now = s.Now.Add(s.Policy.PollInterval)
	c := s.Sites[2]
	s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
	d := Decide(s, m)
	if d.Verdict != VerdictWait || d.Reason != v1alpha1.ReasonBelowThreshold || d.Next == 0 {
		t.Errorf("at once: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	away := d.Memory
	s.Now, s.Sites[2] = s.Now.Add(d.Next), c
	if d = Decide(s, d.Memory); d.Verdict != VerdictFailover {
		t.Errorf("it answers again: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
	for range s.Policy.Threshold {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		d = Decide(s, away)
		away = d.Memory
	}
	if d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonSiteMayStillVouch {
		t.Errorf("it is behind the same cut: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	other := c
	other.Name, other.Sidecar, other.MySQL = "d", Sidecar{}, MySQL{}
	s.Sites = append(s.Sites, other)
	if d = Decide(s, away); d.Verdict != VerdictBlocked || !strings.Contains(d.Message, "and c, which") {
		t.Errorf("another has lost an answer besides: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}

// TestASiteThatNeverRanHoldsNoLeaseI4: each of the facts that make it one is needed.
func TestASiteThatNeverRanHoldsNoLeaseI4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Memory, *Site)
		blocks bool
	}{
		"it waits for a node":              {func(*Memory, *Site) {}, false},
		"it was on a node":                 {func(_ *Memory, c *Site) { c.Pod.Unplaced = false }, true},
		"somebody was started to ask it":   {func(_ *Memory, c *Site) { c.Listed = true }, true},
		"it has data of the group":         {func(_ *Memory, c *Site) { c.Provisioned = true }, true},
		"it was heard under an older one":  {func(m *Memory, _ *Site) { m.At("c").Ack = &Ack{Epoch: 3} }, true},
		"it answers, and has not heard it": {func(_ *Memory, c *Site) { c.Sidecar.Answered = true }, true},
	} {
		s, m := cutOff()
		m.At("c").Ack = nil
		s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
		s.Sites[2].Provisioned, s.Sites[2].Pod.Unplaced = false, true
		tc.change(&m, &s.Sites[2])
		if g := leaseRunOut(s, m, "a"); (len(g.Blockers) > 0) != tc.blocks {
			t.Errorf("I4: %s: blocked by %v", name, g.Blockers)
		}
	}
}

// TestASiteThatNobodyAsksHoldsNoLeaseI4: each of the facts that make it one is needed.
func TestASiteThatNobodyAsksHoldsNoLeaseI4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Memory, *Site)
		blocks bool
	}{
		"it is on a node, and does not start": {func(*Memory, *Site) {}, false},
		"it was heard under an older one":     {func(m *Memory, _ *Site) { m.At("c").Ack = &Ack{Epoch: 3} }, false},
		"status does not say so":              {func(_ *Memory, c *Site) { c.Unlisted = false }, true},
		"it has data of the group":            {func(_ *Memory, c *Site) { c.Provisioned = true }, true},
		"somebody was seen to ask it":         {func(m *Memory, _ *Site) { m.At("c").Listed = true }, true},
	} {
		s, m := cutOff()
		m.At("c").Ack = nil
		s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
		s.Sites[2].Provisioned, s.Sites[2].Unlisted = false, true
		tc.change(&m, &s.Sites[2])
		if g := leaseRunOut(s, m, "a"); (len(g.Blockers) > 0) != tc.blocks {
			t.Errorf("I4: %s: blocked by %v", name, g.Blockers)
		}
	}
}

// TestWhoWasListedStaysSoI4: the pod that asks may run on after its object is gone.
func TestWhoWasListedStaysSoI4(t *testing.T) {
	s := factstest.ThreeSites()
	s.Sites[2].Provisioned, s.Sites[2].Unlisted, s.Sites[2].Listed = false, true, true
	m := Decide(s, Memory{}).Memory
	s.Sites[2].Listed = false
	for range 3 {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		m = Decide(s, m).Memory
	}
	if memory.AskedByNobody(m, s.Sites[2]) {
		t.Error("I4: a site that a pod was started to ask counts as one that nobody asks")
	}
}

// TestAFirstOpeningThatWaitsForADeadSite: people are told, and an order ends it.
func TestAFirstOpeningThatWaitsForADeadSite(t *testing.T) {
	s := factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 0), factstest.Seen("b", "A:1-9", 0))
	s.Sites[1].Sidecar, s.Sites[1].MySQL = Sidecar{}, MySQL{}
	m := Memory{}
	d := Decide(s, m)
	if d.Verdict != VerdictWait || d.Reason != v1alpha1.ReasonWaitingForSites {
		t.Fatalf("at once: %s %s", d.Verdict, d.Reason)
	}
	m = d.Memory
	s.Now = s.Now.Add(firstPatience)
	d = Decide(s, m)
	if d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonWaitingForSites || !strings.Contains(d.Message, v1alpha1.AnnotationForceFailover+"=a") {
		t.Errorf("after %s: %s %s (%s)", firstPatience, d.Verdict, d.Reason, d.Message)
	}
	s.Policy.ForceTo = "a"
	// b may have been active under an epoch that a never heard of: none of its may be used again.
	if d = Decide(s, m); d.Verdict != VerdictBootstrap || d.Status.ActiveSite != "a" || d.Status.Epoch <= memory.UnseenEpochs {
		t.Errorf("I1: ordered: %s %s (%s) under epoch %d", d.Verdict, d.Reason, d.Message, d.Status.Epoch)
	}
	if s.Policy.ForceTo = "b"; Decide(s, m).Verdict == VerdictBootstrap {
		t.Error("I12: a site that nobody has seen was ordered, and is opened")
	}
}

// TestAPodWithTheOnlyCopyOfItsKeyringIsNotEvicted: its new keys are in nobody else's hands yet.
func TestAPodWithTheOnlyCopyOfItsKeyringIsNotEvicted(t *testing.T) {
	for _, state := range []string{"behind", "escrowed"} {
		s := factstest.ThreeSites()
		s.Sites[2].Sidecar.Report.Keyring, s.Sites[2].Busy, s.Sites[2].Leaving = factstest.Keyring(state), WorkRotation, "its node is drained"
		d := Decide(s, Memory{})
		v := d.Views[2]
		if want := state == "behind"; v.Protected != want || (v.Reason == "NotEscrowed") != want {
			t.Errorf("%s: kept: %t, %s: %s", state, v.Protected, v.Reason, v.Message)
		}
		s.Now, s.Sites[2].Sidecar, s.Sites[2].MySQL = s.Now.Add(s.Policy.PollInterval), Sidecar{}, MySQL{}
		if v := Decide(s, d.Memory).Views[2]; v.Protected != (state == "behind") {
			t.Errorf("%s, and one answer is lost: kept: %t", state, v.Protected)
		}
	}
}

// TestSilenceIsCountedInTimeToo: a group that is not well is polled more often, and an outage takes no less time for it.
func TestSilenceIsCountedInTimeToo(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
	m = Decide(s, m).Memory
	s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
	began := s.Now
	for polls := 1; ; polls++ {
		s.Now = s.Now.Add(s.Policy.PollInterval / 8)
		d := Decide(s, m)
		m = d.Memory
		if d.Verdict == VerdictFailover {
			if least := time.Duration(s.Policy.Threshold-1) * s.Policy.PollInterval; s.Now.Sub(began) < least {
				t.Errorf("after %s and %d polls; it takes %s", s.Now.Sub(began), polls, least)
			}
			return
		}
		if polls > 100 {
			t.Fatalf("%s %s: %s", d.Verdict, d.Reason, d.Message)
		}
	}
}
