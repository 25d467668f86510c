// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryMutantHasItsName: two of one name would be taken for the same, and one of them never hunted.
func TestEveryMutantHasItsName(t *testing.T) {
	sources, err := load(context.Background(), "../../..", cores)
	if err != nil {
		t.Fatal(err)
	}
	_, points, err := overlay(t.TempDir(), sources)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for i, p := range points {
		if p.id != i {
			t.Fatalf("point %d is numbered %d", i, p.id)
		}
		for _, c := range p.changes {
			if other := seen[p.key(c)]; other != "" {
				t.Errorf("%s: at %s and %s", p.key(c), other, p.where)
			}
			seen[p.key(c)] = p.where
		}
	}
}

// TestEveryMutantCompiles: so does every exception fit one.
func TestEveryMutantCompiles(t *testing.T) {
	o := options{root: "../../..", check: true}
	if _, err := o.run(context.Background(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// TestAnExceptionThatFitsNothing: the condition that it was for is gone, and so must it be.
func TestAnExceptionThatFitsNothing(t *testing.T) {
	points := []point{{folder: "p", function: "f", text: "n > 3", changes: []change{force}}}
	for name, tc := range map[string]struct {
		exception
		want int
	}{
		"fits":              {exception{"p", "f", "n > 3", force, "why"}, 0},
		"fits all":          {exception{"p", "f", "n > 3", "", "why"}, 0},
		"another condition": {exception{"p", "f", "n > 4", force, "why"}, 1},
		"another function":  {exception{"p", "g", "n > 3", force, "why"}, 1},
		"another change":    {exception{"p", "f", "n > 3", deny, "why"}, 1},
		"no reason":         {exception{"p", "f", "n > 3", force, ""}, 1},
	} {
		if got := stale([]exception{tc.exception}, points); len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhichPackagesAreRead: those that are asked for, and those whose tests examine them too; of no other an exception is judged.
func TestWhichPackagesAreRead(t *testing.T) {
	all := []core{{folder: "a", also: "c"}, {folder: "b"}, {folder: "c"}}
	for packages, want := range map[string]string{"": "a b c", "^b$": "b", "^a$": "a c", "x": "", "[": "error"} {
		read, err := options{packages: packages}.chosen(all)
		var got []string
		for _, c := range read {
			got = append(got, c.folder)
		}
		if err != nil {
			got = []string{"error"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", packages, got, want)
		}
	}
	if got := within([]exception{{folder: "a"}, {folder: "b"}}, all[1:2]); len(got) != 1 || got[0].folder != "b" {
		t.Errorf("%+v", got)
	}
}

// TestWhatInvariantsNameIsMutated: a file that docs/internals/invariants.md says a rule is enforced in holds a guard.
func TestWhatInvariantsNameIsMutated(t *testing.T) {
	files := enforcedIn(t)
	for file := range files {
		if !slices.ContainsFunc(cores, func(c core) bool { return c.folder == path.Dir(file) && c.holds(file) }) && elsewhere[path.Dir(file)] == "" {
			t.Errorf("%s holds a guard, and no condition of it is mutated", file)
		}
	}
	if len(files) < 40 {
		t.Errorf("docs/internals/invariants.md names %d files", len(files))
	}
}

// TestWhatInvariantsNameIsThere: each guard that the page names is in the file that it names.
func TestWhatInvariantsNameIsThere(t *testing.T) {
	seen := 0
	for file, guards := range enforcedIn(t) {
		source, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Error(err)
			continue
		}
		code := comment.ReplaceAllString(string(source), "")
		for _, guard := range guards {
			seen++
			if !regexp.MustCompile(`\b` + guard + `\b`).MatchString(code) {
				t.Errorf("docs/internals/invariants.md names %s of %s, whose code has no such word", guard, file)
			}
		}
	}
	if seen < 80 {
		t.Errorf("docs/internals/invariants.md names %d guards", seen)
	}
}

var (
	// enforced is a file, and what the page says in parentheses about it.
	enforced = regexp.MustCompile("`([a-z0-9/_]+)\\.go`(?: \\(([^)]*)\\))?")
	// guard is a name at the head of what is said.
	guard   = regexp.MustCompile("^(?:, )?`([A-Za-z]+)`")
	comment = regexp.MustCompile(`(?m)//.*$`)
)

// enforcedIn returns the files that docs/internals/invariants.md names, and the guards in each.
func enforcedIn(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/internals/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	files, folder := map[string][]string{}, ""
	for _, hit := range enforced.FindAllStringSubmatch(string(text), -1) {
		name := hit[1]
		if strings.Contains(name, "/") {
			folder = path.Dir(name)
		}
		file := base(folder, path.Base(name)+".go")
		files[file] = append(files[file], guards(hit[2])...)
	}
	return files
}

// guards are the names that stand before what is said of them.
func guards(said string) (names []string) {
	for part := range strings.SplitSeq(said, "; ") {
		for hit := guard.FindStringSubmatch(part); hit != nil; hit = guard.FindStringSubmatch(part) {
			names, part = append(names, hit[1]), part[len(hit[0]):]
		}
	}
	return names
}

// base finds the file that a page names without its folder: in the one that was named last, or in any other.
func base(folder, name string) string {
	if _, err := os.Stat(filepath.Join("../../..", folder, name)); err == nil {
		return folder + "/" + name
	}
	for _, c := range cores {
		if _, err := os.Stat(filepath.Join("../../..", c.folder, name)); err == nil {
			return c.folder + "/" + name
		}
	}
	return folder + "/" + name
}

const toy = `package p

import (
	"errors"
	"log/slog"
)

type state struct{ open, held bool; log []string }

func may(s *state, n int, err error) error {
	if s.open && (n > 3 || s.held) {
		return errors.New("no")
	}
	switch n {
	case 1, 2:
		s.log = append(s.log, "few")
	default:
		s.open, s.held = true, false
	}
	note(s)
	if err != nil && n > 7 {
		slog.Default().Info("nothing but this depends on it")
	}
	return nil
}

func note(s *state) { s.log = append(s.log, "noted") }

func both(a, b bool) bool { return !(a && b) }

func list(n int) []string { return append([]string{"a"}, "b") }
`

const toyTest = `package p

import "testing"

func TestMay(t *testing.T) {
	for _, s := range []struct{ state; n int; refused bool }{
		{state{open: true}, 4, true}, {state{open: true}, 3, false}, {state{open: true, held: true}, 3, true},
		{state{held: true}, 4, false}, {state{}, 1, false}, {state{}, 2, false},
	} {
		was := s.state
		if err := may(&was, s.n, nil); (err != nil) != s.refused {
			t.Error(s)
		} else if err == nil && (s.n > 2) != (len(was.log) == 1 && was.open && !was.held) {
			t.Error(was)
		}
	}
}

func TestList(t *testing.T) { list(1) }
`

// toyHunter is a hunter of a package of its own.
func toyHunter(t *testing.T, tests string, draws int) (*hunter, []mutant, string) {
	t.Helper()
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module toy\n\ngo 1.26\n", "p/p.go": toy, "p/p_test.go": tests} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{root: root, workers: 1}
	sources, err := load(context.Background(), root, []core{{folder: "p", draws: []int{draws}}})
	if err != nil {
		t.Fatal(err)
	}
	file, points, err := overlay(dir, sources)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := o.mutants(sources, points)
	if err != nil {
		t.Fatal(err)
	}
	h := newHunter(o, dir, sources, points)
	if err := h.copyTree(root, []string{"p/p.go"}); err != nil {
		t.Fatal(err)
	}
	return h, wanted, file
}

// TestAHunt: which mutants there are, and which of them a test misses.
func TestAHunt(t *testing.T) {
	h, wanted, file := toyHunter(t, toyTest, 1)
	if err := h.baselines(context.Background(), file, wanted); err != nil {
		t.Fatal(err)
	}
	got := map[string]means{}
	for _, m := range wanted {
		o, err := h.hunt(context.Background(), m, outcome{})
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(o.Mutant, "p ")] = o.By
	}
	want := map[string]means{
		"may: s.open && (n > 3 || s.held) => true":        byTest,
		"may: s.open && (n > 3 || s.held) => false":       byTest,
		"may: s.open => true":                             byTest,
		"may: n > 3 || s.held => true":                    byTest,
		"may: n > 3 => false":                             byTest,
		"may: s.held => false":                            byTest,
		"may: 1 => true":                                  byTest,
		"may: 1 => false":                                 byTest,
		"may: 2 => false":                                 byTest,
		`may: s.log = append(s.log, "few") => dropped`:    notFound,
		"may: s.open = true => dropped":                   byTest,
		"may: s.held = false => dropped":                  byTest,
		"may: note(s) => dropped":                         byTest,
		`note: s.log = append(s.log, "noted") => dropped`: byTest,
		"both: !(a && b) => true":                         notReached,
		"both: !(a && b) => false":                        notReached,
		"both: a => true":                                 notReached,
		"both: b => true":                                 notReached,
		`list: append([]string{"a"}, "b") => dropped`:     notFound,
	}
	for name, by := range want {
		if got[name] != by {
			t.Errorf("%s: %q, want %q", name, got[name], by)
		}
	}
	for name, by := range got {
		if want[name] == "" {
			t.Errorf("%s: %q was not thought of", name, by)
		}
	}
}

// TestNoHuntWithTestsThatFail: they would miss every mutant. So would a property that is never drawn.
func TestNoHuntWithTestsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		tests string
		draws int
		want  string
	}{
		"a test that fails":         {toyTest + "func TestWrong(t *testing.T) { t.Fatal() }\n", 1, "TestWrong fails without any mutant"},
		"properties without a draw": {toyTest, 0, "proves nothing"},
	} {
		h, wanted, file := toyHunter(t, tc.tests, tc.draws)
		if err := h.baselines(context.Background(), file, wanted); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range cores {
		if len(c.draws) == 0 || slices.Min(c.draws) <= 0 {
			t.Errorf("%s draws properties %v times", c.folder, c.draws)
		}
	}
}

// TestWhatStands: an earlier outcome counts for the very same code alone, and never for tests that were changed.
func TestWhatStands(t *testing.T) {
	h := newHunter(options{seeds: 10}, "", nil, nil)
	h.prints = prints{sources: "s", own: map[string]string{"p": "o"}}
	for name, tc := range map[string]struct {
		outcome
		want bool
	}{
		"found":                  {outcome{Mutant: "p f", By: byTest, Sources: "s", Own: "o"}, true},
		"found in other code":    {outcome{Mutant: "p f", By: byTest, Sources: "x", Own: "o"}, false},
		"found by other tests":   {outcome{Mutant: "p f", By: byTest, Sources: "s", Own: "x"}, false},
		"not found":              {outcome{Mutant: "p f", By: notFound, Seeds: 10, Sources: "s", Own: "o"}, true},
		"not found, fewer seeds": {outcome{Mutant: "p f", By: notFound, Seeds: 9, Sources: "s", Own: "o"}, false},
		"never hunted":           {outcome{}, false},
	} {
		if got := h.standing(tc.outcome); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
