// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Reasons are declared in api/v1alpha1, those of the sidecar's fence in sidecar/fence/reason.go, which knows no Kubernetes, and those
// of HTTP answers and of write probes in api/wire. Everywhere else they are used by their names.

// reasonFiles declare the reasons of conditions, events, decisions and refusals.
const reasonFiles = "api/v1alpha1/reasons*.go"

// notReasons are files with words of other lists that are spelled as a reason is.
var notReasons = map[string]string{
	"operator/promotion/rules.go":       "names of rules",
	"operator/promotion/candidate.go":   "rules of the ranking",
	"operator/monitor/evidence/runs.go": "a reason of Kubernetes",
	"kubectl-mfg/cli/failure.go":        "outcomes of requests",
	"internal/bucket/errors.go":         "codes of storages",
}

// reasonsDeclared are the reasons by their values, each with the name of its constant.
func reasonsDeclared(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(reasonFiles)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", reasonFiles, err)
	}
	declared := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			name, value, doc := spec.Names[0].Name, literal(spec.Values[0]), strings.TrimSpace(spec.Doc.Text())
			switch meaning, found := strings.CutPrefix(doc, name+": "); {
			case name != "Reason"+value || !isNamed(spec.Type, "Reason"):
				t.Errorf("%s: %s is %q: the name is Reason and the value, the type is Reason", path, name, value)
			case declared[value] != "":
				t.Errorf("%s: %q is declared twice", path, value)
			case !found || !strings.HasSuffix(meaning, "."):
				t.Errorf("%s: the comment of %s does not say when it is given, as in %q: %q", path, name, name+": what is so.", doc)
			}
			declared[value] = name
			return true
		})
	}
	return declared
}

// productFiles are the Go files that are shipped, without those that are generated.
func productFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	for _, root := range []string{"api", "internal", "operator", "sidecar", "kubectl-mfg", "tui"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "applyconfiguration") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			all[filepath.ToSlash(path)] = file
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestReasonsAreDeclaredOnce: a reason has one constant, which says when it is given, and no file spells a reason out again.
func TestReasonsAreDeclaredOnce(t *testing.T) {
	declared, used := reasonsDeclared(t), map[string]bool{}
	for path, file := range productFiles(t) {
		if matched, err := filepath.Match(reasonFiles, path); err != nil || matched {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				used[id.Name] = true
			}
			if spec, is := n.(*ast.ValueSpec); is && spec.Type != nil && !isNamed(spec.Type, "Reason") {
				return false // words of another list
			}
			if notReasons[path] == "" && !strings.HasPrefix(path, "api/") && path != "sidecar/fence/reason.go" {
				for _, word := range spelledOut(n, declared) {
					t.Errorf("%s spells the reason %q out: declare it in %s, once", path, word, reasonFiles)
				}
			}
			return true
		})
	}
	for value, name := range declared {
		if !used[name] {
			t.Errorf("nobody gives the reason %s", value)
		}
	}
}

// TestSpelledOut: the test above sees a reason wherever one can be given.
func TestSpelledOut(t *testing.T) {
	declared := map[string]string{"NoFitCandidate": "ReasonNoFitCandidate"}
	for code, want := range map[string]int{
		`var _ = View{Reason: "Removed"}`:                               1,
		`var _ = x.Reason == "Removed"`:                                 1,
		`var _ = "Removed" != reason`:                                   1,
		`var _ = Reason("Removed")`:                                     1,
		`var _ = v1alpha1.Reason("Removed")`:                            1,
		`const Gone v1alpha1.Reason = "Removed"`:                        1,
		`const gone = "NoFitCandidate"`:                                 1,
		`func f() { v.State, v.Reason, v.Message = a, "Removed", "b" }`: 1,
		`func f() { switch d.Reason { case "Removed": } }`:              1,
		`func f() { report.True(kind, "Removed", "words") }`:            1,
		`func f() { stuck("Removed", "words") }`:                        1,
		`func f() Reason { return "Removed" }`:                          1,
		`func f() (why Reason, words string) { return "Removed", "" }`:  1,
		`var _ = View{Reason: ""}`:                                      0,
		`var _ = View{Reason: v1alpha1.ReasonRemoved}`:                  0,
		`const Removed Outcome = "Removed"`:                             0,
		`var _ = "the reason is that nobody answers"`:                   0,
		`func f() Reason { return func() string { return "words" }() }`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(code, err)
		}
		found := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, word := range spelledOut(n, declared) {
				found[word] = true
			}
			return true
		})
		if len(found) != want {
			t.Errorf("%s: found %v", code, found)
		}
	}
}

// spelledOut are the words at a node that are given, or asked for, as a reason.
func spelledOut(n ast.Node, declared map[string]string) (words []string) {
	given := func(at, what ast.Expr) {
		if word := literal(what); word != "" && isReasonPlace(at) {
			words = append(words, word)
		}
	}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		given(n.Key, n.Value)
	case *ast.BinaryExpr:
		given(n.X, n.Y)
		given(n.Y, n.X)
	case *ast.AssignStmt:
		for i := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				given(n.Lhs[i], n.Rhs[i])
			}
		}
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			if clause, is := c.(*ast.CaseClause); is && n.Tag != nil {
				for _, e := range clause.List {
					given(n.Tag, e)
				}
			}
		}
	case *ast.ValueSpec:
		for _, v := range n.Values {
			if word := literal(v); word != "" && (isNamed(n.Type, "Reason") || n.Type == nil && declared[word] != "") {
				words = append(words, word)
			}
		}
	case *ast.CallExpr:
		words = append(words, inCall(n)...)
	case *ast.FuncDecl:
		words = append(words, returned(n)...)
	case *ast.BasicLit:
		if word := literal(n); declared[word] != "" && humps(word) > 1 {
			words = append(words, word)
		}
	}
	return words
}

// givers are functions that are given a reason, and which of their arguments it is.
var givers = map[string]int{"True": 1, "False": 1, "Unknown": 1, "Reason": 0, "moving": 0, "stuck": 0, "normal": 0, "warning": 0, "against": 2}

func inCall(call *ast.CallExpr) []string {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if at, gives := givers[name]; gives && at < len(call.Args) && literal(call.Args[at]) != "" {
		return []string{literal(call.Args[at])}
	}
	return nil
}

// returned are the words that a function returns where its result is a reason.
func returned(f *ast.FuncDecl) (words []string) {
	if f.Type.Results == nil || f.Body == nil {
		return nil
	}
	var types []ast.Expr
	for _, field := range f.Type.Results.List {
		for range max(1, len(field.Names)) {
			types = append(types, field.Type)
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if r, is := n.(*ast.ReturnStmt); is && len(r.Results) == len(types) {
			for i, e := range r.Results {
				if literal(e) != "" && isNamed(types[i], "Reason") {
					words = append(words, literal(e))
				}
			}
		}
		return true
	})
	return words
}

// literal is the text of a string that is spelled out; empty for anything else, and for words that are no reason.
func literal(e ast.Expr) string {
	lit, is := e.(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return ""
	}
	return text
}

func isNamed(e ast.Expr, name string) bool {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name == name
	case *ast.SelectorExpr:
		return t.Sel.Name == name
	}
	return false
}

// isReasonPlace is true for a field or a variable that holds a reason by its name.
func isReasonPlace(e ast.Expr) bool { return isNamed(e, "Reason") || isNamed(e, "reason") }

// humps counts the capitals of a word: one of a single hump may stand for anything.
func humps(word string) int {
	return len(slices.DeleteFunc([]rune(word), func(r rune) bool { return !unicode.IsUpper(r) }))
}
