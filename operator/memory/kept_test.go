// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestWhoIsRememberedOutOfSightI1: of a site that is not in the group for a poll only the fence that was read back, and nothing of others.
func TestWhoIsRememberedOutOfSightI1(t *testing.T) {
	fence := facts.SQLFence{Epoch: 4, PodUID: "p", At: factstest.Start}
	old := facts.Memory{Sites: map[string]*facts.SiteMemory{"x": {SilentPolls: 3}, "y": {SilentPolls: 3, FencedBySQL: fence}}}
	m := Remember(factstest.AtRest(), old)
	if m.Sites["x"] != nil {
		t.Errorf("a site that is gone, and of which nothing is to be kept, is remembered for ever: %+v", *m.Sites["x"])
	}
	if y := m.Of("y"); y.FencedBySQL != fence || y.SilentPolls != 0 {
		t.Errorf("I1: of one that is not in sight: %+v", y)
	}
}

// TestWhatASilentServerHeldI10: as long as it is silent, or on another volume, what it held stays known, relay log and all.
func TestWhatASilentServerHeldI10(t *testing.T) {
	all := factstest.Set("A:1-1200")
	silent := func(site *facts.Site) { factstest.Silence(site) }
	for name, tc := range map[string]struct {
		change func(*facts.Site)
		was    *gtid.Set
		want   *gtid.Set
	}{
		"it answers":                {func(*facts.Site) {}, nil, &all},
		"it answers something else": {func(*facts.Site) {}, new(factstest.Set("A:1-5")), &all},
		"it is silent":              {silent, &all, &all},
		"it was never seen":         {silent, nil, nil},
		"it is on another volume":   {func(site *facts.Site) { site.OtherVolume = true }, new(factstest.Set("A:1-5")), new(factstest.Set("A:1-5"))},
	} {
		s := factstest.AtRest()
		s.Sites[1].MySQL.Retrieved = factstest.Set("A:1001-1200")
		tc.change(&s.Sites[1])
		held := Remember(s, facts.Memory{Sites: map[string]*facts.SiteMemory{"b": {Held: tc.was}}}).Of("b").Held
		if (held == nil) != (tc.want == nil) || held != nil && !held.Equal(*tc.want) {
			t.Errorf("I10: %s: held %v", name, held)
		}
	}
}

// TestADivergenceThatCannotBeComparedStaysI10: silence takes nothing back, a comparison does, and so does what makes it history.
func TestADivergenceThatCannotBeComparedStaysI10(t *testing.T) {
	found := factstest.Set("B:1-3")
	for name, tc := range map[string]struct {
		site   string
		change func(*facts.Snapshot)
		want   bool
	}{
		"it is compared, and has nothing of its own": {"b", func(*facts.Snapshot) {}, false},
		"it is silent":              {"b", func(s *facts.Snapshot) { factstest.Silence(&s.Sites[1]) }, true},
		"the active site is silent": {"b", func(s *facts.Snapshot) { factstest.Silence(&s.Sites[0]) }, true},
		"the active site is open":   {"a", func(*facts.Snapshot) {}, false},
		"the active site is shut":   {"a", func(s *facts.Snapshot) { s.Sites[0].Sidecar.Report.Writable = false }, true},
	} {
		s := factstest.AtRest()
		tc.change(&s)
		old := facts.Memory{Sites: map[string]*facts.SiteMemory{tc.site: {Diverged: found, PreviousAll: new(factstest.Set("A:1-1000"))}}}
		if got := Remember(s, old).Of(tc.site).Diverged; got.IsEmpty() == tc.want || tc.want && !got.Equal(found) {
			t.Errorf("I10: %s: diverged %q", name, got)
		}
	}
}

// TestHowASiteIsNamed: with its earlier pod only while its present one answers; of a silent one either may be meant.
func TestHowASiteIsNamed(t *testing.T) {
	earlier := facts.Run{UID: "old", Node: "n1", Machine: "n1", Volume: "v"}
	s := factstest.AtRest()
	for i := range s.Sites {
		s.Sites[i].Pod.UID, s.Sites[i].Runs = "new", []facts.Run{{UID: "new"}}
	}
	s.Sites[0].Runs, s.Sites[1].Runs = append(s.Sites[0].Runs, earlier), append(s.Sites[1].Runs, earlier)
	factstest.Silence(&s.Sites[1])
	if got, want := Named(s, []string{"a", "b", "c"}), "a ("+earlier.String()+"), b, c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHowLongAFilterIsRememberedI7I12: the mark of a server goes only with that server's data, or once its data is the group's.
func TestHowLongAFilterIsRememberedI7I12(t *testing.T) {
	open := func(b *facts.Site) { b.MySQL.SuperReadOnly, b.MySQL.ReadOnly = false, false }
	for name, tc := range map[string]struct {
		active string
		was    string
		change func(b *facts.Site)
		want   string
	}{
		"a filter is set":                       {"a", "", func(b *facts.Site) { b.MySQL.Filtered = true }, "b"},
		"it was set":                            {"a", "b", func(*facts.Site) {}, "b"},
		"and the site was cloned":               {"a", "old", func(*facts.Site) {}, ""},
		"and its clone is not done":             {"a", "old", func(b *facts.Site) { b.Provisioned = false }, "old"},
		"and its MySQL is silent":               {"a", "old", func(b *facts.Site) { b.MySQL = facts.MySQL{} }, "old"},
		"a silent MySQL had one":                {"a", "old", func(b *facts.Site) { b.MySQL.Direct, b.MySQL.Filtered = false, true }, "old"},
		"on another volume":                     {"a", "old", func(b *facts.Site) { b.OtherVolume = true }, "old"},
		"it was made active":                    {"b", "b", open, ""},
		"it was made active with it":            {"b", "b", func(b *facts.Site) { open(b); b.MySQL.Filtered = true }, ""},
		"it is active, and not open":            {"b", "b", func(*facts.Site) {}, "b"},
		"it is open, and not active":            {"a", "b", open, "b"},
		"it is open with it, and is not active": {"a", "", func(b *facts.Site) { open(b); b.MySQL.Filtered = true }, "b"},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: tc.active}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s.Sites[1])
		var m facts.Memory
		m.At("b").Filtered = tc.was
		if got := Remember(s, m).Of("b").Filtered; got != tc.want {
			t.Errorf("I7, I12: %s: %q", name, got)
		}
	}
}
