// SPDX-License-Identifier: Apache-2.0

package views

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// TestOfWhomAnEarlierPodIsTold: of a site whose pod answers. One that is silent has trouble enough, and its pod may be that very one.
func TestOfWhomAnEarlierPodIsTold(t *testing.T) {
	for _, answers := range []bool{true, false} {
		site := facts.Site{Name: "b", Pod: facts.Pod{UID: "new"}, Runs: []facts.Run{factstest.On("old", "n1")}, Sidecar: facts.Sidecar{Answered: answers}}
		reason, _ := earlierPod(site)
		if named := memory.Named(factstest.World(facts.Durable{}, site), []string{"b"}); (reason != "") != answers || strings.Contains(named, "old") != answers {
			t.Errorf("it answers %t: told %q, named %q", answers, reason, named)
		}
	}
}

// TestRowsThatNoCloneBrings: of two sites of which both were looked at.
func TestRowsThatNoCloneBrings(t *testing.T) {
	site := func(name string, tables, rows int) facts.Site {
		s := factstest.Seen(name, "A:1-9", 4)
		s.Sidecar.Report.Engines = &wire.EngineReport{Tables: tables, WithRows: rows}
		return s
	}
	silent := site("a", 2, 2)
	silent.Sidecar.Answered = false
	blind := site("a", 2, 2)
	blind.Sidecar.Report.Engines = nil
	for name, tc := range map[string]struct {
		site, active facts.Site
		want         facts.Reason
	}{
		"the active site has some":                {site("a", 2, 2), site("a", 2, 2), v1alpha1.ReasonRowsNotCloned},
		"the active site has none":                {site("a", 2, 0), site("a", 2, 0), ""},
		"the replica has fewer":                   {site("b", 2, 1), site("a", 2, 2), v1alpha1.ReasonRowsMissing},
		"the replica has as many":                 {site("b", 2, 2), site("a", 2, 2), ""},
		"the replica has no such tables":          {site("b", 0, 0), site("a", 2, 2), ""},
		"the active site says nothing now":        {site("b", 2, 1), silent, ""},
		"the active site does not look":           {site("b", 2, 1), blind, ""},
		"the active site is told of a later look": {site("a", 2, 0), site("a", 2, 2), ""},
	} {
		if got, _ := outsideInnoDB(facts.Group{}, tc.site, tc.active); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhoFollowsNobody: a replica of something that is no site is no replica of a group without an active site.
func TestWhoFollowsNobody(t *testing.T) {
	b := factstest.Seen("b", "A:1-9", 4)
	b.MySQL.IORunning, b.MySQL.SQLRunning = true, true
	if got, _, _ := state(Decided{}, b, facts.Site{}); got != v1alpha1.SiteDetached {
		t.Errorf("it is a %s of nobody", got)
	}
}

// TestWhichRemarkIsMadeOfASiteI7: of a filter on a replica that is well, and of a volume that fails on one that follows; no remark hides what is worse.
func TestWhichRemarkIsMadeOfASiteI7(t *testing.T) {
	fails := &wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}
	detach := func(b *facts.Site) { b.MySQL.IORunning, b.MySQL.ReplicaOf = false, "" }
	for name, tc := range map[string]struct {
		change func(b *facts.Site)
		want   facts.Reason
	}{
		"it is well":                    {func(*facts.Site) {}, ""},
		"a filter is set":               {func(b *facts.Site) { b.MySQL.Filtered = true }, v1alpha1.ReasonReplicationFiltered},
		"it is set, and it is detached": {func(b *facts.Site) { b.MySQL.Filtered = true; detach(b) }, v1alpha1.ReasonNotReplicating},
		"its volume fails":              {func(b *facts.Site) { b.Sidecar.Report.VolumeProbe = fails }, v1alpha1.ReasonVolumeTakesNoWrites},
		"its volume fails, detached":    {func(b *facts.Site) { b.Sidecar.Report.VolumeProbe = fails; detach(b) }, v1alpha1.ReasonNotReplicating},
	} {
		s := factstest.AtRest()
		tc.change(&s.Sites[1])
		if got := Of(s, Decided{Status: s.Status, Healthy: true})[1]; got.Reason != tc.want {
			t.Errorf("I7: %s: %s %s", name, got.Reason, got.Message)
		}
	}
	// b was ordered, with its filter: what it has is the group's data.
	s := factstest.AtRest()
	s.Sites[1].MySQL.Filtered, s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = true, false, false
	s.Status = facts.Durable{Epoch: 5, ActiveSite: "b", Transition: &facts.Transition{Kind: v1alpha1.FailoverForced, Step: v1alpha1.TransitionOpening, From: "a", To: "b"}}
	if got := Of(s, Decided{Status: s.Status})[1]; got.State != v1alpha1.SitePrimary || got.Reason != "" {
		t.Errorf("I7: the active site is called short of rows: %s %s", got.State, got.Message)
	}
	var m facts.Memory
	m.At("b").Filtered = "its server"
	if got := Of(s, Decided{Status: s.Status, Memory: m}); got[1].Filtered != "its server" || got[2].Filtered != "" {
		t.Errorf("I7: who had a filter is forgotten across a restart: %q, %q", got[1].Filtered, got[2].Filtered)
	}
}
