// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// edit is a piece of text and what takes its place; every place where it occurs.
type edit struct{ file, old, new string }

// row is one guard that is removed.
type row struct {
	// guard is its name, breaks the invariants that its absence should break.
	guard, breaks string
	// edits take the guard away.
	edits []edit
	// behind are the guards that stop the same harm. With one of them in place the simulated world may never break, so they
	// are taken away too; that the guard is for something by itself has to be shown then too, by the simulation or by a test
	// of the core.
	behind []edit
	// directed names the scripted schedules (e2e/sim/directed*.go) that bring the world to where the guard decides.
	directed []string
}

// cut is a guard that goes with one edit, and behind which nothing stands that the simulation would have to lose too.
type cut struct{ guard, breaks, old, new string }

// cuts are the rows of one file.
func cuts(file string, all []cut) []row {
	var out []row
	for _, c := range all {
		out = append(out, row{guard: c.guard, breaks: c.breaks, edits: []edit{{file, c.old, c.new}}})
	}
	return out
}

func (r row) name() string { return r.edits[0].file + " " + r.guard }

// variant is a set of edits that the built programs can be run with.
type variant struct {
	id    int
	name  string
	edits []edit
}

// variants numbers what can be run: each guard taken away alone, and with what stands behind it.
func variants(rows []row) []variant {
	var all []variant
	for i, r := range rows {
		all = append(all, variant{id: alone(i), name: r.name(), edits: r.edits})
		if len(r.behind) > 0 {
			both := append(append([]edit{}, r.edits...), r.behind...)
			all = append(all, variant{id: together(i), name: r.name() + " (with what stands behind it)", edits: both})
		}
	}
	return all
}

// alone and together number the variants of a row; zero is the program as it is.
func alone(row int) int    { return 2*row + 1 }
func together(row int) int { return 2*row + 2 }

// apply returns the changed text of every file that a variant touches.
func (v variant) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range v.edits {
		text, again := changed[e.file]
		if !again {
			body, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("read source: %w", err)
			}
			text = string(body)
		}
		if !strings.Contains(text, e.old) {
			return nil, fmt.Errorf("%s: %s has no %q any more", v.name, e.file, e.old)
		}
		changed[e.file] = strings.ReplaceAll(text, e.old, e.new)
	}
	return changed, nil
}
