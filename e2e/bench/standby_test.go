// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Two nodes are lost at once, and what may take over must not be on either.
func TestTheOperatorLeadsBesideTheCandidates(t *testing.T) {
	g := &v1alpha1.MysqlFailoverGroup{Spec: stage.DefaultSpec(group)}
	for _, active := range []string{"east", "west"} {
		g.Status.ActiveSite = active
		if node, err := beside(g); err != nil || node != "south" {
			t.Errorf("%s is active: %q, %v", active, node, err)
		}
	}
	g.Spec.Sites = g.Spec.Sites[:2]
	if node, err := beside(g); err == nil {
		t.Errorf("of two candidates %s may be lost with the other", node)
	}
}

func TestEveryLossOfTheOperatorHasItsTarget(t *testing.T) {
	picked, err := casesNamed("operator-node,two-nodes")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range picked {
		got := c.targets(stage.DefaultSpec(group))
		if len(got) != 1 || got[0].Figure != figureMax || got[0].Limit != 28 || c.runs != 20 || !c.Moves {
			t.Errorf("%s: %+v, %d runs", c.Name, got, c.runs)
		}
	}
}
