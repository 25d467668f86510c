// SPDX-License-Identifier: Apache-2.0

package views

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
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

// TestADivergedSiteNamesFlush: nobody looks for a FLUSH, and it is what makes a replica diverge that nobody wrote to.
func TestADivergedSiteNamesFlush(t *testing.T) {
	if said := divergedMessage(gtid.Set{}, "a"); !strings.Contains(said, "FLUSH without LOCAL") {
		t.Error(said)
	}
}
