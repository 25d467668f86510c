// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestSumOf(t *testing.T) {
	const metrics = `# HELP x_total x
x_total{listener="escrow",reason="TooOften"} 3
x_total{listener="escrow",reason="TooManyOfOneAddress"} 4
x_total{listener="metrics",reason="TooOften"} 50
`
	if got := sumOf(metrics, "x_total{", `listener="escrow"`); got != 7 {
		t.Errorf("sum of one listener = %v, want 7", got)
	}
	if got := sumOf(metrics, "x_total{", ""); got != 57 {
		t.Errorf("sum of all = %v, want 57", got)
	}
}

// A flood is within its targets only if failovers were, nothing grew or was started again, and every listener refused somebody.
func TestFloodJudges(t *testing.T) {
	good := func() floodFigures {
		return floodFigures{
			Cases: []row{{WithinTarget: true}}, Memory: []memory{{Flat: true}}, Listeners: []*flooded{{Refused: 1}, {Refused: 2}},
		}
	}
	for name, spoil := range map[string]func(*floodFigures){
		"a failover that was slow":   func(f *floodFigures) { f.Cases[0].WithinTarget = false },
		"memory that grew":           func(f *floodFigures) { f.Memory[0].Flat = false },
		"no memory read":             func(f *floodFigures) { f.Memory = nil },
		"a container that restarted": func(f *floodFigures) { f.Restarts = 1 },
		"a listener that let all in": func(f *floodFigures) { f.Listeners[1].Refused = 0 },
		"no failover that was tried": func(f *floodFigures) { f.Cases = nil },
	} {
		f := good()
		if f.judge(); !f.WithinTarget {
			t.Fatal("a flood that did nothing is not within its targets")
		}
		spoil(&f)
		if f.judge(); f.WithinTarget {
			t.Errorf("%s: still within its targets", name)
		}
	}
}
