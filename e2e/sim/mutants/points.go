// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// change is what a mutant does at a point.
type change string

const (
	// force takes a condition for true, deny for false. To deny the condition of an early return is to drop that guard.
	force change = "true"
	deny  change = "false"
	// drop leaves out a statement, an assignment, or one effect of a list.
	drop change = "dropped"
)

// point is a place in the source that a mutant can change.
type point struct {
	id               int
	folder, function string
	// text is the condition or effect, as it is written.
	text, where string
	changes     []change
}

// key names a mutant as long as the condition is there, whatever stands around it.
func (p point) key(c change) string {
	return fmt.Sprintf("%s %s: %s => %s", p.folder, p.function, p.text, c)
}

// edit puts text around a piece of source, or in its place.
type edit struct {
	from, to             token.Pos
	before, after, takes string
}

// finder collects the points of one package.
type finder struct {
	*source
	file     *file
	function string
	seen     map[ast.Node]bool
	twice    map[string]int
	points   []point
	edits    map[*file][]edit
	first    int
}

// find returns the points of a package, numbered from first, and the edits that make them.
func (s *source) find(first int) ([]point, map[*file][]edit) {
	f := &finder{source: s, seen: map[ast.Node]bool{}, twice: map[string]int{}, edits: map[*file][]edit{}, first: first}
	for _, file := range s.files {
		f.file = file
		for _, d := range file.tree.Decls {
			f.function = nameOf(d)
			ast.Inspect(d, f.visit)
		}
	}
	return f.points, f.edits
}

func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		return strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, isVar := spec.(*ast.ValueSpec); isVar {
				return d.Tok.String() + " " + v.Names[0].Name
			}
		}
	}
	return ""
}

// mark makes a point.
func (f *finder) mark(n ast.Node, changes ...change) int {
	return f.name(n, f.short(n), changes...)
}

// name makes a point; the second of the same text in a function is told apart from the first.
func (f *finder) name(n ast.Node, text string, changes ...change) int {
	id := f.first + len(f.points)
	f.twice[f.function+"\n"+text]++
	if again := f.twice[f.function+"\n"+text]; again > 1 {
		text += fmt.Sprintf(" (%d)", again)
	}
	f.points = append(f.points, point{id: id, folder: f.folder, function: f.function, text: text, changes: changes,
		where: fmt.Sprintf("%s:%d", f.file.name, f.fset.Position(n.Pos()).Line)})
	return id
}

func (f *finder) edit(n ast.Node, before, after string) {
	f.edits[f.file] = append(f.edits[f.file], edit{from: n.Pos(), to: n.End(), before: before, after: after})
}

func (f *finder) replace(n ast.Node, takes string) {
	f.edits[f.file] = append(f.edits[f.file], edit{from: n.Pos(), to: n.End(), takes: takes})
}

// visit finds what is special of a kind of node; conditions that stand anywhere else are found as logical expressions.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if f.onlyLogs(n) {
			f.leaveOut(n.Cond)
			break
		}
		f.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.truth(n.Cond, deny) // a loop that never ends weakens no guard
			f.operands(n.Cond)
		}
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.ReturnStmt:
		f.values(n.Results, true)
	case *ast.AssignStmt:
		f.values(n.Rhs, false)
	case *ast.ValueSpec:
		f.values(n.Values, false)
	case *ast.KeyValueExpr:
		f.values([]ast.Expr{n.Value}, false)
	case *ast.CompositeLit:
		f.values(n.Elts, false)
	case *ast.CallExpr:
		f.values(n.Args, false)
		f.call(n)
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.condition(n)
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

// values are conditions if they are compared or asked for; what is only passed on is none, unless it is returned.
func (f *finder) values(all []ast.Expr, returned bool) {
	for _, e := range all {
		if !f.isBool(e) {
			continue
		}
		switch ast.Unparen(e).(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr, *ast.CallExpr:
			f.condition(e)
		default:
			if returned {
				f.condition(e)
			}
		}
	}
}

// isBool is true for a truth that is not constant.
func (f *finder) isBool(e ast.Expr) bool {
	tv, known := f.info.Types[e]
	if !known || !tv.IsValue() || tv.Value != nil {
		return false
	}
	basic, is := tv.Type.Underlying().(*types.Basic)
	return is && basic.Info()&types.IsBoolean != 0
}

