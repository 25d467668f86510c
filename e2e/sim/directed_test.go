// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestDirected plays every scripted schedule with all guards in place; `make sim-mutants` plays them without. Few seeds fit a
// script, and not each of these comes to its moment: of each it plays forty seeds, and more until one does.
func TestDirected(t *testing.T) {
	const batch, most = 40, 400
	defer func() { directed = "" }()
	for _, s := range scenarios() {
		directed = s.name
		reached, played := int64(0), int64(0)
		for from := uint64(1); from < most && reached == 0; from += batch {
			total, failed := run(from, batch, 2, true)
			for _, f := range failed {
				t.Errorf("%s: seed %d: %s", s.name, f.seed, f.failure)
			}
			reached += total.named["directed: reached"]
			played += total.named["directed: "+s.name]
		}
		if reached == 0 {
			t.Errorf("%s never comes to the moment that it is for: %d runs", s.name, played)
		}
	}
}
