// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestCatchingUpNotesRowsI7I9: a status that was restored knows nothing of rows outside InnoDB, and the site that is open may leave before the
// next look. Found by the simulation, seed 15682: the next decision promoted a site that was cloned without them.
func TestCatchingUpNotesRowsI7I9(t *testing.T) {
	found := func(rows int) *wire.EngineReport { return &wire.EngineReport{Tables: 2, WithRows: rows} }
	for name, tc := range map[string]struct {
		of     map[string]*wire.EngineReport
		silent string
		want   int
		change func(b *Site)
	}{
		"the open site says it":              {map[string]*wire.EngineReport{"c": found(2), "a": found(1)}, "", 2, nil},
		"it has fewer than others":           {map[string]*wire.EngineReport{"c": found(0), "a": found(1)}, "", 0, nil},
		"it has not looked":                  {map[string]*wire.EngineReport{"b": found(1), "a": found(2)}, "", 2, nil},
		"it has not, and what a says is old": {map[string]*wire.EngineReport{"b": found(1), "a": found(2)}, "a", 1, nil},
		"nobody has looked":                  {nil, "", 0, nil},
		"b has left the specification":       {map[string]*wire.EngineReport{"b": found(2), "a": found(1)}, "", 1, func(b *Site) { b.Removed = true }},
		"b is on another volume":             {map[string]*wire.EngineReport{"b": found(2), "a": found(1)}, "", 1, func(b *Site) { b.OtherVolume = true }},
	} {
		c := factstest.Seen("c", "A:1-9", 7)
		c.Sidecar.Report.Writable, c.Sidecar.Report.ActiveSite = true, "c"
		// a was cut off under the epoch that the old status knows, and is open yet: what it has says nothing of the group.
		a := factstest.Seen("a", "A:1-9", 4)
		a.Sidecar.Report.Writable, a.Sidecar.Report.ActiveSite = true, "a"
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", RowsOutside: 7}, a, factstest.Seen("b", "A:1-9", 4), c)
		for i := range s.Sites {
			s.Sites[i].Sidecar.Report.Engines = tc.of[s.Sites[i].Name]
			if s.Sites[i].Name == tc.silent {
				s.Sites[i].Sidecar.Answered = false
			}
		}
		if tc.change != nil {
			tc.change(&s.Sites[1])
		}
		d := Decide(s, Memory{})
		if d.Reason != v1alpha1.ReasonStatusBehind || d.Status.RowsOutside != tc.want || !d.Persist {
			t.Errorf("I7: %s: %d tables with rows are noted, want %d: %s, persisted %t", name, d.Status.RowsOutside, tc.want, d.Reason, d.Persist)
		}
	}
}

// TestTheFirstSiteHasAllRowsI7: nothing but the sites remembers rows outside InnoDB once status is lost.
func TestTheFirstSiteHasAllRowsI7(t *testing.T) {
	found := func(rows int) *wire.EngineReport { return &wire.EngineReport{Tables: 2, WithRows: rows} }
	for name, tc := range map[string]struct {
		a, b   *wire.EngineReport
		ofB    string
		force  string
		want   Reason
		active string
	}{
		"as many on both":                    {found(2), found(2), "A:1-9", "", v1alpha1.ReasonFirstSite, "a"},
		"b has more":                         {found(1), found(2), "A:1-9", "", v1alpha1.ReasonFirstSite, "b"},
		"b alone has looked":                 {nil, found(2), "A:1-9", "", v1alpha1.ReasonFirstSite, "b"},
		"b has more, and fewer transactions": {found(1), found(2), "A:1-8", "", v1alpha1.ReasonRowsMissing, ""},
		"the same, and a person chose a":     {found(1), found(2), "A:1-8", "a", v1alpha1.ReasonFirstSite, "a"},
	} {
		s := factstest.World(Durable{}, factstest.Seen("a", "A:1-9", 0), factstest.Seen("b", tc.ofB, 0))
		s.Sites[0].Sidecar.Report.Engines, s.Sites[1].Sidecar.Report.Engines, s.Policy.ForceTo = tc.a, tc.b, tc.force
		d := Decide(s, Memory{})
		if d.Reason != tc.want || d.Status.ActiveSite != tc.active {
			t.Errorf("I7: %s: %s becomes active (%s: %s), want %q and %s", name, d.Status.ActiveSite, d.Reason, d.Message, tc.active, tc.want)
		}
		if tc.want == v1alpha1.ReasonRowsMissing && !strings.Contains(d.Message, "a may have been cloned without rows outside InnoDB: it has them in 1 tables, b in 2; a person must choose") {
			t.Errorf("%s: says no way out: %s", name, d.Message)
		}
	}
}