// condition is taken for true and for false, and each operand of && and || for what drops it.
func (f *finder) condition(e ast.Expr) {
	f.truth(e, force, deny)
	f.operands(e)
}

func (f *finder) truth(e ast.Expr, changes ...change) {
	inner := ast.Unparen(e)
	if f.seen[inner] || !f.isBool(inner) {
		return
	}
	f.seen[inner] = true
	ask := "mfgCond"
	if _, named := types.Unalias(f.info.Types[inner].Type).(*types.Named); named {
		ask = "mfgCondOf"
	}
	f.edit(inner, fmt.Sprintf("%s(%d, ", ask, f.mark(inner, changes...)), ")")
}

func (f *finder) operands(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if b, is := ast.Unparen(e.X).(*ast.BinaryExpr); is && e.Op == token.NOT && isLogical(b) {
			f.seen[b] = true // it is the whole, upside down
			f.operands(b)
		}
	case *ast.BinaryExpr:
		if !isLogical(e) {
			return
		}
		without := force
		if e.Op == token.LOR {
			without = deny
		}
		for _, o := range f.flat(e, e.Op) {
			f.truth(o, without)
			f.operands(o)
		}
	}
}

func isLogical(b *ast.BinaryExpr) bool { return b.Op == token.LAND || b.Op == token.LOR }

// flat are the operands of a chain of the same operator. The links between are no conditions of their own.
func (f *finder) flat(e ast.Expr, op token.Token) []ast.Expr {
	b, is := ast.Unparen(e).(*ast.BinaryExpr)
	if !is || b.Op != op {
		return []ast.Expr{e}
	}
	f.seen[b] = true
	return append(f.flat(b.X, op), f.flat(b.Y, op)...)
}

// cases are conditions too: a switch over a value is written as one over comparisons.
func (f *finder) cases(n *ast.SwitchStmt) {
	var all [][]ast.Expr
	for _, c := range n.Body.List {
		if clause, is := c.(*ast.CaseClause); is && len(clause.List) > 0 {
			all = append(all, clause.List)
		}
	}
	tag := ""
	if n.Tag != nil && len(all) > 0 {
		if n.Init != nil {
			tag = f.textOf(n.Tag)
		} else {
			tag = fmt.Sprintf("mfgTag%d", f.fset.Position(n.Pos()).Offset)
			f.edit(n.Tag, tag+" := ", ";")
		}
		if n.Init != nil {
			f.replace(n.Tag, "")
		}
	}
	for _, list := range all {
		for i, e := range list {
			changes := []change{force, deny}
			if i > 0 {
				changes = changes[1:]
			}
			if n.Tag == nil {
				f.truth(e, changes...)
				f.operands(e)
				continue
			}
			f.edit(e, fmt.Sprintf("mfgCond(%d, %s == (", f.mark(e, changes...), tag), "))")
		}
	}
}

func (f *finder) textOf(n ast.Node) string {
	return string(f.file.text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, is := s.X.(*ast.CallExpr); is && !f.isHousekeeping(call) {
				f.dropped(s)
			}
		case *ast.DeferStmt:
			if !f.isHousekeeping(s.Call) {
				f.dropped(s)
			}
		case *ast.GoStmt, *ast.SendStmt, *ast.IncDecStmt:
			f.dropped(s)
		case *ast.AssignStmt:
			f.assigned(s)
		}
	}
}

func (f *finder) dropped(s ast.Stmt) {
	f.edit(s, fmt.Sprintf("if mfgStays(%d) { ", f.mark(s, drop)), " }")
}

