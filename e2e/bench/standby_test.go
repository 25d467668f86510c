// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

func TestTheLossOfTheOperatorHasItsTarget(t *testing.T) {
	picked, err := casesNamed("operator-node")
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
