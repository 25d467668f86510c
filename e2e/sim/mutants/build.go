// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// All guards are built into one program, and the environment says which is missing: a hundred builds would take longer than
// the hunt. For every function that a variant changes, its changed body stands in front of its own, and is taken when the
// variant's number was asked for. The tree is never touched: go build gets the changed files as an overlay.

// environment names the variant.
const environment = "MFG_MUTANT"

const selector = `// Written by e2e/sim/mutants.

package %s

import (
	"os"
	"strconv"
)

var mfgMutant = func() int { n, _ := strconv.Atoi(os.Getenv("` + environment + `")); return n }()
`

// overlay writes the changed files into dir and returns the file that go build takes. What does not apply is returned by
// the variant's number.
func overlay(root, dir string, all []variant) (string, map[int]error, error) {
	broken := map[int]error{}
	bodies := map[string][]alternative{}
	for _, v := range all {
		found, err := v.alternatives(root)
		if err != nil {
			broken[v.id] = err
			continue
		}
		for file, more := range found {
			bodies[file] = append(bodies[file], more...)
		}
	}
	replace := map[string]string{}
	put := func(file, text string) error {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		target, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		replace[target] = at
		return os.WriteFile(at, []byte(text), 0o600)
	}
	for _, file := range slices.Sorted(maps.Keys(bodies)) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", broken, fmt.Errorf("overlay: %w", err)
		}
		if err := put(file, weave(string(text), bodies[file])); err != nil {
			return "", broken, err
		}
		folder := path.Dir(file)
		if err := put(folder+"/zz_mutant.go", fmt.Sprintf(selector, path.Base(folder))); err != nil {
			return "", broken, err
		}
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", broken, fmt.Errorf("overlay: %w", err)
	}
	at := filepath.Join(dir, "overlay.json")
	return at, broken, os.WriteFile(at, body, 0o600)
}

// alternative is the changed body of a function, and where its own begins.
type alternative struct {
	id, at int
	body   string
}

// alternatives are the bodies that a variant changes, by file. What lies outside of functions must stay as it is.
func (v variant) alternatives(root string) (map[string][]alternative, error) {
	changed, err := v.apply(root)
	if err != nil {
		return nil, err
	}
	out := map[string][]alternative{}
	for file, text := range changed {
		own, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		before, err := bodiesOf(string(own))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		after, err := bodiesOf(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		if !slices.Equal(before.between, after.between) {
			return nil, fmt.Errorf("%s: changes more of %s than bodies of functions", v.name, file)
		}
		for i, b := range after.inside {
			if b.text != before.inside[i].text {
				out[file] = append(out[file], alternative{id: v.id, at: before.inside[i].at, body: b.ended()})
			}
		}
	}
	return out, nil
}

// source is a file, cut into the bodies of its functions and what is between them.
type source struct {
	inside  []body
	between []string
}

type body struct {
	at      int
	text    string
	returns bool
}

// ended is the body as a block after which nothing of what follows is run.
func (b body) ended() string {
	if b.returns {
		return b.text
	}
	return strings.TrimSuffix(b.text, "}") + "\nreturn\n}"
}

func bodiesOf(text string) (source, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parse: %w", err)
	}
	var out source
	last := 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		var block *ast.BlockStmt
		var kind *ast.FuncType
		switch f := n.(type) {
		case *ast.FuncDecl:
			block, kind = f.Body, f.Type
		case *ast.FuncLit:
			block, kind = f.Body, f.Type
		}
		if block == nil {
			return true
		}
		from, to := files.Position(block.Pos()).Offset, files.Position(block.End()).Offset
		out.inside = append(out.inside, body{at: from, text: text[from:to], returns: kind.Results.NumFields() > 0})
		out.between = append(out.between, text[last:from])
		last = to
		return false
	})
	out.between = append(out.between, text[last:])
	return out, nil
}

// weave puts the changed bodies in front of the functions' own.
func weave(text string, all []alternative) string {
	slices.SortStableFunc(all, func(a, b alternative) int { return a.at - b.at })
	var out strings.Builder
	last := 0
	for _, a := range all {
		out.WriteString(text[last : a.at+1])
		// The compiler names the variant in what it says.
		fmt.Fprintf(&out, "\n//line mutant%d:1\nif mfgMutant == %d %s\n//line own:1\n", a.id, a.id, a.body)
		last = a.at + 1
	}
	out.WriteString(text[last:])
	return out.String()
}

var mistake = regexp.MustCompile(`mutant([0-9]+):[0-9:]+ .*`)

// mistakes are what the compiler says of variants.
func mistakes(said error) map[int]error {
	out := map[int]error{}
	for _, hit := range mistake.FindAllStringSubmatch(said.Error(), -1) {
		id, _ := strconv.Atoi(hit[1])
		out[id] = errors.New(hit[0])
	}
	return out
}

// compile runs go build or go test -c.
func compile(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return nil
}
