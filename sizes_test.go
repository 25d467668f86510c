// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The sizes that a reader can still take in. What grows over one of them gets a room of its own; docs/internals/architecture.md says which there are.
const (
	mostPackageLines = 3000
	mostFileLines    = 400
	mostMethods      = 60
)

// oversized are the packages that may be over the limits, files and types of theirs included, each with the reason.
var oversized = map[string]string{
	"api/v1alpha1": "the types of one group and version are one package to every Kubernetes tool; most lines are their documentation",
}

// size is how large a package of product code is.
type size struct {
	lines   int
	files   map[string]int
	methods map[string]int
}

// over says which limits a package is over.
func (s size) over() (all []string) {
	if s.lines > mostPackageLines {
		all = append(all, fmt.Sprintf("%d lines; a package has %d at most", s.lines, mostPackageLines))
	}
	for name, lines := range s.files {
		if lines > mostFileLines {
			all = append(all, fmt.Sprintf("%s: %d lines; a file has %d at most", name, lines, mostFileLines))
		}
	}
	for name, methods := range s.methods {
		if methods > mostMethods {
			all = append(all, fmt.Sprintf("%s: %d methods; a type has %d at most", name, methods, mostMethods))
		}
	}
	slices.Sort(all)
	return all
}

// add counts a file, unless it is generated.
func (s *size) add(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	lines := bytes.Count(text, []byte("\n"))
	s.lines, s.files[name] = s.lines+lines, lines
	for _, decl := range file.Decls {
		f, is := decl.(*ast.FuncDecl)
		if !is || f.Recv == nil {
			continue
		}
		s.methods[receiver(f.Recv.List[0].Type)]++
	}
	return nil
}

// receiver is the name of the type of a receiver: of T in (T), (*T) and (*T[V]).
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// sizesBelow are the sizes of all packages of product code below a folder, whatever they are built for.
func sizesBelow(t *testing.T, root string) map[string]size {
	t.Helper()
	all := map[string]size{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"e2e", "tools", "testdata", "out", "bin"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		s, known := all[folder]
		if !known {
			s = size{files: map[string]int{}, methods: map[string]int{}}
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = s.add(filepath.Base(name), text)
		}
		all[folder] = s
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNoRoomIsTooLarge: packages, files and types of product code stay as large as one can read. An exception that is not needed any more
// goes.
func TestNoRoomIsTooLarge(t *testing.T) {
	sizes := sizesBelow(t, ".")
	if len(sizes) < 40 {
		t.Fatalf("%d packages are found", len(sizes))
	}
	for name, s := range sizes {
		over, reason := s.over(), oversized[name]
		switch {
		case len(over) > 0 && reason == "":
			t.Errorf("%s: %s", name, strings.Join(over, "; "))
		case len(over) == 0 && reason != "":
			t.Errorf("%s is within all limits: take it out of oversized", name)
		}
	}
	for name := range oversized {
		if _, known := sizes[name]; !known {
			t.Errorf("oversized has %s, which is no package", name)
		}
	}
}

// TestEachLimitIsHeld: one line, one method more is told; generated code and tests count for nothing.
func TestEachLimitIsHeld(t *testing.T) {
	filled := func(lines int) string { return "package p\n" + strings.Repeat("\n", lines-1) }
	methods := func(n int) string {
		var b strings.Builder
		b.WriteString("package p\n")
		for i := range n {
			fmt.Fprintf(&b, "func (%s) m%d() {}\n", []string{"T", "*T", "t T", "t *T"}[i%4], i)
		}
		return b.String()
	}
	many := map[string]string{}
	for i := range 8 {
		many[fmt.Sprintf("f%d.go", i)] = filled(375)
	}
	more := map[string]string{"g.go": filled(1)}
	for name, text := range many {
		more[name] = text
	}
	for name, tc := range map[string]struct {
		files map[string]string
		over  int
	}{
		"as many lines as may be":   {map[string]string{"p.go": filled(400)}, 0},
		"a line more":               {map[string]string{"p.go": filled(401)}, 1},
		"in a test":                 {map[string]string{"p_test.go": filled(401)}, 0},
		"in what is generated":      {map[string]string{"p.go": "// Code generated by x. DO NOT EDIT.\n\n" + filled(401)}, 0},
		"as many methods as may be": {map[string]string{"p.go": methods(60)}, 0},
		"a method more":             {map[string]string{"p.go": methods(61)}, 1},
		"as large as may be":        {many, 0},
		"a line more than that":     {more, 1},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "p"), 0o750); err != nil {
			t.Fatal(err)
		}
		for file, text := range tc.files {
			if err := os.WriteFile(filepath.Join(root, "p", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if over := sizesBelow(t, root)["p"].over(); len(over) != tc.over {
			t.Errorf("%s: %v", name, over)
		}
	}
}
