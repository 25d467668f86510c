// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is a package with its syntax and its types.
type source struct {
	core
	path, name string
	dir        string
	fset       *token.FileSet
	files      []*file
	info       *types.Info
	pkg        *types.Package
	// draws is true if its tests have properties.
	properties bool
}

// file is one file of it. Name is its path below the root.
type file struct {
	name string
	text []byte
	tree *ast.File
}

type listed struct {
	ImportPath, Export, Dir, Name string
	GoFiles                       []string
	TestGoFiles, XTestGoFiles     []string
	TestImports, XTestImports     []string
}

// load type-checks the cores. What they import comes from the compiler's own export data.
func load(ctx context.Context, root string, cores []core) ([]*source, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Dir,Name,GoFiles,TestImports,XTestImports"}
	for _, c := range cores {
		args = append(args, c.packageOf())
	}
	out, err := output(ctx, root, "go", args...)
	if err != nil {
		return nil, err
	}
	exports, byDir := map[string]string{}, map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[l.ImportPath], byDir[l.Dir] = l.Export, l
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	fset := token.NewFileSet()
	known := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []*source
	for _, c := range cores {
		s, err := check(fset, known, c, byDir[filepath.Join(absolute, c.folder)])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.folder, err)
		}
		all = append(all, s)
	}
	return all, nil
}

func check(fset *token.FileSet, known types.Importer, c core, l listed) (*source, error) {
	s := &source{core: c, path: l.ImportPath, name: l.Name, dir: l.Dir, fset: fset,
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	for _, imported := range append(l.TestImports, l.XTestImports...) {
		s.properties = s.properties || imported == "pgregory.net/rapid"
	}
	var trees []*ast.File
	for _, name := range l.GoFiles {
		at := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(at)
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		tree, err := parser.ParseFile(fset, at, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		trees = append(trees, tree)
		if c.holds(name) {
			s.files = append(s.files, &file{name: c.folder + "/" + name, text: text, tree: tree})
		}
	}
	if len(s.files) == 0 || len(c.files) > 0 && len(s.files) != len(c.files) {
		return nil, fmt.Errorf("%d of the files %v are there", len(s.files), c.files)
	}
	config := types.Config{Importer: known}
	pkg, err := config.Check(l.ImportPath, fset, trees, s.info)
	s.pkg = pkg
	return s, err
}

// output is what a program prints; its error says what it said.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args[:min(2, len(args))], " "), err, said.String())
	}
	return out.Bytes(), nil
}
