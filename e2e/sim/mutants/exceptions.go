// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// exception is a mutant that nobody can miss, with the reason. It names its condition by what is written there and not by its
// line; one that fits nothing any more is an error.
type exception struct {
	folder, function, text string
	// change is what is excepted; empty is all that can be done to the condition.
	change change
	reason string
}

func (e exception) fits(p point, c change) bool {
	return e.folder == p.folder && e.function == p.function && e.text == p.text && (e.change == "" || e.change == c)
}

// exceptions is as short as it can be: a condition that changes nothing is better taken away.
var exceptions = []exception{}

// stale are the exceptions that fit no mutant, or give no reason.
func stale(exceptions []exception, points []point) []error {
	var out []error
	for _, e := range exceptions {
		fits := 0
		for _, p := range points {
			for _, c := range p.changes {
				if e.fits(p, c) {
					fits++
				}
			}
		}
		if fits == 0 || e.reason == "" {
			out = append(out, fmt.Errorf("exception %s %s: %q (%s) fits %d mutants; its reason is %q", e.folder, e.function, e.text, e.change, fits, e.reason))
		}
	}
	return out
}

// reasonFor is why a mutant is not hunted, or "".
func reasonFor(p point, c change) string {
	for _, e := range exceptions {
		if e.fits(p, c) {
			return e.reason
		}
	}
	return ""
}
