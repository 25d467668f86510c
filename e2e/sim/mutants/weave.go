// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// All mutants are built into one program, and the environment says which is active: a build for each would take longer than the
// hunt. The tree is never touched: go build gets the changed files as an overlay.

const (
	// activeIn names the mutant: the number of its point, a colon, and what it does there.
	activeIn = "MFG_MUTANT"
	// reachIn names a file of two bytes for each point: whether it was reached true, or at all, and whether it was reached false.
	reachIn = "MFG_MUTANT_REACH"
)

const selector = `// Written by e2e/sim/mutants.

package %s

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

var mfgActive, mfgForced = func() (int, bool) {
	id, what, _ := strings.Cut(os.Getenv("` + activeIn + `"), ":")
	if n, err := strconv.Atoi(id); err == nil {
		return n, what == "true"
	}
	return -1, false
}()

// The file is mapped: what was reached is there however the process ends.
var mfgReach = func() []byte {
	name := os.Getenv("` + reachIn + `")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	at, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return at
}()

func mfgCond(id int, v bool) bool {
	if mfgReach != nil {
		if v {
			mfgReach[2*id] = 1
		} else {
			mfgReach[2*id+1] = 1
		}
	}
	if id == mfgActive {
		return mfgForced
	}
	return v
}

func mfgCondOf[B ~bool](id int, v B) B { return B(mfgCond(id, bool(v))) }

func mfgStays(id int) bool {
	if mfgReach != nil {
		mfgReach[2*id] = 1
	}
	return id != mfgActive
}

func mfgKeep[T any](id int, old, changed T) T {
	if mfgStays(id) {
		return changed
	}
	return old
}

func mfgZero[T any](id int, old T) T {
	var zero T
	return mfgKeep(id, old, zero)
}

func mfgWithout[E any](all []E, first int) []E {
	var out []E
	for i, e := range all {
		if mfgStays(first + i) {
			out = append(out, e)
		}
	}
	return out
}
`

// weave applies edits to a text. The inner of two that begin or end at the same place stays inside.
func weave(text []byte, offset func(token.Pos) int, edits []edit) string {
	type insert struct {
		at, rank, order int
		text            string
		skip            int
	}
	var all []insert
	for i, e := range edits {
		from, to := offset(e.from), offset(e.to)
		if e.before == "" && e.after == "" {
			all = append(all, insert{at: from, rank: 1, order: len(text) + i, text: e.takes, skip: to - from})
			continue
		}
		// At one place: what ends there first, the innermost before the others; then what begins, the outermost first.
		all = append(all, insert{at: from, rank: 1, order: (from-to)*len(edits) + i, text: e.before})
		if e.after != "" {
			all = append(all, insert{at: to, rank: 0, order: -from*len(edits) - i, text: e.after})
		}
	}
	slices.SortStableFunc(all, func(a, b insert) int {
		return cmp.Or(a.at-b.at, a.rank-b.rank, a.order-b.order)
	})
	var out strings.Builder
	last := 0
	for _, n := range all {
		out.Write(text[last:n.at])
		out.WriteString(n.text)
		last = n.at + n.skip
	}
	out.Write(text[last:])
	return out.String()
}

// overlay writes the changed files into dir and returns the file that go build takes, and all points by number.
func overlay(dir string, all []*source) (string, []point, error) {
	replace := map[string]string{}
	put := func(target, text string) error {
		at := filepath.Join(dir, strconv.Itoa(len(replace))+"_"+filepath.Base(target))
		replace[target] = at
		return os.WriteFile(at, []byte(text), 0o600)
	}
	var points []point
	for _, s := range all {
		found, edits := s.find(len(points))
		points = append(points, found...)
		for _, f := range s.files {
			offset := func(p token.Pos) int { return s.fset.Position(p).Offset }
			if err := put(filepath.Join(s.dir, filepath.Base(f.name)), weave(f.text, offset, edits[f])); err != nil {
				return "", nil, fmt.Errorf("overlay: %w", err)
			}
		}
		if err := put(filepath.Join(s.dir, "zz_mutant.go"), fmt.Sprintf(selector, s.name)); err != nil {
			return "", nil, fmt.Errorf("overlay: %w", err)
		}
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, fmt.Errorf("overlay: %w", err)
	}
	at := filepath.Join(dir, "overlay.json")
	return at, points, os.WriteFile(at, body, 0o600)
}