// assigned drops an assignment; of one to several each by itself.
func (f *finder) assigned(s *ast.AssignStmt) {
	isBlank := func(e ast.Expr) bool { id, is := e.(*ast.Ident); return is && id.Name == "_" }
	if s.Tok == token.DEFINE || !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return !isBlank(e) }) {
		return
	}
	if len(s.Lhs) == 1 || len(s.Lhs) != len(s.Rhs) {
		f.dropped(s)
		f.seen[s.Rhs[0]] = f.seen[s.Rhs[0]] || isAppend(s.Rhs[0]) // it is the same
		return
	}
	for i, e := range s.Rhs {
		if isBlank(s.Lhs[i]) || !f.mayKeep(s.Lhs[i], e) {
			continue
		}
		id := f.name(s, f.short(s.Lhs[i])+" = "+f.short(e), drop)
		if f.info.Types[e].IsNil() {
			f.replace(e, fmt.Sprintf("mfgZero(%d, %s)", id, f.textOf(s.Lhs[i])))
			continue
		}
		f.edit(e, fmt.Sprintf("mfgKeep(%d, %s, ", id, f.textOf(s.Lhs[i])), ")")
	}
}

func (f *finder) short(n ast.Node) string { return strings.Join(strings.Fields(f.textOf(n)), " ") }

// mayKeep is true if the left side can be read beside the right one, as the same type.
func (f *finder) mayKeep(left, right ast.Expr) bool {
	calls := false
	ast.Inspect(left, func(n ast.Node) bool { _, is := n.(*ast.CallExpr); calls = calls || is; return true })
	l, r := f.info.Types[left], f.info.Types[right]
	if id, is := left.(*ast.Ident); is {
		l.Type = f.info.Uses[id].Type()
	}
	return !calls && l.Type != nil && (r.IsNil() || r.Value != nil || types.Identical(l.Type, r.Type))
}

// isHousekeeping is true for what guards nothing by itself: log lines, locks (the race detector has those), what is released
// at the end, and panics.
func (f *finder) isHousekeeping(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "panic" || fun.Name == "cancel"
	case *ast.SelectorExpr:
		switch fun.Sel.Name {
		case "Lock", "Unlock", "RLock", "RUnlock", "Close", "Stop":
			return true
		}
		return f.isLog(call)
	}
	return false
}

// isLog is true for a log line.
func (f *finder) isLog(call *ast.CallExpr) bool {
	fun, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	on := f.info.Types[fun.X].Type
	return on != nil && (strings.HasSuffix(on.String(), "logr.Logger") || strings.HasSuffix(on.String(), "slog.Logger"))
}

// onlyLogs is true for a condition by which nothing is decided but whether something is logged.
func (f *finder) onlyLogs(n *ast.IfStmt) bool {
	others := slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool {
		e, is := s.(*ast.ExprStmt)
		if !is {
			return true
		}
		call, is := e.X.(*ast.CallExpr)
		return !is || !f.isLog(call)
	})
	return !others && n.Else == nil
}

// leaveOut makes no points of a condition and its operands.
func (f *finder) leaveOut(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool { f.seen[n] = true; return true })
}

// call finds effects that are added to a list inside of an expression.
func (f *finder) call(n *ast.CallExpr) {
	if isAppend(n) && f.info.Types[n.Fun].IsBuiltin() && !f.seen[n] {
		f.edit(n, fmt.Sprintf("mfgKeep(%d, %s, ", f.mark(n, drop), f.textOf(n.Args[0])), ")")
	}
	sig, is := f.info.Types[n.Fun].Type.(*types.Signature)
	if !is || !sig.Variadic() || n.Ellipsis.IsValid() || len(n.Args) < sig.Params().Len() {
		return
	}
	element, is := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice).Elem().(*types.Named)
	if !is || element.Obj().Name() != "Effect" || element.Obj().Pkg() != f.pkg {
		return
	}
	effects := n.Args[sig.Params().Len()-1:]
	base := f.first + len(f.points)
	for _, e := range effects {
		f.mark(e, drop)
	}
	f.edit(pairOf(effects), "mfgWithout([]Effect{", fmt.Sprintf("}, %d)...", base))
}

func pairOf(all []ast.Expr) ast.Node { return span{all[0].Pos(), all[len(all)-1].End()} }

type span struct{ from, to token.Pos }

func (s span) Pos() token.Pos { return s.from }
func (s span) End() token.Pos { return s.to }

func isAppend(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	if !is {
		return false
	}
	id, is := call.Fun.(*ast.Ident)
	return is && id.Name == "append"
}
