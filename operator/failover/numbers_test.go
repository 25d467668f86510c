// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestI10NoNumberIsGivenTwice: b was active, lost B:91-100 in a failover to a, and was cloned over by a version that kept its
// server_uuid. Should a fail now, b would write B:91 once more, and c, which may have the first B:91, would count as whole.
func TestI10NoNumberIsGivenTwice(t *testing.T) {
	lost := v1alpha1.FailoverRecord{Epoch: 3, From: "b", To: "a", FromServerUUID: lineage.ServerReplaced, LostTransactions: 10, LostSet: factstest.Set("B:91-100").String()}
	silent := func(c *Site) { c.Sidecar.Answered, c.MySQL = false, MySQL{} }
	for name, tc := range map[string]struct {
		change func(m *Memory, b, c *Site)
		fit    bool
		reason string
	}{
		"c has not been seen":              {func(_ *Memory, _, c *Site) { silent(c) }, false, "it may come back with them"},
		"c has them":                       {func(_ *Memory, _, c *Site) { c.MySQL.Executed = factstest.Set("A:1-9,B:1-100") }, false, "it has diverged, and nobody could tell any more"},
		"c has one in its relay log":       {func(_ *Memory, _, c *Site) { c.MySQL.Retrieved = factstest.Set("B:100") }, false, "it would be applied"},
		"c had them before it fell silent": {func(m *Memory, _, c *Site) { silent(c); m.At("c").Held = new(factstest.Set("B:1-95")) }, false, "it still has them"},
		"c is on another volume": {func(m *Memory, _, c *Site) {
			silent(c)
			c.OtherVolume = true
			m.At("c").Held = new(factstest.Set("B:1-90"))
		}, false, "which of its volumes comes back is not known"},
		"c answers and has none":              {func(*Memory, *Site, *Site) {}, true, "nobody can come back with them"},
		"c had none before it fell silent":    {func(m *Memory, _, c *Site) { silent(c); m.At("c").Held = new(factstest.Set("B:1-90")) }, true, "where should it have got them from?"},
		"c answers from another volume":       {func(_ *Memory, _, c *Site) { c.OtherVolume = true }, false, "what its own one has is not seen"},
		"c has never run":                     {func(_ *Memory, _, c *Site) { silent(c); c.Pod.Unplaced, c.Provisioned = true, false }, true, "it never had anything"},
		"c is silent, and b has a new server": {func(_ *Memory, b, c *Site) { silent(c); b.MySQL.ServerUUID = factstest.Uuids["C"] }, true, "it gives other numbers"},
		"c is silent, and b has what it lost": {func(_ *Memory, b, c *Site) { silent(c); b.MySQL.Executed = factstest.Set("A:1-9,B:1-100") }, true, "the next number is another one"},
		"c is silent, b lacks them, no uuid":  {func(_ *Memory, b, c *Site) { silent(c); b.MySQL.ServerUUID = "" }, true, "nothing is known of its numbers"},
	} {
		s := factstest.World(Durable{Epoch: 3, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{lost}},
			factstest.Seen("a", "A:1-9,B:1-90", 3), factstest.Seen("b", "A:1-9,B:1-90", 3), factstest.Seen("c", "A:1-9,B:1-90", 3))
		m := Memory{}
		s.Sites[1].MySQL.ServerUUID = factstest.Uuids["B"]
		tc.change(&m, &s.Sites[1], &s.Sites[2])
		if why := promotion.IsNumberingAgain(s, m, s.Sites[1]); (why == "") != tc.fit {
			t.Errorf("%s: %q: %s", name, why, tc.reason)
		}
		chosen, found := promotion.Choose(s, m, "a")
		if name == "c has not been seen" && (found || chosen.Unfit.By != "") {
			t.Errorf("%s: %s is chosen", name, chosen.Site.Name)
		}
	}
	// A silent site is as unknown to an operator that was restarted after its first poll as before it, and what was in its relay log when
	// it fell silent is there still.
	for name, relayLog := range map[string]string{"never seen": "", "seen with B:100 in its relay log": "B:100"} {
		s := factstest.World(Durable{Epoch: 3, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{lost}},
			factstest.Seen("a", "A:1-9,B:1-90", 3), factstest.Seen("b", "A:1-9,B:1-90", 3), factstest.Seen("c", "A:1-9,B:1-90", 3))
		s.Sites[1].MySQL.ServerUUID = factstest.Uuids["B"]
		m := Memory{}
		if relayLog != "" {
			s.Sites[2].MySQL.Retrieved = factstest.Set(relayLog)
			m = Decide(s, m).Memory
			s.Now = s.Now.Add(time.Second)
		}
		silent(&s.Sites[2])
		for range 3 {
			d := Decide(s, m)
			if m = d.Memory; promotion.IsNumberingAgain(s, m, s.Sites[1]) == "" {
				t.Errorf("I10: c is silent, %s: b would give the numbers again", name)
			}
			s.Now = s.Now.Add(time.Second)
		}
	}
	// It is found by every record, not by the newest one alone, and one that cannot be read stops nothing.
	s := factstest.World(Durable{Epoch: 5, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{Epoch: 5, From: "c", To: "a", LostSet: "?"}, lost}},
		factstest.Seen("a", "A:1-9,B:1-90", 5), factstest.Seen("b", "A:1-9,B:1-90", 5), factstest.Seen("c", "A:1-9,B:1-90", 5))
	s.Sites[1].MySQL.ServerUUID = factstest.Uuids["B"]
	silent(&s.Sites[2])
	if promotion.IsNumberingAgain(s, Memory{}, s.Sites[1]) == "" {
		t.Error("an older record is forgotten")
	}
	// A person who knows better may order it.
	s.Policy.ForceTo = "b"
	if !promotion.Forcible(s, s.Sites[1]) {
		t.Error("an order is refused for it")
	}
}

// A pair whose old active site is silent after the operator was restarted still has its failover.
func TestWhoTookOverLackedWhatWasLost(t *testing.T) {
	s := factstest.World(Durable{Epoch: 3, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{
		{Epoch: 3, From: "b", To: "a", FromServerUUID: lineage.ServerReplaced, LostTransactions: 10, LostSet: factstest.Set("B:91-100").String()},
	}}, factstest.Seen("a", "A:1-9,B:1-90", 3), factstest.Seen("b", "A:1-9,B:1-90", 3))
	s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
	s.Sites[1].MySQL.ServerUUID = factstest.Uuids["B"]
	if chosen, found := promotion.Choose(s, Memory{}, "a"); !found || chosen.Site.Name != "b" {
		t.Errorf("b does not take over: %+v", chosen.Unfit)
	}
}
