// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prints say which code was hunted.
type prints struct {
	// sources is of all that a program of tests or the simulation is made of, without tests.
	sources string
	// own is of a core with its tests.
	own map[string]string
}

// tests is true for a file of a folder whose tests are asked about the core, or of its test data.
func (c core) tests(name string) bool {
	return slices.ContainsFunc(c.tested(), func(folder string) bool {
		return path.Dir(name) == folder || strings.HasPrefix(name, folder+"/testdata/")
	})
}

func printsOf(tree string, files []string, cores []core) (prints, error) {
	p := prints{own: map[string]string{}}
	all := sha256.New()
	own := map[string][]byte{}
	for _, name := range files {
		body, err := os.ReadFile(filepath.Join(tree, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return p, fmt.Errorf("fingerprint: %w", err)
		}
		sum := sha256.Sum256(append([]byte(name+"\n"), body...))
		ofSim := strings.HasPrefix(name, "e2e/sim/") && !strings.HasPrefix(name, "e2e/sim/mutants/")
		isCode := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if isCode && (ofSim || !strings.HasPrefix(name, "e2e/")) || path.Base(name) == "go.sum" {
			all.Write(sum[:])
		}
		for _, c := range cores {
			if c.tests(name) {
				own[c.folder] = append(own[c.folder], sum[:]...)
			}
		}
	}
	p.sources = short(all.Sum(nil))
	for folder, sums := range own {
		sum := sha256.Sum256(sums)
		p.own[folder] = short(sum[:])
	}
	return p, nil
}

func short(sum []byte) string { return hex.EncodeToString(sum[:8]) }

// results are the outcomes by mutant. They are written after each, so that a hunt that was ended can go on.
type results struct {
	file string
	all  map[string]outcome
}

// read takes what an earlier hunt found out of mutants that are still there.
func (r *results) read(points []point) error {
	body, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var all []outcome
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	there := map[string]bool{}
	for _, p := range points {
		for _, c := range p.changes {
			there[p.key(c)] = true
		}
	}
	for _, o := range all {
		if there[o.Mutant] {
			r.all[o.Mutant] = o
		}
	}
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	return nil
}

func (r *results) write() error {
	if r.file == "" {
		return nil
	}
	all := slices.SortedFunc(maps.Values(r.all), func(a, b outcome) int { return cmp.Compare(a.Mutant, b.Mutant) })
	body, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(r.file+".new", append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return os.Rename(r.file+".new", r.file)
}

// standing is true if an earlier outcome is of the very same code, and nobody would be asked whom it did not ask.
func (h *hunter) standing(o outcome) bool {
	return o.Sources == h.prints.sources && o.Own == h.prints.own[folderOf(o.Mutant)] && (o.isFound() || o.By == notReached || o.Seeds >= h.seeds)
}

func folderOf(mutant string) string { folder, _, _ := strings.Cut(mutant, " "); return folder }

// summary prints who missed what, package by package, and returns how many mutants nobody missed.
func summary(all []outcome, took time.Duration) int {
	byFolder := map[string][]outcome{}
	for _, o := range all {
		byFolder[folderOf(o.Mutant)] = append(byFolder[folderOf(o.Mutant)], o)
	}
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		fmt.Printf("%-22s %s\n", folder, counts(byFolder[folder]))
	}
	fmt.Printf("%s; %s\n", counts(all), took.Round(time.Second))
	return len(slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.isFound() || o.By == excepted }))
}

func counts(all []outcome) string {
	n := map[means]int{}
	for _, o := range all {
		n[o.By]++
	}
	return fmt.Sprintf("%d mutants: %d found by a test of the core (and %d by timeout), %d by the simulation (%d directed, %d random), %d exceptions, %d not found (and %d not reached)",
		len(all), n[byTest], n[byTimeout], n[byDirected]+n[byRandom], n[byDirected], n[byRandom], n[excepted], n[notFound], n[notReached])
}

func (o outcome) String() string {
	how := cmp.Or(o.Violation, o.Test, o.Reason)
	if o.Scenario != "" {
		how = o.Scenario + ": " + how
	}
	return fmt.Sprintf("%-22s %5.1fs %s  %s  [%s]", o.By, o.Seconds, o.Mutant, o.Where, how)
}
