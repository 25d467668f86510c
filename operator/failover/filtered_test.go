// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/views"
)

// TestWhoSkippedTransactionsStaysUnfitI7: the sets look whole while a filter is set and after it was taken away, until the site has
// another server, as it has after a clone.
func TestWhoSkippedTransactionsStaysUnfitI7(t *testing.T) {
	m := Memory{}
	poll := func(change func(b *Site)) Snapshot {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
		s.Sites[1].MySQL.ReplicaOf, s.Sites[1].MySQL.IORunning, s.Sites[1].MySQL.SQLRunning = "a", true, true
		change(&s.Sites[1])
		m = memory.Remember(s, m)
		return s
	}
	fit := func(s Snapshot) bool { return promotion.UnfitOf(s, m, s.Sites[1]).By == "" }
	for _, step := range []struct {
		name   string
		change func(b *Site)
		fit    bool
	}{
		{"as it should be", func(*Site) {}, true},
		{"a filter is set", func(b *Site) { b.MySQL.Filtered = true }, false},
		{"it was taken away", func(*Site) {}, false},
		{"its MySQL is not seen", func(b *Site) { b.MySQL = MySQL{} }, false},
		{"it is seen again", func(*Site) {}, false},
		{"it left, and comes back", nil, false},
		{"it was cloned", func(b *Site) { b.MySQL.ServerUUID = "another" }, true},
	} {
		if step.change == nil {
			m = memory.Remember(factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4)), m)
			step.change = func(*Site) {}
		}
		s := poll(step.change)
		if fit(s) != step.fit {
			t.Errorf("I7: %s: fit %t", step.name, fit(s))
		}
		if left := m.Of("b").Filtered; left != "" && step.name == "it was cloned" {
			t.Errorf("the mark of a server that is gone stays: %q", left)
		}
		if s.Sites[1].MySQL.Filtered {
			v := views.Of(s, Decision{Status: s.Status, Memory: m, Topology: TopologyHealthy}.decided())[1]
			if v.Reason != v1alpha1.ReasonReplicationFiltered || !strings.Contains(v.Message, "kubectl mfg reclone") {
				t.Errorf("it is not said: %s %q", v.Reason, v.Message)
			}
			if !promotion.Forcible(s, s.Sites[1]) {
				t.Error("a person's order does not promote it")
			}
			s.Status.Transition = &Transition{From: "a", To: "b", Kind: v1alpha1.FailoverEmergency}
			if evidence := strings.Join(pass(s, Decision{Status: s.Status, Memory: m}, s.Sites[1], Gate{}).Status.Transition.Evidence, "; "); !strings.Contains(evidence, "replication filter") {
				t.Errorf("I7: opened by %q", evidence)
			}
		}
	}
	// A pod that comes up with another volume for a while, whose server knows of no filter (I7, I12).
	_ = poll(func(b *Site) { b.MySQL.Filtered = true })
	own := ""
	s := poll(func(b *Site) {
		own, b.OtherVolume, b.MySQL.ServerUUID, b.MySQL.Filtered = b.MySQL.ServerUUID, true, "22222222-2222-2222-2222-222222222222", false
	})
	if m.Of("b").Filtered != own {
		t.Errorf("what another volume has makes up for the rows that the site's lacks: %q, not %q", m.Of("b").Filtered, own)
	}
	s = poll(func(b *Site) { b.MySQL.Filtered = true })
	if s.Status.ActiveSite = "b"; promotion.IsFiltered(s, m, s.Sites[1]) != "" {
		t.Error("the active site is kept closed for what others may lack")
	}
	s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly, s.Sites[1].MySQL.Filtered = false, false, false
	if m = memory.Remember(s, m); m.Of("b").Filtered != "" {
		t.Error("the data of a site that was opened by order is the group's, and it is still called short of rows")
	}
}

// TestWhoSkippedTransactionsIsDurableI7I9: before anything is done, and once.
func TestWhoSkippedTransactionsIsDurableI7I9(t *testing.T) {
	b := map[string]string{"b": "its server"}
	for name, tc := range map[string]struct {
		remembered, status map[string]string
		persist            bool
	}{
		"nothing":    {nil, nil, false},
		"found":      {b, nil, true},
		"noted":      {b, b, false},
		"another":    {b, map[string]string{"b": "the former server"}, true},
		"it is over": {nil, b, true},
	} {
		m := Memory{Sites: map[string]*SiteMemory{"a": {}}}
		for site, server := range tc.remembered {
			m.At(site).Filtered = server
		}
		d := (Decision{Memory: m}).noteFiltered(Snapshot{Status: Durable{Filtered: tc.status}})
		if d.Persist != tc.persist || !maps.Equal(d.Status.Filtered, tc.remembered) {
			t.Errorf("I7, I9: %s: persist %t, %v", name, d.Persist, d.Status.Filtered)
		}
	}
	if d := (Decision{Persist: true}).noteFiltered(Snapshot{}); !d.Persist || d.Status.Filtered != nil {
		t.Errorf("what else has to be durable: %t, %v", d.Persist, d.Status.Filtered)
	}
}
