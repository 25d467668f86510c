// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestDirected plays every scripted schedule with all guards in place; `make sim-mutants` plays them without.
func TestDirected(t *testing.T) {
	defer func() { directed = "" }()
	for _, s := range scenarios() {
		directed = s.name
		total, failed := run(1, 40, 2, true)
		for _, f := range failed {
			t.Errorf("%s: seed %d: %s", s.name, f.seed, f.failure)
		}
		if total.named["directed: reached"] == 0 {
			t.Errorf("%s never comes to the moment that it is for: %d runs", s.name, total.named["directed: "+s.name])
		}
	}
}
