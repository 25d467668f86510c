// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/logkeys"
)

// logMethods are the methods of a logger, with how many arguments come before the keys.
var logMethods = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2}

// loggerName is how loggers are called: log, Log, logger, Logger(), and fields of these names.
var loggerName = regexp.MustCompile(`(?i)^(log|logger|slog)$`)

// isLogger says whether an expression names a logger; a chain of With does.
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return loggerName.MatchString(e.Name)
	case *ast.SelectorExpr:
		return loggerName.MatchString(e.Sel.Name)
	case *ast.CallExpr:
		if s, is := e.Fun.(*ast.SelectorExpr); is {
			return loggerName.MatchString(s.Sel.Name) || s.Sel.Name == "With" && isLogger(s.X)
		}
	}
	return false
}

// keysOf are the keys in the calls of loggers of a file, and the places of those that are no constants.
func keysOf(files *token.FileSet, file *ast.File) (keys map[string]string, unclear []string) {
	keys = map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		method, is := call.Fun.(*ast.SelectorExpr)
		if !is || !isLogger(method.X) {
			return true
		}
		before, is := logMethods[method.Sel.Name]
		if !is || call.Ellipsis.IsValid() {
			return true
		}
		for i := before; i < len(call.Args); i += 2 {
			at := files.Position(call.Args[i].Pos()).String()
			literal, is := call.Args[i].(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				unclear = append(unclear, at)
				continue
			}
			key, _ := strconv.Unquote(literal.Value)
			keys[key] = at
		}
		return true
	})
	return keys, unclear
}

// Whoever collects logs relies on the keys: the same thing has one name everywhere, and none is made up at run time. A new one is declared,
// with what it means; one that nobody uses any more goes.
func TestLogsUseDeclaredKeys(t *testing.T) {
	used := map[string]bool{}
	for _, folder := range []string{"operator", "sidecar", "backup", "internal"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			keys, unclear := keysOf(files, file)
			for _, at := range unclear {
				t.Errorf("%s: a key that is no string as it stands", at)
			}
			for key, at := range keys {
				used[key] = true
				if logkeys.Meanings()[key] == "" {
					t.Errorf("%s: the key %q is not declared in internal/logkeys", at, key)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range logkeys.Meanings() {
		if !used[key] {
			t.Errorf("nobody uses the key %q", key)
		}
	}
}

// The page has the keys with their meanings.
func TestLogKeysPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Logs\n")
	for _, key := range slices.Sorted(maps.Keys(logkeys.Meanings())) {
		if row := "| `" + key + "` | " + logkeys.Meanings()[key] + " |\n"; !strings.Contains(part, row) {
			t.Errorf("docs/monitoring.md, Logs, lacks the row\n%s", row)
		}
	}
	if rows := strings.Count(part, "\n| `"); rows != len(logkeys.Meanings()) {
		t.Errorf("docs/monitoring.md, Logs, has %d rows for %d keys", rows, len(logkeys.Meanings()))
	}
}

// TestKeysAreFound: a key is found wherever a logger gets it.
func TestKeysAreFound(t *testing.T) {
	const text = `package p
func f() {
	log.Info("a", "one", 1)
	x.Log.With("two", 2).Warn("b", "three", 3, "four", 4)
	s.log.ErrorContext(ctx, "c", "five", 5)
	log.Info("d", key, 6)
	other.Info("e", "none", 7)
}`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys, unclear := keysOf(files, file)
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, []string{"five", "four", "one", "three", "two"}) || len(unclear) != 1 {
		t.Errorf("found %v, unclear %v", got, unclear)
	}
}
